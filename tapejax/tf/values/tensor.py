"""`Tensor`, what it shares with `Variable`, and how operations give tensors.

A value is known to the tapes by the identity of its raw ``jax.Array``. There is no arithmetic here: `ops` attaches the
operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import numpy as np

from ...jaxprs.fence import ConcreteArray, Tracer, made_at, refuse_type
from ...jaxprs.types import Value
from ...tape import active, dispatch
from ...tape.operation import Op, op_of
from . import buffers, reading
from .dtypes import DType, TensorShape, as_dtype, as_shape
from .errors import InvalidArgumentError, NoValueError, about_shapes
from .shown import unreadable, value_html
from .types import Array, DTypeLike, Index, Nest, ShapeLike, TensorLike

if TYPE_CHECKING:
    # Written out: a checker prefers a method that `complex` declares to one that is assigned.
    class _Operators:  # `ops.operators` attaches them
        def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
        def __getitem__(self, index: Index) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

        # `complex` has none of these.
        __rmatmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __matmul__
        __lt__ = __le__ = __gt__ = __ge__ = __matmul__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __matmul__

    # Functions of `jnp` are annotated with a union of classes, of which `complex` has the fewest names of its own.
    class _Typed(_Operators, complex): ...  # type: ignore[misc]
else:
    _Typed = object
_new = object.__new__


def escaped(*values: Value) -> Exception:
    """The error for tracers among `values` that are used after their trace has ended."""
    line = next((made_at(x) for x in values if isinstance(x, Tracer)), "")
    return jax.errors.UnexpectedTracerError(
        f"a tensor{line and f' made at {line}'} is a tracer that escaped: the function in which it stood for a value "
        "(tf.function, jax.jit, grad, scan ...) has ended. That happens where it is kept in a list, a global or an attribute: "
        "return it from the function instead, or keep it in a tf.Variable (assign) or tf.TensorArray"
    )


def _getitem(x, i):
    return jax.lax.dynamic_index_in_dim(x, i, keepdims=False)


class TensorBase(_Typed):
    """What a `Tensor` and a `Variable` both can do; `_read` gives the array."""

    __slots__ = ()

    # NumPy's operators leave the work to ours: np_array * tensor is a Tensor.
    __array_priority__ = 100

    _array: Array

    def _read(self) -> Array:
        return self._array

    def _seen(self) -> Array:
        """The array, for what looks at the value without computing with it."""
        return self._array

    @property
    def dtype(self) -> DType:
        return as_dtype(self._array.dtype)

    @property
    def shape(self) -> TensorShape:
        return tuple.__new__(TensorShape, self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def device(self) -> str:
        """Where it lies, in TensorFlow's spelling: ``/job:localhost/replica:0/task:0/device:CPU:0``."""
        device = next(iter(self._array.devices()))
        return f"/job:localhost/replica:0/task:0/device:{device.platform.upper()}:{device.id}"

    def get_shape(self) -> TensorShape:
        return self.shape

    def ref(self) -> Reference:
        """A key for dicts and sets; its `deref` gives the object back. Tensors and variables are not hashable."""
        return Reference(self)

    def numpy(self) -> Any:
        """A NumPy array of its own, or a NumPy scalar where the shape is ().

        Raises:
          NoValueError: under a JAX transformation (jit, grad, vmap ...), where there is no value yet.
        """
        return np.array(self._for_python("numpy()"))[()]

    def _for_python(self, method: str) -> Array:
        """The array, for `method`, which needs its numbers."""
        array = self._seen()
        if isinstance(array, Tracer):
            if active.eager():
                raise NoValueError(str(escaped(array)))
            advice = "Compute with tf or jnp functions, or print it with jax.debug.print"
            why = f"its value is only known inside the compiled program. {advice}"
            raise NoValueError(f"{method} of a tensor of shape {array.shape} that JAX is tracing: {why}")
        reading.record_escape("python", array)
        return array

    def _read_by_python(self) -> Array:
        reading.record_escape("python", self._array)
        return self._seen()

    def _as_tensor(self) -> Tensor:
        """It is a `Tensor` itself, or gives one."""
        return Tensor(self._read())

    def __jax_array__(self) -> Array:
        return self._read()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self._seen())  # under a trace JAX raises an error that says why
        reading.record_escape("python", self._array)
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"copy=False, but the dtype changes from {array.dtype} to {np.dtype(dtype)}")
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __bool__(self) -> bool:
        array = self._read_by_python()
        return bool(array) if array.size else False  # JAX refuses an empty one

    def __float__(self) -> float:
        return float(self._read_by_python())

    def __int__(self) -> int:
        return int(self._read_by_python())

    def __complex__(self) -> complex:
        return complex(self._read_by_python())

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("a scalar tensor cannot be iterated over")
        return (compute(op_of(_getitem, {}), (self._read(), i)) for i in range(self._array.shape[0]))

    def __hash__(self) -> int:
        kind = type(self).__name__
        raise TypeError(f"{kind} is unhashable, since == compares elements: use {kind.lower()}.ref() as the key")

    def _repr_html_(self) -> str:
        return value_html(self._array, "tf.Tensor", repr(self))


