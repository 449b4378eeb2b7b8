"""Tensor, Variable, conversion, dtypes, shapes, nest: what they promise, without TensorFlow at hand."""

from __future__ import annotations

import collections
import copy
import gc
import pickle
import struct
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax import errors, nest
from tapejax.tape import dispatch
from tapejax.tf.values import conversion as values
from tapejax.tf.values import dtypes
from tapejax.tf.values.conversion import constant, convert_to_tensor, raw
from tapejax.tf.values.dtypes import TensorShape, as_dtype, float16, float32, int32
from tapejax.tf.values.operations import op, operands
from tapejax.tf.values.tensor import Tensor
from tapejax.tf.values.variable import Variable


def _mul(x, y):
    return x * y


def _split(x):
    return x[0], {"rest": x[1:]}


@pytest.fixture
def unwarned(monkeypatch):
    monkeypatch.setattr(dtypes, "_warned", False)


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(dtypes, "_warned", True)


# ---- text ------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "printed"),
    [
        (1.5, "shape=(), dtype=float32, numpy=1.5", "1.5, shape=(), dtype=float32"),
        (1 / 3, "shape=(), dtype=float32, numpy=0.3333333432674408", "0.33333334, shape=(), dtype=float32"),
        (3, "shape=(), dtype=int32, numpy=3", "3, shape=(), dtype=int32"),
        (True, "shape=(), dtype=bool, numpy=True", "True, shape=(), dtype=bool"),
        (
            [True, False],
            "shape=(2,), dtype=bool, numpy=array([ True, False])",
            "[ True False], shape=(2,), dtype=bool",
        ),
        ([], "shape=(0,), dtype=float32, numpy=array([], dtype=float32)", "[], shape=(0,), dtype=float32"),
        (
            [[1, 2], [3, 4]],
            "shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)",
            "\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32",
        ),
    ],
)
def test_text_of_tensors(value, text, printed):
    assert repr(constant(value)) == f"<tf.Tensor: {text}>"
    assert str(constant(value)) == f"tf.Tensor({printed})"


def test_text_of_variables():
    v = Variable([1.0, 2.0], name="w")
    assert repr(v) == str(v) == f"{v}"
    assert repr(v) == "<tf.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    assert repr(Variable(3.0)) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"
    with pytest.raises(TypeError):
        format(Variable(3.0), ".2f")


def test_format_of_tensors_is_that_of_their_numpy_value():
    assert f"{constant(2.5):.2f} {constant(3):03d} {constant([1.0, 2.0])}" == "2.50 003 [1. 2.]"
    with pytest.raises(TypeError):
        format(constant([1.0]), ".2f")


def test_text_under_a_trace():
    seen = []

    @jax.jit
    def f(x):
        seen.extend([repr(x), str(x), f"{x:.2f}"])
        return x

    f(constant([1.0, 2.0]))
    assert seen[0] == "<tf.Tensor: shape=(2,), dtype=float32, traced by JAX>"
    assert seen[1] == seen[2] == "tf.Tensor(<traced by JAX>, shape=(2,), dtype=float32)"


# ---- conversion ------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "float32"),
        (1, "int32"),
        (True, "bool"),
        (1j, "complex64"),
        ([1, 2.5], "float32"),
        ([1.5, True], "float32"),
        ([1, True], "int32"),
        ([], "float32"),
        (range(3), "int32"),
        (np.float32(1), "float32"),
        (np.ones(2, np.float16), "float16"),
        (np.array([1], np.uint8), "uint8"),
        ([np.float32(1.5), 2.0], "float32"),
        ([np.int64(3), 1], "int32"),
        ([2.0, np.float64(1.5)], "float32"),
        (TensorShape([2, 3]), "int32"),
        (jnp.ones(2, jnp.bfloat16), "bfloat16"),
    ],
)
@pytest.mark.parametrize("x64", [False, True])
def test_natural_dtypes(value, dtype, x64):
    with jax.enable_x64(x64):
        found = convert_to_tensor(value)
        assert found.dtype == ("complex128" if x64 and dtype == "complex64" else dtype)
        np.testing.assert_array_equal(found.numpy(), np.asarray(value))


def test_64_bits_with_x64():
    with jax.enable_x64(True):
        assert convert_to_tensor(np.ones(2)).dtype == "float64"
        assert convert_to_tensor([np.float64(1)]).dtype == "float64"
        assert convert_to_tensor(2**40).dtype == "int64"
        assert convert_to_tensor(1.5, dtype="float64").dtype == "float64"
        assert op(_mul, 2.0, 3.0).dtype == "float32"  # numbers only: TensorFlow's type, not JAX's weak float64
        assert op(_mul, constant(2.0), 3.0).dtype == "float32"


