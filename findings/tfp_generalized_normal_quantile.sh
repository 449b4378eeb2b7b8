#!/bin/bash
# TensorFlow Probability 0.25.0, TensorFlow 2.21.0: `GeneralizedNormal.quantile` has finite values, and its derivatives with respect to scale and
# power are nan, the one with respect to the location 1. What follows a sample that is reparametrised by its quantile is nan with
# it. The derivatives of `cdf` are finite, and those of the quantile follow from them.
#
# Guessed: the derivatives of the values.
# Seen, at 0.7, location 0.1, scale 1.2, power 1.5, to location, scale, power:
#   quantile 1.0000 nan nan; by the derivatives of cdf 1.0000 0.3981 -0.1161
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tensorflow==2.21.0 tensorflow-probability==0.25.0 tf_keras==2.21.0 numpy==2.4.6
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

parameters = [tf.Variable(x, dtype=tf.float64) for x in (0.1, 1.2, 1.5)]
with tf.GradientTape() as tape:
    quantile = tfp.distributions.GeneralizedNormal(*parameters).quantile(tf.constant(0.7, tf.float64))
derivatives = [float(d) for d in tape.gradient(quantile, parameters)]
print("quantile", *(f"{d:.4f}" for d in derivatives))

with tf.GradientTape(persistent=True) as tape:
    point = tf.constant(float(quantile), tf.float64)
    tape.watch(point)
    probability = tfp.distributions.GeneralizedNormal(*parameters).cdf(point)
assert np.isclose(probability, 0.7)
implicit = [-float(d / tape.gradient(probability, point)) for d in tape.gradient(probability, parameters)]
print("by the derivatives of cdf", *(f"{d:.4f}" for d in implicit))
assert derivatives[0] == 1.0 and np.isnan(derivatives[1:]).all() and np.isfinite(quantile)
assert np.allclose(implicit, [1.0, 0.3981, -0.1161], atol=1e-3)
PROGRAM
