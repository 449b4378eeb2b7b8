"""`tapejax.keras`: what a program in TensorFlow's spelling sees of Keras, and what Keras sees of it."""

from __future__ import annotations

import copy
import doctest
import importlib
import logging
import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import close, draw, values

import tapejax as tf

keras = tf.keras
layers, losses, metrics, optimizers = keras.layers, keras.losses, keras.metrics, keras.optimizers
plain = importlib.import_module("keras")

# Keras's Variable.numpy() has NumPy say so of Keras.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


def test_the_backend_is_jax():
    """Nothing says so: the process was started without KERAS_BACKEND."""
    assert keras.backend.backend() == "jax" and keras.Input is layers.Input


def test_doctests():
    module = importlib.import_module("tapejax.keras")
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    tests = [test for test in finder.find(module, "tapejax.keras", globs={"__name__": "__main__"}) if test.examples]
    assert tests
    for test in tests:
        assert not runner.run(test).failed


# ---- the names ------------------------------------------------------------------------------------------------------


def test_every_way_to_import():
    import tapejax.keras.backend as K
    import tapejax.keras.layers as imported
    from tapejax.keras.layers import Dense
    from tapejax.keras.optimizers.schedules import ExponentialDecay

    import tapejax.keras
    from tapejax import keras as again
    from tapejax.tf.libraries.keras import layers as also

    assert again is tapejax.keras is tf.keras is sys.modules["tapejax.keras"]
    assert imported is also is layers and Dense is layers.Dense is plain.layers.Dense
    assert ExponentialDecay is keras.optimizers.schedules.ExponentialDecay
    assert K.epsilon() == 1e-7 and K is keras.backend
    assert tf.losses is losses and tf.metrics is metrics and tf.optimizers is optimizers
    assert tf.initializers.Zeros is keras.initializers.Zeros
    assert "Dense" in dir(layers) and "layers" in dir(keras)
    with pytest.raises(AttributeError, match="keras.layers.*no attribute 'Dens'"):
        _ = layers.Dens
    with pytest.raises(ImportError):
        from tapejax.keras.layers import Dens  # noqa: F401


def test_all_that_tensorflow_has_is_there():
    names = """activations applications backend callbacks config constraints datasets dtype_policies export initializers layers
        legacy losses metrics mixed_precision models ops optimizers preprocessing quantizers random regularizers saving tree utils
        visualization wrappers DTypePolicy Function Initializer Input InputSpec KerasTensor Layer Loss Metric Model Operation
        Optimizer Quantizer Regularizer Sequential StatelessScope SymbolicScope Variable device name_scope version"""
    assert not [name for name in names.split() if not hasattr(keras, name)]
    for name in (
        "to_categorical",
        "set_random_seed",
        "plot_model",
        "get_file",
        "Progbar",
        "pad_sequences",
        "PyDataset",
    ):
        assert callable(getattr(keras.utils, name))
    for name in ("mnist", "fashion_mnist", "cifar10", "imdb", "california_housing"):
        assert callable(getattr(keras.datasets, name).load_data)


def test_functions_are_the_same_every_time():
    assert keras.activations.relu is keras.activations.relu
    assert (
        keras.activations.serialize(keras.activations.relu)
        == "relu"
        == keras.activations.serialize(plain.activations.relu)
    )
    assert keras.losses.get("mse") is not None and keras.losses.mse.__name__ == "mean_squared_error"


# ---- what user code is given ----------------------------------------------------------------------------------------


class MySum(layers.Layer):
    """The example of a layer with state that all guides have."""

    def __init__(self, size):
        super().__init__()
        self.total = self.add_weight(shape=(size,), initializer="zeros", trainable=False)

    def call(self, x):
        seen.append(x)
        self.total.assign_add(tf.reduce_sum(x, axis=0))
        return self.total


seen: list = []