@pytest.mark.parametrize("value", [np.ones(2), np.arange(2), np.float64(1), [np.float64(1)], np.ones(2, complex)])
def test_narrowing_warns_once_and_at_the_callers_line(value, unwarned):
    with pytest.warns(errors.NarrowingWarning, match="jax_enable_x64") as caught:
        assert convert_to_tensor(value).dtype.size in (4, 8)
    assert caught[0].filename == __file__
    convert_to_tensor(value)  # warnings are errors in these tests


def test_a_64_bit_request_warns(unwarned):
    with pytest.warns(errors.NarrowingWarning, match="float64 becomes float32"):
        assert constant(1.0, "float64").dtype == float32


def test_a_narrowed_operand_does_not_warn(unwarned):
    assert operands(constant([1.0]), np.array([2.0]))[1].dtype == np.float32


def test_integers_that_do_not_fit_are_refused(quiet):
    for value in (2**40, [2**40], np.array([2**40])):
        with pytest.raises(ValueError, match="jax_enable_x64"):
            convert_to_tensor(value)
    with pytest.raises(ValueError, match="64 bits"):
        convert_to_tensor(2**70)


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (None, None, ValueError),
        ([None], None, ValueError),
        (object(), None, ValueError),
        ({1: 2}, None, ValueError),
        ({1}, None, ValueError),
        (lambda: 1, None, ValueError),
        (float32, None, ValueError),
        ([[1], [1, 2]], None, ValueError),
        ([True, 2], None, ValueError),
        ([[True], [1.5]], None, ValueError),
        ([1.0, 1j], None, ValueError),
        (TensorShape([None]), None, ValueError),
        ("text", None, TypeError),
        (b"text", None, TypeError),
        (["a", "b"], None, TypeError),
        ("text", "float32", TypeError),
        (3.5, "int32", TypeError),
        ([3.0], "int32", TypeError),
        (1, "bool", TypeError),
        (1j, "float32", TypeError),
        ([np.float32(1.5)], "int32", TypeError),
        (1.0, "no such type", TypeError),
        (Tensor(jnp.ones(2)), "int32", ValueError),
        (Variable([1.0]), "int32", ValueError),
    ],
)
def test_refused_conversions(value, dtype, error):
    with pytest.raises(error):
        convert_to_tensor(value, dtype)


def test_numpy_values_are_converted_to_a_requested_dtype():
    assert convert_to_tensor(np.array([1.5]), int32).numpy().tolist() == [1]
    assert convert_to_tensor(np.float32(1.5), int32).numpy() == 1
    assert convert_to_tensor(True, float32).numpy() == 1.0
    assert convert_to_tensor([], int32).dtype == int32


def test_dtype_hint():
    assert convert_to_tensor(1, dtype_hint=float32).dtype == float32
    assert convert_to_tensor(1.5, dtype_hint=int32).dtype == float32
    assert convert_to_tensor([], dtype_hint=int32).dtype == int32
    assert convert_to_tensor(np.array([1.5, 2.5]), dtype_hint=int32).dtype == int32
    assert convert_to_tensor(constant(1), dtype_hint=float32).dtype == int32


def test_identity():
    array = jnp.ones(2)
    tensor = Tensor(array)
    assert raw(array) is raw(tensor) is array
    assert convert_to_tensor(tensor) is tensor
    assert constant(tensor) is tensor
    v = Variable(array)
    assert raw(v) is raw(v) is not array
    assert raw(v.value()) is not raw(v) and raw(v.read_value()) is not raw(v)


@pytest.mark.parametrize("size", [3, 1 << 18])
@pytest.mark.parametrize("make", [constant, convert_to_tensor, Variable])
def test_numpy_memory_is_not_shared(make, size):
    source = np.ones(size, np.float32)
    made = make(source)
    source[:] = 7
    assert made.numpy().max() == 1


def test_lists_with_tensors_are_stacked_through_the_recorder():
    x, v = constant(2.5), Variable(3.0)
    assert convert_to_tensor([x, 1]).numpy().tolist() == [2.5, 1.0]
    assert convert_to_tensor([1, v]).numpy().tolist() == [1.0, 3.0]
    assert convert_to_tensor([[x, 1.0], (2.0, v)]).numpy().tolist() == [[2.5, 1.0], [2.0, 3.0]]
    assert convert_to_tensor([constant([1.0]), np.ones(1), [3]]).shape == (3, 1)
    assert convert_to_tensor([jnp.float32(1), 2]).dtype == float32
    assert jax.grad(lambda a: jnp.sum(raw([a, [a * 2][0], 3.0]) ** 2))(1.0) == 10.0
    with pytest.raises(errors.InvalidArgumentError, match="tf.cast"):
        convert_to_tensor([x, constant(1)])
    with pytest.raises(TypeError, match="1.5"):
        convert_to_tensor([constant(1), 1.5])
    with pytest.raises(errors.InvalidArgumentError, match="shapes"):
        convert_to_tensor([constant([1.0]), [1.0, 2.0]])


