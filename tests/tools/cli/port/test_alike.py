"""Whether values are the same, and what an argument is called."""

import jax.numpy as jnp
import numpy as np

from tapejax.tools.cli.port.alike import argument_name, content, equal


def test_values_are_the_same_by_type_and_bits():
    assert content(1) != content(1.0) and content(jnp.zeros(1)) != content(-jnp.zeros(1))
    assert content(np.ones(2, "float32")) == content(jnp.ones(2)) and content(np.ones(2)) != content(np.ones(3))
    assert equal(np.ones(2, "float64"), jnp.ones(2)) and not equal(1, jnp.asarray(1.0))


def test_an_argument_has_a_name_that_nothing_else_has():
    assert argument_name("x['w']", set()) == "x_w" and argument_name("x", {"x"}) == "x_1"
    assert argument_name(None, {"data"}) == "data_1" and argument_name("params", set()) == "params_1"
