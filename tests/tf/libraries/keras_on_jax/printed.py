"""Printed functions of Keras models: each model and layer once, and no function that only hands a call on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import draw

import tapejax as tf

keras = tf.keras
layers = keras.layers


def check(tape, target, variables, text):
    """The printed code is `text`, and has the tape's value and gradient."""
    function = tape.as_function(target, variables)
    assert function.code.partition("\n\n\n")[2] == text
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    params = function.tree([jnp.asarray(v) for v in variables])
    value, found = jax.value_and_grad(space["f"])(params)
    np.testing.assert_allclose(value, target, rtol=1e-5)
    wanted = function.tree([jnp.asarray(g) for g in tape.gradient(target, variables)])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, wanted)


class Handing(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x):
        return self.inner(x)


def test_models_that_only_hand_a_call_on_are_not_printed():
    keras.utils.set_random_seed(0)
    given = keras.Input((3,))
    body = layers.Dense(4, activation="tanh", name="body")(given)
    heads = keras.Model(given, [layers.Dense(2, name="left")(body), layers.Dense(1, name="right")(body)])
    model = Handing(Handing(heads))
    with tf.GradientTape(persistent=True) as tape:
        left, right = model(tf.constant(draw(5, 3)))
        loss = tf.reduce_mean((left - right) ** 2)
    text = """\
def dense(params, inputs):
    return jnp.tanh(inputs @ params["kernel"] + params["bias"])


def dense_linear(params, inputs):
    return inputs @ params["kernel"] + params["bias"]


def inner(params, inputs):
    outputs = dense(params["body"], inputs)
    return dense_linear(params["right"], outputs), dense_linear(params["left"], outputs)


def f(params):
    right, left = inner(params, inputs)
    loss = jnp.mean((left - right) ** 2)
    return loss
"""
    check(tape, loss, model.trainable_variables, text)


def test_layers_of_a_functional_model_are_called_by_the_model():
    keras.utils.set_random_seed(0)

    class Block(layers.Layer):
        def __init__(self, name):
            super().__init__(name=name)
            self.dense = layers.Dense(3, name="dense")

        def call(self, x):
            return x + self.dense(x)

    given = keras.Input((3,))
    model = keras.Model(given, layers.Dense(1, name="last")(Block(name="block_1")(Block(name="block")(given))))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(model(tf.constant(draw(5, 3))) ** 2)
    text = """\
def dense(params, inputs):
    return inputs @ params["kernel"] + params["bias"]


def block(params, x):
    return x + dense(params, x)


def model(params, inputs):
    return dense(
        params["last"],
        block(params["block_1"]["dense"], block(params["block"]["dense"], inputs)),
    )


def f(params):
    loss = jnp.mean(model(params, inputs) ** 2)
    return loss
"""
    check(tape, loss, model.trainable_variables, text)


def test_a_model_has_the_name_that_the_program_has_for_it_and_no_constants_as_parameters():
    keras.utils.set_random_seed(0)
    forecaster = keras.Sequential([keras.Input((3, 2)), layers.LSTM(4, name="cell"), layers.Dense(1, name="last")])
    x = tf.constant(draw(5, 3, 2))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(forecaster(x, training=True) ** 2)
    function = tape.as_function(loss, forecaster.trainable_variables)
    assert (
        'def forecaster(params, sequences):\n    return dense(params["last"], rnn(params["cell"]["lstm_cell"], sequences))'
        in function.code
    )
    assert (
        "    def body(states, current_input):\n        t0, output_t = lstm_cell(params, current_input, "
        in function.code
    )
    assert "(jnp.zeros((5, 4), jnp.float32), jnp.zeros((5, 4), jnp.float32))" in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    params = function.tree([jnp.asarray(v) for v in forecaster.trainable_variables])
    np.testing.assert_allclose(space["f"](params), loss, rtol=1e-5)


def test_attention_reads_as_it_is_written_by_hand():
    keras.utils.set_random_seed(0)
    attention, x = layers.MultiHeadAttention(2, 4), tf.constant(draw(4, 5, 8))
    attention(x, x)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(attention(x, x) ** 2)
    function = tape.as_function(loss, attention.trainable_variables, {"x": x})
    assert "jax.nn.dot_product_attention(" in function.code and "transpose" not in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    params = function.tree([jnp.asarray(v) for v in attention.trainable_variables])
    value, found = jax.value_and_grad(space["f"])(params, jnp.asarray(x))
    np.testing.assert_allclose(value, loss, rtol=1e-5)
    wanted = function.tree([jnp.asarray(g) for g in tape.gradient(loss, attention.trainable_variables)])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, wanted)


