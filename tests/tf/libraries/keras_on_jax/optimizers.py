"""Every optimizer of Keras, on its variables and on ours, against Keras's own functional interface."""

from __future__ import annotations

import gc
import importlib
import inspect
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import close, draw, values

import tapejax as tf

keras = tf.keras
layers, losses, optimizers = keras.layers, keras.losses, keras.optimizers
plain = importlib.import_module("keras")

# Keras's Variable.numpy() has NumPy say so of Keras.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


ABSTRACT = {"Optimizer", "LossScaleOptimizer", "MultiOptimizer"}
OPTIMIZERS = {
    name: lambda kind=kind: kind(learning_rate=0.1)
    for name, kind in vars(plain.optimizers).items()
    if inspect.isclass(kind) and issubclass(kind, plain.Optimizer) and name not in ABSTRACT
}
schedules = optimizers.schedules
OPTIMIZERS |= {
    "SGD momentum": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "SGD clipnorm": lambda: optimizers.SGD(0.1, clipnorm=0.5),
    "Adam clipvalue": lambda: optimizers.Adam(0.1, clipvalue=0.5, amsgrad=True),
    "Adam global_clipnorm": lambda: optimizers.Adam(0.1, global_clipnorm=0.5),
    "AdamW weight_decay": lambda: optimizers.AdamW(0.1, weight_decay=0.05),
    "SGD use_ema": lambda: optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2),
    "Adam accumulating": lambda: optimizers.Adam(0.1, gradient_accumulation_steps=2),
    "Adam schedule": lambda: optimizers.Adam(schedules.ExponentialDecay(0.1, 2, 0.5)),
    "SGD piecewise": lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.05, 0.01])),
    "SGD scaled": lambda: optimizers.SGD(0.1, loss_scale_factor=4.0),
}
START = [draw(3, 2), draw(2)]
GRADIENTS = [[draw(3, 2) * k, draw(2) * np.float32(0.5 - k)] for k in range(1, 6)]


def reference(make):
    """Five steps in Keras's functional interface, which tapejax does not touch."""
    optimizer = make()
    variables = [plain.Variable(x) for x in START]
    optimizer.build(variables)
    state, parameters = [v._value for v in optimizer.variables], [v._value for v in variables]
    for grads in GRADIENTS:
        parameters, state = optimizer.stateless_apply(state, [jnp.asarray(g) for g in grads], parameters)
    return parameters, state


@pytest.mark.parametrize("method", ["apply_gradients", "apply"])
@pytest.mark.parametrize("kind", [keras.Variable, tf.Variable], ids=["keras.Variable", "tf.Variable"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name, kind, method):
    optimizer, variables = OPTIMIZERS[name](), [kind(x) for x in START]
    for i, grads in enumerate(GRADIENTS):
        grads = [tf.constant(g) if i % 2 else g for g in grads]
        if method == "apply_gradients":
            result = optimizer.apply_gradients(zip([tf.constant(g) for g in grads], variables))
            assert result is optimizer._iterations
        else:
            optimizer.apply([jnp.asarray(g) for g in grads], variables if i == 0 else None)
    parameters, state = reference(OPTIMIZERS[name])
    close(values(variables), parameters)
    close(values(optimizer.variables), state)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_training_under_the_tape(name):
    """The whole loop: the model learns, and goes where the functional one goes."""
    x, true = draw(32, 3), draw(32, 3) @ np.array([[1.0], [-2.0], [0.5]], "float32")
    model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(1)])
    model(x)
    optimizer, twin = getattr(optimizers, name)(0.05), getattr(optimizers, name)(0.05)
    twin.build(model.trainable_variables)
    parameters = [v._value for v in model.trainable_variables]
    state = [v._value for v in twin.variables]
    loss_of = jax.value_and_grad(lambda p: jnp.mean((model.stateless_call(p, [], jnp.asarray(x))[0] - true) ** 2))
    for _ in range(8):
        with tf.GradientTape() as tape:
            loss = losses.MeanSquaredError()(true, model(x))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        want, slopes = loss_of(parameters)
        parameters, state = twin.stateless_apply(state, slopes, parameters)
        assert loss.numpy() == pytest.approx(float(want), rel=1e-3)
    close(values(model.trainable_variables), parameters, rtol=1e-3, atol=1e-4)


def test_settings_that_change_between_steps():
    v = keras.Variable(1.0)
    sgd = optimizers.SGD(0.1)
    sgd.apply([jnp.array(1.0)], [v])
    sgd.learning_rate = 0.5
    sgd.apply([jnp.array(1.0)], [v])
    assert v.numpy() == pytest.approx(0.4)
    sgd.clipvalue = 0.1  # a number, not a variable
    sgd.apply([jnp.array(1.0)], [v])
    assert v.numpy() == pytest.approx(0.35)
    v.assign(2.0)
    sgd.apply([jnp.array(0.0)], [v])
    assert v.numpy() == 2.0


