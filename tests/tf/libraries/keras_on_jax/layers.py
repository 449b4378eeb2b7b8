"""Layers, models and losses of Keras under the tape, against Keras's own functional gradients."""

from __future__ import annotations

import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import check_against_stateless_call, close, draw, weighted

import tapejax as tf
from tests.compiling import compiles
from tests.tape.interpreted import interpreted

keras = tf.keras
layers, losses, metrics, optimizers = keras.layers, keras.losses, keras.metrics, keras.optimizers
plain = importlib.import_module("keras")  # what a program gets that says `import keras`

# Keras's Variable.numpy() has NumPy say so of Keras.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


# ---- layers ---------------------------------------------------------------------------------------------------------

image, sequence, vector, volume = draw(2, 8, 8, 3), draw(2, 5, 4), draw(3, 6), draw(2, 4, 4, 4, 2)
LAYERS = {
    "Dense": (lambda: layers.Dense(4, activation="gelu", kernel_regularizer="l2"), vector),
    "EinsumDense": (lambda: layers.EinsumDense("abc,cd->abd", output_shape=(None, 3), bias_axes="d"), sequence),
    "Conv1D": (lambda: layers.Conv1D(3, 2, padding="causal", dilation_rate=2, activation="tanh"), sequence),
    "Conv2D": (lambda: layers.Conv2D(3, 3, strides=2, padding="same", activation="relu"), image),
    "Conv2D groups": (lambda: layers.Conv2D(6, 3, groups=3), image),
    "Conv3D": (lambda: layers.Conv3D(2, 2), volume),
    "Conv1DTranspose": (lambda: layers.Conv1DTranspose(3, 3, strides=2, output_padding=1), sequence),
    "Conv2DTranspose": (lambda: layers.Conv2DTranspose(3, 3, strides=2), image),
    "Conv2DTranspose, padded": (lambda: layers.Conv2DTranspose(3, 5, 3, "same", output_padding=(1, 2)), image),
    "Conv2DTranspose, dilated": (lambda: layers.Conv2DTranspose(3, 3, dilation_rate=2), image),
    "Conv3DTranspose": (lambda: layers.Conv3DTranspose(2, 3, 2, "same", output_padding=1), volume),
    "Conv3D, strided": (lambda: layers.Conv3D(2, 3, 2, "same"), volume),
    "DepthwiseConv1D": (lambda: layers.DepthwiseConv1D(3, dilation_rate=2), sequence),
    "DepthwiseConv2D": (lambda: layers.DepthwiseConv2D(3, depth_multiplier=2), image),
    "SeparableConv1D": (lambda: layers.SeparableConv1D(4, 3, depth_multiplier=2), sequence),
    "SeparableConv2D": (lambda: layers.SeparableConv2D(4, 3), image),
    "MaxPooling2D": (lambda: layers.MaxPooling2D(), image),
    "AveragePooling2D": (lambda: layers.AveragePooling2D(padding="same", pool_size=3), image),
    "GlobalMaxPooling2D": (lambda: layers.GlobalMaxPooling2D(), image),
    "GlobalAveragePooling1D": (lambda: layers.GlobalAveragePooling1D(), sequence),
    "UpSampling2D": (lambda: layers.UpSampling2D(interpolation="bilinear"), image),
    "Cropping and padding": (lambda: keras.Sequential([layers.Cropping2D(1), layers.ZeroPadding2D(2)]), image),
    "BatchNormalization": (lambda: layers.BatchNormalization(), image),
    "LayerNormalization": (lambda: layers.LayerNormalization(), sequence),
    "GroupNormalization": (lambda: layers.GroupNormalization(3), image),
    "UnitNormalization": (lambda: layers.UnitNormalization(), vector),
    "RMSNormalization": (lambda: layers.RMSNormalization(), vector),
    "Dropout": (lambda: layers.Dropout(0.5, seed=1), vector),
    "SpatialDropout1D": (lambda: layers.SpatialDropout1D(0.5, seed=1), sequence),
    "GaussianNoise": (lambda: layers.GaussianNoise(0.5, seed=1), vector),
    "GaussianDropout": (lambda: layers.GaussianDropout(0.5, seed=1), vector),
    "AlphaDropout": (lambda: layers.AlphaDropout(0.5, seed=1), vector),
    "ActivityRegularization": (lambda: layers.ActivityRegularization(l2=0.1), vector),
    "Embedding": (lambda: layers.Embedding(10, 3), np.array([[1, 2, 2], [0, 9, 1]], "int32")),
    "LSTM": (lambda: layers.LSTM(3, return_sequences=True, dropout=0.2, recurrent_dropout=0.2, seed=1), sequence),
    "LSTM unrolled": (lambda: layers.LSTM(3, unroll=True, return_state=True), sequence),
    "GRU": (lambda: layers.GRU(3, go_backwards=True, return_state=True), sequence),
    "SimpleRNN": (lambda: layers.SimpleRNN(3, activation="relu"), sequence),
    "RNN of cells": (lambda: layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)]), sequence),
    "Bidirectional": (lambda: layers.Bidirectional(layers.GRU(3, return_sequences=True)), sequence),
    "TimeDistributed": (lambda: layers.TimeDistributed(layers.Dense(3)), sequence),
    "ConvLSTM1D": (lambda: layers.ConvLSTM1D(2, 3), draw(2, 3, 6, 2)),
    "PReLU": (lambda: layers.PReLU(alpha_initializer="ones"), vector),
    "Softmax": (lambda: layers.Softmax(), vector),
    "Reshapes": (lambda: keras.Sequential([layers.Flatten(), layers.Reshape((4, 48)), layers.Permute((2, 1))]), image),
    "RepeatVector": (lambda: layers.RepeatVector(3), vector),
    "Masking before an LSTM": (lambda: keras.Sequential([layers.Masking(), layers.LSTM(2)]), sequence),
}
PAIRS = {
    "MultiHeadAttention": (lambda: layers.MultiHeadAttention(2, 3), (sequence, draw(2, 3, 4))),
    "GroupQueryAttention": (lambda: layers.GroupQueryAttention(3, 4, 2), (sequence, draw(2, 3, 4))),
    "Bilinear": (lambda: Bilinear(3), (vector, draw(3, 4))),
}


