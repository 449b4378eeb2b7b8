#!/bin/bash
# TensorFlow Probability 0.25.0, TensorFlow 2.21.0: the parameter of a normalising constant that is a special function without a rule counts as
# one in the other terms only, in silence. The density of `Zipf` is k^-s / zeta(s); the derivative of its logarithm with respect
# to s is that of k^-s alone. So a fit lowers the exponent for ever, from whatever data; that of `NoncentralChi2` with
# respect to the degrees of freedom misses the Bessel function. `zeta` itself raises no error: its derivative is None.
#
# Guessed: the derivatives of the values, or an error.
# Seen, the tape's derivative and the difference quotient:
#   Zipf at 2, exponent 2.5: -0.6931, -0.4044; NoncentralChi2 at 0.7, 2.5 degrees: -0.1548, -0.4772
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tensorflow==2.21.0 tensorflow-probability==0.25.0 tf_keras==2.21.0 numpy==2.4.6
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PROGRAM'
import tensorflow as tf
import tensorflow_probability as tfp

distributions = {
    "Zipf at 2, exponent 2.5": (lambda p: tfp.distributions.Zipf(p), 2.0),
    "NoncentralChi2 at 0.7, 2.5 degrees": (lambda p: tfp.distributions.NoncentralChi2(p, tf.constant(1.3, tf.float64)), 0.7),
}


def number(x):
    return tf.constant(x, tf.float64)


seen = {}
for name, (distribution, point) in distributions.items():

    def log_density(p):
        return distribution(p).log_prob(number(point))

    p = tf.Variable(2.5, dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = log_density(p)
    by_tape = float(tape.gradient(y, p))
    quotient = float(log_density(number(2.5 + 1e-5)) - log_density(number(2.5 - 1e-5))) / 2e-5
    print(f"{name}: {by_tape:.4f}, {quotient:.4f}")
    seen[name] = round(by_tape, 4), round(quotient, 4)
assert list(seen.values()) == [(-0.6931, -0.4044), (-0.1548, -0.4772)]

s = tf.Variable(2.5, dtype=tf.float64)
with tf.GradientTape() as tape:
    y = tf.math.zeta(s, number(1.0))
assert tape.gradient(y, s) is None
PROGRAM
