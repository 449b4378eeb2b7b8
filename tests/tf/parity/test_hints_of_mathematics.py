"""What the hints for missing functions of mathematics name gives TensorFlow's values and gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(3)
SQUARE = RNG.normal(size=(3, 3)).astype(f32) + 4 * np.eye(3, dtype=f32)
POSITIVE = (SQUARE @ SQUARE.T).astype(f32)
BELOW, MAIN, ABOVE = (RNG.normal(size=4).astype(f32) + shift for shift in f32([0, 6, 0]))
BELOW[0] = ABOVE[-1] = 0
RIGHT = RNG.normal(size=(4, 2)).astype(f32)
IMAGE = RNG.normal(size=(1, 5, 5, 2)).astype(f32)
FILTERS = RNG.normal(size=(2, 2, 2)).astype(f32)
ROWS, WEIGHTS = RNG.normal(size=(2, 3, 4)).astype(f32)
WEIGHTS = np.abs(WEIGHTS)


def patches(x, filters, sign):
    height, width, depth = filters.shape
    x = jnp.moveaxis(jnp.asarray(x), -1, 1)
    found = jax.lax.conv_general_dilated_patches(x, (height, width), (1, 1), "VALID")
    found = found.reshape(len(x), depth, height * width, *found.shape[2:])
    flat = jnp.moveaxis(jnp.asarray(filters), -1, 0).reshape(1, depth, height * width, 1, 1)
    found = jnp.max(found + flat, 2) if sign > 0 else jnp.min(found - flat[:, :, ::-1], 2)
    return jnp.moveaxis(found, 1, -1)


def tridiagonal(*given):
    below, main, above, b = map(jnp.asarray, given)
    below, main, above = below[:, None], main[:, None], above[:, None]
    return (main * b).at[:-1].add(above[:-1] * b[1:]).at[1:].add(below[1:] * b[:-1])


def solved(*given):
    return jax.lax.linalg.tridiagonal_solve(*map(jnp.asarray, given))


def moments(x, weights):
    x, weights = map(jnp.asarray, (x, weights))
    mean = jnp.average(x, 0, weights)
    return [mean, jnp.average((x - mean) ** 2, 0, weights)]


def bands(f, below, main, above, b):
    return f([above, main, below], b, diagonals_format="sequence")


def morphology(f, x, filters):
    return f(x, filters, [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])


# name: (a word of its hint, a call of TensorFlow's function, a call of what the hint names, arguments)
DIFFERENTIABLE = {
    "math.betainc": (
        "scipy.special.betainc", lambda f, x: f([1.5, 0.5], [2.0, 3.0], x),
        lambda x: jax.scipy.special.betainc(f32([1.5, 0.5]), f32([2.0, 3.0]), jnp.asarray(x)), f32([0.3, 0.8]),
    ),
    "linalg.tridiagonal_solve": ("tridiagonal_solve", bands, solved, BELOW, MAIN, ABOVE, RIGHT),
    "linalg.tridiagonal_matmul": (".at[1:].add", bands, tridiagonal, BELOW, MAIN, ABOVE, RIGHT),
    "nn.dilation2d": ("patches", morphology, functools.partial(patches, sign=1), IMAGE, FILTERS),
    "nn.erosion2d": ("patches", morphology, functools.partial(patches, sign=-1), IMAGE, FILTERS),
    "nn.weighted_moments": ("average", lambda f, x, w: list(f(x, 0, w)), moments, ROWS, WEIGHTS),
}  # fmt: skip
VALUES = {
    "linalg.logm": (
        "funm", lambda f: f(POSITIVE.astype("complex64")),
        lambda: jax.scipy.linalg.funm(POSITIVE, jnp.log).astype("complex64"),
    ),
    "linalg.eigh_tridiagonal": (
        "eigh_tridiagonal", lambda f: f(MAIN, ABOVE[:-1]),
        lambda: jax.scipy.linalg.eigh_tridiagonal(MAIN, ABOVE[:-1], eigvals_only=True),
    ),
    "signal.kaiser_window": ("kaiser", lambda f: f(8, 5.0), lambda: jnp.kaiser(8, 5.0).astype("float32")),
}  # fmt: skip


def hinted(name, word, by_tensorflow, by_hint):
    def call(tf, *arrays):
        try:
            function = functools.reduce(getattr, name.split("."), tf)
        except AttributeError as error:
            assert word in str(error)
            return jax.tree.map(tf.convert_to_tensor, by_hint(*arrays))
        return by_tensorflow(function, *arrays)

    return call


table = Table(rtol=2e-4, atol=2e-4)
for name, (word, by_tensorflow, by_hint, *arguments) in DIFFERENTIABLE.items():
    table.gradients(name, hinted(name, word, by_tensorflow, by_hint), *arguments)
for name, (word, by_tensorflow, by_hint) in VALUES.items():
    table.values(name, hinted(name, word, by_tensorflow, by_hint))
test_rows = table.test()
