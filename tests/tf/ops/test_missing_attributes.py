"""Names that people type who come from PyTorch or NumPy: each is answered by what to write."""

import copy
import pickle

import pytest

import tapejax as tf

ASKED = {
    "tensor": ["backward", "grad", "detach", "requires_grad", "T", "sum", "astype"],
    "variable": ["backward", "grad", "detach"],
    "tape": ["backward", "hessian", "hvp", "grad", "jvp"],
}
MEANT = {
    "backward": "gradient(loss, variables)",
    "grad": "tape.gradient(",
    "detach": "tf.stop_gradient",
    "requires_grad": "tape.watch",
    "T": "tf.transpose",
    "sum": "tf.reduce_sum",
    "astype": "tf.cast",
    "hessian": "outer.jacobian",
    "hvp": "acc.jvp",
    "jvp": "ForwardAccumulator",
}


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, names in ASKED.items() for name in names])
def test_what_to_write(kind, name):
    value = {"tensor": tf.constant([1.0]), "variable": tf.Variable([1.0]), "tape": tf.GradientTape()}[kind]
    with pytest.raises(AttributeError) as raised:
        getattr(value, name)
    assert MEANT[name] in str(raised.value) and raised.value.name == name and raised.value.obj is value
    assert not hasattr(value, name)


def test_no_grad():
    with pytest.raises(AttributeError, match="stop_recording"):
        tf.no_grad()


def test_the_hints_run():
    x, v = tf.constant([1.0, 2.0]), tf.constant([1.0, 0.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(x**3)
        g = tape.gradient(loss, x)
    assert outer.jacobian(g, x).numpy().tolist() == [[6.0, 0.0], [0.0, 12.0]]
    with tf.autodiff.ForwardAccumulator(x, v) as acc:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(x**3)
        g = tape.gradient(loss, x)
    assert acc.jvp(g).numpy().tolist() == [6.0, 0.0]


def test_copies_and_pickles_go_on_working():
    for value in (tf.constant([1.0]), tf.Variable([1.0])):
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert again.numpy().tolist() == [1.0]
