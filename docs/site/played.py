"""The tape that the site's first page plays: ``python docs/site/played.py tape.html`` writes it."""

import sys

import jax.numpy as jnp

import tapejax as tf

x = jnp.array([1.0, 2.0, 3.0])
w = tf.Variable([0.5, -1.0, 0.25], name="w")

with tf.GradientTape() as tape:
    tape.watch(x)
    wave = jnp.sin(x) * x  # plain JAX
    loss = tf.reduce_sum((wave - w) ** 2)  # TensorFlow's names

tape.play(loss, [x, w]).save(sys.argv[1])
