"""What a program with ``tf.keras`` meets when it is moved: what calls give, sizes as arguments, steps in old ways."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from harness import error_of
from keras_processes import Bodies, needs_keras

parity = Bodies(__file__)


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def started(model, x):
    """A model with weights drawn by NumPy."""
    model(x)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(0, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def history(model, *data, **options):
    return model.fit(*data, **{"epochs": 2, "batch_size": 4, "shuffle": False, "verbose": 0} | options).history


# ---- what calls give ------------------------------------------------------------------------------------------------


@parity
def gan_written_with_call(tf):
    """`.call` of models, layers and losses, eagerly and in a function: tensors, through which gradients pass."""
    keras, L = tf.keras, tf.keras.layers
    noise, real = tf.constant(draw(4, 3)), tf.constant(draw(4, 2))
    generator = started(keras.Sequential([keras.Input((3,)), L.Dense(4, "relu"), L.Dense(2)]), noise)

    class Discriminator(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = L.Dense(4, activation="tanh"), L.Dense(1)

        def call(self, x):
            return self.out.call(self.hidden(x))

    discriminator = Discriminator()
    for layer, size in ((discriminator.hidden, 2), (discriminator.out, 4)):
        layer.build((None, size))
    started(discriminator, real)
    bce = keras.losses.BinaryCrossentropy(from_logits=True)
    optimizers = keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.1)

    def step(noise, real):
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = generator.call(noise)
            on_fake, on_real = discriminator.call(fake), discriminator.call(real)
            g_loss = tf.reduce_mean(bce.call(tf.ones_like(on_fake), on_fake))
            d_loss = bce(tf.ones_like(on_real), on_real) + bce(tf.zeros_like(on_fake), on_fake)
        for tape, loss, model, optimizer in zip(
            (g_tape, d_tape), (g_loss, d_loss), (generator, discriminator), optimizers
        ):
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return g_loss, d_loss, fake

    compiled = tf.function(step)
    return [step(noise, real) for _ in range(2)], [compiled(noise, real) for _ in range(2)]


@parity
def calls_of_layers(tf):
    """Of every kind of layer, given tensors and NumPy's arrays."""
    L = tf.keras.layers
    x, image, sequence = draw(2, 3), draw(1, 4, 4, 2), draw(2, 4, 3)
    found = []
    for given, layers in (
        (x, [L.Dense(2), L.ReLU(), L.Flatten(), L.LayerNormalization(), L.BatchNormalization(), L.Dropout(0.5)]),
        (x, [L.Activation("gelu"), L.Softmax(), L.Reshape((3, 1)), L.Rescaling(2.0, 1.0), L.Lambda(lambda x: x * 2)]),
        (
            image,
            [L.Conv2D(2, 3), L.MaxPooling2D(), L.GlobalAveragePooling2D(), L.UpSampling2D(), L.Conv2DTranspose(2, 3)],
        ),
        (
            image,
            [L.Resizing(2, 2), L.CenterCrop(2, 2), L.Normalization(mean=1.0, variance=4.0)],
        ),
        (
            sequence,
            [L.LSTM(2), L.GRU(2, return_state=True), L.Bidirectional(L.SimpleRNN(2)), L.TimeDistributed(L.Dense(2))],
        ),
        (sequence, [L.MultiHeadAttention(1, 2)]),
    ):
        for layer in layers:
            arguments = (given, given) if isinstance(layer, L.MultiHeadAttention) else (given,)
            layer(*arguments)
            layer.set_weights([draw(*w.shape) if w.dtype == np.float32 else w for w in layer.get_weights()])
            found += [layer.call(*arguments), layer.call(*map(tf.constant, arguments)), layer(*arguments)]
    cell = L.LSTMCell(2)
    cell.build((None, 3))
    cell.set_weights([draw(*w.shape) for w in cell.get_weights()])
    ids = tf.constant([[1, 0, 2]])
    masks = [L.Embedding(5, 2, mask_zero=True).compute_mask(ids), L.Masking().compute_mask(tf.constant(sequence))]
    merged = [L.Add()([tf.constant(x), x]), L.Concatenate()([x, x])]
    return found, cell.call(x, cell.get_initial_state(2)), masks, merged


