"""Values put into tensors and variables at indices, and the gradients of that."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
table = tf.Variable(tf.zeros([10, 4]))
values = tf.Variable(rng.normal(size=(6, 4)).astype("float32"))
indices = tf.constant([[1], [3], [3], [7], [0], [9]])
distinct = tf.constant([[1], [3], [2], [7], [0], [9]])
for name, function in {
    "scatter_nd": lambda: tf.scatter_nd(indices, values, [10, 4]),
    "add": lambda: tf.tensor_scatter_nd_add(table, indices, values),
    "sub": lambda: tf.tensor_scatter_nd_sub(table, indices, values),
    "update": lambda: tf.tensor_scatter_nd_update(table, distinct, values),
    "max": lambda: tf.tensor_scatter_nd_max(table, distinct, values),
    "segments": lambda: tf.math.unsorted_segment_sum(values, [0, 1, 1, 2, 0, 3], 4),
    "means": lambda: tf.math.segment_mean(values, [0, 0, 1, 1, 2, 3]),
    "gather_nd": lambda: tf.gather_nd(table + 1.0, indices),
    "dynamic": lambda: tf.dynamic_stitch([[0, 2, 4], [1, 3, 5]], [values[:3], values[3:]]),
}.items():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(function()) + function())
    gradients = [tf.zeros([]) if g is None else tf.reduce_sum(tf.abs(g)) for g in tape.gradient(loss, [table, values])]
    print(name, round(float(loss), 3), [round(float(g), 3) for g in gradients])
for step in range(4):
    table.scatter_nd_add(indices, values)
    table.scatter_update(tf.IndexedSlices(values[:2] * 0.5, tf.constant([2, 4])))
    table[1:3].assign(tf.ones([2, 4]) * step)
print(round(float(tf.reduce_sum(table)), 3))
