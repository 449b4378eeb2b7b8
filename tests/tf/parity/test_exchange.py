"""Tensors handed to other libraries, and tapes copied: what works, and which class of error what does not."""

import copy
import pickle

import numpy as np
from harness import error_of, parity


@parity
def test_dlpack(tf):
    values = [[1.0, 2.0], [], 3.0]
    values += [np.array([[1, 2]], "uint8"), np.array([True])]
    tensors = [tf.constant(x) for x in values]
    return [np.from_dlpack(x) for x in tensors], [tuple(map(int, x.__dlpack_device__())) for x in tensors]


@parity
def test_there_is_nothing_to_hand_over_in_a_function(tf):
    @tf.function
    def handed(x):
        return np.from_dlpack(x)

    return error_of(lambda: handed(tf.constant([1.0]))) is not None


@parity
def test_copies_of_a_tape(tf):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    fresh = copy.deepcopy(tf.GradientTape())
    with fresh:
        z = x * x
    refused = [error_of(lambda how=how: how(tape)) for how in (copy.deepcopy, pickle.dumps)]
    return copy.copy(tape).gradient(y, x), fresh.gradient(z, x), refused
