"""What a short program runs a few times is not compiled: kinds of operations that NumPy evaluates, and their gradients."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import trial
from tests.compiling import compiles

RNG = np.random.default_rng(0)


def drawn(*shape):
    return RNG.normal(size=shape).astype("float32")


def slopes(function, *values):
    variables = [tf.Variable(value) for value in values]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.abs(function(*variables)))
    return tape.gradient(loss, variables)


def scattered():
    table, at = tf.Variable(tf.zeros([7, 3])), tf.constant([[1], [5], [5]])
    table.scatter_nd_add(at, drawn(3, 3))
    table.scatter_nd_update([[0], [2]], drawn(2, 3))
    table.scatter_update(tf.IndexedSlices(drawn(2, 3), tf.constant([2, 4])))
    table[1:3].assign(drawn(2, 3))
    table[:, 0].assign(drawn(7))
    return slopes(lambda x, y: tf.tensor_scatter_nd_add(x, at, y), table, drawn(3, 3))


def half(dtype):
    def layer(x, w):
        h = tf.nn.gelu(tf.matmul(tf.cast(x, dtype), tf.cast(w, dtype)))
        return tf.cast(tf.nn.softmax(h - tf.reduce_mean(h, -1, keepdims=True)), tf.float32)

    return slopes(layer, drawn(5, 4), drawn(4, 3))


KINDS = {
    "scatter": scattered,
    "float16": lambda: half(tf.float16),
    "bfloat16": lambda: half(tf.bfloat16),
    "complex": lambda: slopes(
        lambda x: tf.math.log(tf.sin(tf.complex(x, x + 0.5))) * tf.sqrt(tf.complex(x, x)),
        np.linspace(0.5, 1.5, 6, dtype="f4"),
    ),
    "fourier": lambda: slopes(lambda x: tf.signal.irfft(tf.signal.rfft(x) * 2), drawn(3, 10)),
    "resize": lambda: slopes(lambda x: tf.image.resize(x, (9, 7), method="bicubic"), drawn(1, 5, 4, 2)),
    "convolution": lambda: slopes(lambda x, w: tf.nn.conv2d(x, w, 2, "SAME"), drawn(2, 6, 5, 3), drawn(3, 3, 3, 4)),
    "transposed": lambda: slopes(
        lambda x, w: tf.nn.conv2d_transpose(x, w, [1, 8, 6, 2], 2), drawn(1, 4, 3, 3), drawn(3, 3, 2, 3)
    ),
    "pool": lambda: slopes(lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), drawn(1, 7, 6, 2)),
    "dropout of float16": lambda: slopes(lambda x: tf.nn.dropout(tf.cast(x, tf.float16), 0.3), drawn(4, 3)),
    "embedding": lambda: slopes(lambda x: tf.nn.embedding_lookup(x, [[1, 2], [1, 0]]), drawn(4, 3)),
}


def compiled_by(kind):
    """The functions that are compiled where a program of that kind runs three times."""
    with compiles() as found:
        for _ in range(3):
            KINDS[kind]()
    return found


@functools.cache
def compiled():
    # in a process of its own: an operation that has run often, in other tests, is compiled for a new dtype at once
    here = "tests.execution.host.test_short_programs"
    program = (
        f"import json; from {here} import KINDS, compiled_by; print(json.dumps({{x: compiled_by(x) for x in KINDS}}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_compiled(kind, no_shadow):
    if not trial.enabled:
        pytest.skip("everything is compiled")
    assert not compiled()[kind]


def test_a_mask_as_an_index_of_an_update():
    "JAX takes one only as a value."
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_update(tf.IndexedSlices(tf.constant([7.0]), tf.constant([1])))
    v[tf.constant([True, False, True])].assign(tf.constant([5.0, 6.0]))
    np.testing.assert_array_equal(v.numpy(), [5.0, 7.0, 6.0])
