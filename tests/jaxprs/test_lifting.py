"""`jaxprs/lifting.py`: arrays that a jaxpr closes over become inputs of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tapejax.jaxprs import contents, lifting
from tapejax.jaxprs.fence import jaxpr_as_fun
from tests.jaxprs.static_functions import apply

X, K = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])


def lifted(fn, *args):
    """`fn` as a function of the arrays that it closes over, and then of its arguments; and these arrays."""
    closed = jax.make_jaxpr(fn)(*args)
    arrays = contents.constants(closed)
    return jaxpr_as_fun(lifting.lift_jaxpr(closed, arrays)), list(arrays.values())


def solve(x):
    return lax.custom_linear_solve(lambda y: y * K, x, lambda _, b: b / K, symmetric=True)


BODIES = {
    "plain": lambda x: x * K,
    "jit": jax.jit(lambda x: x * K),
    "scan": lambda x: lax.scan(lambda c, t: (c * K + t, c.sum()), x, jnp.ones((3, 2)) + 1)[0],
    "reverse scan": lambda x: lax.scan(lambda c, t: (c, c * K), x, length=3, reverse=True)[1][0],
    "while": lambda x: lax.while_loop(lambda c: (c < 50 * K).all(), lambda c: c * K, x),
    "cond": lambda x: lax.cond(x[0] > 0, lambda x: x * K, lambda x: x, x),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(x * K)),
    "solve": solve,
    "static function": lambda x: apply(lambda x: x * K, x),
    "static function in jit": jax.jit(lambda x: apply(lambda x: x * K, x)),
    "nested": jax.jit(lambda x: lax.cond(x[0] > 0, jax.jit(lambda x: lax.sin(x * K)), lambda x: x, x)),
}


@pytest.mark.parametrize("name", BODIES)
def test_an_array_at_any_depth_becomes_an_input(name):
    fn, arrays = lifted(BODIES[name], X)
    given = [jnp.array([1.5, 0.5]) if x is K else x for x in arrays]
    assert any(x is K for x in arrays)
    np.testing.assert_allclose(fn(*arrays, X)[0], BODIES[name](X), rtol=1e-6)
    assert not np.allclose(fn(*given, X)[0], BODIES[name](X))


@pytest.mark.parametrize("name", [name for name in BODIES if name != "while"])
def test_a_derivative_can_be_taken_with_respect_to_it(name):
    fn, arrays = lifted(BODIES[name], X)
    position = next(i for i, x in enumerate(arrays) if x is K)
    slope = jax.grad(lambda k: fn(*arrays[:position], k, *arrays[position + 1 :], X)[0].sum())(K)
    step = 1e-2
    for i in range(2):
        ends = [
            fn(*arrays[:position], K.at[i].add(sign * step), *arrays[position + 1 :], X)[0].sum() for sign in (1, -1)
        ]
        np.testing.assert_allclose(slope[i], (ends[0] - ends[1]) / (2 * step), rtol=2e-2)


def test_a_program_is_lifted_once(no_shadow):
    closed = jax.make_jaxpr(BODIES["jit"])(X)
    arrays = contents.constants(closed)
    assert lifting.lift_jaxpr(closed, arrays) is lifting.lift_jaxpr(closed, arrays)


def sines(program):
    for eqn in contents.open_jaxpr(program).eqns:
        yield from [eqn] if eqn.primitive.name == "sin" else []
        for inner in contents.jaxprs_in(eqn.params):
            yield from sines(inner)


@pytest.mark.parametrize("decorate", [lambda fn: fn, jax.jit], ids=["plain", "jit"])
def test_the_line_and_the_named_scopes_of_an_equation_are_kept(decorate):
    @decorate
    @jax.named_scope("scope")
    def wave(x):
        return jnp.sin(x * K)

    closed = jax.make_jaxpr(wave)(X)
    (kept,) = [eqn.source_info for eqn in sines(lifting.lift_jaxpr(closed, contents.constants(closed)))]
    assert "wave" in [code.co_name for code, _ in zip(*kept.traceback.raw_frames(), strict=True)]
    assert "scope" in str(kept.name_stack)


def test_a_primitive_that_is_bound_is_lifted_with_its_parameters():
    call = jax.make_jaxpr(jax.checkpoint(jax.jit(lambda x: x * K)))(X).eqns[-1]
    closed = lifting.lift(call.primitive, call.params, [X], {id(K): K})
    assert len(closed.in_avals) == 2 and contents.constants(closed) == {}
    assert jaxpr_as_fun(closed)(jnp.array([10.0, 10.0]), X)[0].tolist() == [10.0, 20.0]


def test_a_jit_gets_an_input_in_front_for_each_array():
    params = jax.make_jaxpr(jax.jit(lambda x: x * K, donate_argnums=0))(X).eqns[-1].params
    arrays = {id(K): K}
    found = lifting.with_inputs(params, arrays)
    assert found["donated_invars"] == (False, *params["donated_invars"]) and len(found["in_shardings"]) == 2
    assert len(found["jaxpr"].in_avals) == 1 + len(params["jaxpr"].in_avals) and found["name"] == params["name"]


def test_what_a_custom_rule_closes_over_has_no_derivative():
    refusing = lifting.without_closure(lambda k, x: x * k, "f", (0,))
    assert jax.grad(lambda x: refusing(K, x).sum())(X).tolist() == K.tolist()
    message = (
        "gradient registry has no entry for: f with respect to an array that it closes over.*pass the array as one"
    )
    with pytest.raises(LookupError, match=message):
        jax.grad(lambda k: refusing(k, X).sum())(K)


def test_where_nothing_is_closed_over_a_function_is_itself():
    assert lifting.without_closure(jnp.sin, "f", ()) is jnp.sin


def test_an_array_that_refuses_derivatives_is_the_same_array_forward():
    same = lifting.refusing_derivatives("f")
    assert same(K).tolist() == K.tolist()
    with pytest.raises(LookupError, match="f with respect to"):
        jax.vjp(same, K)


def test_arrays_are_lifted_out_of_each_primitive_that_is_said_to_be_liftable():
    assert contents.LIFTABLE == {*lifting._REBUILD, *contents.CHECKPOINT}
