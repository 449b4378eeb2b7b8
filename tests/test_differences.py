"""The examples of `docs/differences.md`, in "How a derivative is chosen", give what it says."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "differences.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## How a derivative is chosen")[2].partition("\n## ")[0]
EXAMPLES = re.findall(r"`([^`]+)` at `([^`]+)`: `([^`]+)`", SECTION)


def test_there_are_ten_rows_with_an_example_each():
    rows = re.findall(r"(?m)^\| (\d+)\. .* at `.*$", SECTION)
    assert rows == [str(i) for i in range(1, 11)]


@pytest.mark.parametrize("function, at, says", EXAMPLES, ids=[f"{f} at {at}" for f, at, _ in EXAMPLES])
def test_an_example(function, at, says):
    names = {"tf": tf, "jnp": jnp}
    right = eval(says, {"nan": np.nan, "inf": np.inf})
    with np.errstate(all="ignore"):  # that of a pole is a number like another
        x = jnp.array(eval(at), jnp.complex64 if "j" in at else jnp.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = eval(function, names, {"x": x})
        gradient = tape.gradient(y, x)
    if right is None:
        assert gradient is None
    else:
        np.testing.assert_allclose(gradient, right, rtol=1e-6)
    if "jnp." in function:
        np.testing.assert_allclose(jax.grad(lambda x: eval(function, names, {"x": x}))(x), right)
