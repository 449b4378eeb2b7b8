#!/bin/bash
# FlowJAX 19.1.2, JAX 0.10.2: `RationalQuadraticSpline` is a spline with slope 1 at both ends of its interval and the identity beyond. At
# an end itself the value is right and `transform_and_log_det` says slope 1, but the derivative of `transform` is 1/4 and that of
# `inverse` as well: a tie of `clip`, twice. Data that are clipped to the interval lie there.
#
# Guessed: slope 1 from all three, as inside and outside.
# Seen, the slope by `transform_and_log_det`, by `jax.grad` of `transform`, and by that of `inverse`, of a new spline over -2 to 2, the identity:
#   -2.000: 1.00 0.25 0.25
#   1.999: 1.00 1.00 1.00
#   2.000: 1.00 0.25 0.25
#   2.001: 1.00 1.00 1.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check flowjax==19.1.2 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import numpy as np
from flowjax.bijections import RationalQuadraticSpline
from paramax import unwrap

spline = unwrap(RationalQuadraticSpline(knots=5, interval=2))
for x, seen in ((-2.0, 0.25), (1.999, 1.0), (2.0, 0.25), (2.001, 1.0)):
    value, log_slope = spline.transform_and_log_det(jnp.array(x))
    slopes = [float(slope) for slope in (jnp.exp(log_slope), jax.grad(spline.transform)(x), jax.grad(spline.inverse)(x))]
    print(f"{x:.3f}:", *(f"{slope:.2f}" for slope in slopes))
    np.testing.assert_allclose([value, *slopes], [x, 1.0, seen, seen], atol=1e-5)
PROGRAM