def tensors():
    x = np.ones((2, 3), "float32")
    dense = layers.Dense(2, kernel_initializer="ones", kernel_regularizer="l2")
    yield "layer of NumPy", dense(x)
    yield "layer of a tensor", dense(tf.constant(x))
    yield "layer of a variable", dense(tf.Variable(x))
    yield "layer of a Keras variable", layers.Activation("relu")(keras.Variable(x))
    yield "model", keras.Sequential([dense])(x)
    yield "regularization loss", dense.losses[0]
    yield "loss", losses.MeanSquaredError()(x, x)
    yield "loss without reduction", losses.MeanAbsoluteError(reduction=None)(x, x + 1.0)
    yield "loss function", losses.mean_squared_error(x, x)
    yield "metric", metrics.Mean()(3.0)
    mean = metrics.Mean()
    mean.update_state([1.0, 2.0])
    yield "result", mean.result()
    yield "metric function", metrics.sparse_categorical_accuracy([1, 0], [[0.1, 0.9], [0.8, 0.2]])
    yield "activation", keras.activations.softmax(x)
    yield "initializer", keras.initializers.GlorotUniform()((2, 2))
    yield "regularizer", keras.regularizers.L1(0.1)(x)
    yield "constraint", keras.constraints.NonNeg()(x)
    yield "schedule", keras.optimizers.schedules.CosineDecay(0.1, 10)(3)
    yield "schedule at a tensor", keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)(tf.constant(3))
    yield "operation", keras.ops.sum(x)
    yield "random", keras.random.normal((2,), seed=1)
    yield "arithmetic of a Keras variable", dense.kernel + 1.0
    yield "reflected", 1.0 - dense.kernel
    yield "a part of it", dense.kernel[0]
    yield "its value", dense.kernel.value
    yield "backend", keras.backend.mean(tf.constant(x))
    yield "compute_loss", compiled().compute_loss(y=x[:, :1], y_pred=x[:, 1:2])
    yield "subclassed", MyModel()(x)
    yield "custom metric", Largest()([1.0, 5.0, 2.0])


def compiled():
    model = keras.Sequential([layers.Dense(1)])
    model.compile(loss="mse")
    return model


class MyModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, x):
        h = self.dense(x)
        assert isinstance(x, tf.Tensor) and isinstance(h, tf.Tensor) and x.shape.as_list()[1] == 3
        return tf.nn.relu(h)


class Largest(metrics.Metric):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.largest = self.add_weight(name="largest", initializer="zeros")

    def update_state(self, true, predicted=0.0, sample_weight=None):
        error = tf.reduce_max(tf.cast(true, tf.float32) - predicted)
        self.largest.assign(tf.maximum(self.largest, error))

    def result(self):
        return self.largest * 1.0


def test_answers_are_tensors():
    count = 0
    for name, x in tensors():
        count += 1
        assert isinstance(x, tf.Tensor), name
        assert str(x).startswith("tf.Tensor(") and repr(x).startswith("<tf.Tensor: shape=("), name
        assert isinstance(x.numpy(), (np.ndarray, np.generic)) and isinstance(x.shape, tf.TensorShape), name
    assert count == 28
    assert Largest()([1.0, 5.0, 2.0]).numpy() == 5.0


def test_structures_of_tensors():
    outputs, h, c = layers.LSTM(2, return_state=True)(np.ones((1, 2, 3), "float32"))
    assert all(isinstance(x, tf.Tensor) for x in (outputs, h, c))
    x = keras.Input((3,))
    model = keras.Model(x, {"a": layers.Dense(1)(x), "b": [x, x]})
    found = model(np.ones((1, 3), "float32"))
    assert isinstance(found["a"], tf.Tensor) and isinstance(found["b"][1], tf.Tensor)
    assert isinstance(model.output["a"], keras.KerasTensor)


def test_arrays_in_arrays_out():
    x = jnp.ones((2, 3))
    dense = layers.Dense(2)
    for found in (
        dense(x),
        keras.Sequential([dense])(x),
        losses.MeanSquaredError()(x, x),
        losses.mse(x, np.ones((2, 3), "float32")),
        keras.activations.relu(x),
        keras.ops.sum(x),
        dense.kernel * jnp.ones((3, 2)),
        jax.jit(dense)(x),
    ):
        assert isinstance(found, jax.Array)
    value, slopes = jax.value_and_grad(lambda p: jnp.sum(dense.stateless_call(p, [], x)[0]))(
        [v._value for v in dense.variables]
    )
    assert isinstance(value, jax.Array) and isinstance(slopes[0], jax.Array)


