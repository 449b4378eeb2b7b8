#!/bin/bash
# TensorFlow Probability 0.25.0, TensorFlow 2.21.0: the two distributions of extremes have a parameter of shape, and at 0 they are an exponential
# and a Gumbel distribution, as limits. The value takes the limit, the derivative with respect to the shape does not: it is 0 for
# `GeneralizedPareto` and another number for `GeneralizedExtremeValue`, where nearby it is what the limit has. A shape that starts at
# 0, the natural start, does not move at all in the first, in silence.
#
# Guessed: the limit.
# Seen, of the logarithm of the density at 0.7, location 0.1, scale 1.2, at shape 0 and 0.001:
#   GeneralizedPareto 0.0000, -0.3748; GeneralizedExtremeValue -0.5000, -0.4506
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tensorflow==2.21.0 tensorflow-probability==0.25.0 tf_keras==2.21.0 numpy==2.4.6
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

location, scale, point = (tf.constant(x, tf.float64) for x in (0.1, 1.2, 0.7))
right = {"GeneralizedPareto": -0.375, "GeneralizedExtremeValue": -0.4508}
for name, limit in right.items():
    distribution = getattr(tfp.distributions, name)
    derivatives, values = [], []
    for start in (0.0, 0.001):
        shape = tf.Variable(start, dtype=tf.float64)
        with tf.GradientTape() as tape:
            value = distribution(location, scale, shape).log_prob(point)
        derivatives.append(float(tape.gradient(value, shape)))
        values.append(float(value))
    print(name, *(f"{x:.4f}" for x in derivatives))
    assert np.isclose((values[1] - values[0]) / 0.001, limit, atol=1e-3)
    assert np.isclose(derivatives[1], limit, atol=1e-3) and abs(derivatives[0] - limit) > 0.04
PROGRAM