@parity
def calls_of_models(tf):
    """Functional, with results by name, and subclassed."""
    keras, L = tf.keras, tf.keras.layers
    x = tf.constant(draw(2, 3))
    i = keras.Input((3,))
    named = started(keras.Model(i, {"a": L.Dense(2)(i), "b": L.Dense(1)(i)}), x)

    class Wrapper(keras.Model):
        def __init__(self, body):
            super().__init__()
            self.body = body

        def call(self, x, training=False):
            return self.body.call(x)["a"], self.body.layers[-1].call(x)

    wrapper = Wrapper(named)
    named.compile("sgd", "mse")
    y = {"a": np.ones((2, 2)), "b": np.ones((2, 1))}
    steps = named.predict_on_batch(x), named.test_on_batch(x, y), named.predict_step((x,)), named.test_step((x, y))
    return named.call(x), wrapper.call(x), wrapper(x), steps, named.compute_mask(x, None), named.get_metrics_result()


@parity
def losses_and_metrics(tf):
    """`call`, `fn`, functions by their names, and those of the user's own, which are given tensors."""
    keras = tf.keras
    true, predicted = np.eye(2, 3, dtype="float32"), np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], "float32")

    class Own(keras.losses.Loss):
        def call(self, y_true, y_pred):
            assert y_true.shape.as_list() == [2, 3]
            return tf.reduce_mean((y_true - y_pred) ** 2, -1)

    class Count(keras.metrics.Metric):
        def __init__(self, **options):
            super().__init__(**options)
            self.total = self.add_weight(name="total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(tf.cast(tf.size(y_true), tf.float32))

        def result(self):
            return self.total * 2.0

    found = []
    for loss in (keras.losses.MeanSquaredError(), keras.losses.CategoricalCrossentropy(), keras.losses.Huber(), Own()):
        found += [loss.call(tf.constant(true), tf.constant(predicted)), loss(true, predicted)]
    found.append(keras.losses.MeanSquaredError().fn(tf.constant(true), tf.constant(predicted)))
    for name in ("mse", "binary_crossentropy", "cosine_similarity"):
        found.append(keras.losses.get(name)(tf.constant(true), tf.constant(predicted)))
    for name in ("mae", "binary_accuracy"):
        found.append(keras.metrics.get(name)(tf.constant(true), tf.constant(predicted)))
    for metric in (Count(), keras.metrics.MeanSquaredError(), keras.metrics.CategoricalAccuracy()):
        metric.update_state(tf.constant(true), tf.constant(predicted))
        found += [metric.result(), metric(true, predicted), metric.reset_state(), metric.result()]
    return found, keras.losses.get("mse") is keras.losses.mse, keras.metrics.get("mae") is keras.metrics.mae


@parity
def other_objects(tf):
    """Activations, initializers, regularizers, constraints, rates, attributes that hold arrays."""
    keras, L = tf.keras, tf.keras.layers
    x = tf.constant(draw(2, 3))
    relu = [keras.activations.get("relu"), keras.activations.deserialize("relu"), L.Dense(1, "relu").activation]
    found = [f(x) for f in relu] + [L.Dense(1, kernel_initializer="ones").kernel_initializer((2, 2))]
    found += [keras.regularizers.get("l2")(x), keras.regularizers.L1(0.1)(x), keras.constraints.NonNeg()(x)]
    decaying = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5))
    found += [decaying.learning_rate, decaying.learning_rate.numpy(), decaying.scale_loss(tf.constant(2.0))]
    constant = keras.optimizers.Adam(0.1)
    found += [constant.learning_rate.numpy(), constant.iterations.numpy() + 1 == 1]
    normalizer = L.Normalization()
    normalizer.adapt(np.array([[1.0, 2.0], [3.0, 6.0]], "float32"))
    found += [normalizer.mean.numpy(), normalizer.variance, normalizer(x[:, :2])]
    seed = keras.random.SeedGenerator(3).next()
    trees = keras.tree.map_structure(lambda x: x.numpy(), [x, {"a": x}]) if hasattr(keras, "tree") else 0
    names = [keras.losses.serialize(keras.losses.get("mse")), keras.activations.serialize(relu[0])]
    return found, relu[0] is relu[1] is relu[2] is keras.activations.relu, seed.shape, trees, names


@parity
def a_converted_function(tf):
    """Where AutoGraph calls a layer, it is the user who does."""
    layer = started(tf.keras.layers.Dense(2), tf.ones((1, 3)))
    mse = tf.keras.losses.MeanSquaredError()
    seen = []

    @tf.function
    def f(x):
        y = layer(x)
        seen.append(
            [tf.is_tensor(y), y.shape.as_list(), mse(y, y).dtype == tf.float32, tf.is_tensor(layer.kernel + 1.0)]
        )
        if tf.reduce_sum(x) > 0.0:
            y = layer.call(x) * 2.0
            seen.append(y.shape.as_list())
        return y

    return f(tf.ones((2, 3))), seen[:2]


