"""`jaxprs/derivatives.py` (another `test_derivatives.py` is the tape's): pullback and pushforward of a flat function."""

import jax
import jax.numpy as jnp
import pytest

from tapejax.jaxprs.derivatives import pull_back, push_forward

X, Y, N = jnp.array(2.0), jnp.array(5.0), jnp.array(3)


def f(x, y, n):
    return x * y, (y * y, n)


def test_a_pullback_takes_the_inputs_and_then_the_cotangents():
    assert pull_back(f, (0, 1), (0, 1), (0, 1), X, Y, N, jnp.array(1.0), jnp.array(10.0)) == (5.0, 2.0 + 10 * 10)


def test_only_the_active_inputs_and_outputs_have_a_part():
    assert pull_back(f, (1,), (1,), (1,), X, Y, N, jnp.array(1.0)) == (10.0,)
    assert pull_back(f, (0,), (1,), (0,), X, Y, N, jnp.array(1.0)) == (0.0,)


def test_a_pushforward_takes_the_inputs_and_then_the_tangents():
    assert push_forward(f, (0, 1), (0, 1), (0, 1), X, Y, N, jnp.array(1.0), jnp.array(10.0)) == [5.0 + 20.0, 100.0]
    assert push_forward(f, (0,), (0,), (0,), X, Y, N, jnp.array(1.0)) == [5.0]


def test_both_are_as_jax_has_them():
    x, ct = jnp.arange(3.0), jnp.array([1.0, -2.0, 0.5])
    fn = lambda x: jnp.cumsum(jnp.sin(x))  # noqa: E731
    (back,) = pull_back(fn, (0,), (0,), (0,), x, ct)
    (out,) = push_forward(fn, (0,), (0,), (0,), x, ct)
    jacobian = jax.jacobian(fn)(x)
    assert jnp.allclose(back, ct @ jacobian) and jnp.allclose(out, jacobian @ ct)


@jax.custom_vjp
def backward_only(x, y):
    return x * y


backward_only.defvjp(lambda x, y: (x * y, (x, y)), lambda xy, ct: (3 * xy[1] * ct, xy[0] * ct))


def test_a_custom_vjp_is_pushed_forward_by_the_transpose_of_its_pullback():
    """JAX itself refuses: a ``custom_vjp`` has no forward mode."""
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(backward_only, (X, Y), (X, Y))
    assert push_forward(backward_only, (0,), (0,), (0, 1), X, Y, jnp.array(1.0)) == [15.0]
    assert push_forward(jax.jit(backward_only), (0, 1), (0,), (0, 1), X, Y, jnp.array(1.0), jnp.array(1.0)) == [17.0]


def perturbations():
    """A function whose rule notes which inputs are perturbed."""
    seen = []
    told = jax.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append(tuple(type(t).__name__ != "SymbolicZero" for t in tangents))
        return primals[0] * primals[1], primals[1] * tangents[0] if seen[-1][0] else jnp.zeros(())

    told.defjvp(rule, symbolic_zeros=True)
    return told, seen


@pytest.mark.parametrize("of", [(0,), (0, 1)])
def test_a_rule_is_told_of_all_inputs_with_respect_to_which_it_is_taken(of):
    for take in (pull_back, push_forward):
        told, seen = perturbations()
        assert list(take(told, (0,), (0,), of, X, Y, jnp.array(1.0))) == [5.0]
        assert set(seen) == {(True, len(of) == 2)}


def test_what_has_no_derivative_is_refused_as_jax_refuses_it():
    def fails(x):
        return jax.pure_callback(lambda x: x, jax.ShapeDtypeStruct((), x.dtype), x)

    with pytest.raises(ValueError, match="do not support JVP"):
        pull_back(fails, (0,), (0,), (0,), X, X)