def test_what_keras_returns_as_numpy_or_python_stays_so():
    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse", metrics=["mae"])
    x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
    assert type(model.predict(x, verbose=0)) is np.ndarray and type(model.predict_on_batch(x)) is np.ndarray
    assert isinstance(model.evaluate(x, y, verbose=0), list) and type(model.get_weights()[0]) is np.ndarray
    assert type(keras.utils.to_categorical([0, 1])) is np.ndarray
    assert isinstance(model.weights[0], keras.Variable) and isinstance(keras.ops.shape(x), tuple)
    assert all(isinstance(x, (float, np.floating)) for x in model.train_on_batch(x, y))


def test_inside_a_layer_in_tensorflows_spelling_there_are_tensors():
    layer = MySum(2)
    assert layer(np.ones((3, 2), "float32")).numpy().tolist() == [3.0, 3.0]
    assert layer(tf.ones((3, 2))).numpy().tolist() == [6.0, 6.0]
    assert all(isinstance(x, tf.Tensor) for x in seen)
    seen.clear()


def test_masks_pass():
    embedding = layers.Embedding(5, 2, mask_zero=True)
    ids = np.array([[1, 2, 0], [3, 0, 0]])
    x = embedding(ids)
    assert x._keras_mask.numpy().tolist() == [[True, True, False], [True, False, False]]
    lstm = layers.LSTM(3)
    once = lstm(x)
    again = lstm(tf.constant(x.numpy()), mask=tf.constant(ids != 0))
    close([once], [again])
    model = keras.Sequential([embedding, lstm])
    close([model(ids)], [once])


# ---- tf functions inside Keras --------------------------------------------------------------------------------------

ACTIVATIONS = {"relu": tf.nn.relu, "tanh": tf.tanh, "softmax": tf.nn.softmax, "silu": lambda x: x * tf.sigmoid(x)}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    """A tf function serves as activation in every kind of layer and model, and in fit."""
    x, y = draw(8, 5, 4), draw(8, 2)

    def model(activation, functional):
        keras.utils.set_random_seed(1)
        parts = [
            layers.Conv1D(3, 2, activation=activation),
            layers.GRU(3, activation=activation),
            layers.Dense(2, activation),
        ]
        if not functional:
            return keras.Sequential(parts)
        inputs = h = keras.Input((5, 4))
        for part in parts:
            h = part(h)
        return keras.Model(inputs, h)

    functional = name in ("relu", "silu")
    ours, theirs = model(ACTIVATIONS[name], functional), model(name, functional)
    grads = []
    for m in (ours, theirs):
        with tf.GradientTape() as tape:
            loss = losses.MeanSquaredError()(y, m(x))
        grads.append([loss, *tape.gradient(loss, m.trainable_variables)])
        m.compile("sgd", "mse")
    close(*grads)
    histories = [m.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"] for m in (ours, theirs)]
    np.testing.assert_allclose(*histories, rtol=1e-4)


def test_tf_functions_refuse_keras_tensors():
    a = keras.Input((4,))
    for use in (tf.nn.relu, tf.Variable, lambda x: tf.concat([x, x], 1)):
        with pytest.raises(ValueError, match="has no value: .* goes into a keras.layers.Lambda"):
            use(a)
    h = tf.constant([1.0, 2.0, 3.0, 4.0]) * a - tf.constant(1.0)
    assert isinstance(h, keras.KerasTensor)
    y = layers.Lambda(lambda x: tf.reduce_sum(x, axis=1))(h)
    close([keras.Model(a, y)(tf.ones([2, 4]))], [[6.0, 6.0]])


@pytest.mark.parametrize("checked", [(0,), (1, 2), (3,)])
def test_numerics_are_checked_in_fit(checked):
    """Whenever it is switched on and off, the losses, predictions and counts are those without it."""
    x, y = np.random.RandomState(0).rand(8, 2).astype(np.float32), np.ones((8, 1), np.float32)

    def history(checked):
        keras.utils.set_random_seed(0)
        layers = [keras.layers.Dense(3), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((2,)), *layers])
        model.compile("sgd", "mse")  # Adam would make a step of what is rounded: the first bias has no gradient
        for i in range(4):
            if i in checked:
                tf.debugging.enable_check_numerics()
            try:
                yield model.fit(x, y, batch_size=4, shuffle=False, verbose=0).history["loss"][0]
                yield model.evaluate(x, y, verbose=0)
                yield float(model.predict(x, verbose=0).sum())
                yield int(model.optimizer.iterations)
                if i in checked:
                    for run in (model.fit, model.evaluate, lambda x, y, verbose: model.predict(x, verbose=verbose)):
                        with pytest.raises(tf.errors.InvalidArgumentError, match="Detected Infinity or NaN"):
                            run(x * np.nan, y, verbose=0)
            finally:
                tf.debugging.disable_check_numerics()

    np.testing.assert_allclose([*history(checked)], [*history(())], rtol=1e-5)