class Reference:
    """A hashable stand-in for a tensor or variable: equal where it refers to the same object, and sortable.

    >>> import tapejax as tf
    >>> x = tf.constant(1.0)
    >>> {x.ref(): "x"}[x.ref()], x.ref().deref() is x
    ('x', True)
    """

    __slots__ = ("_value",)

    def __init__(self, value: TensorLike):
        self._value = value

    def deref(self) -> TensorLike:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._value is other._value

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            raise TypeError(f"Cannot compare wrapped object with unwrapped object: {other!r}")
        return id(self._value) < id(other._value)

    def __gt__(self, other: object) -> bool:
        return not self < other and self != other

    def __hash__(self) -> int:
        return id(self._value)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._value!r}>"


def numpy_text(array: Array) -> str:
    """The last part of a repr: ``numpy=1.0``."""
    if reason := unreadable(array):
        return reason
    numbers = np.asarray(array)
    return "numpy=" + (_own_lines(repr(numbers)) if numbers.shape else repr(numbers.item()))


def _own_lines(text: str) -> str:
    return "\n" + text if "\n" in text else text


class Tensor(TensorBase):
    """An array with TensorFlow's face: a value that does not change.

    It wraps a ``jax.Array`` (or tracer) and is accepted wherever JAX and NumPy accept an array. Make one with
    `constant` or `convert_to_tensor`.

    >>> import jax.numpy as jnp
    >>> import tapejax as tf
    >>> x = tf.constant([[1.0, 2.0]])
    >>> x
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>
    >>> print(x, x.shape, x.dtype)
    tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32) (1, 2) <dtype: 'float32'>
    >>> jnp.sum(x)
    Array(3., dtype=float32)
    """

    # `_array` is the one way to the value, so that it can become a property that computes it when first
    # asked.
    __slots__ = ("_array", "__weakref__")

    def __init__(self, array: Array):
        self._array = array

    def _as_tensor(self) -> Tensor:
        return self if type(self) is Tensor else Tensor(self._array)

    def set_shape(self, shape: ShapeLike) -> None:
        """Checks that `shape` agrees. Raises ValueError if not."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"the tensor's shape {self.shape} is not compatible with shape={as_shape(shape)}")

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a scalar tensor has no len()")
        return self._array.shape[0]

    def __dlpack__(self, **options: Any) -> Any:
        """What other libraries' ``from_dlpack`` take, ``torch.from_dlpack``, say: they share the memory of the tensor."""
        return self._for_python("__dlpack__()").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._for_python("__dlpack_device__()").__dlpack_device__()

    def __buffer__(self, flags: int) -> memoryview:  # Python 3.12 and newer call it
        return np.asarray(self._for_python("memoryview()")).data

    def __index__(self) -> int:
        reading.record_escape("static", self._array)
        return self._array.__index__()

    def __format__(self, spec: str) -> str:
        return str(self) if isinstance(self._array, Tracer) else format(self.numpy(), spec)

    def __repr__(self) -> str:
        array = self._array
        if not isinstance(array, jax.Array):  # inside JAX's tree functions a Tensor may hold anything
            return f"<tf.Tensor: {array!r}>"
        return f"<tf.Tensor: shape={array.shape}, dtype={array.dtype}, {numpy_text(array)}>"

    def __str__(self) -> str:
        array = self._array
        if not isinstance(array, jax.Array):
            return repr(self)
        reason = unreadable(array)
        text = f"<{reason}>" if reason else _own_lines(str(np.asarray(array)[()]))
        return f"tf.Tensor({text}, shape={array.shape}, dtype={array.dtype})"


buffers.export(Tensor)


def refuse_in_jax(kind: type) -> None:
    """Has JAX say what to do where one of its functions is given an object of this class that it does not take."""
    refuse_type(
        kind,
        "JAX wants an array here, and this is a tapejax tensor or variable. A function that jax.grad differentiates has to "
        "return jnp.asarray(y) in place of y: jax.grad(lambda x: jnp.asarray(f(x))); a tape takes the tensor as it is. "
        "Functions of jax.lax take jnp.asarray(x)",
    )


def register_tensor(kind: type[Tensor]) -> None:
    """Makes a class of tensors a container of one array to JAX, which gives a `Tensor` when it is made anew."""
    jax.tree_util.register_pytree_node(kind, lambda x: ((x._array,), None), lambda _, children: Tensor(children[0]))
    refuse_in_jax(kind)


register_tensor(Tensor)


def compute(op: Op, arrays: Sequence) -> Nest:
    """What `op` gives for these arrays, a `Tensor` for each array."""
    try:
        out = dispatch.run(op, arrays)
    except jax.errors.UnexpectedTracerError:
        raise escaped(*arrays) from None
    except (TypeError, ValueError) as error:
        refuse_shapes(error, op.name, arrays)
        raise
    if type(out) is ConcreteArray:
        tensor = _new(Tensor)  # in half of the time of `Tensor(out)`
        tensor._array = out
        return tensor
    return Tensor(out) if isinstance(out, jax.Array) else jax.tree.map(Tensor, out)


def refuse_shapes(error: Exception, name: str, arrays: Sequence) -> None:
    """Raises TensorFlow's class of error if JAX's is about shapes that do not fit."""
    if about_shapes(error):
        shapes = " and ".join(str(np.shape(array)) for array in arrays)
        raise InvalidArgumentError(f"{name}: Incompatible shapes: {shapes}. {error}") from error