def test_optimizers_with_python_in_them():
    """What looks at values runs as it is: a schedule of the user's, an update of his own."""

    class Warmup(schedules.LearningRateSchedule):
        def __call__(self, step):
            return 0.1 if step < 2 else tf.constant(0.01)

    class Mine(keras.optimizers.Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            seen.append(float(tf.reduce_sum(gradient)))
            self.assign_sub(variable, tf.sign(gradient) * learning_rate)

    seen = []
    for optimizer in (optimizers.SGD(Warmup()), optimizers.SGD(lambda: 0.1), Mine(learning_rate=0.1)):
        v = tf.Variable([1.0, 2.0])
        for _ in range(3):
            optimizer.apply_gradients([(tf.constant([1.0, 1.0]), v)])
        assert v.numpy()[0] == pytest.approx(
            1.0 - (0.21 if isinstance(optimizer._learning_rate, Warmup) else 0.3), rel=1e-5
        )
    assert seen == [2.0] * 3


def test_constraints_after_a_step():
    dense = layers.Dense(2, kernel_constraint="non_neg", bias_constraint=lambda w: tf.clip_by_value(w, -0.1, 0.1))
    dense.build((None, 2))
    optimizers.SGD(1.0).apply_gradients(zip([tf.ones((2, 2)) * 5, tf.ones(2)], dense.trainable_variables))
    assert (dense.kernel.numpy() == 0).all()
    np.testing.assert_allclose(dense.bias.numpy(), -0.1)


def test_none_gradients_are_reported():
    dense, ours = layers.Dense(2, name="d"), tf.Variable(1.0, name="mine")
    dense.build((None, 2))
    variables = [*dense.trainable_variables, ours]
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(dense.kernel * 2.0)
    grads = tape.gradient(y, variables)
    with pytest.warns(
        UserWarning, match=r"Gradients do not exist for variables \['d/bias', 'mine'\].*tape.explain"
    ) as caught:
        optimizers.Adam().apply_gradients(zip(grads, variables))
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="No gradients provided for any variable.*tape.explain"):
        optimizers.Adam().apply_gradients([(None, ours)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizers.Adam().apply_gradients([(grads[0], dense.kernel)])


def test_an_optimizer_refuses_variables_it_does_not_know():
    adam = optimizers.Adam()
    adam.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
    with pytest.raises(ValueError, match="Unknown variable|cannot"):
        adam.apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])


def test_an_optimizer_that_is_gone_leaves_nothing():
    """What is kept of its update keeps neither it nor the variables alive."""

    def train():
        v, adam = tf.Variable([1.0, 2.0]), optimizers.Adam()
        for _ in range(3):
            adam.apply_gradients([(tf.constant([1.0, 1.0]), v)])
        return weakref.ref(adam), weakref.ref(v), weakref.ref(adam.variables[-1])

    gone = train()
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3


def test_loss_scale_optimizer():
    v = keras.Variable(1.0)
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), initial_scale=8.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(v * 3.0)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    assert v.numpy() == pytest.approx(1.0 - 2 * 0.3)


def test_an_optimizer_in_a_process_with_64_bits():
    with jax.enable_x64(True):
        v = tf.Variable(1.0)
        adam = optimizers.Adam(0.1)
        for _ in range(2):
            adam.apply_gradients([(tf.constant(1.0), v)])
        assert v.dtype == tf.float32 and v.numpy() == pytest.approx(0.8, rel=1e-4)
        dense = layers.Dense(2)
        with tf.GradientTape() as tape:
            y = dense(np.ones((1, 2)))
        assert y.dtype == tf.float32 and dense.kernel.dtype == "float32"
        assert tape.gradient(y, dense.kernel).dtype == tf.float32
        adam = optimizers.Adam(0.1)
        adam.apply_gradients(zip([tf.ones((2, 2)), tf.ones(2)], dense.trainable_variables))
        assert dense.kernel._value.dtype == np.float32 == adam.variables[3]._value.dtype
        assert keras.backend.floatx() == "float32"


def test_the_benchmark_computes_what_keras_computes():
    from benchmarks.workloads import WORKLOADS

    ours, theirs = WORKLOADS["keras"].taped(tf), WORKLOADS["keras"].functional(jax.jit)
    for i in range(3):
        (loss, gradients), (expected, expected_gradients) = ours(i), theirs(i)
        close([loss, *gradients], [expected, *expected_gradients], rtol=1e-3)