def test_constant_with_shape():
    assert constant(1, shape=(2, 2)).numpy().tolist() == [[1, 1], [1, 1]]
    assert constant([1.0], shape=[3]).numpy().tolist() == [1.0, 1.0, 1.0]
    assert constant(range(4), shape=[2, 2]).numpy().tolist() == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="shape"):
        constant([1, 2, 3], shape=(2, 2))
    with pytest.raises(TypeError, match="cast"):
        constant(constant(1.0), dtype=int32)


class LibraryVariable:
    def __init__(self, array):
        self.array = array

    def __jax_array__(self):
        return self.array


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2, dtype or np.float32)


def test_library_values():
    array = jnp.ones(2)
    assert raw(LibraryVariable(array)) is array
    assert raw([LibraryVariable(array), array]).shape == (2, 2)
    assert values.is_tensor(LibraryVariable(array)) and not values.is_tensor(ArrayLike())
    assert convert_to_tensor(ArrayLike()).numpy().tolist() == [1.0, 1.0]


# ---- op and operands ------------------------------------------------------------


def test_op_wraps_what_the_function_returns():
    assert type(op(_mul, constant(2.0), 3)) is Tensor
    first, rest = op(_split, [1.0, 2.0, 3.0])
    assert first.numpy() == 1.0 and rest["rest"].numpy().tolist() == [2.0, 3.0]


def test_python_numbers_reach_the_recorder_untouched(monkeypatch):
    seen = []
    monkeypatch.setattr(dispatch, "run", lambda op, inputs: seen.append(inputs) or inputs[0])
    op(_mul, constant(2.0), 3)
    op(_mul, *operands(constant(2.0), True))
    assert seen[0][1] == 3 and type(seen[0][1]) is int
    assert seen[1][1] is True


def test_shapes_that_do_not_fit():
    with pytest.raises(errors.InvalidArgumentError, match=r"mul: Incompatible shapes: \(2,\) and \(3,\)"):
        op(_mul, constant([1.0, 2.0]), constant([1.0, 2.0, 3.0]))


def _untouched(x):
    raise TypeError("not about that")


def test_other_errors_pass():
    with pytest.raises(TypeError, match="not about that"):
        op(_untouched, constant(1.0))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("tensor", "other"),
    [
        (constant([1.0]), 2),
        (constant([1.0]), 2.5),
        (constant([1.0]), True),
        (constant([1.0]), [1]),
        (constant([1.0]), np.arange(1)),
        (constant([1.0]), np.float64(2)),
        (constant([1]), np.float64(1.5)),
        (constant([1]), True),
        (constant([True]), False),
        (constant([1.0]), Variable([2.0])),
        (Variable([1.0]), 2),
        (jnp.ones(1), constant(1.0)),
        (constant([1.0], float16), 2.5),
        (constant([1.0], float16), jnp.asarray(2.0)),  # weakly typed
        (constant([1j]), 2.5),
    ],
)
def test_operands_take_the_tensors_dtype(tensor, other, first):
    pair = operands(tensor, other) if first else operands(other, tensor)
    wanted = as_dtype(tensor.dtype).dtype
    assert all(getattr(x, "dtype", wanted) == wanted for x in pair)
    product = _mul(*pair)
    assert product.dtype == wanted
    np.testing.assert_array_equal(product, np.asarray(tensor) * np.asarray(other).astype(wanted))


@pytest.mark.parametrize(
    ("one", "other", "error"),
    [
        (constant([1]), 2.5, TypeError),
        (constant([1]), [2.5], TypeError),
        (constant([1.0]), 1j, TypeError),
        (constant([True]), 1, TypeError),
        (constant([1.0]), "a", TypeError),
        (constant([1.0]), None, ValueError),
        (constant([1.0]), constant([1]), errors.InvalidArgumentError),
        (Variable([1.0]), constant([1]), errors.InvalidArgumentError),
        (jnp.ones(1), constant(1), errors.InvalidArgumentError),
        (constant([1.0]), constant([1.0], float16), errors.InvalidArgumentError),
        (constant([1]), jnp.asarray(2.0), errors.InvalidArgumentError),
    ],
)
def test_operands_that_do_not_mix(one, other, error):
    with pytest.raises(error):
        operands(one, other)
    with pytest.raises(error):
        operands(other, one)


def test_without_a_tensor_the_first_operand_decides():
    assert [np.asarray(x).dtype for x in operands(1.0, np.arange(2))] == [np.float32, np.float32]
    with pytest.raises(TypeError):
        operands(1, 2.0)
    first, second = operands(1.0, 2)
    assert first.dtype == np.float32 and second == 2


# ---- Tensor ------------------------------------------------------------


