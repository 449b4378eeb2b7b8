"""The page of which README.md has a picture; the picture is made by

python docs/site/split_player.py /tmp/split.html
chromium --headless --no-sandbox --hide-scrollbars --window-size=1240,580 --screenshot=docs/split_player.png "file:///tmp/split.html#6"
"""

import sys

import jax.numpy as jnp

import tapejax as tf

a, b = jnp.array(2.0), jnp.array(3.0)
with tf.GradientTape() as tape:
    tape.watch([a, b])
    y = a * b + jnp.sin(a)

tape.play(y, [a, b], split=True).save(sys.argv[1])
