"""Programs without a key: what compiles, what is kept, and that none is taken for another.

No key have programs with rules that raise by design, or that are told which inputs are perturbed, or that close over arrays.
"""

from __future__ import annotations

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import cache
from tests.compiling import compiles

Zero = jax.custom_derivatives.SymbolicZero
X = np.array([0.3, 1.2, -0.7], np.float32)


@pytest.fixture
def compiled():
    cache.clear()  # of programs that other tests made, which may be like these
    with compiles() as found:
        yield found


def told(factor=1.0):
    """A product whose rule is told which of its inputs are perturbed, with derivatives of its own."""

    @jax.custom_jvp
    def product(a, b):
        return a * b

    @functools.partial(product.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        (a, b), (da, db) = primals, tangents
        parts = [t * x for t, x in ((da, b), (db, a)) if not isinstance(t, Zero)]
        return a * b, factor * sum(parts)

    return product


def told_backward(factor=1.0):
    @jax.custom_vjp
    def product(a, b):
        return a * b

    product.defvjp(
        lambda a, b: (a.value * b.value, (a.value, b.value)),
        lambda kept, ct: (factor * ct * kept[1], factor * ct * kept[0]),
        symbolic_zeros=True,
    )
    return product


@jax.custom_jvp
def fixed(n):
    return n


@fixed.defjvp
def _(primals, tangents):
    raise RuntimeError("not to be differentiated")


def raising(factor=1.0):
    return lambda a, b: factor * a * b * fixed(jnp.ones_like(X))


def over_an_array(factor=1.0):
    w = jnp.full(3, factor, X.dtype)

    @jax.custom_vjp
    def product(a, b):
        return a * b

    product.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (w * ct * kept[1], w * ct * kept[0]))
    return product


MAKERS = {"told": told, "told_backward": told_backward, "raising": raising, "over_an_array": over_an_array}


def in_scan(g, x):
    return jax.lax.scan(lambda c, i: (g(c, jnp.sin(x)), None), x, jnp.arange(2))[0]


USES = {
    "jit": lambda g: jax.jit(lambda x: g(x, jnp.sin(x))),
    "jit of a loop": lambda g: jax.jit(lambda x: in_scan(g, x)),
    "jit beside": lambda g: functools.partial(lambda f, x: f(jnp.cos(x), x), jax.jit(g)),
    "eager": lambda g: lambda x: g(x, jnp.sin(x)),
    "new jit": lambda g: lambda x: jax.jit(lambda x: g(x, jnp.sin(x)))(x),
    "new loop": lambda g: lambda x: in_scan(g, x),
    "new branch": lambda g: lambda x: jax.lax.cond(x[0] > 0, lambda x: g(x, x), lambda x: -g(x, x), x),
}


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MAKERS)
def test_a_warm_step_compiles_nothing(kind, use, compiled, no_shadow):
    f, x = USES[use](MAKERS[kind]()), jnp.asarray(X)
    expected = jax.vjp(f, x)[1](jnp.ones_like(x))[0]
    for _ in range(4):
        np.testing.assert_allclose(gradient(f, x), expected, rtol=1e-5)
    compiled.clear()
    gradient(f, x)
    assert compiled == []


@pytest.mark.parametrize("use", ["jit", "jit of a loop", "jit beside"])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_warm_step_takes_no_derivative(kind, use, monkeypatch, compiled, no_shadow):
    """The pullback of a program that comes back is compiled with it, and gives what `jax.vjp` gives, to the last bit."""
    f, x = USES[use](MAKERS[kind]()), jnp.asarray(X)
    expected = jax.vjp(f, x)[1](jnp.ones_like(x))[0]
    for _ in range(2):
        gradient(f, x)
    calls = []
    vjp = jax.vjp
    monkeypatch.setattr(jax, "vjp", lambda *args, **kwargs: calls.append(args) or vjp(*args, **kwargs))
    np.testing.assert_array_equal(gradient(f, x), expected)
    assert not calls


def test_a_program_that_was_traced_twice_comes_back(compiled, no_shadow, monkeypatch):
    """As where a first call changes a setting of JAX's: the second program is like the first, but stays."""
    g = told()
    f, x = [jax.jit(lambda x: g(x, jnp.sin(x))) for _ in range(2)], jnp.asarray(X)
    for h in (*f, *f[1:] * 3):
        gradient(h, x)
    monkeypatch.setattr(jax, "vjp", None)
    gradient(f[1], x)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MAKERS)
def test_rules_are_told_apart(kind, use):
    """The same program forward, with another rule: also where one is made anew each time."""
    x = jnp.asarray(X)
    for factor in (1.0, 3.0, 1.0, 5.0, 3.0):
        f = USES[use](MAKERS[kind](factor))
        np.testing.assert_allclose(gradient(f, x), jax.vjp(f, x)[1](jnp.ones_like(x))[0], rtol=1e-5)


