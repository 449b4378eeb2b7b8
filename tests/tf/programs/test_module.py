"""`tapejax.Module` with JAX's own; what TensorFlow decides is in tests/tf/parity."""

import copy

import jax.numpy as jnp
import pytest

import tapejax as tf


class Dense(tf.Module):
    def __init__(self, ins, outs):
        super().__init__()
        self.w = tf.Variable(tf.ones([ins, outs]), name="w")
        self.bias = jnp.zeros(outs)  # an array is no variable

    def __call__(self, x):
        return x @ self.w + self.bias


def test_only_variables_are_variables():
    assert [v.name for v in Dense(1, 2).variables] == ["w:0"]


def test_gradients_of_a_module_in_plain_jax():
    layer = Dense(2, 1)
    with tf.GradientTape() as tape:
        loss = jnp.sum(jnp.asarray(layer(jnp.ones((3, 2)))) ** 2)
    (gradient,) = tape.gradient(loss, layer.trainable_variables)
    assert gradient.shape == (2, 1)


def test_a_module_is_copied_with_its_name():
    layer = Dense(1, 1)
    twin = copy.copy(layer)
    assert twin.name == layer.name == "dense" and twin.w is layer.w


def test_a_thread_has_scopes_of_its_own():
    import threading

    names = []
    with tf.name_scope("outer"):
        worker = threading.Thread(target=lambda: names.append(tf.Variable(1.0, name="v").name))
        worker.start()
        worker.join()
    assert names == ["v:0"]


def test_a_name_says_what_is_wrong():
    with pytest.raises(ValueError, match="'two words' is not a valid module name"):
        tf.Module(name="two words")