def test_losses_metrics_and_layers_of_the_users_in_fit():
    class Noise(layers.Layer):
        def call(self, x, training=False):
            self.add_loss(tf.reduce_mean(x) * 0.0)
            return x + tf.stop_gradient(tf.zeros_like(x)) if training else tf.identity(x)

    def loss(true, predicted):
        return tf.reduce_mean(tf.square(true - predicted), axis=-1)

    def mean_error(true, predicted):
        return tf.reduce_mean(tf.abs(true - predicted))

    class Scaled(losses.Loss):
        def call(self, true, predicted):
            return 2.0 * tf.reduce_mean(tf.square(true - predicted), axis=-1)

    x, y = draw(16, 3), draw(16, 1)
    keep = []
    for fn in (loss, Scaled(), "mse"):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [layers.Dense(4, activation=tf.nn.relu), Noise(), layers.Lambda(lambda x: tf.tanh(x)), layers.Dense(1)]
        )
        model.compile("adam", fn, metrics=[mean_error, "mae", Largest()] if fn is loss else [mean_error, "mae"])
        history = model.fit(x, y, epochs=3, batch_size=8, verbose=0, validation_data=(x, y)).history
        np.testing.assert_allclose(history["mean_error"], history["mae"], rtol=1e-5)
        keep.append(history["loss"])
        assert type(model.predict(x, verbose=0)) is np.ndarray
        assert isinstance(model(x), tf.Tensor)
    np.testing.assert_allclose(keep[0], keep[2], rtol=1e-5)
    np.testing.assert_allclose(keep[1][0], 2 * keep[2][0], rtol=1e-4)


