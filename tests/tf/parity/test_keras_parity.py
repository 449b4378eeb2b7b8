"""Programs with ``tf.keras`` under TensorFlow and under tapejax, as ``tapejax run`` runs them: with 64-bit types."""

from __future__ import annotations

import importlib
import sys

import keras_programs
import keras_training
import numpy as np
import pytest
from harness import error_of
from keras_processes import Bodies, needs_keras

parity = Bodies(__file__, *[f"tests/tf/parity/{name}.py" for name in ("events", "keras_training", "keras_programs")])


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def build(model, x):
    """Weights drawn by NumPy: the two systems draw others."""
    model(x)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(0, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])
    return model


def train(tf, model, x, y, loss_fn, optimizer, steps=3, **options):
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, **options))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        losses.append(loss)
    return losses, model.get_weights()


@parity
def sequential(tf):
    """A classifier is trained by hand."""
    L = tf.keras.layers
    x, y = draw(6, 4), np.array([0, 1, 2, 0, 1, 2])
    model = build(tf.keras.Sequential([L.Dense(5, activation="relu"), L.Dense(3)]), x)
    return train(
        tf, model, x, y, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), tf.keras.optimizers.Adam(0.1)
    )


@parity
def kinds_of_convolutions(tf):
    """Transposed layers with output padding, depthwise, separable and grouped ones: the result and the gradients."""
    L = tf.keras.layers
    line, image, volume = draw(2, 5, 4), draw(2, 5, 4, 4), draw(1, 3, 4, 3, 2)
    found = []
    for layer, x in (
        (L.Conv1DTranspose(3, 3, 2, output_padding=1), line),
        (L.Conv2DTranspose(3, 3, 2, "same", output_padding=1), image),
        (L.Conv2DTranspose(3, (3, 2), (2, 3)), image),
        (L.Conv3DTranspose(2, 3, 2, "same", output_padding=1), volume),
        (L.Conv3D(3, 2, 2), volume),
        (L.DepthwiseConv1D(3, depth_multiplier=2), line),
        (L.DepthwiseConv2D(3, 2, "same", depth_multiplier=2), image),
        (L.SeparableConv2D(5, 3, padding="same"), image),
    ):
        x = tf.Variable(x)
        build(layer, x)
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_mean(tf.sin(y))
        found.append((y, tape.gradient(loss, [x, *layer.trainable_variables])))
    grouped = build(L.Conv2D(6, 3, groups=2), draw(2, 5, 4, 4))
    return found, grouped(image)


@parity
def convolutional(tf):
    """Convolution, pooling, batch normalisation in training, a functional model."""
    L = tf.keras.layers
    x, y = draw(2, 8, 8, 1), draw(2, 2)
    i = tf.keras.Input((8, 8, 1))
    h = L.MaxPooling2D()(L.BatchNormalization()(L.Conv2D(3, 3, activation="relu")(i)))
    model = build(tf.keras.Model(i, L.Dense(2)(L.Flatten()(h))), x)
    losses, weights = train(
        tf, model, x, y, tf.keras.losses.MeanSquaredError(), tf.keras.optimizers.SGD(0.01), training=True
    )
    return [round(float(x), 3) for x in losses], [np.round(w, 2).shape for w in weights]


@parity
def recurrent(tf):
    """LSTM and GRU, bidirectional, with a mask."""
    L = tf.keras.layers
    x = np.array([[1, 2, 3, 0], [4, 0, 0, 0]])
    parts = [L.Embedding(5, 3, mask_zero=True), L.Bidirectional(L.LSTM(2, return_sequences=True)), L.GRU(2)]
    model = build(tf.keras.Sequential(parts), x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) ** 2)
    return loss, [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]


@parity
def subclassed(tf):
    """A model and a layer with tf functions in them, whose `call` is given tensors."""

    printing = []  # not while it is built: that calls it any number of times

    class Linear(tf.keras.layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = units

        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], self.units), initializer="random_normal", trainable=True)
            self.b = self.add_weight(shape=(self.units,), initializer="zeros", trainable=True)

        def call(self, x):
            if printing:
                print(x.shape, x.dtype, tf.is_tensor(x), x.numpy().shape)
            self.add_loss(0.1 * tf.reduce_sum(tf.abs(self.w)))
            return tf.matmul(x, self.w) + self.b

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.other = Linear(3), Linear(1)

        def call(self, x, training=False):
            return self.other(tf.nn.relu(self.one(x)))

    x = draw(4, 2)
    model = build(Model(), x)
    printing.append(True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.constant(x))) + sum(model.losses)
    return loss, model.losses, tape.gradient(loss, model.trainable_variables)


