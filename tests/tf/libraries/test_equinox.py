"""Equinox under a tape: a module is a pytree, and its gradient a module. The oracle is `eqx.filter_grad`."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

eqx = pytest.importorskip("equinox")
optax = pytest.importorskip("optax")

KEY = jax.random.key(0)
X = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")


class Recurrent(eqx.Module):
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(4, 3, key=first)
        self.head = eqx.nn.Linear(3, 1, key=second)

    def __call__(self, xs):
        final, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(3), xs)
        return self.head(final)


class Normalised(eqx.Module):
    layer: eqx.nn.Linear
    norm: eqx.nn.BatchNorm

    def __init__(self, key):
        self.layer = eqx.nn.Linear(4, 3, key=key)
        self.norm = eqx.nn.BatchNorm(3, "batch", mode="batch")

    def __call__(self, x, state):
        return self.norm(self.layer(x), state)


def mlp():
    return eqx.nn.MLP(4, 2, 8, 2, key=KEY)


def with_dropout():
    return eqx.nn.Sequential([eqx.nn.Linear(4, 4, key=KEY), eqx.nn.Dropout(0.4), eqx.nn.LayerNorm(4)])


def convolutions():
    layers = [eqx.nn.Conv2d(1, 3, 3, key=KEY), eqx.nn.Lambda(jax.nn.relu), eqx.nn.MaxPool2d(2, 2)]
    return eqx.nn.Sequential(layers)


def rows(model, x):
    return jnp.mean((jax.vmap(model)(x) - 0.5) ** 2)


def rows_with_keys(model, x):
    return jnp.mean((jax.vmap(model)(x, key=jax.random.split(jax.random.key(3), 5)) - 0.5) ** 2)


def images(model, x):
    return jnp.mean((model(jnp.outer(x[:, 0], x[:, 1])[None]) - 0.5) ** 2)


def sequence(model, x):
    return jnp.sum(model(x) ** 2)


def attention(model, x):
    return jnp.mean(model(x, x, x, key=KEY) ** 2)


def remat(model, x):
    return jnp.mean(eqx.filter_checkpoint(lambda m, x: jax.vmap(m)(x))(model, x) ** 2)


CASES = {
    "mlp": (mlp, rows),
    "jit": (mlp, eqx.filter_jit(rows)),
    "remat": (mlp, remat),
    "dropout": (with_dropout, rows_with_keys),
    "convolutions": (convolutions, images),
    "recurrent": (lambda: Recurrent(KEY), sequence),
    "attention": (lambda: eqx.nn.MultiheadAttention(2, 4, dropout_p=0.1, key=KEY), attention),
}


def assert_same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=1e-6), found, expected)


SLOW = ("attention", "convolutions")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in CASES])
def test_gradient_is_that_of_filter_grad(name):
    make, loss_of = CASES[name]
    model = make()
    expected = eqx.filter_grad(loss_of)(model, X)
    with tf.GradientTape() as tape:
        tape.watch(model)
        loss = loss_of(model, X)
    found = tape.gradient(loss, model)
    assert type(found) is type(model)
    assert_same(found, expected)


def test_state():
    """Batch statistics go in and come out as values."""
    model, state = eqx.nn.make_with_state(Normalised)(KEY)

    def loss_of(model, x):
        run = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        y, after = run(x, state)
        return jnp.mean(y**3), after

    with tf.GradientTape() as tape:
        tape.watch(model)
        loss, after = loss_of(model, X)
    found = tape.gradient(loss, model)
    model, state = eqx.nn.make_with_state(Normalised)(KEY)  # Equinox lets a state be used once
    expected, expected_after = eqx.filter_grad(loss_of, has_aux=True)(model, X)
    assert_same(found, expected)
    assert_same(after, expected_after)


def test_sources():
    model = mlp()
    expected = eqx.filter_grad(rows)(model, X)
    arrays = eqx.filter(model, eqx.is_inexact_array)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(arrays)  # the arrays are the module's: either watches them
        loss = rows(model, X)
    assert_same(tape.gradient(loss, arrays), expected)
    assert_same(tape.gradient(loss, [model, model.layers[0].weight])[0], expected)
    weight = tape.gradient(loss, model.layers[0].weight)
    assert isinstance(weight, jax.Array)
    assert_same(weight, tape.gradient(loss, model).layers[0].weight)
    trained, _ = eqx.partition(model, lambda x: x is model.layers[-1].bias)
    only_last = tape.gradient(loss, trained)
    assert only_last.layers[0].weight is None and only_last.layers[-1].bias is not None


def test_a_module_of_one_array_in_a_list():
    layer, x = eqx.nn.Linear(3, 2, use_bias=False, key=jax.random.PRNGKey(0)), jnp.ones(3)
    with tf.GradientTape() as tape:
        tape.watch([layer, x])
        y = jnp.sum(layer(x) ** 2)
    first, second = tape.gradient(y, [layer, x])
    expected = eqx.filter_grad(lambda layer: jnp.sum(layer(x) ** 2))(layer)
    assert isinstance(first, eqx.nn.Linear) and second.shape == x.shape
    np.testing.assert_allclose(first.weight, expected.weight, rtol=1e-6)


class Named(eqx.Module):
    """As Haliax's arrays, which refuse to be JAX's where that would lose their axes' names."""

    array: jax.Array
    name: str = eqx.field(static=True)

    def __jax_array__(self):
        raise ValueError("It has a name.")


