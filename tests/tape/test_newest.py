"""The rows of `docs/newest.md`: what JAX that is installed gives, and what a tape gives."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tapejax import GradientTape

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "newest.md").read_text(encoding="utf-8")
ROWS = {
    row[0]: row[1:]
    for row in re.findall(r"(?m)^\| (?!where|---)(.+?) \| (.+?) \| (.+?) \| (.+?) \| .+? \| (.+?) \|$", PAGE)
}
WHAT = re.compile(r"(gradient|second derivative|Hessian|value and gradient) of `(.+?)` at `(.+?)`")
COLUMN = 0 if jax.__version_info__ < (0, 11) else 1


def shared_output(w):
    @jax.custom_vjp
    def f(w, x):
        return 2.0 * w, w * x

    def backward(saved, cotangents):
        w, x = saved
        return 2.0 * cotangents[0] + x * cotangents[1], w * cotangents[1]

    f.defvjp(lambda w, x: (f(w, x), (w, x)), backward)
    shared, each = jax.vmap(f, (None, 0), (None, 0))(w, jnp.arange(3.0, dtype=jnp.float32))
    return shared + jnp.sum(each)


def two_logs(x):
    f = jax.custom_vjp(jnp.sin)
    f.defvjp_with_logs(lambda x: (jnp.sin(x), x), lambda x, g: ((g * jnp.cos(x),), {"cotangent": g}))
    return f(f(x))


NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "shared_output": shared_output, "two_logs": two_logs}
VALUES = {"nan": np.nan, "inf": np.inf}


def by_jax(kind, f, x):
    take = {
        "gradient": jax.grad,
        "second derivative": lambda f: jax.grad(jax.grad(f)),
        "Hessian": jax.hessian,
        "value and gradient": jax.value_and_grad,
    }
    return take[kind](f)(x)


def by_a_tape(kind, f, x):
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        if kind in ("second derivative", "Hessian"):
            y = tape.gradient(y, x)
    gradient = outer.jacobian(y, x) if kind == "Hessian" else outer.gradient(y, x)
    return (y, gradient) if kind == "value and gradient" else gradient


def agrees(take, what, wanted):
    """Whether a derivative is what a cell of the table says: a value, None, or the class of an error."""
    kind, function, at = WHAT.match(what).groups()
    x = jnp.array(eval(at, VALUES), jnp.complex64 if "j" in at else jnp.float32)
    if wanted.endswith("Error"):
        with pytest.raises(Exception) as raised:  # noqa: PT011 - its class is the row's
            take(kind, lambda x: eval(function, NAMES, {"x": x}), x)
        assert type(raised.value).__name__ == wanted
        return
    found = take(kind, lambda x: eval(function, NAMES, {"x": x}), x)
    if wanted == "None":
        assert found is None
        return
    for one, right in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, eval(wanted, VALUES))), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-30)


def test_each_row_is_tested():
    lines = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| where", "| ---"))]
    assert len(lines) == len(ROWS) >= 30
    assert all(WHAT.match(what) and len(re.findall(r"`.+?`", old + new)) == 2 for what, old, new, _ in ROWS.values())
    own = {function.__name__ for function in (shared_output, two_logs)}
    assert own == set(re.findall(r"of `(\w+)\(x\)`", PAGE))


@pytest.mark.parametrize("title", ROWS)
def test_what_jax_gives(title):
    what, *columns, _ = ROWS[title]
    agrees(by_jax, what, columns[COLUMN].strip("`"))


@pytest.mark.parametrize("title", ROWS)
def test_what_a_tape_gives(title):
    what, *columns, tape = ROWS[title]
    values = columns if tape == "the same" else re.findall(r"`.+?`", tape)[-2:]
    agrees(by_a_tape, what, values[COLUMN].strip("`"))
