"""Calls of functions whose rule asks which inputs are perturbed: recognised by what the rule is for these, and by nothing less.

The numbers are those of ``jax.grad`` beside, where each rule runs anew.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tests.compiling import compiles

Zero = jax.custom_derivatives.SymbolicZero
X = np.array([0.3, 1.2, -0.7], np.float32)
XS = {"float32": X, "float64": X.astype(np.float64)}


def weighted(rule):
    """A product with the derivatives that `rule` says: of the primals and of the tangents, of which zeros are None."""

    @jax.custom_jvp
    def product(a, b):
        return a * b

    @functools.partial(product.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        given = [None if isinstance(t, Zero) else t for t in tangents]
        return product(*primals), rule(*primals, *given)

    return product


def by_set(a, b, da, db):
    """Another derivative for each set of perturbed inputs."""
    if da is None or db is None:
        return 3.0 * b * da if db is None else 5.0 * a * db
    return da * b + 7.0 * db * a


def gradients(f, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return tape.gradient(y, xs)


def jax_gradients(f, *xs):
    y, pull = jax.vjp(f, *xs)
    return pull(jnp.ones_like(y))


def assert_same(found, expected):
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.fixture(params=XS)
def x(request):
    with jax.enable_x64(request.param == "float64"):
        yield jnp.asarray(XS[request.param])


def test_a_warm_step_traces_the_rule_once_and_compiles_nothing(no_shadow):
    calls = []

    def rule(a, b, da, db):
        calls.append(len(calls))
        return by_set(a, b, da, db)

    product, x = weighted(rule), jnp.asarray(X)
    expected = jax_gradients(lambda x: product(x, jnp.sin(x)), x)
    for _ in range(20):
        gradients(lambda x: product(x, jnp.sin(x)), x)
    calls.clear()
    with compiles() as compiled:
        assert_same(gradients(lambda x: product(x, jnp.sin(x)), x), expected)
    assert (len(calls), compiled) == (1, [])


def test_each_set_of_perturbed_inputs_has_its_derivative(x):
    product, y = weighted(by_set), jnp.cos(x)
    for _ in range(4):
        assert_same(gradients(lambda x: product(x, y), x), jax_gradients(lambda x: product(x, y), x))
        assert_same(gradients(lambda y: product(x, y), y), jax_gradients(lambda y: product(x, y), y))
        assert_same(gradients(product, x, y), jax_gradients(product, x, y))


def test_the_sources_of_a_query_say_what_is_perturbed(x):
    """One recording of which derivatives by several sources are taken, in every order."""
    product, y = weighted(by_set), jnp.cos(x)
    asked = {(0,): lambda x: product(x, y), (1,): lambda y: product(x, y), (0, 1): product}
    for order in ([(0,), (0, 1), (1,)], [(0, 1), (1,), (0,), (0, 1)]):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            z = product(x, y)
        for which in order:
            given = [(x, y)[i] for i in which]
            assert_same(tape.gradient(z, given), jax_gradients(asked[which], *given))


def test_a_number_that_the_rule_closes_over_may_change(x, no_shadow):
    """As a hyperparameter that is drawn anew at each step: nothing is compiled for it."""
    draw, factor = np.random.default_rng(3), [1.0]

    def rule(a, b, da, db):
        return factor[0] * da * b + (factor[0] + 1.0) * db * a

    product = weighted(rule)

    def f(x):
        return product(x, jnp.sin(x))

    for value in [1.0, 2.0, 1.0, -0.0, 2.0, float("inf")] * 2:
        factor[0] = value
        assert_same(gradients(f, x), jax_gradients(f, x))
    for value in draw.uniform(size=5):
        factor[0] = value
        expected = jax_gradients(f, x)
        with compiles() as compiled:
            found = gradients(f, x)
        assert_same(found, expected)
        assert compiled == []


@pytest.mark.parametrize("make", [jnp.asarray, np.asarray], ids=["jax", "numpy"])
def test_an_array_that_the_rule_closes_over_may_change(make, x):
    held = [make(x)]
    product = weighted(lambda a, b, da, db: da * b * held[0])
    for factor in (1.0, 2.0, 1.0, 3.0):
        held[0] = make(np.asarray(x) * factor)
        assert_same(gradients(lambda x: product(x, 2.0), x), jax_gradients(lambda x: product(x, 2.0), x))
    if make is np.asarray:
        for factor in (4.0, 5.0):
            held[0][:] = factor
            assert_same(gradients(lambda x: product(x, 2.0), x), jax_gradients(lambda x: product(x, 2.0), x))


def test_a_function_that_the_rule_calls_may_change(x):
    called = [jnp.sin]
    product = weighted(lambda a, b, da, db: called[0](a) * da)
    asking = weighted(by_set)
    for called[0] in (jnp.sin, jnp.cos, jnp.sin, lambda a: asking(a, a), lambda a: by_hand(a, 2.0)):
        assert_same(gradients(lambda x: product(x, 2.0), x), jax_gradients(lambda x: product(x, 2.0), x))


@jax.custom_vjp
def by_hand(a, b):
    return a * b


by_hand.defvjp(lambda a, b: (a * b, a), lambda a, ct: (9.0 * ct, 8.0 * ct))


def test_a_rule_that_looks_at_values(x):
    """It cannot be traced, and runs on them."""

    def rule(a, b, da, db):
        return 2.0 * da if a[0] > 0.5 else 3.0 * da

    product = weighted(rule)
    for shift in (0.0, 1.0, 0.0, 1.0):
        y = x + shift
        assert_same(gradients(lambda y: product(y, 2.0), y), jax_gradients(lambda y: product(y, 2.0), y))


def test_a_rule_that_refuses_a_set(x):
    def rule(a, b, da, db):
        assert db is None, "the second is no variable"
        return da * b

    product, y = weighted(rule), jnp.cos(x)
    for _ in range(3):
        assert_same(gradients(lambda x: product(x, y), x), jax_gradients(lambda x: product(x, y), x))
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = product(x, y)
        np.testing.assert_allclose(z, x * y)
        with pytest.raises(AssertionError, match="no variable"):
            tape.gradient(z, [x, y])


def test_what_the_rule_prints_is_printed_at_each_gradient(capfd):
    def rule(a, b, da, db):
        jax.debug.print("asked {}", a[0])
        return da * b

    product, x = weighted(rule), jnp.asarray(X)
    for _ in range(4):
        gradients(lambda x: product(x, 2.0), x)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("asked") == 4


def test_a_rule_that_draws(x):
    """The key of its random numbers is an operand, or is closed over and changes."""

    @jax.custom_jvp
    def noisy(key, a):
        return a + jax.random.normal(key, a.shape, a.dtype)

    @functools.partial(noisy.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        key, a = primals
        return noisy(key, a), tangents[1] * jax.random.normal(key, a.shape, a.dtype)

    held = [jax.random.key(0)]
    closed = weighted(lambda a, b, da, db: da * jax.random.uniform(held[0], a.shape, a.dtype))
    for seed in (0, 1, 0, 2):
        held[0] = key = jax.random.key(seed)
        for f in (lambda x, key=key: noisy(key, x), lambda x: closed(x, 2.0)):
            assert_same(gradients(f, x), jax_gradients(f, x))


def test_none_where_the_rule_gives_no_tangent(x):
    @jax.custom_jvp
    def first(a, b):
        return a, a * b

    @functools.partial(first.defjvp, symbolic_zeros=True)
    def _(primals, tangents):
        a, b = primals
        zero = Zero(jax.typeof(a).to_tangent_aval())
        given = tangents[1] if isinstance(tangents[1], Zero) else tangents[1] * 4.0
        return first(a, b), (zero, given)

    y = jnp.cos(x)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            one, two = first(x, y)
        assert tape.gradient(one, [x, y]) == [None, None]
        none, found = tape.gradient(two, [x, y])
        assert none is None
        np.testing.assert_allclose(found, jax.vjp(lambda y: first(x, y)[1], y)[1](jnp.ones_like(y))[0])


@pytest.mark.parametrize("outer", ["tape", "grad", "jit of grad", "jvp"])
def test_a_second_derivative_asks_the_rules_of_what_the_rule_calls(outer, x):
    """Those are left out where the first derivative is recognised."""

    def f(x):
        return jnp.sum(product(jnp.sin(x), x) * x)

    def first(x):
        return gradients(f, x)[0]

    product = weighted(lambda a, b, da, db: 2.0 * inner(a, b) * (b * da + 3.0 * a * db))
    inner = weighted(by_set)
    expected = jax.grad(lambda x: jax.grad(f)(x).sum())(x)
    for _ in range(3):
        first(x)
    for _ in range(3):
        if outer == "tape":
            with tf.GradientTape() as tape:
                tape.watch(x)
                total = jnp.sum(first(x))
            found = tape.gradient(total, x)
        elif outer == "jvp":
            found = jax.jacfwd(first)(x).sum(0)
        else:
            second = jax.grad(lambda x: first(x).sum())
            found = (jax.jit(second) if outer == "jit of grad" else second)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("mode", ["jacobian", "batch_jacobian"])
def test_jacobians(mode, x):
    product = weighted(by_set)
    for _ in range(3):
        with tf.GradientTape() as tape:
            column = x[:, None]
            tape.watch(column)
            y = product(jnp.sin(column), column)
        found = getattr(tape, mode)(y, column)
        expected = jax.jacrev(lambda c: product(jnp.sin(c), c))(column)
        if mode == "batch_jacobian":
            expected = jnp.stack([expected[i, :, i] for i in range(len(x))])
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_gradient_that_is_registered_counts(x):
    def product(a, b):
        return a * b

    product.__name__ = name = f"product_of_{x.dtype}"
    product = jax.custom_jvp(product)
    product.defjvp(lambda primals, tangents: (product(*primals), tangents[0] * 2.0), symbolic_zeros=True)
    for _ in range(3):
        assert_same(gradients(lambda x: product(x, 3.0), x), [jnp.full_like(x, 2.0)])
    tf.RegisterGradient(name)(lambda op, ct: (ct * 11.0, None))
    assert_same(gradients(lambda x: product(x, 3.0), x), [jnp.full_like(x, 11.0)])
