"""A differential equation, y'' = -y, solved by a network whose derivatives are a batch Jacobian's, in 64 bits."""

import numpy as np
import tensorflow as tf

tf.keras.backend.set_floatx("float64")
tf.keras.utils.set_random_seed(6)
model = tf.keras.Sequential(
    [tf.keras.Input((1,)), tf.keras.layers.Dense(12, activation="tanh"), tf.keras.layers.Dense(1)]
)
optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.PiecewiseConstantDecay([6, 10], [0.02, 0.01, 0.005]))
points = tf.constant(np.linspace(0, 2, 9).reshape(-1, 1))


def residual(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = model(x)
        slope = inner.batch_jacobian(y, x)[:, :, 0]
    curvature = outer.batch_jacobian(slope, x)[:, :, 0]
    return curvature + y, y, slope


for step in range(14):
    with tf.GradientTape() as tape:
        r, y, slope = residual(points)
        start = (y[0, 0] - 0.0) ** 2 + (slope[0, 0] - 1.0) ** 2
        loss = tf.reduce_mean(r**2) + start
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    if step % 4 == 0:
        print("step", step, "loss", loss.numpy(), "start", float(start))
tf.keras.backend.set_floatx("float32")