def test_python_conversions():
    assert float(constant(2.5)) == 2.5 and int(constant(2.5)) == 2 and complex(constant(2.5)) == 2.5
    assert range(10)[constant(3)] == 3 and len(constant([1, 2])) == 2
    assert bool(constant(2.5)) and not bool(constant([])) and not bool(constant([0.0]))
    assert [float(x) for x in constant([1.0, 2.0])] == [1.0, 2.0]
    assert [x.shape for x in constant([[1.0, 2.0]])] == [(2,)]


@pytest.mark.parametrize("value", [constant([1.0, 2.0]), Variable([1.0, 2.0])])
def test_only_scalars_become_python_numbers(value):
    for convert, error in ((bool, ValueError), (float, TypeError), (int, TypeError), (complex, TypeError)):
        with pytest.raises(error):
            convert(value)
    with pytest.raises(TypeError, match="ref()"):
        hash(value)


def test_scalars_have_no_length():
    for wrong in (len, iter, list):
        with pytest.raises(TypeError):
            wrong(constant(1.0))
    with pytest.raises(TypeError):
        len(Variable([1.0]))
    with pytest.raises(TypeError):
        range(3)[constant(1.0)]


def test_numpy():
    x = constant([1.0, 2.0])
    assert type(x.numpy()) is np.ndarray and x.numpy().flags.writeable
    assert type(constant(1.0).numpy()) is np.float32 and type(constant(True).numpy()) is np.bool_
    assert np.asarray(x, np.float64).dtype == np.float64 and np.array(x).tolist() == [1.0, 2.0]
    assert np.sum(x) == 3 and np.stack([x, x]).shape == (2, 2) and np.exp(Variable(0.0)) == 1
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.float64, copy=False)


def test_numpy_under_a_trace():
    with pytest.raises(NotImplementedError, match="tracing"):
        jax.jit(lambda x: x.numpy())(constant(1.0))
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: np.asarray(x))(constant(1.0))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(lambda x: bool(x))(constant(1.0))


def test_attributes():
    x = constant([[1.0, 2.0]])
    assert x.shape == [1, 2] and x.get_shape().as_list() == [1, 2] and x.ndim == 2 and x.dtype is float32
    assert x.device.startswith("/job:localhost/replica:0/task:0/device:")
    x.set_shape([None, 2])
    with pytest.raises(ValueError, match="compatible"):
        x.set_shape([3])
    for missing in ("reshape", "T", "sum", "name", "foo"):
        assert not hasattr(x, missing)


def test_references():
    x, v = constant(1.0), Variable(1.0)
    assert {x.ref(), x.ref(), v.ref()} == {x.ref(), v.ref()}
    assert v.ref().deref() is v and x.ref() != v.ref()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(again):
    assert again(constant([1.0])).numpy().tolist() == [1.0]
    v = Variable([1.0], name="v", trainable=False)
    w = again(v)
    assert repr(w) == repr(v) and w.trainable is False
    v.assign([2.0])
    assert w.numpy() == (2.0 if again is copy.copy else 1.0)  # as in TensorFlow a shallow copy is the same state


# ---- Variable ------------------------------------------------------------


def test_variable_attributes():
    v = Variable(lambda: [1, 2], name="a/b", dtype=float32)
    assert (v.name, v.path, v.trainable, v.shape, v.dtype) == ("a/b:0", "a/b", True, (2,), float32)
    assert Variable(1.0).name == "Variable:0" and v.is_initialized().numpy()
    with pytest.raises(AttributeError):
        v.trainable = False


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"initial_value": [1.0, 2.0], "shape": [3]}, ValueError),
        ({"initial_value": 1.0, "shape": [2]}, ValueError),
        ({"initial_value": constant([1.0]), "dtype": int32}, ValueError),
        ({"initial_value": [1.5], "dtype": int32}, TypeError),
        ({"initial_value": "a"}, TypeError),
    ],
)
def test_variables_that_cannot_be(arguments, error):
    with pytest.raises(error):
        Variable(**arguments)


def test_assign():
    v = Variable([1.0, 2.0])
    assert v.assign([3, 4]) is v and v.assign(np.array([3.0, 4.0])) is v
    assert v.assign_add([1.0, 1.0]).assign_sub(constant([2.0, 2.0])).numpy().tolist() == [2.0, 3.0]
    assert v.assign([0.0, 0.0], read_value=False) is None
    v.assign_add(v)
    assert v.dtype == float32


@pytest.mark.parametrize(
    ("method", "value", "error"),
    [
        ("assign", [1.0, 2.0, 3.0], ValueError),
        ("assign", 1.0, ValueError),
        ("assign", [1.5, None], ValueError),
        ("assign", constant([1, 2]), ValueError),
        ("assign", Variable([1, 2]), ValueError),
        ("assign", "a", TypeError),
        ("assign_add", 1.0, errors.InvalidArgumentError),
        ("assign_sub", [1.0], errors.InvalidArgumentError),
        ("assign_add", constant([1, 2]), ValueError),
        ("assign_add", None, ValueError),
    ],
)
def test_refused_assignments(method, value, error):
    v = Variable([1.0, 2.0])
    with pytest.raises(error):
        getattr(v, method)(value)
    assert v.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(TypeError):
        Variable([1, 2]).assign([1.5, 2.0])


