"""What `explain` says of what a Keras model computes outside of the tape."""

from __future__ import annotations

import numpy as np
import pytest

import tapejax as tf


def run(text, tmp_path):
    """The namespace of a program, which `explain` finds the lines of, and what that says of `y` and `x`."""
    file = tmp_path / "program.py"
    code = f"{text.strip()}\n\nreports = tape.explain(y, x)\n"
    file.write_text(code)
    space = {"tf": tf, "np": np}
    exec(compile(code, str(file), "exec"), space)
    return space, space["reports"][0]


PICTURE = """
net = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
net.compile("sgd", "mse")
x, label = tf.Variable(np.ones((1, 3), "float32")), np.zeros((1, 2), "float32")
def helper(q):
    return net.predict(q, verbose=0)
with tf.GradientTape(persistent=True) as tape:
    seen = tf.reduce_sum(np.asarray(net(x)))
"""


@pytest.mark.parametrize(
    "computed, method, line",
    [
        ("tf.reduce_mean(net.predict(x.numpy(), verbose=0))", "predict", 8),
        ("tf.reduce_mean(net.predict(x, verbose=0))", "predict", 8),
        ("tf.reduce_mean(net.predict_on_batch(x))", "predict_on_batch", 8),
        ("tf.constant(net.evaluate(x, label, verbose=0))", "evaluate", 8),
        ("tf.constant(net.test_on_batch(x, label))", "test_on_batch", 8),
        ("tf.constant(net.train_on_batch(x, label))", "train_on_batch", 8),
        ("tf.constant(net.fit(x, label, verbose=0).history['loss'])", "fit", 8),
        ("tf.reduce_mean(\n        net.predict(x, verbose=0)\n    )", "predict", 8),
        ("tf.reduce_mean(helper(x))", "predict", 5),
        ("net.evaluate(x, label, verbose=0)", "evaluate", 8),
        ("net.predict_on_batch(x)", "predict_on_batch", 8),
    ],
)
def test_what_keras_computes_outside_of_the_tape(computed, method, line, tmp_path):
    """The variables that such a method assigns, its metrics and the weights themselves, are not what the path goes through."""
    space, report = run(f"{PICTURE}    y = {computed}\n", tmp_path)
    (only,) = report.reasons
    assert f"was computed by {method}(), which runs outside of the tape" in only.message, report
    assert "model(x)" in only.remedy and only.line.number == line
    if report.state == "an error":
        with pytest.raises(TypeError):
            space["tape"].gradient(space["y"], space["x"])
    else:
        assert report.state == "None" and space["tape"].gradient(space["y"], space["x"]) is None


def test_what_numpy_computes_of_a_keras_model(tmp_path):
    _, report = run(f"{PICTURE}    y = tf.reduce_mean(np.asarray(net(x)))\n", tmp_path)
    (only,) = report.reasons
    assert "NumPy" in only.message and "np.asarray()" in only.remedy and only.line.number == 8
