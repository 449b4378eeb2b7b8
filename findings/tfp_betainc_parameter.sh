#!/bin/bash
# TensorFlow Probability 0.25.0, TensorFlow 2.21.0: the incomplete beta function has derivatives with respect to its two parameters, by series, and in
# 64 bits they agree with the difference quotient to eight digits, except that one is off in the third where x is larger than about the
# mean: with respect to a there; by symmetry with respect to b below it. `Beta.cdf` and `SigmoidBeta.log_cdf` have it from there.
#
# Guessed: eight digits for both.
# Seen, at a = 2, b = 3, x = 0.7, derivative and difference quotient:
#   to a -0.069291 -0.069571, to b 0.081873 0.081873
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tensorflow==2.21.0 tensorflow-probability==0.25.0 tf_keras==2.21.0 numpy==2.4.6
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PROGRAM'
import tensorflow as tf
import tensorflow_probability as tfp

at = {"a": 2.0, "b": 3.0, "x": 0.7}


def betainc(**changed):
    return tfp.math.betainc(*(tf.convert_to_tensor(changed.get(name, number), tf.float64) for name, number in at.items()))


wrong = {}
for name in ("a", "b"):
    number = tf.Variable(at[name], dtype=tf.float64)
    with tf.GradientTape() as tape:
        value = betainc(**{name: number})
    by_tape = float(tape.gradient(value, number))
    quotient = float(betainc(**{name: at[name] + 1e-5}) - betainc(**{name: at[name] - 1e-5})) / 2e-5
    print(f"to {name} {by_tape:.6f} {quotient:.6f}")
    wrong[name] = abs(by_tape / quotient - 1)
assert 3e-3 < wrong["a"] < 6e-3 and wrong["b"] < 1e-6
PROGRAM
