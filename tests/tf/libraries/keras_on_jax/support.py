"""What the tests of Keras share."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import tapejax as tf
from tests.tape.interpreted import interpreted


def draw(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape).astype("float32")


def values(variables):
    return [np.array(v) for v in variables]


def close(got, want, rtol=1e-4, atol=1e-5):
    assert len(got) == len(want)
    for one, other in zip(got, want):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=rtol, atol=atol)


def weighted(outputs):
    """A number that depends on all that is in `outputs`, each element in its own way."""
    total = 0.0
    for y in jax.tree.leaves(outputs):
        y = jnp.asarray(y)
        total = total + jnp.sum(y * jnp.cos(jnp.arange(y.size, dtype="float32")).reshape(y.shape))
    return total


def check_against_stateless_call(layer, *inputs, **options):
    """The gradients with respect to variables and inputs, and the state afterwards, are those of Keras's functional interface."""
    layer(*inputs, **options)  # builds
    state = [v._value for v in layer.non_trainable_variables]
    parameters = [v._value for v in layer.trainable_variables]
    differentiable = [i for i, x in enumerate(inputs) if x.dtype.kind == "f"]
    given = [jnp.asarray(x) for x in inputs]

    def functional(parameters, xs):
        full = list(given)
        for i, x in zip(differentiable, xs):
            full[i] = x
        outputs, after = layer.stateless_call(parameters, state, *full, **options)
        return weighted(outputs), after

    reference = jax.jit(jax.value_and_grad(functional, (0, 1), has_aux=True))
    with interpreted():  # XLA takes longer to compile it than the test
        (value, after), (by_parameters, by_inputs) = reference(parameters, [given[i] for i in differentiable])
    tensors = [tf.constant(x) for x in given]
    with tf.GradientTape() as tape:
        tape.watch([tensors[i] for i in differentiable])
        loss = weighted(layer(*tensors, **options))
    got = tape.gradient(
        loss, [layer.trainable_variables, [tensors[i] for i in differentiable]], unconnected_gradients="zero"
    )
    np.testing.assert_allclose(loss, value, rtol=1e-4, atol=1e-5)
    close(got[0], by_parameters)
    close(got[1], by_inputs)
    close([v._value for v in layer.non_trainable_variables], after)
    watched = tape.watched_variables()
    assert [id(v) for v in watched if v.trainable] == [id(v) for v in watched]
    assert {id(v) for v in watched} <= {id(v) for v in layer.trainable_variables}