@parity
def saved_and_loaded(tf):
    """A model whose loss, metric and activation were told by name is saved and loaded as before."""
    import tempfile

    keras, x, y = tf.keras, draw(4, 3), draw(4, 1)
    parts = [keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1, kernel_regularizer="l2")]
    model = started(keras.Sequential(parts), x)
    model.compile("sgd", "mse", metrics=["mae"])
    before = history(model, x, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        loaded = keras.models.load_model(f"{folder}/model.keras")
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    return (
        before,
        history(loaded, x, y),
        loaded(x),
        copy.call(x),
        loaded.get_config()["layers"][1]["config"]["activation"],
    )


# ---- sizes ----------------------------------------------------------------------------------------------------------


def of_sizes(tf):
    """Functions of a matrix that take sizes as tensors."""
    keras = tf.keras
    ops, random, seed = keras.ops, keras.random, keras.random.SeedGenerator(0)
    K, initializers = keras.backend, keras.initializers
    return {
        "uniform": lambda x: random.uniform(tf.shape(x), seed=seed),
        "normal": lambda x: random.normal((tf.shape(x)[0], 4), seed=seed),
        "without a seed": lambda x: random.normal(tf.shape(x)),
        "truncated": lambda x: random.truncated_normal([tf.shape(x)[0] * 2, 1]),
        "randint": lambda x: random.randint(tf.shape(x), 0, tf.shape(x)[0]),
        "gamma": lambda x: random.gamma(tf.shape(x), 1.0),
        "categorical": lambda x: random.categorical(x, tf.shape(x)[0]),
        "dropout": lambda x: random.dropout(x, 0.5, noise_shape=(tf.shape(x)[0], 1)),
        "reshape": lambda x: ops.reshape(x, (tf.shape(x)[1], -1)),
        "zeros": lambda x: ops.zeros(tf.shape(x)),
        "ones": lambda x: ops.ones((tf.shape(x)[0], 2)),
        "full": lambda x: ops.full(tf.shape(x), 2.0),
        "broadcast_to": lambda x: ops.broadcast_to(tf.ones(()), tf.shape(x)),
        "arange": lambda x: ops.arange(tf.shape(x)[0]),
        "eye": lambda x: ops.eye(tf.shape(x)[0]),
        "tile": lambda x: ops.tile(x, (tf.shape(x)[0], 1)),
        "repeat": lambda x: ops.repeat(x, tf.shape(x)[0], axis=0),
        "one_hot": lambda x: ops.one_hot(tf.constant([0, 1]), tf.shape(x)[1]),
        "slice": lambda x: ops.slice(x, (0, 0), (tf.shape(x)[0], 2)),
        "top_k": lambda x: ops.top_k(x, tf.shape(x)[0])[0],
        "segment_sum": lambda x: ops.segment_sum(x, tf.constant([0, 0]), num_segments=tf.shape(x)[0]),
        "a number": lambda x: ops.sum(x) / ops.cast(tf.shape(x)[0], "float32"),
        "arithmetic": lambda x: ops.add(tf.shape(x), 1),
        "initializer": lambda x: initializers.RandomNormal()(tf.shape(x)),
        "constant": lambda x: initializers.Constant(2.0)((tf.shape(x)[0], 2)),
        "backend": lambda x: K.random_normal(shape=(K.shape(x)[0], 2)),
    }


@parity
def sizes(tf):
    """Eagerly, in a function, in a layer, in `fit`: their shapes, and what does not depend on random numbers."""
    keras, x = tf.keras, tf.constant(draw(2, 3))

    class Layer(keras.layers.Layer):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def call(self, x):
            return self.function(x)

    class Model(keras.Model):
        def __init__(self, function):
            super().__init__()
            self.function = function

        def train_step(self, x):
            return {"size": tf.cast(tf.size(self.function(x)), tf.float32)}

    found = {}
    for name, function in of_sizes(tf).items():
        model = Model(function)
        model.compile()
        ways = [function(x), tf.function(function)(x), Layer(function)(x)]
        found[name] = [(y.shape.as_list(), y.dtype) for y in ways], history(model, x, epochs=1)["size"]
    return found


@parity
def sizes_of_any_batch(tf):
    """A function that is saved for batches of any size: what the sizes are is known when it is called."""
    import tempfile

    ops, module, x = tf.keras.ops, tf.Module(), tf.constant(draw(4, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def f(x):
        rows = tf.shape(x)[0]
        return (
            ops.zeros((rows, 2)),
            ops.reshape(x, (rows * 3,)),
            ops.broadcast_to(tf.ones(()), tf.shape(x)),
            ops.sum(x) / ops.cast(rows, "float32"),
            0.0 * tf.keras.random.uniform(tf.shape(x), seed=1),
            tf.keras.initializers.Constant(2.0)(tf.shape(x)),
        )

    module.f = f
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        loaded = tf.saved_model.load(folder)
        return loaded.f(x[:2]), loaded.f(x)


@parity
def draws_without_a_seed(tf):
    """Each call of a function draws anew."""
    keras = tf.keras
    draw = tf.function(lambda: keras.random.normal((4,)))
    one, other = draw(), draw()
    keras.utils.set_random_seed(1)
    third = draw()
    return bool(tf.reduce_any(one != other)), bool(tf.reduce_any(other != third))


# ---- steps in old ways ----------------------------------------------------------------------------------------------


def quiet(step):
    """Both systems warn that a name is deprecated, in their own words."""

    @functools.wraps(step)
    def run(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return step(*args, **kwargs)

    return run


@parity
def compiled_losses_and_metrics(tf):
    """`compiled_loss` and `compiled_metrics` in the steps of a model, with losses of its layers."""
    keras, x, y = tf.keras, draw(8, 3), draw(8, 1)

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, kernel_regularizer="l2")

        def call(self, x):
            return self.dense(x)

        @quiet
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            self.compiled_metrics.update_state(y, y_pred)
            return {"loss": loss, **{m.name: m.result() for m in self.metrics if m.name != "loss"}}

        @quiet
        def test_step(self, data):
            x, y = data
            y_pred = self(x, training=False)
            self.compiled_loss(y, y_pred)
            self.compiled_metrics.update_state(y, y_pred)
            return {m.name: m.result() for m in self.metrics}

    found = []
    for eagerly in (False, True):
        model = started(Model(), x)
        model.compile("sgd", "mse", metrics=["mae"], run_eagerly=eagerly)
        found.append([history(model, x, y), model.evaluate(x, y, verbose=0, return_dict=True), model.get_weights()])
    loss = quiet(model.compiled_loss)(y, model(x))
    missing = error_of(lambda: model.optimizer.minimize(loss, model.trainable_variables))
    return found, loss, quiet(model.compiled_loss)(y, model(x), sample_weight=np.arange(8.0)), missing


@parity
def the_guides_steps(tf):
    """`compute_loss`, `metrics` that count it too, `compute_metrics`, `reset_metrics`, a step with sample weights."""
    keras, x, y = tf.keras, draw(8, 3), draw(8, 1)

    class ByMetrics(keras.Model):
        def train_step(self, data):
            x, y, *weight = data
            weight = weight[0] if weight else None
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(gradients, self.trainable_variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, y_pred, sample_weight=weight)
            return {m.name: m.result() for m in self.metrics}

        def test_step(self, data):
            x, y = data
            y_pred = self(x, training=False)
            self.compute_loss(y=y, y_pred=y_pred)
            return self.compute_metrics(x, y, y_pred, None)

    i = keras.Input((3,))
    found = []
    for weight in (None, np.arange(8.0, dtype="float32")):
        model = started(ByMetrics(i, keras.layers.Dense(1)(i)), x)
        model.compile("adam", "mse", metrics=["mae", keras.metrics.MeanSquaredError(name="squares")])
        found.append(history(model, x, y, sample_weight=weight))
        found.append(model.evaluate(x, y, verbose=0))
        found.append(model.get_metrics_result())
        model.reset_metrics()
        found.append([m.result() for m in model.metrics])
    return found


# ---- Python functions in layers, models that are saved before they are built --------------------------------------------


@parity
def python_functions_in_layers(tf):
    """A layer that says its shape calls `numpy_function` or `py_function`; fit, evaluate, predict run eagerly."""
    keras, L = tf.keras, tf.keras.layers
    x, y = draw(8, 3), draw(8, 1)

    class Numpy(L.Layer):
        def call(self, x):
            return tf.numpy_function(lambda a: a * 2, [x], tf.float32)

        def compute_output_shape(self, shape):
            return shape

    class Python(Numpy):
        def call(self, x):
            return tf.py_function(lambda a: tf.sin(a), [x], tf.float32)

    def cubes(x):
        return tf.py_function(lambda a: a**3, [x], tf.float32)

    found = []
    for layer in (Numpy(), Python(), L.Lambda(cubes, output_shape=(3,))):
        i = keras.Input((3,))
        model = started(keras.Model(i, L.Dense(1)(layer(L.Dense(3)(i)))), x)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x) ** 2)
        found.append([loss, *tape.gradient(loss, model.trainable_variables)])
        model.compile("sgd", "mse", metrics=["mae"], run_eagerly=True)
        found.append([history(model, x, y), model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)])
    return found


