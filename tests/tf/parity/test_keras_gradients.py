"""Gradients of Keras's layers under a tape's rules: recomputed, with custom gradients, frozen, in Keras's control flow."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from harness import error_of
from keras_processes import Bodies, needs_keras

parity = Bodies(__file__)


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def built(model, *inputs):
    """Weights drawn by NumPy; the states of random numbers stay."""
    model(*inputs)
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, 0.5, w.shape).astype(w.dtype) if w.dtype.kind == "f" else w for w in model.get_weights()]
    model.set_weights(weights)
    return model


def both(tf, fn):
    """`fn`, and `fn` compiled."""
    return fn, tf.function(fn)


def numbers(tf, xs):
    return [None if x is None else np.array(tf.cast(tf.convert_to_tensor(x), "float32").numpy()) for x in xs]


# ---- recompute_grad -------------------------------------------------------------------------------------------------


def models(tf):
    """Layers and models of all kinds, with an input of each."""
    L, M = tf.keras.layers, tf.keras.Model

    class Block(L.Layer):
        """A transformer block, whose intermediate values take the most memory."""

        def __init__(self):
            super().__init__()
            self.attention, self.norm = L.MultiHeadAttention(2, 4), L.LayerNormalization()
            self.inner, self.outer = L.Dense(8, "gelu"), L.Dense(4)

        def call(self, x):
            h = self.norm(x + self.attention(x, x))
            return h + self.outer(self.inner(h))

    class Subclassed(M):
        def __init__(self):
            super().__init__()
            self.norm, self.dense, self.scale = L.BatchNormalization(), L.Dense(3), tf.Variable(2.0)

        def call(self, x):
            return self.dense(self.norm(x)) * self.scale

    inputs = tf.keras.Input((4,))
    functional = M(inputs, L.Dense(2)(L.Dense(3, "relu")(inputs)))
    convolutional = tf.keras.Sequential([L.Conv2D(2, 3), L.BatchNormalization(), L.GlobalAveragePooling2D()])
    yield L.Dense(2), draw(3, 4)
    yield tf.keras.Sequential([L.Dense(3, "relu"), L.Dense(2)]), draw(3, 4)
    yield functional, draw(3, 4)
    yield Subclassed(), draw(3, 4)
    yield L.LSTM(3), draw(2, 3, 4)
    yield L.Bidirectional(L.GRU(2)), draw(2, 3, 4)
    yield convolutional, draw(2, 6, 6, 1)
    yield tf.keras.Sequential([L.Embedding(5, 3), L.Flatten()]), np.array([[1, 2], [3, 3]])
    yield Block(), draw(2, 3, 4)


@parity
def recomputed_layers(tf):
    """The gradients of inputs and variables are those without it: eagerly, in a `function`, by `call`."""
    found = []
    for model, data in models(tf):
        x = tf.constant(data)
        built(model, x)
        smooth = [x] if x.dtype.is_floating else []
        for f in (tf.recompute_grad(lambda z, m=model: m(z)), tf.recompute_grad(model.call), tf.recompute_grad(model)):

            def step(x, f=f, model=model, smooth=bool(smooth)):
                with tf.GradientTape() as tape:
                    if smooth:
                        tape.watch(x)
                    y = tf.reduce_sum(f(x) ** 2)
                return tape.gradient(y, ([x] if smooth else []) + model.trainable_variables)

            found += [numbers(tf, run(x)) for run in both(tf, step)]
    return found


@parity
def recomputed_in_training(tf):
    """Batch normalisation in training, mixed precision, a persistent tape, a tape around the compiled function."""
    L, found = tf.keras.layers, []
    for dtype in ("float32", "mixed_float16"):
        parts = [L.Dense(3, "relu", dtype=dtype), L.BatchNormalization(dtype=dtype), L.Dense(2, dtype=dtype)]
        x = tf.constant(draw(3, 4))
        model = built(tf.keras.Sequential(parts), x)
        f = tf.recompute_grad(lambda z, m=model: m(z, training=True))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.cast(f(x), tf.float32) ** 2)
        compiled = tf.function(lambda x, f=f: tf.reduce_sum(tf.cast(f(x), tf.float32) ** 2))
        with tf.GradientTape() as outer:
            outer.watch(x)
            z = compiled(x)
        sources = [x, *model.trainable_variables]
        grads = [tape.gradient(y, sources), tape.gradient(y, sources), outer.gradient(z, sources)]
        found += [np.round(g, 2) for grad in grads for g in numbers(tf, grad)]
    return found


@parity
def a_memory_saving_model(tf):
    """Blocks whose `call` recomputes, trained by `fit`."""
    L = tf.keras.layers

    class Recomputed(L.Layer):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def build(self, shape):
            self.inner.build(shape)

        def call(self, x):
            return x + tf.recompute_grad(lambda z: self.inner(z))(x)

    inputs = tf.keras.Input((4,))
    x = Recomputed(tf.keras.Sequential([L.Dense(8, "tanh"), L.Dense(4)]))(inputs)
    model = tf.keras.Model(inputs, L.Dense(1)(Recomputed(L.Dense(4, "tanh"))(x)))
    built(model, draw(2, 4))

    class Trained(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = model

        def call(self, x):
            return self.inner(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    trained = Trained()
    trained.compile(optimizer=tf.keras.optimizers.SGD(0.05))
    found = trained.fit(draw(8, 4), draw(8, 1), epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]
    return found, model.get_weights()


@parity(differs="recompute_grad of a function with a tape and variables: TensorFlow fails to convert None")
def a_tape_inside_what_is_recomputed(tf):
    """A gradient penalty of a recomputed block."""
    critic = built(tf.keras.Sequential([tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)]), draw(3, 2))

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = critic(x)
        return tape.gradient(score, x)

    def penalty(run):
        x = tf.constant(draw(3, 2))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.recompute_grad(run)(x) ** 2)
        found.append(numbers(tf, tape.gradient(y, [x, *critic.trainable_variables[:3]])))

    found = []
    return [error_of(penalty, run) for run in both(tf, slope)], found


@parity(
    differs="recompute_grad leaves state as the forward pass left it; TensorFlow updates it again when it recomputes"
)
def state_of_what_is_recomputed(tf):
    """The moving statistics of batch normalisation, and the seed of dropout, after one step."""
    L = tf.keras.layers
    model = built(tf.keras.Sequential([L.BatchNormalization(momentum=0.5), L.Dropout(0.5, seed=1)]), draw(3, 4))
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda z: model(z, training=True))(tf.constant(draw(3, 4)))
    tape.gradient(y, model.trainable_variables)
    return numbers(tf, model.non_trainable_variables)


# ---- custom_gradient ------------------------------------------------------------------------------------------------


@parity
def custom_gradients_of_layers(tf):
    """A clipped gradient, a reversed one, variables whose gradients are halved; `variables` are those that were read."""
    dense = built(tf.keras.layers.Dense(2), draw(1, 2))
    recurrent = built(tf.keras.layers.LSTM(2), draw(1, 3, 2))

    @tf.custom_gradient
    def clipped(z):
        y = dense(z)
        return y, lambda d, variables=None: (tf.clip_by_norm(d, 1.0), [tf.zeros_like(v) for v in variables])

    @tf.custom_gradient
    def reversed_gradient(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = recurrent(z)

        def grad(d, variables=None):
            given = tape.gradient(y, [z, *variables], output_gradients=d)
            return -given[0], [0.5 * g for g in given[1:]]

        return y, grad

    @tf.custom_gradient
    def reads_none(z):
        return z * 2.0, lambda d: d * 100.0

    def gradients(f, x, v):
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f(x) ** 2)
            return tape.gradient(y, [x, *v])

        return [numbers(tf, run(tf.constant(x))) for run in both(tf, step)]

    return (
        gradients(clipped, draw(1, 2), dense.trainable_variables),
        gradients(reversed_gradient, draw(1, 3, 2), recurrent.trainable_variables),
        gradients(lambda z: dense(reads_none(z)), draw(1, 2), dense.trainable_variables),
    )


@parity
def a_custom_gradient_of_variables_that_takes_none(tf):
    """The gradient function has to take `variables`."""
    dense = built(tf.keras.layers.Dense(2), draw(1, 2))

    @tf.custom_gradient
    def f(z):
        return dense(z), lambda d: d

    return error_of(f, tf.constant(draw(1, 2)))


# ---- what a tape watches --------------------------------------------------------------------------------------------


def watched(tf, read, sources, **options):
    """Of what was read, and of `sources`, whether there is a gradient; how many variables the tape lists."""
    x = tf.ones((2, 3))
    with tf.GradientTape(persistent=True, **options) as tape:
        h = read(x)
        y = tf.reduce_sum(h**2)
    return [g is not None for g in tape.gradient(y, [h, *sources])], len(tape.watched_variables())


@parity
def frozen_layers(tf):
    """What was made to be trained is watched, frozen or not; what never was is not."""
    L, found = tf.keras.layers, []

    def dense(**options):
        layer = L.Dense(2, **options)
        layer.build((None, 3))
        return layer

    def freeze(layer, *parts):
        for part in parts or [layer]:
            part.trainable = False
        return layer

    def early():
        layer = freeze(L.Dense(2))
        layer.build((None, 3))
        return layer

    one, two = dense(), dense()
    layers = [dense(), freeze(dense()), freeze(one, one.kernel), freeze(two, two.kernel, two.bias), early()]
    layers += [dense(trainable=False), tf.keras.Sequential([tf.keras.Input((3,)), L.Dense(2), L.Dense(1)])]
    layers += [L.BatchNormalization(), L.BatchNormalization(scale=False, center=False)]
    for layer in layers[-2:]:
        layer.build((None, 3))
    for layer in layers:
        found.append(watched(tf, layer, layer.variables))
        found.append(watched(tf, layer, layer.variables, watch_accessed_variables=False))
        layer.trainable = False
        found.append(watched(tf, layer, layer.variables))
    kernel = layers[0].kernel
    found.append(watched(tf, lambda x: x @ kernel, [kernel]))
    found.append(watched(tf, lambda x: tf.keras.ops.matmul(x, kernel), [kernel]))
    for read in (L.LSTM(2), L.Embedding(3, 2)):
        read.build((None, 2, 3))
        read.trainable = False
        found.append(watched(tf, lambda x, read=read: read(x[None] if read.name[:4] == "lstm" else x), []))
    for trainable in (True, False):
        v = tf.Variable(2.0, trainable=trainable)
        found.append(watched(tf, lambda x, v=v: x * v, [v]))
        k = tf.keras.Variable(2.0, trainable=trainable)
        k.trainable = False
        found.append(watched(tf, lambda x, k=k: x * k.value, [k]))
    return found


@parity
def grad_cam_of_a_frozen_base(tf):
    """Class activation maps of a pretrained network, the base of which is not trained; eagerly and compiled."""
    L = tf.keras.layers
    base = tf.keras.Sequential([L.Conv2D(3, 3, activation="relu"), L.BatchNormalization()])
    head = tf.keras.Sequential([L.GlobalAveragePooling2D(), L.Dense(3)])
    image = tf.constant(draw(1, 6, 6, 2))
    built(base, image)
    built(head, base(image))
    base.trainable = False

    def heatmap(image):
        with tf.GradientTape() as tape:
            maps = base(image)
            score = head(maps)[:, 1]
        weights = tf.reduce_mean(tape.gradient(score, maps), axis=(1, 2), keepdims=True)
        return tf.nn.relu(tf.reduce_sum(maps * weights, axis=-1))

    @tf.function
    def tuned(image):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(head(base(image, training=True)) ** 2)
        return tape.gradient(loss, head.trainable_variables)

    return [run(image) for run in both(tf, heatmap)], tuned(image)


@parity(differs="a Keras variable that was not made to be trained, but is made trainable later, is watched")
def a_thawed_variable(tf):
    v = tf.keras.Variable(2.0, trainable=False)
    v.trainable = True
    return watched(tf, lambda x: x * v.value, [v])


# ---- Keras's control flow -------------------------------------------------------------------------------------------


def stateful(tf):
    """Functions of `keras.ops` that read and assign to a Keras variable, an integer one and a tf.Variable, by name."""
    ops = tf.keras.ops
    v, c, u = tf.keras.Variable(np.float32(1.0)), tf.keras.Variable(0, dtype="int32", trainable=False), tf.Variable(3.0)
    one, x = tf.constant(1.0), tf.constant([1.0, 2.0, 3.0])

    def first(result, *assigned):
        return result

    def twice(i, a):
        v.assign_add(1.0)
        c.assign_add(1)
        u.assign_add(0.5)
        return i + 1, a * v.value

    def doubled(i):
        v.assign(v * 2.0)
        return i + 1

    def summed(i, a):
        v.assign_add(ops.cast(i, "float32"))
        return a + v.value

    def running(total, a):
        v.assign_add(a)
        c.assign_add(1)
        return total + a, total * v.value

    def nested(i, a):
        def inner(j, b):
            ops.cond(b > 3.0, lambda: first(None, c.assign_add(1)), lambda: None)
            v.assign_add(1.0)
            return b + v.value

        return ops.fori_loop(0, 2, inner, a)

    def of_one(a):
        v.assign_add(1.0)
        return a * v.value

    branches = [lambda a: first(a, v.assign_add(1.0)), lambda a: first(a * 2.0, u.assign_add(1.0)), lambda a: a * 3.0]
    return (v, c, u), {
        "while": lambda: ops.while_loop(lambda i, a: i < 3, twice, (tf.constant(0), one)),
        "while of one": lambda: ops.while_loop(lambda i: i < 3, doubled, tf.constant(0)),
        "while, at most": lambda: ops.while_loop(
            lambda i, a: i < 9, twice, [tf.constant(0), one], maximum_iterations=2
        ),
        "while a variable": lambda: ops.while_loop(lambda i: v.value < 9.0, doubled, tf.constant(0)),
        "fori": lambda: ops.fori_loop(0, 4, summed, one),
        "fori to a tensor": lambda: ops.fori_loop(tf.constant(1), tf.cast(u, "int32"), summed, one),
        "cond": lambda: [
            ops.cond(sign * u > 0.0, lambda: first(v * 2.0, v.assign_add(1.0)), lambda: first(v * 3.0, c.assign(7)))
            for sign in (1.0, -1.0)
        ],
        "cond of a constant": lambda: ops.cond(True, lambda: first(v * 2.0, v.assign_add(1.0)), lambda: v * 3.0),
        "switch": lambda: [ops.switch(i + tf.cast(u, "int32"), branches, one) for i in (-9, -3, -2, -1, 9)],
        "scan": lambda: ops.scan(running, one, x),
        "scan backward": lambda: ops.scan(running, one, x, reverse=True),
        "scan without rows": lambda: ops.scan(lambda a, _: (a * 2.0, first(a, c.assign_add(1))), one, None, length=3),
        "vectorized_map": lambda: ops.vectorized_map(lambda a: a * v.value + u, x),
        "vectorized_map that assigns": lambda: ops.vectorized_map(of_one, x),
        "associative_scan": lambda: ops.associative_scan(lambda a, b: first(a + b, v.assign_add(1.0)), x),
        "nested": lambda: ops.fori_loop(0, 2, nested, one),
    }


@parity
def control_flow_that_assigns(tf):
    """What it gives and what the variables hold, called twice: eagerly and in a `function`."""
    variables, functions = stateful(tf)
    found = {}
    for name, function in functions.items():
        for kind, run in zip(("eager", "compiled"), both(tf, function)):
            for variable, value in zip(variables, (1.0, 0, 3.0)):
                variable.assign(value)
            found[f"{name}, {kind}"] = run(), run(), numbers(tf, variables)
    return found


@parity(
    differs="keras.ops.map calls its function once for each row; TensorFlow's Keras once more, to see what it gives"
)
def a_map_that_assigns(tf):
    """Eagerly and in a `function`."""
    v, x = tf.keras.Variable(np.float32(1.0)), tf.constant([1.0, 2.0, 3.0])

    def f(a):
        v.assign_add(a)
        return a * v.value

    return [run(x) for run in both(tf, lambda x: tf.keras.ops.map(f, x))], numbers(tf, [v])


@parity
def gradients_through_control_flow(tf):
    """With respect to an input, a Keras variable and a tf.Variable that are read in it."""
    ops = tf.keras.ops
    v, u = tf.keras.Variable(np.float32(1.5)), tf.Variable(3.0)

    def stepped(i, a):
        v.assign_add(1.0)
        return i + 1, a * v.value * u

    functions = [
        lambda x: ops.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * v.value * x * u), (tf.constant(0), x))[1],
        lambda x: ops.while_loop(lambda i, a: i < 3, stepped, (tf.constant(0), x))[1],
        lambda x: ops.fori_loop(0, 3, lambda i, a: a * v.value + u * x, x),
        lambda x: ops.fori_loop(0, ops.cast(x[1], "int32"), lambda i, a: a * v.value + u * x, x),
        lambda x: ops.cond(x[0] > 0, lambda: x * v.value * x * u, lambda: x * u * v),
        lambda x: ops.switch(ops.cast(x[0], "int32"), [lambda: x * v.value * u, lambda: x * u * v * v]),
        lambda x: ops.scan(lambda c, a: (c * a * v.value, c + a * u), ops.sum(x), x)[1],
        lambda x: ops.map(lambda a: a * a * v.value * u, x),
        lambda x: ops.vectorized_map(lambda a: a * a * v.value * u, x),
    ]
    found = []
    for f in functions:

        def step(x, f=f):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f(x))
            return tape.gradient(y, [x, v, u])

        for run in both(tf, step):
            v.assign(1.5)
            found.append(numbers(tf, run(tf.constant([1.0, 2.0, 3.0]))))
    return found


# ---- optimizers that branch -----------------------------------------------------------------------------------------


def regression(tf, optimizer):
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)])
    model.set_weights([np.full((2, 2), 0.5, "float32"), np.zeros(2, "float32")])
    model.compile(optimizer, "mse")
    return model


def by_hand(tf, model, compiled):
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - 1.0) ** 2)
            scaled = model.optimizer.scale_loss(loss)
        grads = tape.gradient(scaled, model.trainable_variables)
        model.optimizer.apply_gradients(zip(grads, model.trainable_variables))

    return tf.function(step) if compiled else step


@parity
def scaled_losses(tf):
    """The dynamic scale grows, shrinks at what is not finite, and growth and weights agree: by hand, compiled, in `fit`."""
    K, found = tf.keras.optimizers, []
    for make in (
        lambda: K.SGD(0.1),
        lambda: K.Adam(0.1),
        lambda: K.SGD(0.1, gradient_accumulation_steps=2),
    ):
        for how in ("eager", "compiled", "fit"):
            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(make(), initial_scale=8.0, dynamic_growth_steps=2)
            model = regression(tf, optimizer)
            step = by_hand(tf, model, how == "compiled")
            for factor in (1.0, 2.0, np.inf, 1.0, 0.5, 0.25, 3.0):
                x = np.full((3, 2), factor, "float32")
                if how == "fit":
                    model.fit(x, np.ones((3, 2)), batch_size=3, verbose=0)
                else:
                    step(tf.constant(x))
                state = optimizer.dynamic_scale, optimizer.step_counter, optimizer.iterations
                found.append([model.get_weights()[0], *numbers(tf, state)])
    return found


@parity
def mixed_precision_training(tf):
    """A half-precision model whose first scale is too large, in a compiled step with recomputation."""
    L = tf.keras.layers
    hidden = L.Dense(4, "relu", dtype="mixed_float16")
    model = tf.keras.Sequential([tf.keras.Input((2,)), hidden, L.Dense(1, dtype="float32")])
    built(model, draw(2, 2))
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01), dynamic_growth_steps=3)
    x, y = tf.constant(draw(8, 2) * 100), tf.constant(draw(8, 1))
    body = tf.recompute_grad(lambda x: hidden(x))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model.layers[-1](body(x)) - y) ** 2)
            scaled = optimizer.scale_loss(loss)
        grads = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    found = []
    for _ in range(8):
        step()
        found.append(float(optimizer.dynamic_scale.numpy()))
    return found


@parity
def accumulated_gradients(tf):
    """Every third step updates: eagerly, compiled and in `fit`."""
    found = []
    for how in ("eager", "compiled", "fit"):
        model = regression(tf, tf.keras.optimizers.Adam(0.1, gradient_accumulation_steps=3))
        step = by_hand(tf, model, how == "compiled")
        for factor in range(7):
            x = np.full((3, 2), factor, "float32")
            model.fit(x, np.ones((3, 2)), batch_size=3, verbose=0) if how == "fit" else step(tf.constant(x))
            found.append(model.get_weights())
    return found


@parity
def what_a_first_step_makes(tf):
    """A layer that is built, and a scale that is chosen, in the first call of a `function`: later calls see them as they are."""
    keras = importlib.import_module("keras")
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    calls = []

    @tf.function
    def f(x):
        calls.append(layer.built)
        return layer(x) * (2.0 if calls[-1] else 3.0)

    return [f(tf.ones((1, 2))) for _ in range(2)], calls, keras.__name__


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    return parity.outcomes(tmp_path_factory)


@needs_keras
@pytest.mark.parametrize("name", parity)
def test_gradients_of_keras(name, outcomes):
    parity.check(name, outcomes)


if __name__ == "__main__":
    parity.main(*sys.argv[1:])
