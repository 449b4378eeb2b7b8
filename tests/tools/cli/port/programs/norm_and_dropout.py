"""Batch normalisation, dropout and an average of the weights: state that a step assigns."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
x = rng.normal(size=(64, 5)).astype("float32")
y = np.sin(x.sum(axis=1, keepdims=True)).astype("float32")

model = tf.keras.Sequential(
    [
        tf.keras.Input((5,)),
        tf.keras.layers.Dense(16, use_bias=False),
        tf.keras.layers.BatchNormalization(momentum=0.9),
        tf.keras.layers.Activation("gelu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.RMSprop(0.01, momentum=0.5)
steps_done = tf.Variable(0, trainable=False, dtype=tf.int64)

for step in range(14):
    rows = rng.integers(0, 64, 16)
    with tf.GradientTape() as tape:
        prediction = model(x[rows], training=True)
        penalty = 1e-3 * tf.add_n([tf.nn.l2_loss(w) for w in model.trainable_weights])
        loss = tf.reduce_mean((prediction - y[rows]) ** 2) + penalty / (1.0 + tf.cast(steps_done, tf.float32))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    steps_done.assign_add(1)
    print(step, float(loss))