@parity
def looking_at_values(tf):
    """A model that runs eagerly has values in its layers, and trains as it does compiled."""
    keras, x, y, seen = tf.keras, draw(8, 3), draw(8, 1), []

    class Look(keras.layers.Layer):
        def call(self, x, training=False):
            if training:
                seen.append((x.numpy().shape, tf.is_tensor(x)))
            return x

    found = []
    for eagerly in (True, False):
        i = keras.Input((3,))
        layers = [
            keras.layers.Dense(3),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1, kernel_regularizer="l2"),
        ]
        h = i
        for layer in layers:
            h = layer(h)
        model = started(keras.Model(i, Look()(h) if eagerly else h), x)
        model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"], run_eagerly=eagerly)
        found.append([history(model, x, y), model.evaluate(x, y, verbose=0), model.predict(x, verbose=0)])
    return found, seen[-2:]


@parity
def saving_unbuilt_models(tf):
    """Of which the layers are built while a signature is traced."""
    import tempfile

    keras, x = tf.keras, tf.constant(draw(2, 3))
    of_rows = tf.function(input_signature=[tf.TensorSpec([None, 3])])

    class ByCall(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2, kernel_initializer="ones")

        @of_rows
        def call(self, x):
            return self.dense(x)

    class Serving(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = keras.Sequential(
                [keras.layers.Dense(4, "relu", kernel_initializer="ones"), keras.layers.Dense(2)]
            )

        def call(self, x):
            return self.body(x)

        @of_rows
        def serve(self, x):
            return {"y": self(x)}

    class Holder(tf.Module):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(2)

        @of_rows
        def f(self, x):
            return self.layer(x)

    def agrees(model, use, **options):
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(model, folder, **options)
            loaded = tf.saved_model.load(folder)
            return bool(tf.reduce_all(abs(use(loaded) - use(model)) < 1e-6)), sorted(loaded.signatures)

    by_call, serving, sequential = ByCall(), Serving(), keras.Sequential([keras.layers.Dense(2)])
    apart = of_rows(lambda x: sequential(x))
    return (
        agrees(by_call, lambda m: m.call(x), signatures={"call": by_call.call}),
        agrees(ByCall(), lambda m: m.call(x)),
        agrees(serving, lambda m: m.serve(x)["y"], signatures=serving.serve),
        agrees(Serving(), lambda m: m.serve(x)["y"]),
        agrees(Holder(), lambda m: m.f(x)),
        agrees(
            sequential,
            lambda m: m(x) if m is sequential else m.signatures["apart"](x)["output_0"],
            signatures={"apart": apart},
        ),
    )


# ---- both systems ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    return parity.outcomes(tmp_path_factory)


@needs_keras
@pytest.mark.parametrize("name", parity)
def test_keras(name, outcomes):
    parity.check(name, outcomes)


PYTHON_IN_A_LAYER = """
import numpy as np, tapejax as tf

class Doubled(tf.keras.layers.Layer):
    def call(self, x):
        y = tf.numpy_function(lambda a: a * 2, [x], tf.float32)
        y.set_shape(x.shape)
        return y

class Shaped(Doubled):
    def compute_output_shape(self, shape):
        return shape

i = tf.keras.Input((3,))
try:
    Doubled()(i)
except Exception as error:
    print(error)
try:
    tf.keras.Model(i, Shaped()(i)).predict(np.ones((2, 3)), verbose=0)
except Exception as error:
    print(error)
"""


@pytest.mark.skipif(not importlib.util.find_spec("keras"), reason="Keras is missing")
def test_what_python_in_a_layer_needs():
    """The shape comes too late for a Functional model, and `predict` compiles: the errors say what to do."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KERAS_", "PYTEST_"))}
    command = [sys.executable, "-c", PYTHON_IN_A_LAYER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    for advice in ("compute_output_shape(self, input_shape)", "set_shape on the result is too late"):
        assert advice in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("compile(run_eagerly=True)") == 2, done.stdout + done.stderr


if __name__ == "__main__":
    parity.main(*sys.argv[1:])
