"""Rules that are told which of their inputs are perturbed: under a tape those that are in ``jax.grad`` of the same sources.

The rules here give other numbers for each set of perturbed inputs, so whoever tells them less, or more, is found out.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tape import jacobian as jacobians
from tapejax.tape.query import Query

Zero = jax.custom_derivatives.SymbolicZero


@jax.custom_jvp
def second(a, b):
    return b * 1.0


@functools.partial(second.defjvp, symbolic_zeros=True)
def _(primals, tangents):
    da, db = tangents
    if isinstance(db, Zero):
        return second(*primals), db
    return second(*primals), db * (3.0 if isinstance(da, Zero) else 2.0 + 0.0 * primals[0])


@jax.custom_jvp
def product(a, b):
    return a * b


@functools.partial(product.defjvp, symbolic_zeros=True)
def _(primals, tangents):
    (a, b), (da, db) = primals, tangents
    parts = [t * x for t, x in ((da, b), (db, a)) if not isinstance(t, Zero)]
    return product(a, b), sum(parts) * len(parts)


@jax.custom_vjp
def by_vjp(a, b):
    return a * b


def _forward(a, b):
    return a.value * b.value, (a.value, b.value, a.perturbed, b.perturbed)


def _backward(residuals, ct):
    a, b, of_a, of_b = residuals
    return ct * b * (3.0 if of_b else 1.0), ct * a * (5.0 if of_a else 1.0)


by_vjp.defvjp(_forward, lambda kept, ct: _backward(kept, ct), symbolic_zeros=True)


@jax.custom_vjp
def both(a, b):
    return jnp.sin(a), a * b


def _both_backward(kept, cts):
    a, b = kept
    one, two = cts
    found = jnp.zeros_like(a) if isinstance(one, Zero) else one * 7.0
    return (found, found) if isinstance(two, Zero) else (found + two * b, found + two * a)


both.defvjp(lambda a, b: (both(a.value, b.value), (a.value, b.value)), _both_backward, symbolic_zeros=True)


def in_scan(x):
    return jax.lax.scan(lambda c, i: (second(x, jnp.sin(c)) * i, product(c, x)), x, jnp.arange(1, 4).astype(x.dtype))[0]


PROGRAMS = {
    "also_perturbed": lambda x: second(x, jnp.sin(x)),
    "computed_also_perturbed": lambda x: second(jnp.cos(x), x),
    "a_constant_beside": lambda x: second(2.0, jnp.sin(x)),
    "a_constant_array_beside": lambda x: second(jnp.ones_like(x), jnp.sin(x)),
    "of_a_constant": lambda x: second(x, 2.0) + x,
    "a_zero_derivative_beside": lambda x: second(jnp.floor(x), x),
    "stopped": lambda x: second(jax.lax.stop_gradient(x), x),
    "zero_of_another_rule": lambda x: second(second(x, 1.0), jnp.sin(x)),
    "one_after_the_other": lambda x: second(second(x, jnp.sin(x)), second(2.0, x)),
    "product": lambda x: product(jnp.sin(x), x) + product(2.0, x) + product(x, 3.0),
    "jit": jax.jit(lambda x: second(x, jnp.sin(x))),
    "jit_beside": lambda x: jax.jit(second)(x, jnp.sin(x)),
    "jit_of_a_constant": lambda x: jax.jit(second)(2.0, jnp.sin(x)),
    "jit_of_zero_derivative": lambda x: jax.jit(second)(jax.jit(lambda x: jnp.round(x))(x), jnp.sin(x)),
    "jit_of_a_zero_of_a_jit": lambda x: jax.jit(second)(jax.jit(lambda x: second(x, 1.0))(x), jnp.sin(x)),
    "two": lambda x: product(jnp.sin(x), x) * second(x, jnp.cos(x)),
    "jit_of_two": jax.jit(lambda x: product(jnp.sin(x), x) * second(x, jnp.cos(x))),
    "vmap": lambda x: jax.vmap(second)(jnp.stack([x, x]), jnp.stack([jnp.sin(x), x])).sum(0),
    "vmap_of_a_constant": lambda x: jax.vmap(second, (None, 0))(2.0, jnp.stack([jnp.sin(x), x])).sum(0),
    "checkpoint": lambda x: jax.checkpoint(lambda x: second(x, jnp.sin(x)))(x),
    "cond": lambda x: jax.lax.cond(True, lambda x: second(x, jnp.sin(x)), lambda x: product(x, x), x),
    "scan": in_scan,
    "jit_scan": jax.jit(in_scan),
    "function": tf.function(lambda x: second(x, jnp.sin(x)) * second(2.0, x)),
    "several_outputs": lambda x: second(*jax.jit(lambda x: (x * 2.0, jnp.sin(x)))(x)),
}
PULLED = {
    "vjp": lambda x: by_vjp(x, jnp.sin(x)),
    "vjp_of_a_constant": lambda x: by_vjp(x, jnp.full(x.shape, 2.0)) + by_vjp(jnp.full(x.shape, 3.0), x),
    "vjp_jit": jax.jit(lambda x: by_vjp(x, jnp.sin(x)) + by_vjp(x, jnp.full(x.shape, 2.0))),
    "vjp_beside": lambda x: by_vjp(jnp.floor(x), x),
    "one_output": lambda x: both(x, jnp.cos(x))[0],
    "other_output": lambda x: both(jnp.full(x.shape, 2.0), x)[1],
    "one_output_jit": jax.jit(lambda x: both(x, jnp.cos(x))[1]),
}


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, unconnected_gradients="zero")


def jacobian(f, x, mode):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    program, values = Query(tape._recording, [y], [x]).program()
    return jacobians.jacobian(program, values, mode)[0]


def batch_jacobian(f, x):
    with tf.GradientTape() as tape:
        x = x[:, None]
        tape.watch(x)
        y = f(x)
    return tape.batch_jacobian(y, x)[:, 0, 0]


def pushed(f, x):
    with tf.autodiff.ForwardAccumulator(x, jnp.ones_like(x)) as acc:
        y = f(x)
    return acc.jvp(y, unconnected_gradients="zero")


def as_function(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return jax.vjp(tape.as_function(y, x), x)[1](jnp.ones_like(y))[0]


QUESTIONS = {
    "gradient": gradient,
    "reverse": lambda f, x: jnp.diagonal(jacobian(f, x, "reverse")),
    "forward": lambda f, x: jnp.diagonal(jacobian(f, x, "forward")),
    "batch_jacobian": batch_jacobian,
    "accumulator": pushed,
    "in_jit": lambda f, x: jax.jit(lambda x: gradient(f, x))(x),
    "in_function": lambda f, x: tf.function(lambda x: gradient(f, x))(x),
    "in_vmap": lambda f, x: jax.vmap(lambda x: gradient(f, x))(x),
    "as_function": as_function,
}
X = np.array([0.3, 1.2, -0.7])


def pullback(f, x):
    return jax.vjp(f, x)[1](jnp.ones_like(x))[0]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", [*PROGRAMS, *PULLED])
def test_as_in_jax(name, question):
    if name in PULLED and question in ("forward", "accumulator"):
        pytest.skip("JAX has no forward mode through a custom_vjp")
    f, x = (PROGRAMS | PULLED)[name], jnp.asarray(X)
    expected = pullback(f, x)
    for _ in range(3):  # seen for the first time, again, and from then on
        np.testing.assert_allclose(QUESTIONS[question](f, x), expected, rtol=1e-6)


@pytest.mark.parametrize("name", [*PROGRAMS, *PULLED])
def test_with_64_bit_types(name):
    with jax.enable_x64(True):
        test_as_in_jax(name, "gradient")


@pytest.mark.parametrize("name", [*PROGRAMS, "vjp", "vjp_jit"])
def test_second_order(name):
    f, x = (PROGRAMS | PULLED)[name], jnp.asarray(X)
    expected = pullback(lambda x: pullback(f, x), x)
    for _ in range(2):
        with tf.GradientTape() as outer:
            outer.watch(x)
            first = gradient(f, x)
        np.testing.assert_allclose(outer.gradient(first, x, unconnected_gradients="zero"), expected, rtol=1e-5)


@pytest.mark.parametrize("f", [product, jax.jit(product), lambda x, y: product(jnp.sin(x), jnp.cos(y) * x)])
@pytest.mark.parametrize("of", [(0,), (1,), (0, 1)])
def test_the_sources_say_what_is_perturbed(f, of):
    """Also where more is watched, and in forward mode, which takes one source after the other."""
    x, y = jnp.asarray(0.3), jnp.asarray(1.2)
    expected = jax.grad(f, of)(x, y)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = f(x, y)
        sources = [(x, y)[i] for i in of]
        np.testing.assert_allclose(tape.gradient(z, sources), expected, rtol=1e-6)
        program, values = Query(tape._recording, [z], sources).program()
        for mode in ("reverse", "forward"):
            np.testing.assert_allclose(jacobians.jacobian(program, values, mode), expected, rtol=1e-6)


def test_a_gradient_does_not_go_to_what_a_result_does_not_depend_on():
    x, y = jnp.asarray(0.3), jnp.asarray(1.2)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = second(jnp.sin(x), jnp.sin(y))
    of_x, of_y = tape.gradient(z, [x, y])
    assert of_x is None
    np.testing.assert_allclose(of_y, 2 * np.cos(1.2), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(z, y), 3 * np.cos(1.2), rtol=1e-6)


def test_a_rule_that_refuses_what_is_not_perturbed():
    """Only `b` is perturbed, as in ``jax.grad``: the rule would raise."""

    @jax.custom_jvp
    def times(a, b):
        return a * b

    @functools.partial(times.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        if not isinstance(tangents[0], Zero):
            raise RuntimeError("not with respect to a")
        return times(*primals), primals[0] * tangents[1]

    x = jnp.asarray(0.3)
    for f in (times, jax.jit(times)):
        for _ in range(3):
            assert gradient(lambda x, f=f: f(jnp.floor(x) + 2.0, x), x) == 2.0
            with pytest.raises(RuntimeError, match="not with respect to a"):
                gradient(lambda x, f=f: f(x, x), x)


def test_explain_says_that_it_is_connected():
    x = jnp.asarray(0.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = second(x, jnp.sin(x))
    assert "zero" not in str(tape.explain(y, x))
