"""Optax on what a tape gives: pytrees of arrays, and our Variables. The oracle is `jax.grad` with the same optimizer."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

optax = pytest.importorskip("optax")

X = np.random.default_rng(0).normal(size=(16, 3)).astype("float32")
Y = np.sin(X.sum(1, keepdims=True))
STEPS = 10

OPTIMIZERS = {
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adamw": lambda: optax.adamw(0.03),
    "chain": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.rmsprop(optax.cosine_decay_schedule(0.03, 10))),
    "frozen": lambda: optax.partition(
        {"train": optax.adam(0.03), "freeze": optax.set_to_zero()}, {"w": "train", "b": "freeze"}
    ),
}


def start():
    return {"w": jnp.full((3, 1), 0.1), "b": jnp.zeros(1)}


def loss_of(parameters, x=X):
    return jnp.mean((jnp.tanh(x @ parameters["w"]) + parameters["b"] - Y) ** 2)


def functional(optimizer):
    parameters, losses = start(), []
    state = optimizer.init(parameters)
    for _ in range(STEPS):
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        losses.append(float(loss))
    return losses, parameters


def on_a_pytree(optimizer):
    parameters, losses = start(), []
    state = optimizer.init(parameters)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            loss = loss_of(parameters)
        updates, state = optimizer.update(tape.gradient(loss, parameters), state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        losses.append(float(loss))
    return losses, parameters


def in_jit(optimizer):
    @jax.jit
    def step(parameters, state):
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            loss = loss_of(parameters)
        updates, state = optimizer.update(tape.gradient(loss, parameters), state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    parameters, losses = start(), []
    state = optimizer.init(parameters)
    for _ in range(STEPS):
        parameters, state, loss = step(parameters, state)
        losses.append(float(loss))
    return losses, parameters


def values(variables):
    """What they hold now: Optax compares the structures of parameters and gradients, and gradients are tensors."""
    return tf.nest.map_structure(tf.convert_to_tensor, variables)


def on_variables(optimizer):
    variables, losses = tf.nest.map_structure(tf.Variable, start()), []
    state = optimizer.init(values(variables))
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = loss_of(variables)
        updates, state = optimizer.update(tape.gradient(loss, variables), state, values(variables))
        tf.nest.map_structure(lambda variable, update: variable.assign_add(update), variables, updates)
        losses.append(float(loss))
    return losses, values(variables)


def on_variables_in_a_function(optimizer):
    variables, losses = tf.nest.map_structure(tf.Variable, start()), []

    @tf.function
    def step(state):
        with tf.GradientTape() as tape:
            loss = loss_of(variables)
        updates, state = optimizer.update(tape.gradient(loss, variables), state, values(variables))
        tf.nest.map_structure(lambda variable, update: variable.assign_add(update), variables, updates)
        return loss, state

    state = optimizer.init(values(variables))
    for _ in range(STEPS):
        loss, state = step(state)
        losses.append(float(loss))
    assert step.experimental_get_tracing_count() == 1
    return losses, values(variables)


WAYS = [on_a_pytree, in_jit, on_variables, on_variables_in_a_function]


@functools.cache
def expected(name):
    return functional(OPTIMIZERS[name]())


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("way", WAYS)
def test_training_equals_the_functional_loop(way, name):
    losses, parameters = way(OPTIMIZERS[name]())
    wanted, wanted_parameters = expected(name)
    assert wanted[-1] < wanted[0]
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-5),
        jax.tree.leaves(parameters),
        jax.tree.leaves(wanted_parameters),
    )


def test_losses_of_optax():
    logits = jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)), jnp.float32)
    labels = jnp.array([0, 2, 1, 1])

    def loss(logits):
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels)) + jnp.mean(
            optax.huber_loss(logits)
        )

    with tf.GradientTape() as tape:
        tape.watch(logits)
        y = loss(logits)
    np.testing.assert_allclose(tape.gradient(y, logits), jax.grad(loss)(logits), rtol=1e-5)


def test_a_gradient_through_the_update():
    """The optimizer's own arithmetic is recorded: how the loss after a step depends on the learning rate."""
    parameters = start()

    def after(rate):
        optimizer = optax.adam(rate)
        updates, _ = optimizer.update(jax.grad(loss_of)(parameters), optimizer.init(parameters), parameters)
        return loss_of(optax.apply_updates(parameters, updates))

    rate = jnp.array(0.1)
    with tf.GradientTape() as outer:
        outer.watch(rate)
        with tf.GradientTape() as inner:
            inner.watch(parameters)
            loss = loss_of(parameters)
        optimizer = optax.adam(rate)
        updates, _ = optimizer.update(inner.gradient(loss, parameters), optimizer.init(parameters), parameters)
        y = loss_of(optax.apply_updates(parameters, updates))
    np.testing.assert_allclose(outer.gradient(y, rate), jax.grad(after)(rate), rtol=1e-4)
