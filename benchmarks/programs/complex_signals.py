"""Filters learned in the frequency domain: some twenty-five operations on complex numbers, and their gradients."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
signal = tf.constant(rng.normal(size=(4, 32)).astype("float32"))
phase = tf.Variable(tf.zeros([17]))
gain = tf.Variable(tf.ones([17]))
mixing = tf.Variable(rng.normal(size=(4, 4)).astype("float32"))

for step in range(5):
    with tf.GradientTape() as tape:
        spectrum = tf.signal.rfft(signal)
        turned = spectrum * tf.exp(tf.complex(tf.zeros_like(phase), phase)) * tf.cast(gain, tf.complex64)
        mixed = tf.matmul(tf.complex(mixing, tf.zeros_like(mixing)), turned)
        power = tf.abs(mixed) ** 2
        back = tf.signal.irfft(mixed)
        loss = tf.reduce_mean(tf.square(back - signal)) + 0.01 * tf.reduce_mean(power)
    for v, g in zip((phase, gain, mixing), tape.gradient(loss, [phase, gain, mixing]), strict=True):
        v.assign_sub(0.1 * g)
    print(step, round(float(loss), 4))

z = tf.Variable(tf.complex([1.0, -0.5, 0.25], [0.5, 2.0, -1.0]))
functions = {
    "exp": tf.exp, "log": tf.math.log, "sin": tf.sin, "cos": tf.cos, "tanh": tf.tanh, "sqrt": tf.sqrt, "square": tf.square,
    "conj": tf.math.conj, "reciprocal": tf.math.reciprocal, "sigmoid": tf.sigmoid, "sinh": tf.sinh, "power": lambda z: z**3,
}  # fmt: skip
for name, function in functions.items():
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.math.real(function(z)) + tf.math.imag(function(z)) + tf.abs(z) + tf.math.angle(z))
    g = tape.gradient(y, z)
    print(name, round(float(tf.reduce_sum(tf.abs(g))), 4))