def test_a_declared_shape_may_leave_sizes_open():
    v = Variable([1.0], shape=[None])
    assert v.shape.as_list() == [None] and v.assign([1.0, 2.0]).numpy().shape == (2,)
    with pytest.raises(ValueError):
        v.assign([[1.0]])
    assert "shape=<unknown>" in repr(Variable([1.0], shape=TensorShape(None)).assign([[2.0]]))


def test_a_variable_owns_its_array():
    array = jnp.ones(2)
    v, w = Variable(array), Variable(array)
    assert len({id(x) for x in (array, raw(v), raw(w))}) == 3
    v.assign(w)
    assert raw(v) is not raw(w)
    v.assign(array)
    assert raw(v) is not array
    v.assign([constant(1.0), 2.0])
    assert not Variable(jnp.asarray(2.0))._array.weak_type


def test_value_serves_tensorflow_and_keras():
    v = Variable([1.0, 2.0])
    assert isinstance(v.value, Tensor) and raw(v.value) is raw(v)
    assert type(v.value()) is Tensor and v.value().numpy().tolist() == [1.0, 2.0]
    assert jnp.sum(v.value) == 3.0 and jax.jit(lambda x: jnp.sum(x))(v.value) == 3.0
    before = v.value()
    v.assign_add([1.0, 1.0])
    assert before.numpy().tolist() == [1.0, 2.0]


Slices = collections.namedtuple("Slices", "values indices")


def test_scatter():
    v = Variable([1.0, 2.0, 3.0])
    assert v.scatter_update(Slices([9.0], [0])) is v
    v.scatter_add(Slices(constant([1.0, 1.0]), [1, 1]))
    v.scatter_sub(Slices([1.0], constant([2])))
    assert v.numpy().tolist() == [9.0, 4.0, 2.0]
    v.scatter_nd_update([[0], [1]], [1.0, 1.0]).scatter_nd_add([[0]], [5.0]).scatter_nd_sub([[2]], [2.0])
    assert v.numpy().tolist() == [6.0, 1.0, 0.0]


def test_assigning_in_a_plain_trace_is_refused():
    v = Variable([1.0, 2.0])

    def leak(x):
        v.assign(x)
        return x

    for transform in (jax.jit, lambda f: jax.grad(lambda x: jnp.sum(f(x)))):
        with pytest.raises(RuntimeError, match="tapejax.function"):
            transform(leak)(jnp.ones(2))
    with pytest.raises(RuntimeError, match="tapejax.function"):
        jax.jit(lambda: v.assign_add([1.0, 1.0]).numpy())()
    with pytest.raises(RuntimeError, match="tapejax.function"):
        jax.jit(lambda: v * 1)() if hasattr(v, "__mul__") else jax.jit(lambda: raw(v))()
    assert v.numpy().tolist() == [1.0, 2.0]


# ---- JAX sees pytrees ------------------------------------------------------------


@pytest.mark.parametrize("make", [constant, Variable])
def test_values_work_in_jax(make):
    x = make([1.0, 2.0])
    assert jnp.sum(x) == 3.0 and jnp.add(x, 1).tolist() == [2.0, 3.0]
    assert jnp.concatenate([jnp.asarray(x), x]).shape == (4,)
    assert jax.nn.relu(jnp.asarray(x)).tolist() == [1.0, 2.0]
    assert jax.vmap(lambda row: jnp.sum(row))(make([[1.0, 2.0], [3.0, 4.0]])).tolist() == [3.0, 7.0]
    gradient = jax.grad(lambda t: jnp.sum(jnp.square(t)))(x)
    assert type(gradient) is type(x) and gradient.numpy().tolist() == [2.0, 4.0]
    assert type(jax.jit(lambda t: t)(x)) is type(x)


@pytest.mark.parametrize("make", [constant, lambda value: Variable(value, trainable=False)])
@pytest.mark.parametrize("held", [None, object(), jax.ShapeDtypeStruct((2,), jnp.float32), 1.0, "text"])
def test_unflatten_takes_anything(make, held):
    tree = jax.tree.structure(make([1.0]))
    rebuilt = jax.tree.unflatten(tree, [held])
    assert rebuilt._array is held and repr(rebuilt)
    assert getattr(rebuilt, "trainable", False) is False


def test_one_compilation_serves_all_variables():
    count = 0

    @jax.jit
    def f(v):
        nonlocal count
        count += 1
        return jnp.sum(v)

    for name in "abc":
        f(Variable([1.0, 2.0], name=name))
    v = Variable(jnp.ones(2))
    f(v.assign_add([1.0, 1.0]))
    assert count == 1


