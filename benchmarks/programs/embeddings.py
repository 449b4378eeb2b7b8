"""A word embedding with negative samples; then the curvature in a direction, by a Hessian-vector product."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
words, size = 50, 8
inputs = tf.Variable(rng.normal(0, 0.3, (words, size)).astype("float32"))
outputs = tf.Variable(rng.normal(0, 0.3, (words, size)).astype("float32"))
centres, contexts = rng.integers(0, words, (10, 32)), rng.integers(0, words, (10, 32))
negatives = rng.integers(0, words, (10, 32, 4))


def loss_of(i):
    centre = tf.nn.embedding_lookup(inputs, centres[i])
    right = tf.reduce_sum(centre * tf.gather(outputs, contexts[i]), -1)
    wrong = tf.einsum("bd,bkd->bk", centre, tf.gather(outputs, negatives[i]))
    ones, zeros = tf.ones_like(right), tf.zeros_like(wrong)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(ones, right)) + tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(zeros, wrong)
    )


for step in range(10):
    with tf.GradientTape() as tape:
        loss = loss_of(step)
    for v, g in zip((inputs, outputs), tape.gradient(loss, [inputs, outputs]), strict=True):
        v.assign_sub(0.5 * tf.convert_to_tensor(g))
    if step % 3 == 0:
        print(step, round(float(loss), 4))
direction = tf.constant(rng.normal(size=(words, size)).astype("float32"))
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        loss = loss_of(0)
    slope = tf.convert_to_tensor(inner.gradient(loss, inputs))
    along = tf.reduce_sum(slope * direction)
product = tf.convert_to_tensor(outer.gradient(along, inputs))
print("curvature", round(float(tf.reduce_sum(product * direction)), 4))
