"""Flax NNX under a tape: modules, their state as sources, its optimizer. The oracle is `nnx.grad`."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tests.compiling import compiles

nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")
TraceContextError = pytest.importorskip("flax.errors").TraceContextError

X = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")


def rngs():
    return nnx.Rngs(0, dropout=1)


class Network(nnx.Module):
    """State of every kind: parameters, batch statistics, random numbers."""

    def __init__(self, rngs):
        self.first = nnx.Linear(4, 6, rngs=rngs)
        self.norm = nnx.BatchNorm(6, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.last = nnx.Linear(6, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


class Convolutions(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 3, (3, 3), rngs=rngs)
        self.norm = nnx.GroupNorm(3, num_groups=3, rngs=rngs)
        self.head = nnx.Linear(3, 2, rngs=rngs)

    def __call__(self, x):
        images = jnp.broadcast_to(x[:, :, None, None], (5, 4, 4, 1))
        return self.head(nnx.avg_pool(nnx.gelu(self.norm(self.conv(images))), (2, 2), (2, 2)).mean((1, 2)))


class Attention(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(10, 8, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 8, deterministic=False, dropout_rate=0.1, decode=False, rngs=rngs)
        self.norm = nnx.LayerNorm(8, rngs=rngs)

    def __call__(self, x):
        return self.norm(self.attention(self.embed(jnp.arange(x.size).reshape(x.shape) % 10)))[..., :2]


class Recurrent(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(4, 3, rngs=rngs))

    def __call__(self, x):
        return self.rnn(x[None])


class BothWays(nnx.Module):
    def __init__(self, rngs):
        cells = [nnx.LSTMCell(4, 2, rngs=rngs), nnx.SimpleCell(4, 2, rngs=rngs)]
        self.rnn = nnx.Bidirectional(*map(nnx.RNN, cells))

    def __call__(self, x):
        return self.rnn(x[None])


class Scanned(nnx.Module):
    """Layers stacked along an axis, run by `nnx.scan`."""

    def __init__(self, rngs):
        @nnx.split_rngs(splits=3)
        @nnx.vmap(axis_size=3)
        def layers(rngs):
            return nnx.Linear(4, 4, rngs=rngs)

        self.layers = layers(rngs)

    def __call__(self, x):
        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def run(x, layer):
            return nnx.tanh(layer(x))

        return run(x, self.layers)


class Tied(nnx.Module):
    """One layer, used twice."""

    def __init__(self, rngs):
        self.first = nnx.Linear(4, 4, rngs=rngs)
        self.second = self.first

    def __call__(self, x):
        return self.second(nnx.tanh(self.first(x)))


def sequential(rngs):
    return nnx.Sequential(nnx.Linear(4, 4, rngs=rngs), nnx.swish, nnx.LoRA(4, 2, 3, rngs=rngs))


def loss_of(model, x):
    return jnp.mean((model(x) - 0.5) ** 2)


def through_jit(model, x):
    return jnp.mean((nnx.jit(lambda m, x: m(x))(model, x) - 0.5) ** 2)


def through_jit_and_without(model, x):
    return through_jit(model, x) + loss_of(model, x)


def through_remat(model, x):
    return jnp.mean((nnx.remat(lambda m, x: m(x))(model, x) - 0.5) ** 2)


def through_cond(model, x):
    return jnp.mean(nnx.cond(x[0, 0] < 9, lambda m, x: m(x), lambda m, x: m(x) ** 2, model, x))


def state_of(model):
    return nnx.state(model, nnx.Not(nnx.RngKey))


def assert_same(found, expected):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=1e-6), found, expected)


SLOW = [pytest.param(make, marks=pytest.mark.slow) for make in (Convolutions, Attention, BothWays)]


@pytest.mark.parametrize("make", [Network, Recurrent, Scanned, Tied, sequential, *SLOW])
def test_gradient_and_state_are_those_of_nnx_grad(make):
    mine, theirs = make(rngs()), make(rngs())
    for _ in range(2):  # the second step starts from the state that the first one left
        expected = nnx.grad(loss_of)(theirs, X)
        with tf.GradientTape() as tape:
            loss = loss_of(mine, X)
        assert_same(tape.gradient(loss, nnx.state(mine, nnx.Param)), expected)
        assert_same(state_of(mine), state_of(theirs))


@pytest.mark.parametrize("loss_of", [through_jit_and_without, through_remat, through_cond, nnx.jit(loss_of)])
def test_through_transformations(loss_of):
    """They hand the parameters on: these stay the same values to the tape."""
    mine, theirs = Network(rngs()), Network(rngs())
    expected = nnx.grad(loss_of)(theirs, X)
    with tf.GradientTape() as tape:
        loss = loss_of(mine, X)
    assert_same(tape.gradient(loss, nnx.state(mine, nnx.Param)), expected)
    assert_same(state_of(mine), state_of(theirs))


def recorded(model=None, **options):
    model = model or Network(rngs())
    with tf.GradientTape(**options) as tape:
        loss = loss_of(model, X)
    return model, tape, loss


def test_kinds_of_sources():
    expected = nnx.grad(loss_of)(Network(rngs()), X)
    model, tape, loss = recorded(persistent=True)
    kernel, bias = model.first.kernel, model.last.bias

    alone = tape.gradient(loss, kernel)
    assert isinstance(alone, tf.Tensor)  # what a variable's gradient is in TensorFlow
    np.testing.assert_allclose(alone, expected["first"]["kernel"][...], rtol=1e-5, atol=1e-7)

    several = tape.gradient(loss, [kernel, {"bias": bias}])
    assert isinstance(several[0], tf.Tensor) and several[0].shape == kernel.shape
    np.testing.assert_allclose(several[1]["bias"], expected["last"]["bias"][...], rtol=1e-5)

    assert_same(tape.gradient(loss, nnx.split(model, nnx.Param, ...)[1]), expected)
    assert_same(tape.gradient(loss, [nnx.state(model, nnx.Param)])[0], expected)

    as_module = tape.gradient(loss, model)
    assert isinstance(as_module, Network) and isinstance(as_module.first.kernel, nnx.Param)
    assert_same(nnx.state(as_module, nnx.Param), expected)
    assert as_module.norm.mean is None and as_module.dropout.rngs.count is None  # nothing depends on what they hold now


def test_variables_that_hold_a_pytree():
    class Affine(nnx.Module):
        def __init__(self):
            self.both = nnx.Param((jnp.asarray(2.0), {"shift": jnp.asarray(3.0)}))

    def f(model):
        scale, shift = model.both[0], model.both[1]["shift"]
        return scale**2 * shift

    model = Affine()
    with tf.GradientTape(persistent=True) as tape:  # they are watched as those that hold an array are
        y = f(model)
    with tf.GradientTape(watch_accessed_variables=False) as other:
        z = f(model)
    assert_same(tape.gradient(y, nnx.state(model)), nnx.grad(f)(model))
    assert_same(tape.gradient(y, [model.both])[0], nnx.grad(f)(model)["both"])
    assert not jax.tree.leaves(other.gradient(z, nnx.state(model)))
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(model.both)
        y = f(model)
    assert_same(tape.gradient(y, model.both), nnx.grad(f)(model)["both"])


def test_a_gradient_of_its_own_for_a_module():
    model = nnx.Linear(4, 2, rngs=rngs())

    @tf.custom_gradient
    def total(model, x):
        return jnp.sum(model(x)), lambda ct: (jax.tree.map(lambda w: ct * jnp.full_like(w, 7.0), model), None)

    with tf.GradientTape() as tape:
        y = total(model, X)
    found = tape.gradient(y, nnx.state(model))
    assert_same(found, jax.tree.map(lambda w: jnp.full_like(w, 7.0), nnx.state(model)))


@pytest.mark.parametrize("value", [np.ones(4, "float32"), np.float32(1.0), 1.0])
def test_variables_that_hold_no_array_of_jax(value):
    """Refused, not None: the recording has a copy of a NumPy array, which may change, and nothing that tells whose it is."""
    model = nnx.Linear(4, 2, rngs=rngs())
    model.scale, model.count = nnx.Param(value), nnx.Variable(3)
    with tf.GradientTape(persistent=True) as tape:
        y = jnp.sum(model(X)) * jnp.sum(jnp.asarray(model.scale.get_value())) * model.count.get_value()
    for sources in (model.scale, nnx.state(model, nnx.Param)):
        with pytest.raises(TypeError, match="asarray"):
            tape.gradient(y, sources)
    assert tape.gradient(y, nnx.state(model, nnx.Not(nnx.filterlib.PathContains("scale"))))["count"] is None
    with pytest.raises(TypeError, match="asarray"), tf.GradientTape() as tape:
        tape.watch(model.scale)


class Shared(nnx.Module):
    def __init__(self):
        self.a = nnx.Param(jnp.float32(3.0))
        self.inner = nnx.Dict(b=self.a, c=nnx.Param(jnp.float32(2.0)))
        self.unused = nnx.Param(jnp.float32(2.0))


def test_a_variable_in_two_places_of_a_module():
    """The gradient has one in both, too: `nnx.Optimizer` asks for that."""
    optax = pytest.importorskip("optax")

    def loss(m):
        return m.a[...] * m.inner["b"][...] + m.inner["c"][...]

    def step(model, gradient_of):
        optimizer = nnx.Optimizer(model, optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)), wrt=nnx.Param)
        for _ in range(2):
            optimizer.update(model, gradient_of(model))
        return nnx.state(model)

    def by_tape(model, sources):
        with tf.GradientTape() as tape:
            tape.watch(model)
            y = loss(model)
        return tape.gradient(y, sources(model), unconnected_gradients="zero")

    gradient = by_tape(Shared(), lambda m: m)
    assert gradient.a is gradient.inner["b"] and gradient.a is not gradient.inner["c"] and float(gradient.a[...]) == 6.0
    assert by_tape(Shared(), lambda m: [m.a, m.inner["b"]])[0].shape == ()
    right = step(Shared(), nnx.grad(loss))
    for sources in (lambda m: m, lambda m: nnx.state(m, nnx.Param)):
        jax.tree.map(np.testing.assert_allclose, step(Shared(), functools.partial(by_tape, sources=sources)), right)
    # a module has a leaf for each place, its state one: what counts leaves wants the state
    assert len(jax.tree.leaves(gradient)) == 4 and len(jax.tree.leaves(nnx.state(gradient))) == 3


def test_unconnected_parameters():
    class Spare(nnx.Module):
        def __init__(self):
            self.used, self.unused = nnx.Linear(4, 2, rngs=rngs()), nnx.Param(jnp.ones(3))

        def __call__(self, x):
            return self.used(x)

    model, tape, loss = recorded(Spare(), persistent=True)
    parameters = nnx.state(model, nnx.Param)
    assert tape.gradient(loss, parameters)["unused"] is None
    zeros = tape.gradient(loss, parameters, unconnected_gradients="zero")
    assert_same(zeros, nnx.grad(loss_of)(model, X))
    assert isinstance(zeros["unused"], nnx.Param)


def test_watching():
    model = Network(rngs())
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(model.first.kernel)
        loss = loss_of(model, X)
    assert [v is model.first.kernel for v in tape.watched_variables()] == [True]
    assert tape.gradient(loss, model.first.kernel) is not None and tape.gradient(loss, model.last.kernel) is None

    parameters = nnx.state(model, nnx.Param)
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        loss_of(model, X)
    assert len(tape.watched_variables()) == len(jax.tree.leaves(parameters))


def test_frozen_by_not_asking():
    """Flax freezes by what is differentiated: a filter."""
    model, tape, loss = recorded()
    last = nnx.All(nnx.Param, nnx.PathContains("last"))
    found = tape.gradient(loss, nnx.state(model, last))
    assert_same(found, nnx.grad(loss_of, argnums=nnx.DiffState(0, last))(Network(rngs()), X))


def test_watched_ones_may_be_updated_in_the_block():
    """A variable of Flax stands for the values that it held when it was watched."""
    model = nnx.Linear(4, 2, rngs=rngs())
    before = model.kernel[...]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(model.kernel)
        first = loss_of(model, X)
        model.kernel[...] = jnp.ones((4, 2))
        tape.watch(model.kernel)
        second = loss_of(model, X)

    def loss(kernel):
        return jnp.mean((X @ kernel + model.bias - 0.5) ** 2)

    np.testing.assert_allclose(tape.gradient(first, model.kernel), jax.grad(loss)(before), rtol=1e-5)
    np.testing.assert_allclose(tape.gradient(second, model.kernel), jax.grad(loss)(jnp.ones((4, 2))), rtol=1e-5)


def test_explain():
    model, tape, loss = recorded()
    text = str(tape.explain(loss, [model.first.kernel, model.norm.mean]))
    assert "model.first.kernel: connected" in text and "model.norm.mean: None" in text


def test_other_levels_are_still_refused():
    """Only a tape is looked past: a change that would leak out of a transformation raises as ever."""
    model = Network(rngs())

    def leaking(x):
        model.norm.mean[...] = model.norm.mean[...] * x
        return x

    with tf.GradientTape(), pytest.raises(TraceContextError):
        jax.grad(leaking)(1.0)


def test_made_in_the_block():
    with tf.GradientTape() as tape:
        model = Network(rngs())
        loss = loss_of(model, X)
    theirs = Network(rngs())
    assert_same(tape.gradient(loss, nnx.state(model, nnx.Param)), nnx.grad(loss_of)(theirs, X))
    assert_same(model(X), theirs(X))  # its statistics and counters go on changing outside


@functools.cache
def fit(step):
    model = Network(rngs())
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
    return [float(step(model, optimizer)) for _ in range(8)], model


@nnx.jit
def functional_step(model, optimizer):
    loss, gradients = nnx.value_and_grad(loss_of)(model, X)
    optimizer.update(model, gradients)
    return loss


def taped_step(model, optimizer):
    with tf.GradientTape() as tape:
        loss = loss_of(model, X)
    optimizer.update(model, tape.gradient(loss, nnx.state(model, nnx.Param)))
    return loss


def taped_step_of_the_module(model, optimizer):
    with tf.GradientTape() as tape:
        loss = loss_of(model, X)
    optimizer.update(model, tape.gradient(loss, model))
    return loss


def taped_step_with_the_update_inside(model, optimizer):
    with tf.GradientTape() as tape:
        loss = loss_of(model, X)
        optimizer.update(model, tape.gradient(loss, nnx.state(model, nnx.Param)))
    return loss


STEPS = [taped_step, taped_step_of_the_module, taped_step_with_the_update_inside, nnx.jit(taped_step)]


@pytest.mark.parametrize("step", STEPS)
def test_training_equals_the_functional_loop(step):
    """Losses, parameters, statistics and random state, step by step."""
    expected, theirs = fit(functional_step)
    found, mine = fit(step)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert expected[-1] < expected[0]
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5), state_of(mine), state_of(theirs))


def test_update_by_hand():
    model, theirs = nnx.Linear(4, 2, rngs=rngs()), nnx.Linear(4, 2, rngs=rngs())
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = loss_of(model, X)
        sources = [model.kernel, model.bias]
        for parameter, gradient in zip(sources, tape.gradient(loss, sources)):
            parameter[...] -= 0.1 * gradient
        expected = nnx.grad(loss_of)(theirs, X)
        nnx.update(theirs, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(theirs, nnx.Param), expected))
    assert isinstance(model.kernel[...], jax.Array)
    assert_same(nnx.state(model), nnx.state(theirs))


def test_state_and_gradients_in_one_tree_map():
    model, tape, loss = recorded(nnx.Linear(4, 2, rngs=rngs()))
    parameters = nnx.state(model, nnx.Param)
    new = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, tape.gradient(loss, parameters))
    nnx.update(model, new)
    assert float(loss_of(model, X)) < float(loss)


def test_higher_order_and_nested_transformations():
    model = nnx.Linear(4, 2, rngs=rngs())

    def penalty(model):
        gradients = nnx.grad(loss_of)(model, X)
        return sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients))

    def taped_penalty(model):
        with tf.GradientTape() as tape:
            loss = loss_of(model, X)
        return sum(jnp.sum(g**2) for g in jax.tree.leaves(tape.gradient(loss, nnx.state(model, nnx.Param))))

    expected = nnx.grad(penalty)(model)
    assert_same(nnx.grad(taped_penalty)(model), expected)
    for function in (penalty, taped_penalty):
        with tf.GradientTape() as tape:
            value = function(model)
        assert_same(tape.gradient(value, nnx.state(model, nnx.Param)), expected)


def test_a_step_of_descent_differentiated():
    """Meta-learning: how the loss after an update depends on the parameters before it."""
    model = nnx.Linear(4, 2, rngs=rngs())
    graph, start = nnx.split(model)

    def after(start):
        gradients = jax.grad(lambda state: loss_of(nnx.merge(graph, state), X))(start)
        return loss_of(nnx.merge(graph, jax.tree.map(lambda p, g: p - 0.1 * g, start, gradients)), X)

    with tf.GradientTape() as outer:
        outer.watch(model.kernel)
        with tf.GradientTape() as inner:
            loss = loss_of(model, X)
        gradient = inner.gradient(loss, model)
        adapted = nnx.merge(graph, jax.tree.map(lambda p, g: p - 0.1 * g, nnx.state(model), nnx.state(gradient)))
        value = loss_of(adapted, X)
    assert_same(jnp.asarray(outer.gradient(value, model.kernel)), jax.grad(after)(start)["kernel"][...])


def test_jacobian_and_as_function():
    model = nnx.Linear(4, 2, rngs=rngs())
    state = nnx.state(model, nnx.Param)
    with tf.GradientTape(persistent=True) as tape:
        y = model(X)
        loss = jnp.mean(y**2)
    graph = nnx.graphdef(model)
    expected = jax.jacrev(lambda state: nnx.merge(graph, state)(X))(state)
    found = tape.jacobian(y, state)
    np.testing.assert_allclose(found["kernel"][...], expected["kernel"][...], rtol=1e-5)
    function = tape.as_function(loss, state)
    assert_same(jax.grad(function)(state), tape.gradient(loss, state))


def test_no_new_programs_in_a_loop(no_shadow):
    """A step that was seen compiles nothing, though Flax makes new lambdas at every call."""
    model = Network(rngs())
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)
    for _ in range(4):
        taped_step(model, optimizer)
    with compiles() as compiled:
        taped_step(model, optimizer)
    assert not compiled