# ---- dtypes and shapes ------------------------------------------------------------


def test_dtype_compares():
    for same in (np.float32, np.dtype("float32"), "float32", jnp.float32, float32, "float"):
        assert float32 == same and same == float32 and not float32 != same
    for other in (np.float64, "float64", "no type", None, 3, int32, object()):
        assert float32 != other
    assert hash(float32) == hash(np.dtype("float32")) and {float32: 1}[as_dtype("float32")] == 1


def test_dtype_text_and_properties():
    assert repr(float32) == "tf.float32" and str(float32) == "<dtype: 'float32'>" and float32.name == "float32"
    assert float32.as_numpy_dtype is np.float32 and dtypes.bool.as_numpy_dtype is np.bool_
    assert (int32.min, int32.max, type(int32.min)) == (-(2**31), 2**31 - 1, int)
    assert float32.max == np.finfo(np.float32).max and dtypes.bfloat16.min < -1e38
    assert dtypes.complex128.real_dtype is dtypes.float64 and int32.real_dtype is int32
    flags = ("is_bool", "is_integer", "is_floating", "is_complex", "is_numeric", "is_unsigned")
    assert [getattr(dtypes.uint8, flag) for flag in flags] == [False, True, False, False, True, True]
    assert [getattr(dtypes.bfloat16, flag) for flag in flags] == [False, False, True, False, True, False]
    assert [getattr(dtypes.bool, flag) for flag in flags] == [True, False, False, False, False, False]
    assert (dtypes.bool.size, dtypes.complex64.size, dtypes.string.size) == (1, 8, 0)
    for limitless in (dtypes.bool, dtypes.complex64, dtypes.string):
        with pytest.raises(TypeError):
            limitless.max  # noqa: B018
    assert pickle.loads(pickle.dumps(float32)) is float32 and copy.deepcopy(float32) is float32


def test_dtype_is_a_dtype_to_numpy_and_jax():
    assert np.zeros(2, float32).dtype == jnp.zeros(2, float32).dtype == np.float32
    assert jnp.asarray([1, 2], dtypes.bfloat16).dtype == jnp.bfloat16
    assert np.ones(2).astype(int32).dtype == jnp.ones(2).astype(int32).dtype == np.int32


def test_as_dtype():
    assert as_dtype("half") is float16 and as_dtype("double") is dtypes.float64 and as_dtype(3) is int32
    assert as_dtype(float) is float32 and as_dtype(bool) is dtypes.bool
    assert as_dtype(object) is dtypes.string
    assert as_dtype(jnp.float8_e5m2).is_floating
    for wrong in (int, complex, str, None, "foo", 3.5, [], "f4,i4"):
        with pytest.raises(TypeError):
            as_dtype(wrong)


def test_shapes():
    s, partial, unknown = TensorShape([2, 3]), TensorShape([None, 3]), TensorShape(None)
    assert repr(s) == "TensorShape([2, 3])" and str(s) == f"{s}" == "(2, 3)" and str(TensorShape(2)) == "(2,)"
    assert repr(partial) == "TensorShape([None, 3])" and str(unknown) == "<unknown>"
    assert s == [2, 3] == s and (2, 3) == s and not s != (2, 3) and s != partial and s != 3 and s != None  # noqa: E711
    assert unknown == None and unknown != s and TensorShape(3) == 3  # noqa: E711
    assert s[0] == 2 and s[-1] == 3 and repr(s[1:]) == "TensorShape([3])"
    assert repr(s + [4]) == repr(s + (4,)) == "TensorShape([2, 3, 4])" and repr([4] + s) == repr((4,) + s)
    assert (s + unknown).rank is None and unknown[0] is None and unknown[1:].rank is None
    assert (s.rank, s.ndims, len(s), s.as_list(), s.num_elements()) == (2, 2, 2, [2, 3], 6)
    assert (partial.num_elements(), unknown.num_elements(), TensorShape([]).num_elements()) == (None, None, 1)
    assert (s.is_fully_defined(), partial.is_fully_defined(), unknown.is_fully_defined()) == (
        True,
        False,
        False,
    )
    assert bool(TensorShape([])) and not bool(unknown) and hash(s) == hash((2, 3))
    assert s.is_compatible_with(partial) and s.is_compatible_with(unknown) and not s.is_compatible_with([3])
    assert partial.merge_with(s) == s and unknown.with_rank(2).as_list() == [None, None]
    assert isinstance(s, tuple) and np.zeros(s).shape == jnp.zeros(s).shape == s and (*s, 1) == (2, 3, 1)
    assert jnp.zeros(6).reshape(s).shape == (2, 3) and np.prod(s) == 6
    for shape in (s, partial, unknown):
        assert pickle.loads(pickle.dumps(shape)) == shape and copy.deepcopy(shape) == shape


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: TensorShape("a"), TypeError),
        (lambda: TensorShape([2.5]), TypeError),
        (lambda: TensorShape([-1]), ValueError),
        (lambda: len(TensorShape(None)), ValueError),
        (lambda: list(TensorShape(None)), ValueError),
        (lambda: TensorShape(None).as_list(), ValueError),
        (lambda: TensorShape([2]).merge_with([3]), ValueError),
        (lambda: TensorShape([2]).assert_is_compatible_with([3]), ValueError),
        (lambda: TensorShape([2]).with_rank(2), ValueError),
        (lambda: TensorShape([2])[1], IndexError),
        (lambda: TensorShape([2]).assert_has_rank(2), ValueError),
    ],
)
def test_wrong_shapes(make, error):
    with pytest.raises(error):
        make()


