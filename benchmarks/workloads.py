"""What is timed.

A workload has two faces. ``taped(tf)`` is a program in TensorFlow's spelling; the same lines run under TensorFlow and
under tapejax. ``functional(jit)`` is what a JAX user would write by hand, compiled or (``jit`` does nothing) not. Some
have a third, in ``torch_workloads.py``. All return a function ``step(i)`` that does step number ``i`` forward and backward
and returns the loss and the gradients. All systems start from the same numbers, drawn by NumPy, and must return the same
loss.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Step = Callable[[int], tuple[Any, Any]]


@dataclass(frozen=True)
class Target:
    """``tapejax`` may take at most ``limit`` times what ``system`` takes, and ``plus`` milliseconds."""

    system: str
    limit: float
    plus: float = 0.0


@dataclass(frozen=True)
class Workload:
    """A named pair of programs; ``tapejax`` is what tapejax runs if not ``taped``."""

    title: str
    taped: Callable[[Any], Step]
    functional: Callable[[Callable], Step]
    tapejax: Callable[[Any], Step] | None = None
    targets: tuple[Target, ...] = ()
    first: tuple[Target, ...] = ()  # the same for the first step, which compiles
    slowest_step: float | None = None  # seconds that no step of tapejax may exceed, the first included
    without: frozenset[str] = field(default=frozenset())  # systems for which it means nothing
    together: int = 1  # steps until somebody waits for a result: a training loop looks at its loss now and then
    memory: Target | None = None  # the same for the peak of memory


# ---- a multilayer perceptron


def mlp_data(batch: int, width: int, layers: int = 4):
    rng = np.random.default_rng(0)

    def draw(*shape: int):
        return rng.normal(0, 1 / np.sqrt(shape[0]), shape).astype("float32")

    x, y = draw(batch, width), draw(batch, width)
    return x, y, [(draw(width, width), np.zeros(width, "float32")) for _ in range(layers)]


def taped_mlp(batch: int, width: int, update: bool = False) -> Callable[[Any], Step]:
    """The loss and its gradients; with ``update`` a whole training step."""

    def build(tf):
        x, y, parameters = mlp_data(batch, width)
        x, y = tf.constant(x), tf.constant(y)
        layers = [(tf.Variable(w), tf.Variable(b)) for w, b in parameters]
        variables = [variable for layer in layers for variable in layer]

        def step(i):
            with tf.GradientTape() as tape:
                h = x
                for w, b in layers[:-1]:
                    h = tf.nn.relu(tf.matmul(h, w) + b)
                w, b = layers[-1]
                loss = tf.reduce_mean(tf.square(tf.matmul(h, w) + b - y))
            gradients = tape.gradient(loss, variables)
            if update:
                for variable, gradient in zip(variables, gradients, strict=True):
                    variable.assign_sub(0.01 * gradient)
            return loss, gradients

        return step

    return build


def mlp_loss(parameters, x, y):
    import jax
    import jax.numpy as jnp

    h = x
    for w, b in parameters[:-1]:
        h = jax.nn.relu(h @ w + b)
    w, b = parameters[-1]
    return jnp.mean(jnp.square(h @ w + b - y))


def functional_mlp(batch: int, width: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax

        x, y, parameters = jax.tree.map(jax.numpy.asarray, mlp_data(batch, width))
        value_and_grad = jit(jax.value_and_grad(mlp_loss))
        return lambda i: value_and_grad(parameters, x, y)

    return build


def jnp_mlp_in_a_tape(batch: int, width: int, jitted: bool = False) -> Callable[[Any], Step]:
    """The hand-written JAX loss, as it is or `jitted`, under tapejax's tape."""

    def build(tapejax):
        import jax

        x, y, parameters = jax.tree.map(jax.numpy.asarray, mlp_data(batch, width))
        loss_of = jax.jit(mlp_loss) if jitted else mlp_loss

        def step(i):
            with tapejax.GradientTape() as tape:
                tape.watch(parameters)
                loss = loss_of(parameters, x, y)
            return loss, tape.gradient(loss, parameters)

        return step

    return build


# ---- the same with its update