def test_pytrees_that_can_be_arrays():
    x = Named(jnp.arange(3.0), "x")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(x.array**2)
    (found,) = tape.gradient(y, [x])
    assert isinstance(found, Named) and found.name == "x"
    np.testing.assert_array_equal(found.array, 2 * x.array)


def test_a_gradient_of_its_own_for_a_module():
    layer, x = eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0)), jnp.arange(3.0)

    @tf.custom_gradient
    def total(layer, x, scale):
        def backward(ct):
            return jax.tree.map(lambda w: ct * jnp.full_like(w, 7.0), layer), None, None

        return scale * jnp.sum(layer(x)), backward

    def gradient(layer):
        with tf.GradientTape() as tape:
            tape.watch(layer)
            y = 2 * total(layer, x, 3.0)
        return tape.gradient(y, layer)

    for found in (gradient(layer), eqx.filter_jit(gradient)(layer)):
        np.testing.assert_array_equal(found.weight, jnp.full((2, 3), 14.0))
        np.testing.assert_array_equal(found.bias, jnp.full(2, 14.0))
    with tf.GradientTape() as tape:
        tape.watch(layer)
        y = total(layer, x, 3.0)
    other = eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(1))
    np.testing.assert_allclose(tape.as_function(y, layer)(other), 3 * jnp.sum(other(x)), rtol=1e-6)


def test_a_module_as_target():
    layer = eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0))
    x = jnp.float32(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        scaled = jax.tree.map(lambda w: w * x, layer)
    expected = 3 * (layer.weight.sum() + layer.bias.sum())
    cotangents = jax.tree.map(lambda w: jnp.full_like(w, 3.0), layer)
    for target, given in ((scaled, cotangents), ([scaled, x], [cotangents, jnp.zeros_like(x)])):
        np.testing.assert_allclose(tape.gradient(target, x, output_gradients=given), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="got 1 for 2"):
        tape.gradient(scaled, x, output_gradients=cotangents.weight)


def test_forward_mode_of_a_module():
    layer, x = eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0)), jnp.arange(3.0)
    tangents = jax.tree.map(jnp.ones_like, layer), jnp.ones(3)
    with tf.ForwardAccumulator([layer, x], list(tangents)) as accumulator:
        y = layer(x) ** 2
    np.testing.assert_allclose(accumulator.jvp(y), jax.jvp(lambda layer, x: layer(x) ** 2, (layer, x), tangents)[1])
    with pytest.raises(ValueError, match="structure|Mismatch|node"):
        tf.ForwardAccumulator([layer, x], [eqx.nn.Linear(3, 2, use_bias=False, key=jax.random.PRNGKey(0)), x])


def test_not_watched():
    """A module holds arrays: constants, until they are watched. `explain` says so."""
    model = mlp()
    with tf.GradientTape(persistent=True) as tape:
        loss = rows(model, X)
    assert tape.gradient(loss, model).layers[0].weight is None
    zeros = tape.gradient(loss, model, unconnected_gradients="zero")
    assert_same(zeros, jax.tree.map(jnp.zeros_like, eqx.filter(model, eqx.is_array)))
    text = str(tape.explain(loss, model))
    assert "model.layers[0].weight was never watched" in text and "tape.watch" in text
    assert tape.watched_variables() == ()


def test_made_in_the_block():
    with tf.GradientTape() as tape:
        model = mlp()
        tape.watch(model)
        loss = rows(model, X)
    assert_same(tape.gradient(loss, model), eqx.filter_grad(rows)(mlp(), X))


