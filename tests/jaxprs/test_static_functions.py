"""Functions among the static arguments of a primitive: what they close over is the primitive's operands, and no part of them."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import cache, canonical, contents
from tapejax.jaxprs.canonical import exact, opened
from tapejax.jaxprs.interning import intern, is_known
from tests.compiling import compiles
from tests.jaxprs.static_functions import apply, root


def times(y):
    return lambda x: apply(lambda x: x * y, x)


def over_a_tracer():
    return jax.make_jaxpr(jax.jit(lambda x, y: times(jnp.sin(y))(x)))(1.0, 2.0)


def in_a_vmap():
    return jax.make_jaxpr(jax.vmap(lambda x, y: times(y)(x)))(jnp.ones(3), jnp.ones(3))


@pytest.mark.parametrize("make", [over_a_tracer, in_a_vmap, lambda: jax.make_jaxpr(root)(2.0)])
def test_a_program_is_recognised_and_closes_over_nothing(make, no_shadow):
    one, other = make(), make()
    assert contents.constants(one) == {}
    assert intern(one) is intern(other) and is_known(other)
    assert exact(one) == exact(other) != exact(jax.make_jaxpr(jax.jit(lambda x, y: times(jnp.cos(y))(x)))(1.0, 2.0))


def test_the_representative_keeps_no_array(no_shadow):
    array = jnp.arange(3.0)
    program = jax.make_jaxpr(lambda x, y: times(y)(x))(1.0, array)
    closed = jax.make_jaxpr(times(array))(1.0)
    assert [id(x) for x in contents.constants(closed).values()] == [
        id(array)
    ]  # an operand, which the program closes over
    first, gone = intern(program), weakref.ref(array)
    del program, closed, array
    gc.collect()
    assert gone() is None
    assert contents.contains(first, "static_function")


def test_a_jaxpr_is_opened_where_it_stands_beside_other_things():
    closed = jax.make_jaxpr(lambda x: x * np.arange(3.0, dtype="float32"))(1.0)
    for alone in ((closed, closed), (closed, None), closed, "name", (1, (2, "name"))):
        assert opened(alone) is alone
    beside, within = (closed, "name"), (("static", (closed, "name")), 1)
    if canonical.ClosedJaxpr is not canonical.Jaxpr:  # before JAX 0.11 what is closed is meant to be
        assert opened(beside) is beside and opened(within) is within
        return
    program = opened(beside)[0]
    assert program.consts == [] and len(program.invars) == 2
    assert opened(within)[0][1][0].consts == [] and opened((program, "name"))[0] is program


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, lambda f: lambda x: jax.jit(f)(x)], ids=["eager", "jit", "new jit"]
)
@pytest.mark.parametrize(
    "function",
    [root, lambda x: root(x) * apply(lambda y: y * x, jnp.sin(x)), jax.vmap(lambda x: times(jnp.cos(x))(x))],
    ids=["root", "beside", "vmap"],
)
def test_under_a_tape(function, wrap, x64, no_shadow):
    cache.clear()
    with jax.enable_x64(x64):
        x, f = jnp.array([2.0, 9.0], "float64" if x64 else "float32"), wrap(function)
        expected = jax.grad(lambda x: function(x).sum())(x)
        for _ in range(4):
            with compiles() as compiled, tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
                slope = tape.gradient(y, x)
            np.testing.assert_allclose(slope, expected, rtol=1e-6)
            assert slope.dtype == x.dtype
        assert compiled == []
        np.testing.assert_allclose(jax.jit(lambda x: gradient(f, x))(x), expected, rtol=1e-6)


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)