@parity
def printing(tf):
    """What layers, losses and metrics return prints as tensors."""
    dense = tf.keras.layers.Dense(2, kernel_initializer="ones")
    mean = tf.keras.metrics.Mean()
    y = dense(np.ones((1, 2), "float32"))
    print(y, repr(y), y.numpy(), y.shape, y.dtype, y.shape.as_list())
    loss = tf.keras.losses.MeanSquaredError()(np.zeros((1, 2)), y)
    print(loss, repr(loss), f"{loss:.2f}", float(loss), loss.numpy())
    print(mean(3.0), mean.result(), mean.update_state([1.0]), repr(mean.result()), mean.result().numpy())
    print(dense.kernel + 1.0, dense.kernel * tf.constant(2.0), tf.constant(1.0) - dense.bias, dense.kernel[0])
    print(dense.kernel)
    print(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)(5), tf.keras.initializers.Ones()((2,)))
    print(tf.keras.activations.relu(tf.constant([-1.0, 1.0])), tf.keras.losses.mse(y, y))
    return type(model_output(tf)).__name__ in ("EagerTensor", "Tensor")


def model_output(tf):
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])(tf.ones((1, 1)))


@parity
def losses(tf):
    """Losses and their reductions."""
    true, predicted = np.eye(3, 4).astype("float32"), np.abs(draw(3, 4)) / np.abs(draw(3, 4)).sum(1, keepdims=True)
    K = tf.keras.losses
    kinds = [
        K.CategoricalCrossentropy,
        K.BinaryCrossentropy,
        K.MeanSquaredError,
        K.MeanAbsoluteError,
        K.Huber,
        K.LogCosh,
    ]
    kinds += [K.KLDivergence, K.Poisson, K.CosineSimilarity, K.Hinge, K.SquaredHinge, K.CategoricalHinge]
    found = [kind()(true, predicted) for kind in kinds]
    found += [kind(reduction="sum")(true, predicted, sample_weight=[1.0, 2.0, 0.0]) for kind in kinds]
    return found + [kind(reduction=None)(true, predicted) for kind in kinds]


@parity
def metrics(tf):
    """Metrics, from batch to batch."""
    M = tf.keras.metrics
    labels, scores = np.array([1, 0, 2, 1]), np.abs(draw(4, 3))
    found = []
    for metric in (M.SparseCategoricalAccuracy(), M.SparseTopKCategoricalAccuracy(2)):
        for i in (slice(0, 2), slice(2, 4)):
            found.append(metric(labels[i], scores[i]))
        found.append(metric.result())
        metric.reset_state()
        found.append(metric.result())
    for metric in (M.Mean(), M.Sum()):
        metric.update_state([1.0, 2.0], sample_weight=[1.0, 3.0])
        found.append(metric.result())
    for metric in (M.BinaryAccuracy(), M.Precision(), M.Recall(), M.AUC(num_thresholds=5), M.MeanAbsoluteError()):
        found.append(metric([1.0, 0.0, 1.0, 1.0], [0.9, 0.6, 0.3, 0.8]))
    return found


