#!/bin/bash
# NumPyro 0.22.0, JAX 0.10.2: `DoublyTruncatedPowerLaw` has derivative rules of its own, and some are wrong, in silence. Those of `log_prob` with
# respect to the bounds are those of the density, not of its logarithm, and that of the upper bound has the wrong sign as well; `cdf`
# has that wrong sign where the exponent is -1. A density that is fitted to data moves its upper bound the wrong way.
#
# Guessed: the derivatives of the values, as the rules are there for accuracy.
# Seen, at 0.7 between 0.3 and 1.2, rule and difference quotient:
#   log_prob, exponent -1.5: lower 3.1174 and 3.3333, upper 0.3897 and -0.4167
#   log_prob, exponent 0.5: lower 0.7793 and 0.7143, upper 1.5587 and -1.4286
#   cdf, exponent -1.0: lower -0.9349 and -0.9349, upper 0.3674 and -0.3674
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check numpyro==0.22.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax

jax.config.update("jax_enable_x64", True)
import numpy as np  # noqa: E402
from numpyro.distributions import DoublyTruncatedPowerLaw  # noqa: E402

x, step = np.float64(0.7), 1e-5
cases = {
    ("log_prob", -1.5): (3.1174, 3.3333, 0.3897, -0.4167),
    ("log_prob", 0.5): (0.7793, 0.7143, 1.5587, -1.4286),
    ("cdf", -1.0): (-0.9349, -0.9349, 0.3674, -0.3674),
}
for (method, exponent), seen in cases.items():

    def f(low, high):
        return getattr(DoublyTruncatedPowerLaw(exponent, low, high, validate_args=False), method)(x)

    low, high = jax.grad(f, (0, 1))(0.3, 1.2)
    low_quotient = (f(0.3 + step, 1.2) - f(0.3 - step, 1.2)) / (2 * step)
    high_quotient = (f(0.3, 1.2 + step) - f(0.3, 1.2 - step)) / (2 * step)
    found = [low, low_quotient, high, high_quotient]
    print("{}, exponent {}: lower {:.4f} and {:.4f}, upper {:.4f} and {:.4f}".format(method, exponent, *found))
    np.testing.assert_allclose(found, seen, atol=1e-4)
PROGRAM