def test_a_recurrent_layer_takes_arguments():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5, 3)), layers.LSTM(6), layers.Dense(1)])
    x = tf.constant(draw(4, 5, 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    function = tape.as_function(loss, model.trainable_variables, {"x": x})
    assert "jax.lax.scan(" in function.code and "def scan(" not in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    params = function.tree([jnp.asarray(v) for v in model.trainable_variables])
    for given in (x, tf.constant(draw(4, 5, 3) * 2.0 - 1.0)):
        wanted = tf.reduce_mean(model(given) ** 2)
        np.testing.assert_allclose(space["f"](params, jnp.asarray(given)), wanted, rtol=1e-5)


def test_a_loss_has_the_name_that_the_program_has_for_it_and_its_arguments_have_theirs():
    """Keras converts the labels after the logits: so the roles of the two are no matter of their order."""
    keras.utils.set_random_seed(0)
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    layer, x, labels = layers.Dense(3), tf.constant(draw(5, 2)), tf.constant([0, 1, 2, 0, 1])
    layer(x)
    with tf.GradientTape() as tape:
        logits = layer(x)
        loss = entropy(labels, logits)
    function = tape.as_function(loss, layer.trainable_variables, {"labels": labels})
    assert "def entropy(y_true, y_pred):" in function.code
    assert "entropy(labels.astype(jnp.float32), logits)" in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    params = function.tree([jnp.asarray(v) for v in layer.trainable_variables])
    np.testing.assert_allclose(space["f"](params, jnp.asarray(labels)), loss, rtol=1e-5)


def test_a_layer_of_dropout_is_one_function_for_all_shapes_and_has_the_names_of_the_library():
    keras.utils.set_random_seed(0)

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = layers.Dense(40, name="first"), layers.Dense(30, name="second")
            self.last, self.dropout = layers.Dense(1, name="last"), layers.Dropout(0.5)

        def call(self, x):
            h = self.dropout(self.first(x), training=True)
            h = self.dropout(self.second(h), training=True)
            return self.last(h)

    model, x = Model(), tf.constant(draw(5, 3))
    model(x)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(model(x) ** 2)
    text = """\
def dense(params, inputs):
    return inputs @ params["kernel"] + params["bias"]


def dropout(inputs, mask):
    return jnp.where(mask, inputs / 0.5, jnp.zeros(inputs.shape, jnp.float32))


def model(params, x, mask, mask_2):
    h = dropout(dense(params["first"], x), mask)
    h = dropout(dense(params["second"], h), mask_2)
    return dense(params["last"], h)


def f(params):
    loss = jnp.mean(model(params, x, mask, mask_2) ** 2)
    return loss
"""
    check(tape, loss, model.trainable_variables, text)


# The names in a loss are those of the library's function, also where the loss or one of the two is computed beforehand.
LOSSES = {
    "Huber": """\
def measure(y_true, y_pred):
    error = y_pred - y_true
    abs_error = jnp.absolute(error)
    return jnp.mean(
        jnp.where(abs_error <= 1.0, 0.5 * jnp.square(error), abs_error - 0.5), axis=1
    )
""",
    "KLDivergence": """\
def measure(y_true, y_pred):
    y_true = jnp.clip(y_true, 1e-07, 1)
    return jnp.sum(y_true * jnp.log(y_true / jnp.clip(y_pred, 1e-07, 1)), axis=1)
""",
    "CosineSimilarity": """\
def measure(y_true, y_pred):
    y_pred = (
        y_pred
        * jnp.minimum(
            jax.lax.rsqrt(jnp.sum(jnp.square(y_pred), axis=1, keepdims=True)), 1e7
        )
    )
""",
    "MeanSquaredLogarithmicError": """\
def measure(y_true, y_pred):
    return jnp.mean(
        jnp.square(
            jnp.log(jnp.maximum(y_pred, 1e-07) + 1.0)
            - jnp.log(jnp.maximum(y_true, 1e-07) + 1.0)
        ),
        axis=1,
    )
""",
    "Dice": """\
def measure(y_true, y_pred):
    return 1 - 2.0 * jnp.sum(y_true * y_pred) / (""",
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_the_names_of_the_library(name):
    measure, labels = getattr(keras.losses, name)(), tf.constant(abs(draw(5, 2)))
    w = tf.Variable(abs(draw(5, 2)) + 0.1, name="w")
    with tf.GradientTape() as tape:
        loss = measure(labels, w * 2.0)
    function = tape.as_function(loss, w)
    assert LOSSES[name] in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<printed>", "exec"), space)
    value, found = jax.value_and_grad(space["f"])(jnp.asarray(w))
    np.testing.assert_allclose(value, loss, rtol=1e-5)
    np.testing.assert_allclose(found, np.asarray(tape.gradient(loss, w)), rtol=1e-4, atol=1e-6)


def test_what_a_schedule_computes_has_its_names():
    step = tf.Variable(30.0, name="step")
    with tf.GradientTape() as tape:
        rate = keras.optimizers.schedules.CosineDecay(0.1, 100)(step)
        loss = rate * rate
    function = tape.as_function(loss, step)
    assert function.code.count("rate = ") == 1
    space = {"jax": jax, "jnp": jnp}
    exec(compile(function.code, "<printed>", "exec"), space)
    found = jax.grad(space["f"])(jnp.asarray(step))
    np.testing.assert_allclose(found, np.asarray(tape.gradient(loss, step)), rtol=1e-5)
