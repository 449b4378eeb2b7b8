#!/bin/bash
# dm-pix 0.4.5, JAX 0.10.2: `flat_nd_linear_interpolate` reads an image at coordinates between its pixels. On a pixel its derivative with respect to
# the coordinate is 0, whatever the image: the neighbours are `floor` and `ceil`, which are one and the same there. A registration that begins
# where it usually does, at the identity, has gradient 0 and does not move. `jax.scipy.ndimage.map_coordinates` gives the slope to the right.
#
# Guessed: the slope of one side.
# Seen, of [0, 1, 4, 9]:
#   at 1.0: dm-pix 0.0, JAX 3.0
#   at 1.001: dm-pix 3.0, JAX 3.0
#   shift of a ramp of slope 10, from 0: dm-pix 0.0, JAX 10.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check dm-pix==0.4.5 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import functools

import dm_pix
import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates

image = jnp.arange(4.0) ** 2
ramp, pixels = 10.0 * jnp.arange(6.0), jnp.arange(1.0, 5.0)
ways = {"dm-pix": dm_pix.flat_nd_linear_interpolate, "JAX": functools.partial(map_coordinates, order=1)}
for at, seen in ((1.0, [0.0, 3.0]), (1.001, [3.0, 3.0])):
    values = [float(f(image, jnp.array([[at]]))[0]) for f in ways.values()]
    slopes = [float(jax.grad(lambda x, f=f: f(image, x[None, None])[0])(at)) for f in ways.values()]
    print(f"at {at}: " + ", ".join(f"{name} {round(x, 3)}" for name, x in zip(ways, slopes)))
    assert abs(values[0] - values[1]) < 1e-5 and all(abs(x - y) < 1e-2 for x, y in zip(slopes, seen))

shifts = [float(jax.grad(lambda x, f=f: f(ramp, (pixels + x)[None]).mean())(0.0)) for f in ways.values()]
print("shift of a ramp of slope 10, from 0: " + ", ".join(f"{name} {round(x, 3)}" for name, x in zip(ways, shifts)))
assert shifts[0] == 0 and abs(shifts[1] - 10) < 1e-3
PROGRAM