# ---- errors and nest ------------------------------------------------------------


def test_errors():
    error = errors.InvalidArgumentError("message")
    assert str(error) == error.message == "message" and error.error_code == 3 and error.op is None
    assert errors.NotFoundError(None, None, "gone").message == "gone"
    assert errors.OpError(None, None, "m", 7).error_code == 7
    assert not issubclass(errors.OutOfRangeError, (ValueError, IndexError))


Pair = collections.namedtuple("Pair", "b a")


def test_nest_flatten():
    v = Variable([1.0, 2.0])
    assert nest.flatten(1) == [1] and nest.flatten(None) == [None] and nest.flatten([None, []]) == [None]
    assert nest.flatten({"b": 1, "a": [2, (3,)]}) == [2, 3, 1] and nest.flatten(Pair(1, 2)) == [1, 2]
    assert nest.flatten(collections.OrderedDict(b=1, a=2)) == [2, 1] and nest.flatten(range(3)) == [0, 1, 2]
    assert nest.flatten([v, {"x": constant([1.0])}])[0] is v and nest.flatten(np.ones(2))[0].shape == (2,)
    assert nest.flatten("ab") == ["ab"] and nest.flatten({3}) == [{3}]
    assert nest.flatten(TensorShape([1, 2])) == [TensorShape([1, 2])]
    assert nest.flatten({"a": 1}.values()) == [1] and nest.flatten(collections.deque([1])) == [1]
    with pytest.raises(TypeError):
        nest.flatten({1: 2, "a": 3})


def test_nest_map_structure():
    nested = {"b": 1, "a": (2, Pair(3, 4))}
    assert nest.map_structure(lambda x: x + 1, nested) == {"b": 2, "a": (3, Pair(4, 5))}
    assert list(nest.map_structure(lambda x: x, nested)) == ["b", "a"]
    assert nest.map_structure(lambda x, y: x + y, [1, 2], (1, 2), check_types=False) == [2, 4]
    default = nest.map_structure(lambda x: x, collections.defaultdict(list, b=1))
    assert default.default_factory is list
    for structures, error in (
        (([1, 2], (1, 2)), TypeError),
        (([1, 2], [1]), ValueError),
        (([1, 2], [1, [2]]), ValueError),
        (({"a": 1}, {"b": 1}), ValueError),
        ((), ValueError),
    ):
        with pytest.raises(error):
            nest.map_structure(lambda *leaves: leaves, *structures)
    with pytest.raises(TypeError, match="callable"):
        nest.map_structure(3, [1])
    with pytest.raises(TypeError, match="foo"):
        nest.map_structure(lambda x: x, [1], foo=3)


def test_nest_pack_sequence_as():
    assert nest.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3]) == {"b": 3, "a": [1, 2]}
    assert nest.pack_sequence_as(Pair(0, (0,)), [1, 2]) == Pair(1, (2,)) and nest.pack_sequence_as(0, [1]) == 1
    packed = nest.pack_sequence_as(collections.OrderedDict(b=0, a=0), [1, 2])
    assert list(packed.items()) == [("b", 2), ("a", 1)]
    for flat, error in (([1, 2], ValueError), ([1], ValueError), (5, TypeError)):
        with pytest.raises(error):
            nest.pack_sequence_as([0, 0, 0], flat)


def test_nest_assert_same_structure():
    nest.assert_same_structure([1, {"a": (2,)}], [3, {"a": (4,)}])
    nest.assert_same_structure([1, 2], (3, 4), check_types=False)
    other = collections.namedtuple("Pair", "b a")
    nest.assert_same_structure(Pair(1, 2), other(1, 2))
    with pytest.raises(TypeError):
        nest.assert_same_structure(Pair(1, 2), (1, 2))
    with pytest.raises(ValueError, match=r"\[0\]\['a'\]"):
        nest.assert_same_structure([{"a": 1}], [{"a": [1]}])
    assert nest.is_nested([]) and nest.is_nested({}) and not nest.is_nested("a") and not nest.is_nested({1})
    assert not nest.is_nested(constant([1])) and nest.is_nested(Pair(1, 2)) and nest.is_nested(range(2))


