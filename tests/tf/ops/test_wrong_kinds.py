"""What is said where a tensor of another kind is wanted: which argument, what came, and a cure that works."""

import re

import pytest

import tapejax as tf

F, N, M = tf.constant([1.0, 0.0]), tf.constant([1, 0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
B, Z, ROW = tf.constant([True, False]), tf.constant([1j, 2.0]), tf.constant([[0.0]])

# A call, the argument that is named, and the dtype that is advised.
CASES = {
    "one_hot": (lambda: tf.one_hot(F, 3), "indices", "int32"),
    "gather": (lambda: tf.gather(M, F), "indices", "int32"),
    "gather_nd": (lambda: tf.gather_nd(M, ROW), "indices", "int32"),
    "embedding_lookup": (lambda: tf.nn.embedding_lookup(M, F), "ids", "int32"),
    "sparse_softmax_cross_entropy_with_logits": (
        lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(F, M),
        "labels",
        "int32",
    ),
    "bitwise_and": (lambda: tf.bitwise.bitwise_and(F, F), "x", "int32"),
    "bitwise_or": (lambda: tf.bitwise.bitwise_or(N, F), "y", "int32"),
    "bitwise_xor": (lambda: tf.bitwise.bitwise_xor(N, 1.5), "y", "int32"),
    "invert": (lambda: tf.bitwise.invert(B), "x", "int32"),
    "logical_and": (lambda: tf.logical_and(F, B), "x", "bool"),
    "logical_or": (lambda: tf.logical_or(B, N), "y", "bool"),
    "logical_not": (lambda: tf.logical_not(F), "x", "bool"),
    "reduce_all": (lambda: tf.reduce_all(F), "input_tensor", "bool"),
    "where": (lambda: tf.where(F, 1.0, 2.0), "condition", "bool"),
    "segment_sum": (lambda: tf.math.segment_sum(M, F), "segment_ids", "int32"),
    "unsorted_segment_max": (lambda: tf.math.unsorted_segment_max(M, F, 2), "segment_ids", "int32"),
    "scatter_nd": (lambda: tf.scatter_nd(ROW, F[:1], [3]), "indices", "int32"),
    "tensor_scatter_nd_add": (lambda: tf.tensor_scatter_nd_add(F, ROW, F[:1]), "indices", "int32"),
    "dynamic_partition": (lambda: tf.dynamic_partition(F, F, 2), "partitions", "int32"),
    "in_top_k": (lambda: tf.math.in_top_k(F, M, 1), "targets", "int32"),
    "roll": (lambda: tf.roll(F, F, [0, 0]), "shift", "int32"),
    "ctc_loss": (lambda: tf.nn.ctc_loss(M, tf.ones([3, 2, 4]), N + 1, N + 2), "labels", "int32"),
    "sqrt": (lambda: tf.sqrt(N), "x", "float32"),
    "reduce_mean": (lambda: tf.reduce_mean(B), "input_tensor", "float32"),
    "softmax": (lambda: tf.nn.softmax(N), "logits", "float32"),
    "fft": (lambda: tf.signal.fft(F), "input", "complex64"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_cure(name):
    call, argument, dtype = CASES[name]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        call()
    assert re.search(rf"^{name}: {argument} must be .*got \w+\. Convert it first", str(error.value))
    assert f"tf.cast({argument}, tf.{dtype})" in str(error.value)
    assert dtype == "float32" or "float32)" not in str(error.value)


def test_complex_numbers_have_no_order():
    with pytest.raises(TypeError, match=r"tf.math.real\(x\), tf.math.imag\(x\) or tf.abs\(x\)"):
        tf.maximum(Z, Z)


@pytest.mark.parametrize(
    "argument, call",
    {
        "shape": lambda: tf.reshape(M, [4 / 2, 2]),
        "multiples": lambda: tf.tile(F, [2.0]),
        "paddings": lambda: tf.pad(F, [[1.0, 1.0]]),
        "k": lambda: tf.math.top_k(F, k=0.5),
        "axis": lambda: tf.reduce_sum(F, axis=0.0),
        "depth": lambda: tf.one_hot(N, 3.0),
        "num_or_size_splits": lambda: tf.split(M, 2.0),
        "num_segments": lambda: tf.math.unsorted_segment_sum(M, N, 2.0),
        "num_rows": lambda: tf.eye(3.0),
    }.items(),
)
def test_sizes_are_whole(argument, call):
    with pytest.raises(TypeError, match=rf"^{argument} must be made of integers, got .*//.*tf.int32"):
        call()


def test_dtypes_that_do_not_mix_name_the_operation_and_the_wider():
    for call in (lambda: F + N, lambda: N + F):
        with pytest.raises(TypeError, match=r"add was given tensors of dtype \w+ and \w+.*tf.cast\(x, tf.float32\)"):
            call()


STRINGS = {
    "add: y: ": lambda: tf.add(F, "1"),
    "multiply: x: ": lambda: "2" * F,
    "matmul: b: ": lambda: M @ "x",
    "matmul: a: ": lambda: tf.matmul("x", M),
    "sin: x: ": lambda: tf.sin("0.5"),
    "reduce_all: input_tensor: ": lambda: tf.reduce_all("x"),
    "reduce_sum: input_tensor: ": lambda: tf.reduce_sum("x"),
    "matvec: b: ": lambda: tf.linalg.matvec(M, "x"),
    "softmax: logits: ": lambda: tf.nn.softmax("x"),
}


@pytest.mark.parametrize("start", STRINGS)
def test_a_string_is_refused_by_the_name_of_its_argument(start):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        STRINGS[start]()
    assert str(raised.value).startswith(f"{start}strings cannot be converted to a tensor")