def _optimizer(name, **options):
    def body(tf):
        v, w = tf.Variable([1.0, -2.0]), tf.Variable([[3.0]])
        dense = tf.keras.layers.Dense(1)
        dense.build((None, 2))
        dense.set_weights([np.array([[1.0], [2.0]]), np.array([0.5])])
        variables = [v, w, *dense.trainable_variables]
        optimizer = getattr(tf.keras.optimizers, name)(learning_rate=0.1, **options)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v**2) * w[0, 0] + tf.reduce_sum(dense(tf.ones((1, 2))) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return v, w, dense.get_weights(), int(optimizer.iterations)

    body.__name__, body.__doc__ = f"optimizer_{'_'.join([name, *options])}", f"{name} on variables of both kinds."
    return parity(body)


for _name in "SGD Adam AdamW Adamax Adagrad Adadelta RMSprop Ftrl Nadam Lion Lamb".split():
    _optimizer(_name)
_optimizer("SGD", momentum=0.9, nesterov=True)
_optimizer("Adam", amsgrad=True, clipnorm=1.0)
_optimizer("RMSprop", centered=True, momentum=0.5)
_optimizer("SGD", global_clipnorm=0.5)
_optimizer("AdamW", weight_decay=0.1)


@parity
def none_gradients(tf):
    """An optimizer skips them, and refuses when there is nothing else."""
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    sgd = tf.keras.optimizers.SGD(0.5)
    sgd.apply_gradients([(tf.constant(1.0), v), (None, w)])
    return v, w, error_of(lambda: sgd.apply_gradients([(None, v), (None, w)]))


@parity
def persistent_after_a_step(tf):
    """A persistent tape remembers what a variable held."""
    dense = tf.keras.layers.Dense(1, kernel_initializer="ones")
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(dense(tf.ones((1, 2))) ** 2)
    grads = tape.gradient(loss, dense.trainable_variables)
    tf.keras.optimizers.SGD(0.1).apply_gradients(zip(grads, dense.trainable_variables))
    return grads, tape.gradient(loss, dense.trainable_variables), dense.get_weights()


@parity
def an_assignment_stops_the_gradient(tf):
    """A Keras variable that is assigned to inside the tape."""
    v, w = tf.keras.Variable(2.0), tf.keras.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(w * 5.0)
        z = v * v
    return y, z, tape.gradient(z, w.value), 0.5 * v, v > 1.0


@parity
def dtypes(tf):
    """Keras computes in float32, whatever comes in."""
    dense = tf.keras.layers.Dense(2, kernel_initializer="ones")
    found = [dense(np.ones((1, 2))), dense(tf.ones((1, 2), tf.float64)), dense(np.ones((1, 2), "int32"))]
    found += [tf.keras.losses.MeanSquaredError()(np.ones(2), np.zeros(2)), tf.keras.metrics.Mean()(1)]
    return found, [v.dtype for v in dense.variables], tf.keras.backend.floatx(), dense.get_weights()


@parity
def double_precision(tf):
    """A network in float64, as programs for differential equations have: Keras on JAX would round at each tanh."""
    x = tf.constant(draw(5, 2), tf.float64)
    L, dtype = tf.keras.layers, "float64"
    model = build(tf.keras.Sequential([L.Dense(4, "tanh", dtype=dtype), L.Dense(1, "gelu", dtype=dtype)]), x)
    for v in model.weights:
        v.assign(draw(*v.shape))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = model(x)
        first = inner.gradient(u, x)
    second = outer.gradient(first, x)
    x = tf.constant([[0.1, 0.7], [1e-9, 3.0]], tf.float64)
    activation = tf.keras.activations.tanh(x)
    ops = importlib.import_module("keras").ops  # a program says `import keras`, which `tapejax run` answers
    found = [ops.norm(x), ops.var(x), ops.tanh(x)]
    exactly = float(tf.reduce_max(abs(activation - tf.tanh(x)))) < 1e-14
    functional = tf.keras.Input((3,), dtype=dtype)
    symbolic = L.Activation("tanh", dtype=dtype)(functional)
    return u, first, second, activation, [str(np.asarray(y).dtype) for y in found], exactly, str(symbolic.dtype)


@parity
def numbers_beside_tensors(tf):
    """A Python number takes the precision of the tensor beside it, half or double, in layers and optimizers, too."""
    ops = importlib.import_module("keras").ops
    found = []
    for dtype in ("float16", "bfloat16"):
        x = tf.constant([1.0, 2.0], dtype)
        pairs = (
            ops.multiply(x, 0.5),
            ops.add(1e-3, x),
            ops.divide(x, 2),
            ops.maximum(x, 1.5),
            ops.where(x > 1.0, x, 0.0),
        )
        found += [str(np.asarray(y).dtype) for y in pairs]
        found.append(str(np.asarray(ops.subtract(tf.constant([1], tf.int8), 1)).dtype))
    x = tf.constant([0.1], tf.float64)
    found += [
        float(ops.multiply(x, 0.1)[0]) == 0.1 * 0.1,
        bool(ops.less(x, 0.1)[0]),
        float(ops.add(0.2, x)[0]) == 0.2 + 0.1,
    ]
    trained = []
    for kind in (tf.keras.optimizers.Adam, tf.keras.optimizers.RMSprop, tf.keras.optimizers.Adagrad):
        v = tf.Variable([1.0, 2.0], dtype=tf.float16)
        optimizer = kind(0.125, epsilon=1e-3)
        for _ in range(2):
            optimizer.apply_gradients([(tf.constant([0.5, 0.25], tf.float16), v)])
        trained.append(v.value())
    whole = ops.convert_to_tensor(0.5), ops.add(0.5, 0.25), ops.multiply(2, 3), ops.add(tf.constant([1], tf.uint8), 2)
    layer = build(tf.keras.layers.Dense(2, "gelu", dtype="mixed_float16"), tf.ones((1, 2)))
    return found, trained, str(np.asarray(layer(tf.ones((1, 2)))).dtype), [str(np.asarray(y).dtype) for y in whole]


@parity
def fit(tf):
    """compile, fit, evaluate, predict with tf functions as activations and loss."""
    x, y = draw(8, 3), draw(8, 1)
    model = build(tf.keras.Sequential([tf.keras.layers.Dense(4, activation=tf.nn.tanh), tf.keras.layers.Dense(1)]), x)
    model.compile(tf.keras.optimizers.SGD(0.1), lambda t, p: tf.reduce_mean(tf.square(t - p), axis=-1), metrics=["mae"])
    history = model.fit(x, y, epochs=2, batch_size=4, shuffle=False, verbose=0).history
    return history, model.evaluate(x, y, verbose=0), model.predict(x, verbose=0), model.get_weights()


@parity
def second_order(tf):
    """A gradient penalty through a model."""
    L = tf.keras.layers
    x = draw(3, 2)
    model = build(tf.keras.Sequential([L.Dense(4, activation="tanh"), L.Dense(1)]), x)
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = model(x)
        loss = tf.reduce_mean((tf.norm(inner.gradient(y, x), axis=1) - 1.0) ** 2)
    return loss, outer.gradient(loss, model.trainable_variables)


@parity
def compiled_step(tf):
    """tf.function around a step."""
    x, y = draw(6, 4), draw(6, 1)
    model = build(tf.keras.Sequential([tf.keras.layers.Dense(3, activation="relu"), tf.keras.layers.Dense(1)]), x)
    optimizer, loss_fn = tf.keras.optimizers.Adam(0.1), tf.keras.losses.MeanSquaredError()

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    return [step(tf.constant(x), tf.constant(y)) for _ in range(4)], model.get_weights()


@parity
def backend(tf):
    """tf.keras.backend, as old programs use it."""
    K, x = tf.keras.backend, tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [
        K.mean(x, axis=0),
        K.sum(K.square(x)),
        K.dot(x, x),
        K.clip(x, 1.5, 3.5),
        K.epsilon(),
        K.softmax(x),
        list(K.int_shape(x)),
    ]


@parity
def sparse_labels(tf):
    """A loss of labels that are numbers, with a penalty beside it."""
    weights, labels = tf.Variable(draw(4, 3)), tf.constant([0, 2])
    with tf.GradientTape() as tape:
        logits = tf.constant(draw(2, 4)) @ weights
        losses = tf.keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        loss = tf.reduce_mean(losses) + 0.1 * tf.nn.l2_loss(weights)
    return (
        loss,
        losses,
        tape.gradient(loss, weights),
        tf.keras.metrics.sparse_categorical_crossentropy(labels, tf.nn.softmax(logits)),
    )


@parity
def frozen(tf):
    """A layer that is not trainable."""
    dense = tf.keras.layers.Dense(1, trainable=False)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(dense(tf.ones((1, 2))))
    return tape.gradient(loss, dense.weights)


@parity
def symbolic(tf):
    """A tf function between the layers of a functional model."""
    return error_of(lambda: tf.nn.relu(tf.keras.Input((2,))))


@parity(differs="gradients of rows are dense: Adam squares the sum of what comes back to a row")
def repeated_rows(tf):
    """An embedding of a word that occurs twice, under optimizers that square gradients."""
    found = []
    for name in ("Adam", "RMSprop", "Adagrad"):
        embedding, optimizer = tf.Variable([[1.0], [2.0]]), getattr(tf.keras.optimizers, name)(0.1)
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(embedding, [0, 0, 1]) * [[1.0], [2.0], [1.0]])
            optimizer.apply_gradients([(tape.gradient(loss, embedding), embedding)])
        found.append(embedding.numpy())
    return found


for body in (*keras_training.BODIES, *keras_programs.BODIES):
    parity(body)


# ---- the two sides --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    return parity.outcomes(tmp_path_factory)


@needs_keras
@pytest.mark.parametrize("name", parity)
def test_keras(name, outcomes):
    parity.check(name, outcomes)


if __name__ == "__main__":
    parity.main(*sys.argv[1:])