# ---- with the operators of ops attached ------------------------------------------------------------


@pytest.fixture
def operators():
    pytest.importorskip("tapejax.tf.ops.operators")


def test_operators_with_numpy_on_the_left(operators):
    x = constant([1.0, 2.0])
    for left in (np.array([1.0, 2.0]), np.array([1, 2]), np.float64(2), np.float32(2), [1.0, 2.0], 2):
        for value in (x, Variable(x)):
            product = left * value
            assert type(product) is Tensor and product.dtype == float32


def test_slices_of_variables(operators):
    v = Variable([1.0, 2.0, 3.0])
    assert isinstance(v[0], Tensor) and v[0].numpy() == 1.0
    assert v[1:].assign([5.0, 6.0]) is v and v.numpy().tolist() == [1.0, 5.0, 6.0]
    v[constant(0)].assign(9.0)
    v[..., 1:2].assign(7.0)
    assert v.numpy().tolist() == [9.0, 7.0, 6.0]
    assert jnp.sum(v[1:]) == 13.0 and [float(x) for x in v] == [9.0, 7.0, 6.0]
    with pytest.raises(errors.InvalidArgumentError):
        v[:1].assign([1.0, 2.0])
    with pytest.raises(TypeError):
        v[0] = 1.0


def test_equality_is_elementwise(operators):
    x = constant([1.0, 2.0])
    assert (x == [1.0, 3.0]).numpy().tolist() == [True, False] and (x == None) is False  # noqa: E711
    assert 2.5 in [constant(1.0), constant(2.5)] and x in [x]


def test_warnings_are_errors_here():
    with pytest.raises(UserWarning):
        warnings.warn("x", stacklevel=1)


def test_two_weakly_typed_operands_agree_as_two_python_numbers_do():
    half, two = jnp.asarray(0.5), jnp.asarray(2)
    assert operands(half, two)[1].dtype == np.float32
    with pytest.raises(errors.InvalidArgumentError, match="do not mix"):
        operands(two, half)


def test_arrays_under_disable_jit():
    """JAX's switch for debugging: what is made of NumPy's arrays and numbers is one of JAX's, and has a gradient."""
    with jax.disable_jit():
        v, x = tf.Variable([1.0, 2.0]), tf.constant(3.0)
        v.assign([2.0, 3.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(v * v * x)
        by_v, by_x = tape.gradient(y, [v, x])
    np.testing.assert_allclose(by_v, [12.0, 18.0])
    assert float(by_x) == 13.0
    assert isinstance(v.value()._array, jax.Array) and isinstance(x._array, jax.Array)


# ---- other libraries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("value", [3, 1.5, True, [[1, 2], [3, 4]], [[1.0], [2.0]], [True, False], [], 1 + 2j])
def test_a_tensor_has_numpys_buffer(value, wide):
    with jax.enable_x64(wide):
        x = constant(value)
        view, wanted = memoryview(x), memoryview(x.numpy() if np.ndim(value) else np.array(x.numpy()))
        assert view.readonly and view.tobytes() == wanted.tobytes()
        for about in ("format", "itemsize", "nbytes", "ndim", "shape", "strides"):
            assert getattr(view, about) == getattr(wanted, about)
        del x
        gc.collect()
        assert view.tobytes() == wanted.tobytes()


def test_what_takes_a_buffer_takes_a_tensor(tmp_path):
    x = constant([1.0, 2.0])
    assert struct.unpack("2f", x) == (1.0, 2.0) and bytearray(x) == x.numpy().tobytes()
    np.testing.assert_array_equal(np.frombuffer(x, "float32"), [1.0, 2.0])
    assert memoryview(tf.Variable(3.0).read_value()).tolist() == 3.0
    assert not np.asarray(x).flags.writeable and np.array(x).flags.writeable


def test_a_tensor_without_a_buffer():
    """NumPy goes on to look for ``__array__``; Python before 3.12 cannot say why there is none."""
    errors = (ValueError, NotImplementedError) if sys.version_info >= (3, 12) else SystemError
    with pytest.raises(errors):
        memoryview(constant([1.0], tf.bfloat16))
    with pytest.raises(errors):
        jax.jit(lambda x: memoryview(constant(x)) and x)(1.0)
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda x: np.asarray(constant(x)))(1.0)
    np.testing.assert_array_equal(np.asarray(constant([1.0], tf.bfloat16)), [1.0])


def test_memory_is_shared_where_there_is_a_value():
    x = constant([1.0, 2.0])
    np.testing.assert_array_equal(np.from_dlpack(x), [1.0, 2.0])
    assert np.shares_memory(np.from_dlpack(x), np.asarray(x))
    with pytest.raises(errors.NoValueError, match="__dlpack__"):
        jax.jit(lambda x: np.from_dlpack(constant(x)))(1.0)