def test_initializers_regularizers_and_schedules_of_the_users():
    class Step(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return tf.where(tf.cast(step, tf.float32) < 1.0, 0.5, 0.25)

    dense = layers.Dense(
        1,
        kernel_initializer=lambda shape, dtype: tf.ones(shape, dtype) * 2.0,
        kernel_regularizer=lambda w: 0.5 * tf.reduce_sum(w**2),
        kernel_constraint=lambda w: tf.minimum(w, 1.5),
    )
    model = keras.Sequential([dense])
    sgd = optimizers.SGD(Step())
    for _ in range(2):
        with tf.GradientTape() as tape:
            model(tf.ones((1, 2)))
            loss = sum(model.losses)
        sgd.apply_gradients(zip(tape.gradient(loss, [dense.kernel]), [dense.kernel]))
    close([dense.kernel], [[[1.0 * 0.75], [0.75]]])  # 2 - 0.5 * 2 = 1, then 1 - 0.25 * 1
    model.compile(optimizers.SGD(Step()), "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)


def test_a_tf_variable_in_a_layer():
    class Scale(layers.Layer):
        def __init__(self):
            super().__init__()
            self.factor = tf.Variable(2.0)

        def call(self, x):
            return x * self.factor

    scale = Scale()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(scale(tf.ones(3)))
    assert tape.gradient(y, scale.factor).numpy() == 3.0


def test_fit_on_tensors():
    x, y = tf.constant(draw(8, 2)), tf.constant(draw(8, 1))
    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    close(
        [model.fit(x, y, epochs=2, verbose=0, shuffle=False).history["loss"][0]],
        [model.evaluate(x, y, verbose=0)],
        rtol=1.0,
    )
    assert model.predict(x, verbose=0).shape == (8, 1)
    assert np.isfinite(model.train_on_batch(x, y))


def test_fit_on_a_dataset():
    pytest.importorskip("grain")
    x, y = draw(8, 2), draw(8, 1)
    pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    model(x)
    start = model.get_weights()
    history = model.fit(pairs, epochs=2, verbose=0).history["loss"]
    model.set_weights(start)
    model.compile("sgd", "mse")
    close(history, model.fit(x, y, batch_size=4, shuffle=False, epochs=2, verbose=0).history["loss"])
    assert model.evaluate(pairs, verbose=0) == pytest.approx(model.evaluate(x, y, verbose=0), rel=1e-5)
    close([model.predict(tf.data.Dataset.from_tensor_slices(x).batch(3), verbose=0)], [model.predict(x, verbose=0)])
    model.set_weights(start)
    model.compile("sgd", "mse")
    weights = {"class_weight": {0: 2.0, 1: 0.5}, "epochs": 2, "verbose": 0}
    history = model.fit(pairs, **weights).history["loss"]
    model.set_weights(start)
    model.compile("sgd", "mse")
    close(history, model.fit(x, y, batch_size=4, shuffle=False, **weights).history["loss"])
    with pytest.raises(ValueError, match="put y and sample_weight into it"):
        model.fit(pairs, y)


# ---- beside the rest of Keras ---------------------------------------------------------------------------------------


def test_models_are_saved_and_loaded(tmp_path):
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2, activation=keras.activations.gelu)(layers.Dense(3, activation="relu")(x)))
    model.compile(optimizers.Adam(0.01), losses.mean_squared_error, metrics=[metrics.MeanAbsoluteError()])
    model.fit(draw(8, 4), draw(8, 2), verbose=0)
    model.save(tmp_path / "model.keras")
    for load in (keras.models.load_model, plain.models.load_model):
        loaded = load(tmp_path / "model.keras")
        close(loaded.get_weights(), model.get_weights())
        close([loaded.predict(draw(2, 4), verbose=0)], [model.predict(draw(2, 4), verbose=0)])
        close(values(loaded.optimizer.variables), values(model.optimizer.variables))
    model.save_weights(tmp_path / "w.weights.h5")
    clone = keras.models.clone_model(model)
    clone.load_weights(tmp_path / "w.weights.h5")
    close(clone.get_weights(), model.get_weights())
    assert plain.Model.from_config(model.get_config()).count_params() == model.count_params()
    assert keras.layers.serialize(model.layers[1]) == plain.layers.serialize(model.layers[1])
    twin = copy.deepcopy(model)
    close([twin(draw(2, 4))], [model(draw(2, 4))])
    close(pickle.loads(pickle.dumps(model)).get_weights(), model.get_weights())


def test_a_model_with_tf_activations_is_saved(tmp_path):
    model = keras.Sequential(
        [keras.Input((2,)), layers.Dense(3, activation=tf.nn.relu), layers.Dense(1, activation=tf.tanh)]
    )
    model.save(tmp_path / "model.keras")
    close([keras.models.load_model(tmp_path / "model.keras")(draw(3, 2))], [model(draw(3, 2))])


def test_callbacks_and_generators():
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, float(logs["loss"]), isinstance(self.model(np.ones((1, 2), "float32")), tf.Tensor)))

    def batches():
        while True:
            yield np.ones((4, 2), "float32"), np.zeros((4, 1), "float32")

    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(
        batches(),
        steps_per_epoch=3,
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[Watch(), keras.callbacks.EarlyStopping("loss")],
    )
    assert [epoch for epoch, *_ in seen] == [0, 1] and seen[1][1] < seen[0][1] and all(here for *_, here in seen)


def test_a_custom_train_step_of_jax():
    """Keras's own way on JAX, which must not notice."""

    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def compute_loss_and_updates(self, *args, **kwargs):
            loss, aux = super().compute_loss_and_updates(*args, **kwargs)
            assert isinstance(loss, jax.Array)
            return loss * 2.0, aux

    model = Mine()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)