def functional_training(batch: int, width: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax

        x, y, parameters = jax.tree.map(jax.numpy.asarray, mlp_data(batch, width))

        def update(parameters, x, y):
            loss, gradients = jax.value_and_grad(mlp_loss)(parameters, x, y)
            return loss, jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)

        update = jit(update)

        def step(i):
            nonlocal parameters
            loss, parameters = update(parameters, x, y)
            return loss, parameters

        return step

    return build


def compiled_training(batch: int, width: int) -> Callable[[Any], Step]:
    """The whole training step as one ``function``."""

    def build(tf):
        step = taped_mlp(batch, width, update=True)(tf)
        compiled = tf.function(lambda: step(0)[0])

        def run(i):
            loss = compiled()
            return loss, [loss]

        return run

    return build


# ---- a chain of scalar operations


def taped_chain(operations: int) -> Callable[[Any], Step]:
    def build(tf):
        x = tf.Variable(0.5)

        def step(i):
            with tf.GradientTape() as tape:
                y = x
                for _ in range(operations // 2):
                    y = tf.sin(y) * 1.01
            return y, [tape.gradient(y, x)]

        return step

    return build


def functional_chain(operations: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax
        import jax.numpy as jnp

        def f(x):
            for _ in range(operations // 2):
                x = jnp.sin(x) * 1.01
            return x

        value_and_grad, x = jit(jax.value_and_grad(f)), jnp.float32(0.5)
        return lambda i: value_and_grad(x)

    return build


# ---- a program that is another one at each step


def words(i: int) -> list[str]:
    """The operations of step ``i``: 20 to 30 of a vocabulary of eight, drawn at random but always the same."""
    rng = random.Random(i)
    return rng.choices(["matmul", "tanh", "sin", "relu", "add", "multiply", "transpose", "mean"], k=rng.randint(20, 30))


def changing_data():
    rng = np.random.default_rng(0)
    return rng.normal(0, 1, (32, 32)).astype("float32"), rng.normal(0, 0.2, (32, 32)).astype("float32")


def taped_changing(tf) -> Step:
    x, w = changing_data()
    x, w = tf.constant(x), tf.Variable(w)
    vocabulary = {
        "matmul": lambda h: tf.matmul(h, w),
        "tanh": tf.tanh,
        "sin": tf.sin,
        "relu": tf.nn.relu,
        "add": lambda h: h + w,
        "multiply": lambda h: h * w,
        "transpose": tf.transpose,
        "mean": lambda h: h - tf.reduce_mean(h, axis=0),
    }

    def step(i):
        with tf.GradientTape() as tape:
            h = x
            for word in words(i):
                h = vocabulary[word](h)
            loss = tf.reduce_sum(h + w)
        return loss, [tape.gradient(loss, w)]

    return step


def functional_changing(jit) -> Step:
    import jax
    import jax.numpy as jnp

    x, w = map(jnp.asarray, changing_data())
    vocabulary = {
        "matmul": lambda h, w: h @ w,
        "tanh": lambda h, w: jnp.tanh(h),
        "sin": lambda h, w: jnp.sin(h),
        "relu": lambda h, w: jax.nn.relu(h),
        "add": lambda h, w: h + w,
        "multiply": lambda h, w: h * w,
        "transpose": lambda h, w: h.T,
        "mean": lambda h, w: h - h.mean(axis=0),
    }

    def step(i):
        def loss(w):
            h = x
            for word in words(i):
                h = vocabulary[word](h, w)
            return jnp.sum(h + w)

        return jit(jax.value_and_grad(loss))(w)

    return step


# ---- an unrolled recurrent network


def rnn_data(steps: int, batch: int = 8, width: int = 32):
    rng = np.random.default_rng(0)
    inputs = rng.normal(0, 1, (steps, batch, width)).astype("float32")
    u, v = rng.normal(0, 0.5 / np.sqrt(width), (2, width, width)).astype("float32")
    return inputs, u, v, np.zeros(width, "float32"), np.zeros((batch, width), "float32")


def taped_rnn(steps: int) -> Callable[[Any], Step]:
    def build(tf):
        inputs, u, v, b, start = rnn_data(steps)
        inputs, start = [tf.constant(x) for x in inputs], tf.constant(start)
        u, v, b = tf.Variable(u), tf.Variable(v), tf.Variable(b)

        def step(i):
            with tf.GradientTape() as tape:
                state = start
                for x in inputs:
                    state = tf.tanh(tf.matmul(x, u) + tf.matmul(state, v) + b)
                loss = tf.reduce_mean(tf.square(state))
            return loss, tape.gradient(loss, [u, v, b])

        return step

    return build


def functional_rnn(steps: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax
        import jax.numpy as jnp

        inputs, u, v, b, start = map(jnp.asarray, rnn_data(steps))
        inputs = list(inputs)

        def loss(parameters, inputs, state):
            u, v, b = parameters
            for x in inputs:
                state = jnp.tanh(x @ u + state @ v + b)
            return jnp.mean(jnp.square(state))

        value_and_grad = jit(jax.value_and_grad(loss))
        return lambda i: value_and_grad((u, v, b), inputs, start)

    return build


# ---- Jacobians


def layer_data(batch: int, width: int, layers: int):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (batch, width)).astype("float32")
    return x, list(rng.normal(0, 1 / np.sqrt(width), (layers, width, width)).astype("float32"))


def taped_jacobian(batch: int, width: int) -> Callable[[Any], Step]:
    """A layer's output by its kernel."""

    def build(tf):
        x, (kernel,) = layer_data(batch, width, layers=1)
        x, kernel = tf.constant(x), tf.Variable(kernel)

        def step(i):
            with tf.GradientTape() as tape:
                y = tf.nn.relu(tf.matmul(x, kernel))
            return tf.reduce_sum(y), [tape.jacobian(y, kernel)]

        return step

    return build


def functional_jacobian(batch: int, width: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax

        x, (kernel,) = jax.tree.map(jax.numpy.asarray, layer_data(batch, width, layers=1))

        def layer(kernel, x):
            y = jax.nn.relu(x @ kernel)
            return y, y.sum()

        jacobian = jit(jax.jacrev(layer, has_aux=True))

        def step(i):
            rows, loss = jacobian(kernel, x)
            return loss, [rows]

        return step

    return build


def taped_batch_jacobian(batch: int, width: int) -> Callable[[Any], Step]:
    """Two layers' output by their input, example by example."""

    def build(tf):
        x, (first, second) = layer_data(batch, width, layers=2)
        x, first, second = tf.constant(x), tf.Variable(first), tf.Variable(second)

        def step(i):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.nn.elu(tf.matmul(tf.nn.elu(tf.matmul(x, first)), second))
            return tf.reduce_sum(y), [tape.batch_jacobian(y, x)]

        return step

    return build


def functional_batch_jacobian(batch: int, width: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax

        x, (first, second) = jax.tree.map(jax.numpy.asarray, layer_data(batch, width, layers=2))

        def layers(x, first, second):
            y = jax.nn.elu(jax.nn.elu(x @ first) @ second)
            return y, y.sum()

        jacobian = jit(jax.vmap(jax.jacrev(layers, has_aux=True), (0, None, None)))
        total = jit(jax.numpy.sum)

        def step(i):
            rows, sums = jacobian(x, first, second)
            return total(sums), [rows]

        return step

    return build


def taped_hessian(batch: int, width: int) -> Callable[[Any], Step]:
    """A loss by its kernel, twice."""

    def build(tf):
        x, (kernel,) = layer_data(batch, width, layers=1)
        x, kernel = tf.constant(x), tf.Variable(kernel)

        def step(i):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as inner:
                    loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, kernel))))
                slope = inner.gradient(loss, kernel)
            return loss, [outer.jacobian(slope, kernel)]

        return step

    return build


def functional_hessian(batch: int, width: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax
        import jax.numpy as jnp

        x, (kernel,) = jax.tree.map(jnp.asarray, layer_data(batch, width, layers=1))

        def slope(kernel, x):
            loss, gradient = jax.value_and_grad(lambda k: jnp.mean(jnp.square(jnp.tanh(x @ k))))(kernel)
            return gradient, loss

        hessian = jit(jax.jacfwd(slope, has_aux=True))

        def step(i):
            matrix, loss = hessian(kernel, x)
            return loss, [matrix]

        return step

    return build


# ---- one operation, many times


REPEATED = 1000  # so that milliseconds a step are microseconds an operation


def square_data():
    return np.random.default_rng(0).normal(0, 1, (32, 32)).astype("float32")


def taped_operation(number: bool) -> Callable[[Any], Step]:
    """``x + y`` with tensors, or ``x * 2.0``, recorded."""

    def build(tf):
        x, y = tf.constant(square_data()), tf.constant(square_data())

        def step(i):
            with tf.GradientTape() as tape:
                tape.watch(x)
                for _ in range(REPEATED):
                    z = x * 2.0 if number else x + y
            return tf.reduce_sum(z), [z]

        return step

    return build


def functional_operation(number: bool) -> Callable[[Callable], Step]:
    def build(jit):
        import jax
        import jax.numpy as jnp

        x, y = jnp.asarray(square_data()), jnp.asarray(square_data())
        operands = (x,) if number else (x, y)
        call = jit(lambda x: x * 2.0) if number else jit(lambda x, y: x + y)
        total = jax.jit(jnp.sum)

        def step(i):
            for _ in range(REPEATED):
                z = call(*operands)
            return total(z), [z]

        return step

    return build


# ---- a deep network, whose memory counts


def deep_data(batch: int, width: int, layers: int):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (batch, width)).astype("float32")
    return x, [rng.normal(0, 1 / np.sqrt(width), (width, width)).astype("float32") for _ in range(layers)]


def taped_deep(batch: int, width: int, layers: int) -> Callable[[Any], Step]:
    def build(tf):
        x, weights = deep_data(batch, width, layers)
        x, weights = tf.constant(x), [tf.Variable(w) for w in weights]
        biases = [tf.Variable(np.zeros(width, "float32")) for _ in weights]

        def step(i):
            with tf.GradientTape() as tape:
                h = x
                for w, b in zip(weights, biases, strict=True):
                    h = tf.nn.gelu(tf.matmul(h, w) + b, approximate=True)
                loss = tf.reduce_mean(tf.square(h))
            return loss, tape.gradient(loss, [x for layer in zip(weights, biases, strict=True) for x in layer])

        return step

    return build


def functional_deep(batch: int, width: int, layers: int) -> Callable[[Callable], Step]:
    def build(jit):
        import jax
        import jax.numpy as jnp

        x, weights = deep_data(batch, width, layers)
        x, weights = jnp.asarray(x), [jnp.asarray(w) for w in weights]

        def loss(parameters, x):
            for w, b in parameters:
                x = jax.nn.gelu(x @ w + b)
            return jnp.mean(jnp.square(x))

        parameters = [(w, jnp.zeros(width, "float32")) for w in weights]
        value_and_grad = jit(jax.value_and_grad(loss))
        return lambda i: value_and_grad(parameters, x)

    return build


# ---- a training step of Keras


def keras_data(batch: int, width: int):
    x, _, parameters = mlp_data(batch, width)
    weights = [w for layer in parameters for w in layer]
    labels = np.random.default_rng(1).integers(0, width, batch).astype("int32")
    return x, labels, weights


def taped_keras(batch: int, width: int) -> Callable[[Any], Step]:
    """A whole step, with Adam. Keras runs on the system that is measured."""

    def build(tf):
        x, labels, weights = keras_data(batch, width)
        x, labels = tf.constant(x), tf.constant(labels)
        keras = tf.keras
        hidden = [keras.layers.Dense(width, activation="relu") for _ in range(len(weights) // 2 - 1)]
        model = keras.Sequential([*hidden, keras.layers.Dense(width)])
        model(x)
        model.set_weights(weights)
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(1e-3)

        def step(i):
            with tf.GradientTape() as tape:
                loss = loss_fn(labels, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss, gradients

        return step

    return build


def functional_keras(batch: int, width: int) -> Callable[[Callable], Step]:
    """The same model and optimizer in Keras's own functional interface, the way to train by hand on JAX."""

    def build(jit):
        import os

        os.environ["KERAS_BACKEND"] = "jax"
        import jax
        import keras

        x, labels, weights = keras_data(batch, width)
        x, labels = jax.numpy.asarray(x), jax.numpy.asarray(labels)
        hidden = [keras.layers.Dense(width, activation="relu") for _ in range(len(weights) // 2 - 1)]
        model = keras.Sequential([*hidden, keras.layers.Dense(width)])
        model(x)
        model.set_weights(weights)
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = keras.optimizers.Adam(1e-3)
        optimizer.build(model.trainable_variables)
        state = [v.value for v in model.trainable_variables], [v.value for v in optimizer.variables]

        def update(parameters, moments):
            def loss(parameters):
                return loss_fn(labels, model.stateless_call(parameters, [], x, training=True)[0])

            value, gradients = jax.value_and_grad(loss)(parameters)
            return value, gradients, optimizer.stateless_apply(moments, gradients, parameters)

        update = jit(update)

        def step(i):
            nonlocal state
            loss, gradients, state = update(*state)
            return loss, gradients

        return step

    return build


SMALL, LARGE = (32, 64), (256, 1024)
# Of the derivatives: by hand with jax.jit, in TensorFlow with its eager tape, and the first call, which compiles.
DERIVATIVES = (Target("jax.jit", 2, plus=0.4), Target("tensorflow", 1 / 50))
FIRST_DERIVATIVE = (Target("tensorflow", 1.5),)
FIRST = (Target("jax.jit", 1.5),)
EAGER_ONLY = frozenset({"tf.function", "jax.grad"})

# ---- convolutions


def convolutions_data():
    rng = np.random.default_rng(0)

    def draw(*shape: int):
        return rng.normal(0, 0.1, shape).astype("float32")

    return (
        draw(16, 14, 14, 32),
        draw(3, 3, 32, 1),
        draw(1, 1, 32, 48),
        draw(3, 3, 16, 48),
        draw(4, 6, 6, 6, 8),
        draw(3, 3, 3, 4, 8),
    )


def taped_convolutions(tf) -> Step:
    """A depthwise and a transposed convolution in turn, and a transposed one along three axes: all with strides."""
    x, *filters, volume, cube = convolutions_data()
    x, volume = tf.constant(x), tf.constant(volume)
    variables = [tf.Variable(w) for w in (*filters, cube)]

    def step(i):
        with tf.GradientTape() as tape:
            depthwise, pointwise, up, of_volume = variables
            h = tf.nn.relu(tf.nn.separable_conv2d(x, depthwise, pointwise, [1, 2, 2, 1], "SAME"))
            y = tf.nn.conv2d_transpose(h, up, [16, 28, 28, 16], 4, "SAME")
            z = tf.nn.conv3d_transpose(volume, of_volume, [4, 12, 12, 12, 4], 2, "SAME")
            loss = tf.reduce_mean(tf.square(y)) + tf.reduce_mean(tf.square(z))
        return loss, tape.gradient(loss, variables)

    return step


def functional_convolutions(jit) -> Step:
    import jax
    import jax.numpy as jnp
    from jax import lax

    x, depthwise, pointwise, up, volume, cube = convolutions_data()

    def transposed(x, w, shape, stride, axes):
        layout = (f"N{axes}C", f"{axes}IO", f"N{axes}C")

        def forward(y):
            return lax.conv_general_dilated(y, w, (stride,) * len(axes), "SAME", dimension_numbers=layout)

        return jax.linear_transpose(forward, jax.ShapeDtypeStruct(shape, "float32"))(x)[0]

    def loss_of(weights, x, volume):
        depthwise, pointwise, up, cube = weights
        layout = ("NHWC", "HWIO", "NHWC")
        h = lax.conv_general_dilated(
            x, depthwise.reshape(3, 3, 1, 32), (2, 2), "SAME", dimension_numbers=layout, feature_group_count=32
        )
        h = jax.nn.relu(lax.conv_general_dilated(h, pointwise, (1, 1), "VALID", dimension_numbers=layout))
        y = transposed(h, up, (16, 28, 28, 16), 4, "HW")
        z = transposed(volume, cube, (4, 12, 12, 12, 4), 2, "DHW")
        return jnp.mean(jnp.square(y)) + jnp.mean(jnp.square(z))

    value_and_grad = jit(jax.value_and_grad(loss_of))
    arrays = [jnp.asarray(w) for w in (depthwise, pointwise, up, cube)], jnp.asarray(x), jnp.asarray(volume)
    return lambda i: value_and_grad(*arrays)


WORKLOADS = {
    "operation": Workload(
        f"{REPEATED} times x + y on a tape",
        taped_operation(number=False),
        functional_operation(number=False),
        targets=(Target("jax.jit", 1.35),),
        without=EAGER_ONLY,
    ),
    "number": Workload(
        f"{REPEATED} times x * 2.0 on a tape",
        taped_operation(number=True),
        functional_operation(number=True),
        targets=(Target("jax.jit", 1.5),),
        without=EAGER_ONLY,
    ),
    "small-mlp": Workload(
        "4-layer MLP, batch 32, width 64",
        taped_mlp(*SMALL),
        functional_mlp(*SMALL),
        targets=(Target("torch", 1), Target("tensorflow", 1 / 10)),
        first=FIRST,
    ),
    "jnp-mlp": Workload(
        "the same MLP in plain jnp inside a tape",
        taped_mlp(*SMALL),
        functional_mlp(*SMALL),
        tapejax=jnp_mlp_in_a_tape(*SMALL),
        targets=(Target("tensorflow", 1 / 3),),
        first=FIRST,
    ),
    "train-mlp": Workload(
        "the same MLP with its update: a training step",
        taped_mlp(*SMALL, update=True),
        functional_training(*SMALL),
        first=FIRST,
    ),
    "function": Workload(
        "the same training step as one tf.function, 20 steps together",
        taped_mlp(*SMALL, update=True),
        functional_training(*SMALL),
        tapejax=compiled_training(*SMALL),
        targets=(Target("jax.jit", 1.2), Target("tf.function", 1)),
        first=FIRST,
        together=20,
    ),
    "function-waited": Workload(
        "the same tf.function, waited for after each step",
        taped_mlp(*SMALL, update=True),
        functional_training(*SMALL),
        tapejax=compiled_training(*SMALL),
        targets=(Target("jax.jit", 1.15, plus=0.008),),
    ),
    "keras": Workload(
        "Keras: a training step of the same MLP with Adam",
        taped_keras(*SMALL),
        functional_keras(*SMALL),
        targets=(Target("tensorflow", 1 / 2),),
    ),
    "convolutions": Workload(
        "depthwise and transposed convolutions along two and three axes",
        taped_convolutions,
        functional_convolutions,
        targets=(Target("jax.jit", 1.2), Target("tensorflow", 3)),
    ),
    "large-mlp": Workload(
        "4-layer MLP, batch 256, width 1024",
        taped_mlp(*LARGE),
        functional_mlp(*LARGE),
        targets=(Target("jax.jit", 1.2),),
    ),
    "deep-mlp": Workload(
        "twelve layers of 1024 with GELU, batch 4096",
        taped_deep(4096, 1024, 12),
        functional_deep(4096, 1024, 12),
        memory=Target("torch", 1.1),
    ),
    "jitted-loss": Workload(
        "a tape around the same loss as one jax.jit",
        taped_mlp(256, 1024),
        functional_mlp(256, 1024),
        jnp_mlp_in_a_tape(256, 1024, jitted=True),
        targets=(Target("jax.jit", 1.08),),
    ),
    "chain": Workload(
        "chain of 400 scalar operations",
        taped_chain(400),
        functional_chain(400),
        targets=(Target("torch", 1.3),),
    ),
    "changing": Workload(
        "a structure that changes every step",
        taped_changing,
        functional_changing,
        targets=(Target("torch", 2), Target("tensorflow", 1 / 5)),
        without=frozenset({"tf.function"}),  # it would have to retrace and compile at every step, like jax.jit
    ),
    "rnn": Workload(
        "RNN, 300 steps unrolled",
        taped_rnn(300),
        functional_rnn(300),
        targets=(Target("torch", 0.6), Target("tensorflow", 1 / 6)),
        slowest_step=3.0,
    ),
    "jacobian": Workload(
        "jacobian of a (7, 20) layer by its (20, 20) kernel",
        taped_jacobian(7, 20),
        functional_jacobian(7, 20),
        targets=DERIVATIVES,
        first=FIRST_DERIVATIVE,
    ),
    "batch-jacobian": Workload(
        "batch_jacobian of two layers: (32, 50, 50)",
        taped_batch_jacobian(32, 50),
        functional_batch_jacobian(32, 50),
        targets=DERIVATIVES,
        first=FIRST_DERIVATIVE,
    ),
    "hessian": Workload(
        "Hessian of a loss by 64 parameters",
        taped_hessian(32, 8),
        functional_hessian(32, 8),
        targets=DERIVATIVES,
        first=FIRST_DERIVATIVE,
    ),
}
ON_A_GPU = ("large-mlp", "deep-mlp", "jitted-loss", "function", "keras")  # elsewhere it only waits
