"""Models with steps of their own, in TensorFlow's way, in ``fit``, ``evaluate`` and ``predict``: bodies of test_keras_parity.

Both systems start from weights drawn by NumPy, and noise is part of the data.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile

import events
import numpy as np
from harness import error_of

BODIES = []


def parity(body):
    BODIES.append(body)
    return body


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def start(*models):
    """Weights drawn by NumPy."""
    rng = np.random.default_rng(0)
    for model in models:
        model.set_weights([rng.normal(0, 0.5, w.shape).astype(w.dtype) for w in model.get_weights()])


def dense(tf, inputs, outputs, activation=None):
    """A small built model."""
    layers = [tf.keras.Input((inputs,)), tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(outputs, activation)]
    model = tf.keras.Sequential(layers)
    start(model)
    return model


def history(model, *data, **options):
    """Losses and metrics, epoch by epoch."""
    options = {"epochs": 3, "batch_size": 4, "shuffle": False, "verbose": 0} | options
    return model.fit(*data, **options).history


@parity
def vae(tf):
    """An autoencoder that is never called as a whole, with metrics of its own that are reset each epoch."""
    keras = tf.keras

    class VAE(keras.Model):
        def __init__(self, encoder, decoder, **kwargs):
            super().__init__(**kwargs)
            self.encoder, self.decoder = encoder, decoder
            self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
            self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

        @property
        def metrics(self):
            return [self.total_loss_tracker, self.kl_loss_tracker]

        def train_step(self, data):
            x, noise = data
            with tf.GradientTape() as tape:
                mean, log_var = tf.split(self.encoder(x), 2, axis=-1)
                decoded = self.decoder(mean + tf.exp(0.5 * log_var) * noise)
                reconstruction = tf.reduce_mean(
                    tf.reduce_sum(
                        keras.losses.binary_crossentropy(x[..., tf.newaxis], decoded[..., tf.newaxis]), axis=1
                    )
                )
                kl = -0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var))
                kl = tf.reduce_mean(tf.reduce_sum(kl, axis=1))
                total = reconstruction + kl
            grads = tape.gradient(total, self.trainable_weights)
            self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
            self.total_loss_tracker.update_state(total)
            self.kl_loss_tracker.update_state(kl)
            return {"loss": self.total_loss_tracker.result(), "kl_loss": self.kl_loss_tracker.result()}

    model = VAE(dense(tf, 5, 4), dense(tf, 2, 5, "sigmoid"))
    model.compile(optimizer=keras.optimizers.Adam(0.05))
    x = np.random.default_rng(1).uniform(size=(8, 5)).astype("float32")
    losses = history(model, x, draw(8, 2))
    return losses, model.encoder.get_weights(), int(model.optimizer.iterations), model.built


@parity
def gan(tf):
    """Two models, two optimizers and a loss given to `compile`; data from a `Dataset`."""
    keras = tf.keras

    class GAN(keras.Model):
        def __init__(self, discriminator, generator):
            super().__init__()
            self.discriminator, self.generator = discriminator, generator

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
            self.d_metric = keras.metrics.Mean(name="d_loss")
            self.g_metric = keras.metrics.Mean(name="g_loss")

        @property
        def metrics(self):
            return [self.d_metric, self.g_metric]

        def train_step(self, data):
            real, noise = data
            batch = tf.shape(real)[0]
            both = tf.concat([self.generator(noise), real], axis=0)
            labels = tf.concat([tf.ones((batch, 1)), tf.zeros((batch, 1))], axis=0)
            with tf.GradientTape() as tape:
                d_loss = self.loss_fn(labels, self.discriminator(both))
            grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
            with tf.GradientTape() as tape:
                g_loss = self.loss_fn(tf.zeros((batch, 1)), self.discriminator(self.generator(noise)))
            grads = tape.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
            self.d_metric.update_state(d_loss)
            self.g_metric.update_state(g_loss)
            return {m.name: m.result() for m in self.metrics}

        def predict_step(self, data):
            return self.generator(data)

    model = GAN(dense(tf, 3, 1), dense(tf, 2, 3))
    model.compile(
        d_optimizer=keras.optimizers.Adam(0.02),
        g_optimizer=keras.optimizers.RMSprop(0.01),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    data = tf.data.Dataset.from_tensor_slices((draw(8, 3), draw(8, 2))).batch(4)
    losses = history(model, data, batch_size=None)
    noise = draw(8, 2)
    return losses, model.predict(noise, batch_size=4, verbose=0), model.predict_on_batch(noise)


@parity
def wgan_with_gradient_penalty(tf):
    """Several steps of the critic for one of the generator, a tape in a tape, losses given to `compile`."""
    keras = tf.keras

    class WGAN(keras.Model):
        def __init__(self, critic, generator, steps=2, weight=10.0):
            super().__init__()
            self.critic, self.generator, self.steps, self.weight = critic, generator, steps, weight

        def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn):
            super().compile()
            self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
            self.d_loss_fn, self.g_loss_fn = d_loss_fn, g_loss_fn

        def gradient_penalty(self, real, fake, share):
            between = real + share * (fake - real)
            with tf.GradientTape() as tape:
                tape.watch(between)
                found = self.critic(between, training=True)
            grads = tape.gradient(found, [between])[0]
            return tf.reduce_mean((tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1])) - 1.0) ** 2)

        def train_step(self, data):
            real, noise, share = data
            for _ in range(self.steps):
                with tf.GradientTape() as tape:
                    fake = self.generator(noise, training=True)
                    d_cost = self.d_loss_fn(self.critic(real, training=True), self.critic(fake, training=True))
                    d_loss = d_cost + self.weight * self.gradient_penalty(real, fake, share)
                grads = tape.gradient(d_loss, self.critic.trainable_variables)
                self.d_optimizer.apply_gradients(zip(grads, self.critic.trainable_variables))
            with tf.GradientTape() as tape:
                g_loss = self.g_loss_fn(self.critic(self.generator(noise, training=True), training=True))
            grads = tape.gradient(g_loss, self.generator.trainable_variables)
            self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_variables))
            return {"d_loss": d_loss, "g_loss": g_loss}

    model = WGAN(dense(tf, 3, 1), dense(tf, 2, 3))
    model.compile(
        keras.optimizers.Adam(0.01, beta_1=0.5, beta_2=0.9),
        keras.optimizers.Adam(0.01, beta_1=0.5, beta_2=0.9),
        lambda real, fake: tf.reduce_mean(fake) - tf.reduce_mean(real),
        lambda fake: -tf.reduce_mean(fake),
    )
    seen = []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((epoch, sorted(logs), self.model.generator(draw(1, 2)).shape))

    share = np.random.default_rng(2).uniform(size=(8, 1)).astype("float32")
    return history(model, draw(8, 3), draw(8, 2), sample_weight=share, callbacks=[Watch()]), seen


@parity
def weighted(tf):
    """A step with compiled loss and metrics; class weights, sample weights, and each way to give data."""
    keras = tf.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = dense(tf, 3, 2, "softmax")

        def call(self, x, training=False):
            return self.body(x)

        def train_step(self, data):
            x, y, sample_weight = data if len(data) == 3 else (*data, None)
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted, sample_weight=sample_weight)
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(grads, self.trainable_variables)
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted, sample_weight=sample_weight)
            return {m.name: m.result() for m in self.metrics}

    x, y, weights = draw(8, 3), np.array([0, 1] * 4), np.arange(8.0, dtype="float32") / 10
    pairs = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)

    def batches():
        while True:
            yield x[:4], y[:4], weights[:4]
            yield x[4:], y[4:], weights[4:]

    found = []
    for data, options in (
        ((x, y), {"class_weight": {0: 0.5, 1: 3.0}}),
        ((x, y), {"sample_weight": weights}),
        ((pairs,), {"class_weight": {0: 0.5, 1: 3.0}, "batch_size": None}),
        ((batches(),), {"steps_per_epoch": 3, "batch_size": None}),
        ((tf.constant(x), tf.constant(y)), {"validation_split": 0.5}),
        ((pairs,), {"validation_data": (x, y, weights), "validation_freq": 2, "batch_size": None}),
    ):
        model = Model()
        model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
        found.append(history(model, *data, **options))
    found.append(model.evaluate(x, y, batch_size=4, sample_weight=weights, verbose=0, return_dict=True))
    found.append(model.train_on_batch(x[:4], y[:4], class_weight={0: 1.0, 1: 2.0}))
    found.append(model.train_on_batch(x[:4], y[:4], sample_weight=weights[:4], return_dict=True))
    found.append(model.test_on_batch(x[:4], y[:4]))
    return found


@parity
def steps_of_every_kind(tf):
    """train_step, test_step, predict_step; compiled, eager, several steps for one execution; the default ones by `super`."""
    keras = tf.keras
    calls = []

    class Model(keras.Model):
        def train_step(self, data):
            calls.append("train")
            logs = super().train_step(data)
            logs["double"] = 2.0 * logs["loss"]
            return logs

        def test_step(self, data):
            calls.append("test")
            x, y = data
            predicted = self(x, training=False)
            self.compute_loss(x, y, predicted)
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, predicted)
            return {"error": tf.reduce_mean(tf.abs(y - predicted))}

        def predict_step(self, data):
            calls.append("predict")
            return {"once": super().predict_step(data), "inputs": tf.identity(data)}

    x, y = draw(10, 3), draw(10, 1)
    found = []
    for options in ({"jit_compile": False}, {"run_eagerly": True}, {"steps_per_execution": 2}):
        i = keras.Input((3,))
        model = Model(i, keras.layers.Dense(1)(keras.layers.BatchNormalization()(i)))
        start(model.layers[-1])
        model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"], **options)
        calls.clear()
        found += [history(model, x, y, validation_data=(x, y)), model.predict(x, batch_size=4, verbose=0)]
        found += [model.evaluate(x, y, verbose=0, return_dict=True, batch_size=4), model.get_weights()]
        if "run_eagerly" in options:
            found.append(list(calls))
    return found


@parity
def own_compute_loss(tf):
    """`compute_loss` and `compute_metrics` written with tf functions, with and without a step, for tensors."""
    keras = tf.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = dense(tf, 3, 1)
            self.tracker = keras.metrics.Mean(name="my_loss")
            self.seen = keras.metrics.Sum(name="seen")

        def call(self, x):
            self.add_loss(0.01 * tf.reduce_sum(tf.square(x)))
            return self.body(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            loss = tf.reduce_mean(tf.math.squared_difference(y_pred, y)) + tf.add_n(self.losses)
            if y.get_shape().rank == 2 and tf.is_tensor(y_pred):
                loss *= 2.0
            self.tracker.update_state(loss)
            return loss

        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            found = super().compute_metrics(x, y, y_pred, sample_weight)
            self.seen.update_state(tf.ones(tf.shape(x)[0]))
            found["seen"] = self.seen.result()
            return found

    class Stepping(Model):
        @tf.function
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x))
            gradients = tape.gradient(loss, self.trainable_variables)
            gradients = [tf.clip_by_norm(g, 0.5) for g in gradients]
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"my_loss": self.tracker.result()}

    found = []
    for kind in (Model, Stepping):
        model = kind()
        model.compile("adam", metrics=["mae"] if kind is Model else None)
        x, y = draw(8, 3), draw(8, 1)
        found += [history(model, x, y), model.evaluate(x, y, verbose=0, return_dict=True, batch_size=4)]
    return found


@parity
def state_in_call(tf):
    """Layers and metrics that keep tf.Variables, and layers with a metric, in `fit` of models without a step of their own."""
    keras = tf.keras

    class Centre(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.seen = keras.metrics.Mean(name="seen")

        def build(self, shape):
            self.mean = tf.Variable(tf.zeros(shape[-1]), trainable=False)
            self.calls = tf.Variable(0)

        def call(self, x, training=False):
            self.calls.assign_add(1)
            self.seen.update_state(tf.reduce_mean(x))
            if training:
                self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, axis=0))
            return x - self.mean

    class Batches(keras.metrics.Metric):
        def __init__(self):
            super().__init__(name="batches")
            self.count = tf.Variable(0.0)

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count.assign_add(1.0)

        def reset_state(self):
            self.count.assign(0.0)

        def result(self):
            return self.count * 1.0

    class Wrapped(keras.Model):
        def __init__(self):
            super().__init__()
            self.centre, self.body = Centre(), dense(tf, 3, 1)

        def call(self, x, training=False):
            return self.body(self.centre(x, training=training))

    x, y = 1.0 + draw(8, 3), draw(8, 1)
    found = []
    for model in (keras.Sequential([keras.Input((3,)), Centre(), dense(tf, 3, 1)]), Wrapped()):
        model.compile("sgd", "mse", metrics=[Batches()])
        losses = history(model, x, y, validation_data=(x, y))
        predicted = model.predict(x, batch_size=4, verbose=0)
        layer = model.layers[0]
        found += [
            losses,
            predicted,
            model.evaluate(x, y, batch_size=4, verbose=0),
            layer.mean,
            layer.calls,
            layer.seen.result(),
        ]
    plain = dense(tf, 3, 1)
    plain.compile("sgd", "mse", metrics=[Batches()])
    return found, history(plain, x, y)


@parity
def contrastive(tf):
    """Two heads and temperatures, one optimizer for each, labelled and unlabelled data zipped, a probe."""
    keras = tf.keras

    class Contrastive(keras.Model):
        def __init__(self):
            super().__init__()
            self.temperature = 0.1
            self.encoder, self.head, self.probe = dense(tf, 4, 3), dense(tf, 3, 2), dense(tf, 3, 2)

        def compile(self, contrastive_optimizer, probe_optimizer, **kwargs):
            super().compile(**kwargs)
            self.contrastive_optimizer, self.probe_optimizer = contrastive_optimizer, probe_optimizer
            self.probe_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            self.loss_tracker = keras.metrics.Mean(name="c_loss")
            self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="c_acc")
            self.probe_accuracy = keras.metrics.SparseCategoricalAccuracy(name="p_acc")

        @property
        def metrics(self):
            return [self.loss_tracker, self.accuracy, self.probe_accuracy]

        def contrastive_loss(self, one, other):
            one, other = tf.math.l2_normalize(one, axis=1), tf.math.l2_normalize(other, axis=1)
            similarities = tf.matmul(one, other, transpose_b=True) / self.temperature
            labels = tf.range(tf.shape(one)[0])
            self.accuracy.update_state(labels, similarities)
            losses = keras.losses.sparse_categorical_crossentropy(labels, similarities, from_logits=True)
            return tf.reduce_mean(losses)

        def train_step(self, data):
            (one, other), (x, y) = data
            with tf.GradientTape() as tape:
                loss = self.contrastive_loss(self.head(self.encoder(one)), self.head(self.encoder(other)))
            weights = self.encoder.trainable_weights + self.head.trainable_weights
            self.contrastive_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            self.loss_tracker.update_state(loss)
            with tf.GradientTape() as tape:
                logits = self.probe(self.encoder(x, training=False))
                probe_loss = self.probe_loss(y, logits)
            gradients = tape.gradient(probe_loss, self.probe.trainable_weights)
            self.probe_optimizer.apply_gradients(zip(gradients, self.probe.trainable_weights))
            self.probe_accuracy.update_state(y, logits)
            return {m.name: m.result() for m in self.metrics}

        def test_step(self, data):
            x, y = data
            logits = self.probe(self.encoder(x, training=False), training=False)
            self.probe_accuracy.update_state(y, logits)
            return {"p_loss": self.probe_loss(y, logits), "p_acc": self.probe_accuracy.result()}

    a, b, x, y = draw(8, 4), draw(8, 4) + 0.1, draw(8, 4) - 0.2, np.arange(8) % 2
    pairs = tf.data.Dataset.from_tensor_slices((a, b)).batch(4)
    data = tf.data.Dataset.zip((pairs, tf.data.Dataset.from_tensor_slices((x, y)).batch(4)))
    model = Contrastive()
    model.compile(contrastive_optimizer=keras.optimizers.Adam(0.01), probe_optimizer=keras.optimizers.Adam(0.02))
    return history(model, data, batch_size=None, validation_data=(x, y)), model.evaluate(x, y, verbose=0)


@parity
def callbacks_and_the_progress_bar(tf):
    """A rate that a callback sets, early stopping, an epoch to begin with, and what is printed."""
    keras = tf.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = dense(tf, 2, 1)
            self.share = tf.Variable(1.0, trainable=False)

        def call(self, x):
            return self.body(x)

        def train_step(self, data):
            x, y = keras.utils.unpack_x_y_sample_weight(data)[:2]
            with tf.GradientTape() as tape:
                loss = self.share * tf.reduce_mean(tf.square(self(x, training=True) - y))
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            return {"loss": loss, "rate": self.optimizer.learning_rate}

    class Anneal(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.share.assign(1.0 / (1.0 + epoch))

        def on_train_batch_end(self, batch, logs=None):
            if batch == 1:
                print(batch, sorted(logs), type(logs["loss"]).__name__)

    model = Model()
    model.compile(keras.optimizers.SGD(0.1))
    callbacks = [
        Anneal(),
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        keras.callbacks.EarlyStopping("rate", patience=1, mode="max"),
        keras.callbacks.TerminateOnNaN(),
    ]
    losses = history(model, draw(8, 2), draw(8, 1), epochs=6, initial_epoch=1, callbacks=callbacks)
    more = history(model, draw(8, 2), draw(8, 1), epochs=1)
    model.stop_training = False
    return losses, more, error_of(lambda: Model().fit(draw(8, 2), draw(8, 1)))


@parity
def modules_in_layers(tf):
    """Keras does not train the variables of a module in a layer or a model; a tape does. Neither lists what the other holds."""
    keras = tf.keras

    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.c = tf.Variable([[1.0], [2.0]]), tf.Variable(3.0, trainable=False)

        def __call__(self, x):
            return x @ self.w * self.c

    class Layer(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.scale, self.bias = Scale(), [tf.Variable(0.5)]

        def call(self, x):
            return tf.nn.relu(self.scale(x) + self.bias[0])

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.scale, self.dense = Scale(), keras.layers.Dense(1, kernel_initializer="ones")

        def call(self, x):
            return self.scale(x) + self.dense(x)

    layer, model, x = Layer(), Model(), tf.ones((2, 2))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(layer(x))
    grads = tape.gradient(y, [*layer.scale.trainable_variables, *layer.bias])
    found = [
        len(v) for v in (tape.watched_variables(), layer.trainable_variables, layer.variables, layer.get_weights())
    ]
    model(x)
    model.compile("sgd", "mse")
    losses = history(model, np.ones((2, 2), "float32"), np.ones((2, 1), "float32"), epochs=2)
    outer = tf.Module()
    outer.layer, outer.scale = layer, model.scale
    found += [len(v) for v in (model.trainable_variables, outer.trainable_variables, outer.variables, outer.submodules)]
    return found, grads, losses, model.scale.w


@parity
def own_train_function(tf):
    """A `make_train_function` that compiles a function of the iterator."""
    keras = tf.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.body = dense(tf, 3, 1)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.body(x) - y))
            weights = self.body.trainable_weights
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return {"loss": loss}

        def make_train_function(self, force=False):
            @tf.function
            def train_function(iterator):
                return self.train_step(next(iterator))

            self.train_function = train_function
            return train_function

    model = Model()
    model.compile(keras.optimizers.SGD(0.1))
    return history(model, draw(8, 3), draw(8, 1))


def tensorboard(tf):
    """What the TensorBoard callback writes of training and validation, and what layers write."""
    keras = tf.keras

    class Watched(keras.layers.Layer):
        def call(self, x):
            tf.summary.histogram("activations", x, buckets=4)
            return 2.0 * x

    layers = [keras.Input((3,)), keras.layers.Dense(2, name="first"), Watched(name="watched"), keras.layers.Dense(1)]
    model = keras.Sequential(layers, name="model")
    start(model)
    model.compile("adam", "mse", metrics=["mae"])
    x, y = draw(8, 3), draw(8, 1)
    with tempfile.TemporaryDirectory() as folder:
        for name, options in {
            "plain": {},
            "all": {"histogram_freq": 1, "write_images": True, "update_freq": 1},
        }.items():
            callback = keras.callbacks.TensorBoard(f"{folder}/{name}", **options)
            history(model, x, y, epochs=2, validation_data=(x, y), callbacks=[callback])
        found = [events.read(f"{folder}/{run}/{part}") for run in ("plain", "all") for part in ("train", "validation")]
    found = [(re.sub(r"_\d+", "", tag), *rest) for run in found for tag, *rest in run]
    return [event for event in found if event[2] != "graph_keras_model"]  # which Keras writes in its own words


if importlib.util.find_spec("tensorboardX"):
    parity(tensorboard)


@parity
def derivatives_in_a_layer(tf):
    """A physics-informed network: Jacobians and Hessians inside a layer of a Functional model, of any batch size."""
    keras = tf.keras

    class Derivatives(keras.layers.Layer):
        def __init__(self, network):
            super().__init__()
            self.network = network

        def call(self, x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    u = self.network(x)
                first = tape.batch_jacobian(u, x)
            second = outer.batch_jacobian(first, x)
            return u, first[..., 0], second[..., 0, 1]

    class Coupled(keras.layers.Layer):
        def call(self, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sin(x) * tf.reduce_sum(x)
            return tape.jacobian(y, x)

    i = keras.Input((2,))
    outputs = Derivatives(dense(tf, 2, 1))(i)
    model = keras.Model(i, list(outputs))
    model.compile(keras.optimizers.SGD(0.05), loss=["mse"] * 3)
    x = draw(4, 2)
    coupled = Coupled()(i)
    found = [list(x.shape) for x in (*outputs, coupled)]
    return found, history(model, x, [x[:, :1]] * 3)["loss"], model(x), keras.Model(i, coupled)(x)


@parity
def states_of_recurrent_cells(tf):
    """States that a loop by hand starts from, and updates of variables by tf.keras.backend."""
    L, K = tf.keras.layers, tf.keras.backend
    states = [cell.get_initial_state(batch_size=2) for cell in (L.LSTMCell(3), L.StackedRNNCells([L.GRUCell(2)]))]
    states.append(L.LSTM(3).get_initial_state(2))
    v, x = K.variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    K.update(v, x)
    K.update_add(v, x)
    K.update_sub(v, x / 2)
    return states, v.numpy()


@parity
def saved_models(tf):
    """`tf.saved_model.save` of Keras models, with signatures and without."""
    keras = tf.keras
    model, x = dense(tf, 3, 2), draw(4, 3)

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def double(x):
        return {"doubled": 2.0 * model(x)}

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.body, self.scale = dense(tf, 3, 2), tf.Variable(2.0)

        def call(self, x):
            return {"scaled": self.scale * self.body(x)}

    def loaded(model, **options):
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(model, folder, **options)
            signatures = tf.saved_model.load(folder).signatures
        return {key: (sorted(f.structured_input_signature[1]), f(tf.constant(x))) for key, f in signatures.items()}

    called = Model()
    called(x)
    signatures = {"serving_default": double, "again": double.get_concrete_function()}
    return loaded(model), loaded(model, signatures=double), loaded(model, signatures=signatures), loaded(called)
