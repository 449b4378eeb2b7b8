"""`notebooks/transformations.py`, which notebook 0b builds: nested in any order it gives JAX's numbers, or refuses."""

from __future__ import annotations

import ast
import json

import exercises_written
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

FOLDER = exercises_written.NOTEBOOKS
XS, YS, ZS = np.array([0.3, -1.2, 2.0]), np.array([0.5, 1.5, -0.4]), np.array([1.1, -0.7])  # two of equal length


@pytest.fixture
def ours(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import transformations

    with jax.enable_x64(True):
        yield transformations


def theirs():
    class Jax:
        sin, cos, exp, relu, grad, vmap = jnp.sin, jnp.cos, jnp.exp, jax.nn.relu, jax.grad, jax.vmap

        @staticmethod
        def jvp(f, primals, tangents):
            return jax.jvp(f, primals, tangents)

    return Jax


def f(m, x, y):
    return x * m.sin(y * x) + m.relu(x - y) * m.cos(x)


def slope(m, g, x):
    return m.jvp(g, [x], [1.0])[1]


PROGRAMS = {
    "grad of grad of grad": lambda m: m.grad(m.grad(m.grad(lambda x: f(m, x, 0.4))))(1.3),
    "grad of jvp": lambda m: m.grad(lambda x: slope(m, lambda y: f(m, x, y), x * x))(1.3),
    "jvp of grad": lambda m: slope(m, lambda x: m.grad(lambda y: f(m, x, y))(x), 1.3),
    "confusion": lambda m: m.grad(lambda x: x * m.grad(lambda y: x + y)(1.0))(1.0),
    "confusion, mixed": lambda m: slope(m, lambda x: x * m.grad(lambda y: x * y)(2.0), 3.0),
    "vmap of grad of grad": lambda m: m.vmap(m.grad(m.grad(lambda x: f(m, x, 0.4))))(XS),
    "vmap of vmap": lambda m: m.vmap(lambda x: m.vmap(lambda y: f(m, x, y))(YS))(XS),
    "vmap three times": lambda m: m.vmap(lambda x: m.vmap(lambda y: m.vmap(lambda z: f(m, x, y) * z)(ZS))(YS))(XS),
    "vmap of a grad over both": lambda m: m.vmap(lambda x: m.vmap(m.grad(lambda y: f(m, x, y)))(YS))(XS),
    "jvp around vmaps": lambda m: slope(
        m, lambda t: m.vmap(lambda x: m.vmap(lambda y: f(m, x * t, y * t))(YS))(XS), 0.8
    ),
    "jvp around a batch made of t": lambda m: slope(
        m, lambda t: m.vmap(lambda x: m.vmap(lambda y: x * y)(m.vmap(lambda y: y * t * t)(YS)))(XS), 0.8
    ),
    "vmap of jvp around vmap": lambda m: m.vmap(lambda t: slope(m, lambda s: m.vmap(lambda x: f(m, x * s, t))(XS), t))(
        YS
    ),
    "quotients and powers": lambda m: m.vmap(m.grad(m.grad(lambda x: (1.0 / x - x**3) / (x**2 + 2.0) ** 0.5)))(XS),
    "exp and abs": lambda m: m.vmap(m.grad(m.grad(lambda x: m.exp(-abs(x) * x))))(XS),
    "rows": lambda m: m.vmap(lambda row: m.vmap(lambda x: x * x)(row))(np.outer(XS, ZS)),
    "constants": lambda m: m.vmap(lambda x: m.vmap(lambda y: x)(YS))(XS),
    "an array for each": lambda m: m.vmap(lambda x: m.vmap(lambda y: y * y)(YS))(XS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nested_as_in_jax(ours, name):
    np.testing.assert_allclose(PROGRAMS[name](ours), PROGRAMS[name](theirs()), rtol=1e-13, atol=1e-14)


REFUSED = {
    "grad of vmap": lambda m: m.grad(lambda w: m.vmap(lambda x: w * x)(XS))(2.0),
    "grad of an array": lambda m: m.grad(lambda x: x * x)(XS),
    "grad of several results": lambda m: m.grad(lambda x: [x, x * x])(2.0),
    "if in a batch": lambda m: m.vmap(lambda x: x if x > 0.0 else -x)(XS),
    "math.sin": lambda m: m.grad(lambda x: m.math.sin(x))(0.5),
    "a dictionary": lambda m: m.jvp(lambda x: {"y": x}, [1.0], [1.0]),
    "too few tangents": lambda m: m.jvp(lambda x, y=0.0: x * y, [1.0, 2.0], [1.0]),
    "a power whose exponent is differentiated": lambda m: m.grad(lambda x: 2.0**x)(0.5),
    "a box to the power of a box": lambda m: m.grad(lambda x: x**x)(0.5),
    "the exponent in a batch": lambda m: m.vmap(lambda x: 2.0**x)(XS),
    "grad of grad of an array": lambda m: m.jvp(m.grad(lambda x: x * x * x), [XS], [1.0]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_cannot_do_is_refused(ours, name):
    with pytest.raises((TypeError, ValueError)):
        REFUSED[name](ours)


def test_a_comparison_looks_at_the_number(ours):
    for x, right in ((0.0, 0.0), (1.0, 3.0), (-1.0, -2.0)):
        assert ours.grad(lambda x: x * x * x if x >= 1.0 else x * x if x != 0.0 else 0.0 * x)(x) == right
    assert (
        ours.grad(lambda x: x if x == 2.0 else -x)(2.0) == 1.0 and ours.grad(lambda x: -x if not x else x)(0.0) == -1.0
    )


def test_what_the_notebook_gives_is_what_the_file_has():
    cells = json.loads((FOLDER / "0b_functional_ad_from_scratch.ipynb").read_text(encoding="utf-8"))["cells"]
    parts, known = exercises_written.parts_of("transformations.py"), {}
    for cell in cells:
        for part in ast.parse("".join(cell["source"])).body if cell["cell_type"] == "code" else []:
            name = getattr(part, "name", None)
            if name in parts and not any(isinstance(x, ast.Constant) and x.value is ... for x in ast.walk(part)):
                known[name] = ast.unparse(part)  # the last one: `call` comes again, with arrays
    assert known == {name: ast.unparse(ast.parse(parts[name])) for name in known}
    assert {"Box", "Dual", "Unknown", "Linear", "Batch", "weighted_sum", "rearranged", "each"} <= set(known)