def functional_step(model, optimizer, state):
    loss, gradients = eqx.filter_value_and_grad(rows)(model, X)
    updates, state = optimizer.update(gradients, state, model)
    return loss, eqx.apply_updates(model, updates), state


def taped_step(model, optimizer, state):
    with tf.GradientTape() as tape:
        tape.watch(model)
        loss = rows(model, X)
    updates, state = optimizer.update(tape.gradient(loss, model), state, model)
    return loss, eqx.apply_updates(model, updates), state


def fit(step):
    model, optimizer = mlp(), optax.adamw(3e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    losses = []
    for _ in range(10):
        loss, model, state = step(model, optimizer, state)
        losses.append(float(loss))
    return losses, eqx.filter(model, eqx.is_array)


def test_training_equals_the_functional_loop():
    expected, theirs = fit(eqx.filter_jit(functional_step))
    assert expected[-1] < expected[0] / 2
    for step in (taped_step, eqx.filter_jit(taped_step)):
        losses, model = fit(step)
        np.testing.assert_allclose(losses, expected, rtol=1e-4)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5), model, theirs)


def test_second_order_and_as_function():
    model = mlp()
    arrays, static = eqx.partition(model, eqx.is_inexact_array)

    def penalty(arrays):
        gradients = jax.grad(lambda a: rows(eqx.combine(a, static), X))(arrays)
        return sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients))

    with tf.GradientTape() as outer:
        outer.watch(arrays)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(arrays)
            loss = rows(model, X)
        value = sum(jnp.sum(g**2) for g in jax.tree.leaves(inner.gradient(loss, arrays)))
    assert_same(outer.gradient(value, arrays), jax.grad(penalty)(arrays))
    assert_same(jax.grad(inner.as_function(loss, arrays))(arrays), inner.gradient(loss, arrays))


def test_in_a_function():
    """The arrays of a module are arguments of a `function` like any others, its functions and settings are part of the trace."""

    @tf.function
    def step(arrays, x):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            loss = rows(eqx.combine(arrays, static), x)
        return tape.gradient(loss, arrays)

    arrays, static = eqx.partition(mlp(), eqx.is_inexact_array)
    assert_same(jax.tree.leaves(step(arrays, X)), jax.tree.leaves(eqx.filter_grad(rows)(mlp(), X)))
    assert step.experimental_get_tracing_count() == 1


class Scaled(eqx.Module):
    weight: jax.Array
    scale: np.ndarray | float | int | jax.Array


NUMPY_LEAVES = {
    "array": np.array([2.0, 3.0], np.float32),
    "number": np.float32(2.0),
    "half": np.array(2.0, jnp.bfloat16),
    "complex": np.array(2.0j, np.complex64),
}


@pytest.mark.parametrize("leaf", NUMPY_LEAVES)
@pytest.mark.parametrize(
    "make", [Scaled, lambda *both: [Scaled(*both)], lambda *both: dict(zip("ws", both, strict=True))]
)
def test_a_numpy_array_of_floats_in_a_module_is_refused_as_in_a_dict(leaf, make):
    """`eqx.filter_grad` has a gradient for it, and a tape cannot find it again: it was None without a word."""
    held = make(jnp.float32(3.0), NUMPY_LEAVES[leaf])
    x = jnp.float32(3.0)
    with tf.GradientTape(persistent=True) as tape:
        with pytest.raises(ValueError, match=r"object .*2.* of type '\w+', not a Tensor"):
            tape.watch(held)
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="`sources` should be .*, but holds .*2.*"):
        tape.gradient(y, held)
    with pytest.raises(TypeError, match="`target` should be .*, but holds .*2.*"):
        tape.gradient(held, x)
    with pytest.raises(TypeError, match="`primals` should be .*, but holds .*2.*"):
        tf.autodiff.ForwardAccumulator(held, held)
    assert float(tape.gradient(y, x)) == 6.0  # nothing is broken


@pytest.mark.parametrize("scale", [2.0, 3, np.array(3), np.array([True]), None, jnp.float32(2.0)])
def test_what_carries_no_gradient_in_a_module_is_none(scale):
    module = Scaled(jnp.float32(3.0), scale)
    with tf.GradientTape() as tape:
        tape.watch(module)
        y = module.weight * module.weight * (1.0 if scale is None else scale)
    gradient = tape.gradient(y, module)
    right = eqx.filter_grad(lambda m: jnp.sum(m.weight * m.weight * (1.0 if scale is None else m.scale)))(module)
    np.testing.assert_allclose(gradient.weight, right.weight)
    assert (gradient.scale is None) == (right.scale is None)
