#!/bin/bash
# TensorFlow Probability 0.26.0.dev20261027 (JAX substrate), NumPyro 0.22.0, JAX 0.10.2: the inverse of the regularised incomplete gamma function,
# `igammainv(a, p)`, has a rule of its own. Its first derivatives are right, and so is the second with respect to p; the second with respect
# to a is wrong, not even in sign, in silence. That of `igamma` with respect to a raises a NotImplementedError; here the
# rule of the inverse hides it. NumPyro's `Gamma.icdf`, `Chi2.icdf` and `InverseGamma.icdf` have it from there: Newton's
# method on a quantile, or its curvature, is off.
#
# Guessed: the derivatives of the value, or that NotImplementedError.
# Seen, the quantile at 0.7 of shape 2.3, its first and second derivative, and the difference quotients of the value and of the first derivative:
#   Gamma 2.7964, to the shape: 1.1835 0.2426 and 1.1835 -0.0434
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tfp-nightly==0.26.0.dev20261027 numpyro==0.22.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax

jax.config.update("jax_enable_x64", True)
import numpy as np  # noqa: E402
from numpyro.distributions import Gamma  # noqa: E402
from tensorflow_probability.substrates.jax.math import igammainv  # noqa: E402

shape, step = 2.3, 1e-4


def quotient(f, x):
    return (f(x + step) - f(x - step)) / (2 * step)


cases = {
    "igammainv": lambda shape: igammainv(shape, np.float64(0.7)),
    "Gamma": lambda shape: Gamma(shape, 1.0).icdf(np.float64(0.7)),
}
for name, f in cases.items():
    numbers = [f(shape), jax.grad(f)(shape), jax.grad(jax.grad(f))(shape), quotient(f, shape), quotient(jax.grad(f), shape)]
    print("{} {:.4f}, to the shape: {:.4f} {:.4f} and {:.4f} {:.4f}".format(name, *numbers))
    np.testing.assert_allclose(numbers, [2.7964, 1.1835, 0.2426, 1.1835, -0.0434], atol=1e-4)
to_probability = jax.grad(lambda p: igammainv(shape, p))
second, by_quotient = jax.grad(to_probability)(0.7), quotient(to_probability, 0.7)
print(f"igammainv, to p twice: {second:.3f} and {by_quotient:.3f}")
np.testing.assert_allclose(second, by_quotient, rtol=1e-4)
PROGRAM