def test_a_train_step_of_state_and_data():
    """Keras's own signature on JAX stays Keras's, beside tf; one that takes (data) may call it by super."""

    class OfState(keras.Model):
        def train_step(self, state, data):
            assert isinstance(data[0], jax.Array) and tf is not None
            logs, state = super().train_step(state, data)
            return {**logs, "mine": 2.0 * logs["loss"]}, state

    class OfData(keras.Model):
        def train_step(self, data):
            logs = super().train_step(data)
            return {**logs, "mine": tf.multiply(2.0, logs["loss"])}

    x, y, found = draw(8, 3), draw(8, 1), []
    for kind in (OfState, OfData):
        i = keras.Input((3,))
        model = kind(i, layers.Dense(1, kernel_initializer="ones")(i))
        model.compile("sgd", "mse")
        history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
        assert history["mine"][0] != history["loss"][0]  # of the last batch; the loss is of the epoch
        found.append([*history["loss"], *history["mine"]])
    close(*found)


def test_a_train_function_of_the_users():
    """`make_train_function` in TensorFlow's way: what it makes takes an iterator."""

    class Model(keras.Model):
        def make_train_function(self, force=False):
            step = tf.function(self.train_step)
            self.train_function = lambda iterator: {**step(next(iterator)), "made": 1.0}
            return self.train_function

    i = keras.Input((3,))
    model = Model(i, layers.Dense(1)(i))
    model.compile("sgd", "mse")
    assert model.fit(draw(8, 3), draw(8, 1), verbose=0).history["made"] == [1.0]
    assert sorted(model.make_train_function()(iter([(draw(8, 3), draw(8, 1))]))) == ["loss", "made"]


def test_none_of_it_warns(caplog, recwarn):
    model = keras.Sequential([layers.Dense(2, activation=tf.nn.relu), layers.Dropout(0.1), layers.Dense(1)])
    with caplog.at_level(logging.WARNING), tf.GradientTape() as tape:
        loss = losses.Huber()(np.ones((4, 1)), model(np.ones((4, 3)), training=True))
    optimizers.Adam().apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    assert not caplog.records and not [str(w.message) for w in recwarn]


def test_threads_have_tapes_of_their_own():
    import threading

    dense = layers.Dense(2)
    dense.build((None, 2))
    found = {}

    def work(k):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(dense(tf.ones((1, 2)) * float(k)))
        found[k] = tape.gradient(loss, dense.kernel).numpy()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_allclose(found[k], k)


def test_legacy_backend():
    K = keras.backend
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for got, want in (
        (K.mean(x, axis=0), [2.0, 3.0]),
        (K.sum(K.square(x)), 30.0),
        (K.dot(x, x), tf.matmul(x, x)),
        (K.clip(x, 1.5, 3.5), np.clip(x, 1.5, 3.5)),
        (K.concatenate([x, x]), np.concatenate([x, x], -1)),
        (K.maximum(x, 2.0), np.maximum(x, 2)),
        (K.one_hot(np.array([0, 1]), 2), np.eye(2)),
        (K.stack([x, x]), np.stack([x, x])),
        (K.softmax(x), tf.nn.softmax(x)),
    ):
        assert isinstance(got, tf.Tensor)
        close([got], [want])
    assert K.int_shape(tf.ones((2, 3))) == (2, 3) and K.floatx() == "float32"
    v = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = K.square(v) * 3.0
    assert tape.gradient(y, v).numpy() == 6.0


def test_compiled_by_function():
    model = MyModel()

    @tf.function
    def f(x):
        y = model(x)
        return tf.reduce_sum(y), keras.losses.mse(y, y)

    total, errors = f(tf.ones((2, 3)))
    assert isinstance(total, tf.Tensor) and isinstance(errors, tf.Tensor)
    close([total], [tf.reduce_sum(model(tf.ones((2, 3))))])
    with tf.GradientTape() as tape:
        total, _ = f(tf.ones((2, 3)))
    assert [id(v) for v in tape.watched_variables()] == [id(v) for v in model.trainable_variables]
    assert all(g is not None for g in tape.gradient(total, model.trainable_variables))