@pytest.mark.parametrize("use", ["eager", "new jit", "new loop"])
def test_a_global_that_a_rule_reads(use):
    @jax.custom_jvp
    def times(a, b):
        return a * b

    @functools.partial(times.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        return times(*primals), FACTOR * sum(t for t in tangents if not isinstance(t, Zero))

    global FACTOR
    f, x = USES[use](times), jnp.asarray(X)
    for factor in (1.0, 2.0, 1.0, 3.0):
        FACTOR = factor
        np.testing.assert_allclose(gradient(f, x), jax.vjp(f, x)[1](jnp.ones_like(x))[0], rtol=1e-5)


FACTOR = 1.0


@pytest.mark.parametrize("kind", MAKERS)
def test_every_question(kind):
    """Also those that the linear part from when the call was recorded does not serve."""
    g, x = jax.jit(MAKERS[kind]()), jnp.asarray(X)
    y = jnp.cos(x)

    def f(x, y):
        return g(jnp.sin(x), y) * x

    rows = jax.vjp(f, x, y)[1](jnp.ones_like(x))
    for _ in range(3):
        with tf.GradientTape(persistent=True) as outer, tf.GradientTape(persistent=True) as tape:
            outer.watch([x, y])
            tape.watch([x, y])
            z = f(x, y)
            first = tape.gradient(z, x)
        for _ in range(2):
            for found, expected in zip(tape.gradient(z, [x, y]), rows, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(
            tape.gradient(z, y), jax.vjp(lambda y: f(x, y), y)[1](jnp.ones_like(x))[0], rtol=1e-5
        )
        np.testing.assert_allclose(jnp.diagonal(tape.jacobian(z, x)), first, rtol=1e-5)
        if kind not in ("told_backward", "over_an_array"):
            second = jax.grad(lambda x: jax.vjp(lambda x: f(x, y), x)[1](jnp.ones_like(x))[0].sum())(x)
            np.testing.assert_allclose(outer.gradient(first, x), second, rtol=1e-4, atol=1e-6)
            with tf.autodiff.ForwardAccumulator(x, jnp.ones_like(x)) as acc:
                z = f(x, y)
            np.testing.assert_allclose(acc.jvp(z), rows[0], rtol=1e-5)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MAKERS)
def test_under_transformations_inside_a_block(kind, use):
    """There a program is not run but differentiated, and needs its rules."""
    f, x = USES[use](MAKERS[kind]()), jnp.asarray(X)
    expected = jax.vjp(f, x)[1](jnp.ones_like(x))[0]
    transformed = {
        "vjp": lambda: jax.vjp(f, x)[1](jnp.ones_like(x))[0],
        "jit": lambda: jax.jit(jax.grad(lambda x: f(x).sum()))(x),
        "vmap": lambda: (
            jax.vmap(jax.grad(lambda x: f(x).sum()))(jnp.stack([x, x]))[0] if use != "new branch" else expected
        ),
        "tape in vjp": lambda: jax.vjp(lambda x: gradient(lambda x: x * 2, f(x)) * f(x) / 2, x)[1](jnp.ones_like(x))[0],
    }
    for _ in range(3):
        for run in transformed.values():
            with tf.GradientTape():
                np.testing.assert_allclose(run(), expected, rtol=1e-5)


def test_outputs_that_are_not_used():
    """One of several results, some of them integers: nothing comes back to the others."""
    g = told_backward()
    f = jax.jit(lambda x: (g(x, x), jnp.argmax(x), jnp.exp(x), g(x, jnp.sin(x))))
    x = jnp.asarray(X)
    for _ in range(3):
        for i in (0, 2, 3):
            expected = jax.vjp(lambda x, i=i: f(x)[i], x)[1](jnp.ones_like(x))[0]
            np.testing.assert_allclose(gradient(lambda x, i=i: f(x)[i], x), expected, rtol=1e-5)


def test_what_has_no_derivative_may_be_recorded():
    """A call that JAX cannot differentiate raises where a gradient is asked for, and only then."""
    f = jax.jit(lambda x: jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, fixed(x)))
    x = jnp.ones_like(X)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * x
        np.testing.assert_array_equal(y, f(x))
        with pytest.raises(RuntimeError, match="not to be differentiated"):
            tape.gradient(y, x)


@pytest.mark.parametrize("use", USES)
def test_arrays_of_a_rule_are_let_go(use):
    """What a rule closes over goes with its function: here and in what is kept for programs that are like it."""
    x = jnp.asarray(X)

    def once():
        w = jnp.arange(3, dtype=X.dtype)

        @jax.custom_vjp
        def product(a, b):
            return a * b

        product.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (w * ct * kept[1], w * ct * kept[0]))
        gradient(USES[use](product), x)
        return weakref.ref(w)

    kept = [once() for _ in range(4)]
    gc.collect()
    assert sum(w() is not None for w in kept) <= 1
