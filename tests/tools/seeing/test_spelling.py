"""`spelling`: the canonical form tells apart what would be printed differently."""

import jax
import jax.numpy as jnp
import pytest

import tapejax as tf
from tapejax.jaxprs.fence import Primitive
from tapejax.tools.seeing.spelling import normal_form


def form(function, *args):
    return normal_form(jax.make_jaxpr(function)(*args))


@pytest.mark.parametrize("whole, real", [(0, 0.0), (1, 1.0)])
def test_an_integer_is_no_float(whole, real):
    x = jnp.ones(3)
    powers = [form(lambda x, n=n: jax.lax.pow(x, n), x) for n in (jnp.int32(whole), jnp.float32(real))]
    assert powers[0] != powers[1]


def test_several_primitives_that_do_the_same_have_one_form():
    x = jnp.ones((1, 3))
    assert form(lambda x: jnp.squeeze(x, 0), x) == form(lambda x: x.reshape(3), x) != form(lambda x: x.reshape(3, 1), x)
    assert form(jnp.square, x) == form(lambda x: x * x, x) == form(lambda x: x**2, x)


def test_what_is_not_read_and_what_is_known_is_no_part_of_it():
    x = jnp.ones(3)
    assert form(lambda x: (jnp.sin(x), x * (2.0 + 1.0))[1], x) == form(lambda x: x * 3.0 * 1.0, x)


@pytest.mark.parametrize("name", ["sin", "mine"])
def test_a_primitive_of_the_users_is_not_run(name):
    runs = []
    mine = Primitive(name)
    mine.def_impl(lambda x: runs.append(x) or x)
    mine.def_abstract_eval(lambda x: x)
    program = jax.make_jaxpr(lambda x: x * mine.bind(jnp.float32(2.0)))(jnp.float32(1.0))
    del runs[:]
    assert normal_form(program) != form(lambda x: x * 2.0, jnp.float32(1.0))
    assert not runs


def printed(index):
    """``x[...] * 2.0`` as it is printed, which gives the same numbers."""
    x, scope = jnp.arange(12.0).reshape(4, 3), {}
    function = tf.code(eval(f"lambda x: x{index} * 2.0"), x)
    exec(function.code, scope)
    assert jnp.array_equal(scope["f"](x), eval(f"x{index} * 2.0"))
    return function.code


@pytest.mark.parametrize(
    "index", ["[0]", "[1]", "[:, 0]", "[:, 2]", "[0, 0]", "[1, 1]", "[1:3, 0]", "[0, 1:]", "[3, 0]"]
)
def test_an_index_is_printed_as_it_is_written(index):
    assert f" x{index} * 2.0\n" in printed(index)


@pytest.mark.parametrize("index", ["[:2][1]", "[:2, :2][1, 1]", "[1:, 1:][0, 1]", "[::2][1]", "[1:, 1:][0]"])
def test_an_index_of_a_cut_is_the_same_element(index):
    printed(index)