class Bilinear(layers.Layer):
    """Two inputs, written with tf functions."""

    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, one_shape, other_shape):
        self.kernel = self.add_weight(shape=(one_shape[-1], other_shape[-1], self.units), name="kernel")

    def call(self, one, other):
        return tf.einsum("bi,bj,ijk->bk", one, other, self.kernel)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, x = LAYERS[name]
    layer = make()
    # A wrapped or nested layer takes `training` from its signature.
    training = {"training": True} if "training" in inspect.signature(layer.call).parameters else {}
    check_against_stateless_call(layer, x, **training)


@pytest.mark.parametrize("name", PAIRS)
def test_layer_of_two_inputs(name):
    make, inputs = PAIRS[name]
    check_against_stateless_call(make(), *inputs)


def test_batch_normalization_in_inference():
    layer = layers.BatchNormalization()
    for _ in range(3):
        layer(draw(8, 4), training=True)
    check_against_stateless_call(layer, draw(3, 4), training=False)


# ---- models ---------------------------------------------------------------------------------------------------------


def sequential():
    return keras.Sequential(
        [
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3, seed=3),
            layers.Dense(3),
        ]
    )


def functional():
    x = keras.Input((8, 8, 3))
    shared = layers.Conv2D(3, 3, padding="same", activation=tf.nn.relu)
    h = layers.add([x, shared(shared(x))])
    one = layers.GlobalAveragePooling2D()(h)
    other = layers.Dense(3, activation="tanh")(layers.Flatten()(h))
    return keras.Model(x, {"sum": layers.Concatenate()([one, other]), "other": other})


