"""`tf.train.Checkpoint` of Keras models, optimizers and metrics; run by `tests/tf/libraries/test_keras.py`."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import tapejax as tf

pytest.importorskip("orbax.checkpoint")

X = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")


def sequential():
    layers = keras.layers
    return keras.Sequential(
        [layers.Dense(4, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.2), layers.Dense(1)]
    )


def functional():
    inputs = keras.Input((3,))
    x = keras.layers.Dense(4, activation="tanh")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.concatenate([x, inputs])))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.blocks = [keras.layers.Dense(4), keras.layers.Dense(4)]
        self.recurrent = keras.layers.RNN([keras.layers.SimpleRNNCell(3), keras.layers.SimpleRNNCell(2)])
        self.scale = tf.Variable(1.0)  # of ours, in a model of theirs

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return self.recurrent(x[:, None, :]) * self.scale


def step(model, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(X, training=True) - 1.0) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return float(loss)


def trained(make):
    keras.utils.set_random_seed(1)
    model, optimizer = make(), keras.optimizers.Adam(0.05)
    for _ in range(2):
        step(model, optimizer)
    return model, optimizer


def values(*objects):
    return [np.asarray(v.value) for x in objects for v in x.variables]


@pytest.mark.parametrize(
    "make, build_first", [(sequential, True), (sequential, False), (functional, False), (Subclassed, False)]
)
def test_training_goes_on_where_it_was(make, build_first, tmp_path):
    model, optimizer = trained(make)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")

    keras.utils.set_random_seed(2)
    again, its_optimizer = make(), keras.optimizers.Adam(0.05)
    if build_first:
        again(X)
        its_optimizer.build(again.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=again, optimizer=its_optimizer)
    status = checkpoint.restore(path)
    if build_first:
        status.assert_consumed()
    np.testing.assert_allclose(again(X), model(X), rtol=1e-6)
    for _ in range(2):
        np.testing.assert_allclose(step(again, its_optimizer), step(model, optimizer), rtol=1e-6)
    status.assert_consumed()
    for found, wanted in zip(values(again, its_optimizer), values(model, optimizer), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_our_variables_in_their_model(tmp_path):
    model = Subclassed()
    model.scale.assign(7.0)
    path = tf.train.Checkpoint(model).save(tmp_path / "ckpt")
    again = Subclassed()
    tf.train.Checkpoint(again).restore(path).expect_partial()
    assert float(again.scale) == 7.0


def test_one_weight_by_its_name(tmp_path):
    """As in TensorFlow's guide: objects made up on the spot stand for those that were saved."""

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.l1 = keras.layers.Dense(5)

        def call(self, x):
            return self.l1(x)

    net = Net()
    net(X)
    net.l1.bias.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    path = tf.train.Checkpoint(net=net).save(tmp_path / "ckpt")
    names = [name for name, _ in tf.train.list_variables(path)]
    assert names[:2] == ["net/l1/bias/.ATTRIBUTES/VARIABLE_VALUE", "net/l1/kernel/.ATTRIBUTES/VARIABLE_VALUE"]
    bias = tf.Variable(tf.zeros([5]))
    root = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=tf.train.Checkpoint(bias=bias)))
    status = root.restore(path)
    status.assert_existing_objects_matched().expect_partial()
    assert bias.numpy().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(AssertionError, match="net/l1/kernel"):
        status.assert_consumed()


def test_a_metric_and_a_variable(tmp_path):
    mean, variable = keras.metrics.Mean(), keras.Variable([1.0, 2.0])
    mean.update_state([1.0, 3.0])
    checkpoint = tf.train.Checkpoint(mean=mean, v=variable)
    path = checkpoint.save(tmp_path / "ckpt")
    mean.reset_state()
    variable.assign([0.0, 0.0])
    checkpoint.restore(path).assert_consumed()
    assert float(mean.result()) == 2.0 and np.asarray(variable.value).tolist() == [1.0, 2.0]


def test_a_model_of_other_shapes(tmp_path):
    path = tf.train.Checkpoint(model=trained(functional)[0]).save(tmp_path / "ckpt")
    inputs = keras.Input((3,))
    other = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(5)(inputs)))
    before = values(other)
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(3, 4\)"):
        tf.train.Checkpoint(model=other).restore(path)
    for found, wanted in zip(values(other), before):
        np.testing.assert_array_equal(found, wanted)


def test_in_a_function(tmp_path):
    """Restored before the first call, which creates the variables."""
    model, optimizer = trained(sequential)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    again, its_optimizer = sequential(), keras.optimizers.Adam(0.05)
    status = tf.train.Checkpoint(model=again, optimizer=its_optimizer).restore(path)

    @tf.function
    def compiled():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((again(X, training=True) - 1.0) ** 2)
        its_optimizer.apply_gradients(zip(tape.gradient(loss, again.trainable_variables), again.trainable_variables))
        return loss

    for _ in range(2):
        np.testing.assert_allclose(float(compiled()), step(model, optimizer), rtol=1e-5)
    status.assert_consumed()