class Residual(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [layers.Dense(6, activation="relu") for _ in range(2)]
        self.norm, self.drop, self.top = layers.BatchNormalization(), layers.Dropout(0.5, seed=2), layers.Dense(2)

    def call(self, x, training=False):
        x = tf.reduce_mean(x, axis=[1, 2])
        x = tf.concat([x, x], axis=-1)
        for block in self.blocks:
            x = x + block(x)
        return self.top(self.drop(self.norm(x, training=training), training=training))


MODELS = {"sequential": sequential, "functional": functional, "subclassed": Residual}


@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    check_against_stateless_call(MODELS[name](), image, training=True)


@pytest.mark.parametrize("name", MODELS)
def test_model_first_built_inside_the_tape(name):
    model = MODELS[name]()
    with tf.GradientTape() as tape:
        loss = tf.convert_to_tensor(weighted(model(image, training=False)))
    got = tape.gradient(loss, model.trainable_variables)
    assert all(g is not None for g in got)
    assert [id(v) for v in tape.watched_variables()] == sorted(
        [id(v) for v in model.trainable_variables], key=[id(v) for v in tape.watched_variables()].index
    )
    with tf.GradientTape() as tape:
        loss = tf.convert_to_tensor(weighted(model(image, training=False)))
    close(got, tape.gradient(loss, model.trainable_variables), rtol=1e-6)


def test_second_derivatives_of_a_model():
    model = keras.Sequential([layers.Dense(5, activation="tanh"), layers.Dense(1)])
    x = draw(4, 2)
    model(x)
    parameters = [v._value for v in model.trainable_variables]

    def penalty(parameters):
        slope = jax.grad(lambda x: jnp.sum(model.stateless_call(parameters, [], x)[0]))(jnp.asarray(x))
        return jnp.mean((jnp.linalg.norm(slope, axis=1) - 1.0) ** 2)

    x = tf.constant(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = model(x)
        loss = tf.reduce_mean((tf.norm(inner.gradient(y, x), axis=1) - 1.0) ** 2)
    got = outer.gradient(loss, model.trainable_variables, unconnected_gradients="zero")
    close(got, jax.grad(penalty)(parameters))


def test_jacobians_of_a_model():
    model = keras.Sequential([layers.Dense(3, activation="tanh"), layers.Dense(2)])
    x = tf.constant(draw(4, 5))
    model(x)
    parameters = [v._value for v in model.trainable_variables]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = model(x)
    want = jax.jacrev(lambda p, x: model.stateless_call(p, [], x)[0], (0, 1))(parameters, x._array)
    close(tape.jacobian(y, model.trainable_variables), want[0])
    close([tape.jacobian(y, x)], [want[1]])
    close([tape.batch_jacobian(y, x)], [jnp.einsum("bibj->bij", want[1])])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float64"])
def test_dtype_policies(policy):
    with jax.enable_x64(policy == "float64"):
        model = keras.Sequential([layers.Dense(4, activation="relu", dtype=policy), layers.Dense(2, dtype=policy)])
        x = draw(3, 4)
        model(x)
        parameters = [v._value for v in model.trainable_variables]
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        got = tape.gradient(loss, model.trainable_variables)
        want = jax.grad(lambda p: jnp.sum(model.stateless_call(p, [], jnp.asarray(x))[0]))(parameters)
        assert [g.dtype.name for g in got] == [v.dtype for v in model.trainable_variables]
        close(got, want, rtol=2e-2, atol=2e-2)


LOSSES = sorted(
    name
    for name, kind in vars(plain.losses).items()
    if inspect.isclass(kind) and issubclass(kind, plain.Loss) and name != "Loss"
)
INTEGER_LABELS = {"SparseCategoricalCrossentropy", "CategoricalGeneralizedCrossEntropy"}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    if name == "CTC":
        true, predicted = np.array([[1, 2, 0], [2, 1, 1]], "int32"), draw(2, 6, 4)
    elif name in INTEGER_LABELS:
        true, predicted = (
            np.array([1, 0, 2], "int32"),
            np.exp(draw(3, 4)) / np.exp(draw(3, 4)).sum(axis=1, keepdims=True),
        )
    elif name in ("Dice", "Tversky"):
        true, predicted = (draw(2, 3, 4, 1) > 0).astype("float32"), 1 / (1 + np.exp(-draw(2, 3, 4, 1)))
    elif name == "Circle":
        true, predicted = (
            np.array([[1], [0], [1]], "int32"),
            draw(3, 4) / np.linalg.norm(draw(3, 4), axis=1, keepdims=True),
        )
    else:
        true, predicted = (
            np.eye(3, 4, dtype="float32"),
            np.exp(draw(3, 4)) / np.exp(draw(3, 4)).sum(axis=1, keepdims=True),
        )
    fn = getattr(losses, name)()
    with interpreted():
        want, slope = jax.value_and_grad(lambda p: fn(jnp.asarray(true), p))(jnp.asarray(predicted))
    x = tf.constant(predicted)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = fn(true, x)
    assert isinstance(loss, tf.Tensor) and loss.numpy() == pytest.approx(float(want), rel=1e-5)
    close([tape.gradient(loss, x)], [slope])


# ---- what is a variable's gradient ----------------------------------------------------------------------------------


def test_frozen_variables_are_watched_still():
    """As in TensorFlow, where a Keras variable that was made to be trained is watched; one that never was is not."""
    model = keras.Sequential([layers.Dense(3), layers.Dense(2), layers.BatchNormalization()])
    model(draw(2, 4))
    model.layers[0].trainable = False
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(draw(2, 4)) ** 2)
    got = tape.gradient(loss, model.weights)
    assert [v.path.rpartition("/")[2] for v, g in zip(model.weights, got) if g is None] == [
        "moving_mean",
        "moving_variance",
    ]


def test_watched_variables():
    used, unused = layers.Dense(2), layers.Dense(2)
    ours = tf.Variable(1.0)
    used.build((None, 2)), unused.build((None, 2))
    with tf.GradientTape() as tape:
        y = used(tf.ones([1, 2])) * ours
    assert [id(v) for v in tape.watched_variables()] == [
        id(v) for v in sorted([ours, *used.weights], key=lambda v: v._created)
    ]
    assert tape.gradient(y, unused.trainable_variables) == [None, None]
    assert len(tape.watched_variables()) == 3  # also afterwards
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(used.kernel)
        y = used(tf.ones([1, 2]))
    assert [id(v) for v in tape.watched_variables()] == [id(used.kernel)]
    got = tape.gradient(y, used.trainable_variables)
    assert got[0] is not None and got[1] is None


def test_a_variable_is_known_by_what_it_held():
    """A persistent tape gives the same gradient after an optimizer's step."""
    dense = layers.Dense(2)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(dense(tf.ones([1, 3])) ** 2)
    before = tape.gradient(loss, dense.trainable_variables)
    optimizers.SGD(0.1).apply_gradients(zip(before, dense.trainable_variables))
    close(tape.gradient(loss, dense.trainable_variables), before)


def test_variables_that_were_given_one_array():
    array = jnp.array([1.0, 2.0])
    one, other = keras.Variable(array), keras.Variable(array)
    third = keras.Variable([0.0, 0.0])
    third.assign(one)
    frozen = keras.Variable(array, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(array)
        y = tf.reduce_sum(one * one * other + third * 10.0 * frozen + array)
    got = tape.gradient(y, [one, other, third, frozen, array])
    close(got, [[2.0, 8.0], [1.0, 4.0], [10.0, 20.0], None, [1.0, 1.0]])


def test_an_assignment_stops_the_gradient():
    v, w = keras.Variable(2.0), keras.Variable(3.0)
    x = tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = v * v  # 2v
        v.assign(w * x)
        z = v * v  # 2v, at 15
    close(tape.gradient([y, z], [v, w, x]), [34.0, None, None])
    norm = layers.BatchNormalization()
    x = tf.constant(draw(4, 2))
    norm(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        norm(x, training=True)
        y = norm(tf.ones([1, 2]), training=False)  # by the moving averages, which are state
    assert tape.gradient(y, x) is None


def test_steps_of_an_optimizer_inside_the_tape():
    v = keras.Variable(1.0)
    sgd = optimizers.SGD(0.5)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        sgd.apply([tape.gradient(y, v)], [v])  # v becomes 0
        z = (v + 3.0) ** 2
    close(tape.gradient([y, z], [v]), [2.0 + 6.0])


def test_regularization_losses_and_add_loss():
    class Penalty(layers.Layer):
        def call(self, x):
            self.add_loss(0.1 * tf.reduce_sum(x))
            return x

    model = keras.Sequential([layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.5)), Penalty()])
    x = tf.ones([1, 3])
    with tf.GradientTape() as tape:
        model(x)
        loss = tf.add_n(model.losses)
    kernel = model.layers[0].kernel.numpy()
    assert all(isinstance(loss, tf.Tensor) for loss in model.losses) and len(model.losses) == 2
    close([tape.gradient(loss, model.layers[0].kernel)], [kernel + 0.1])


def test_a_model_inside_jit_and_vmap():
    model = keras.Sequential([layers.Dense(3, activation="tanh"), layers.Dense(1)])
    x = jnp.asarray(draw(4, 2))
    model(x)
    with tf.GradientTape() as tape:
        y = jnp.sum(model(x))
    want = tape.gradient(y, model.trainable_variables)
    for call in (jax.jit(model), jax.vmap(lambda row: model(row[None])[0]), jax.checkpoint(lambda x: model(x))):
        with tf.GradientTape() as tape:
            y = jnp.sum(call(x))
        close(tape.gradient(y, model.trainable_variables), want)


def test_a_tape_inside_a_compiled_step():
    model, loss_fn = Residual(), losses.MeanSquaredError()
    sgd, mean = optimizers.Adam(0.05), metrics.Mean()
    target = draw(2, 2)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = loss_fn(target, model(x, training=True))
        sgd.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        mean.update_state(loss)
        return loss

    found = [step(tf.constant(image)).numpy() for _ in range(30)]
    assert found[-1] < found[0] / 2 and step.experimental_get_tracing_count() <= 2
    assert mean.result().numpy() == pytest.approx(np.mean(found), rel=1e-5)
    assert sgd.iterations.numpy() == 30


def test_a_step_seen_before_compiles_nothing():
    model, loss_fn, adam = sequential(), losses.MeanSquaredError(), optimizers.Adam()

    def step():
        with tf.GradientTape() as tape:
            loss = loss_fn(np.ones([2, 3], "float32"), model(image, training=True))
        adam.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    step(), step()
    with compiles() as compiled:
        step(), step()
    assert not compiled


def test_as_function_of_a_model_and_its_batch():
    model = keras.Sequential([layers.Dense(4, activation="tanh"), layers.BatchNormalization(), layers.Dense(3)])
    x, y = tf.random.normal([5, 2]), tf.constant([0, 1, 2, 0, 1])
    loss_of = losses.SparseCategoricalCrossentropy(from_logits=True)
    model(x)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    f = tape.as_function(loss, variables, {"x": x, "y": y})
    other_x, other_y = tf.random.normal([5, 2]), tf.constant([2, 2, 0, 1, 0])
    expected = loss_of(other_y, model(other_x, training=True)).numpy()
    arrays = [jnp.asarray(v) for v in variables]
    np.testing.assert_allclose(f(arrays, other_x, other_y), expected, rtol=1e-5)
    printed = {"jax": jax, "jnp": jnp, "np": np, **f.constants}
    exec(compile(f.code, "<printed>", "exec"), printed)
    found = printed["f"](f.tree(arrays), jnp.asarray(other_x), jnp.asarray(other_y))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


OF_A_BATCH = {
    "a slice": lambda x: x[:, 0] + x[:, -1],
    "tile": lambda x: tf.tile(x[:1], [tf.shape(x)[0], 1]),
    "range": lambda x: x * tf.cast(tf.range(tf.shape(x)[0])[:, None], x.dtype),
    "eye": lambda x: tf.eye(tf.shape(x)[0]) @ x,
    "scan": lambda x: tf.scan(lambda a, row: a + row, x),
    "vectorized_map": lambda x: tf.vectorized_map(lambda row: tf.reduce_sum(row**2), x),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0, axes=[1]),
    "half": lambda x: x[: tf.shape(x)[0] // 2],
    "rows that alternate": lambda x: tf.concat([x[::2], x[1::2]], 0),
}


@pytest.mark.parametrize("name", OF_A_BATCH)
def test_layers_of_a_batch_whose_size_is_not_known(name):
    function = OF_A_BATCH[name]

    class Layer(layers.Layer):
        def call(self, x):
            return function(x)

    given = keras.Input([6])
    made = Layer()(given)
    x = tf.constant(vector)
    assert made.shape[0] is None and made.shape[1:] == function(x).shape[1:]
    close([keras.Model(given, made)(x)], [function(x)])


def test_a_layer_that_fails_for_every_size_says_why():
    class Layer(layers.Layer):
        def call(self, x):
            return tf.matmul(x, tf.ones([7, 1]))

    with pytest.raises(Exception, match="6.*7|matmul"):
        Layer()(keras.Input([6]))
