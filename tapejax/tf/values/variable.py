"""`Variable`: a value that can be assigned to. Reading one is noted on the tapes (`reading`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from ...execution.trial import Trial
from ...jaxprs.fence import ConcreteArray, Tracer, current_trace
from ...tape import active, operation, runner
from ...tape.operation import op_of
from ...tape.sweep import on_devices_of
from . import reading, replicas
from .conversion import array_or_converted, constant, constant_array, holds_arrays, is_array_like, raw
from .dtypes import TensorShape, as_shape
from .errors import DTypeError, InvalidArgumentError, VariableInTraceError
from .names import scoped
from .shown import value_html
from .tensor import Tensor, TensorBase, numpy_text, refuse_in_jax, refuse_shapes, register_tensor
from .types import Array, DTypeLike, Ignored, Index, ShapeLike, TensorLike

Slices: TypeAlias = Any  # an IndexedSlices, which is defined above: it has `values` and `indices`


class VariableValue(Tensor):
    """What ``variable.value`` is: a Tensor, as Keras requires it, that can also be called, as TensorFlow's can."""

    __slots__ = ()

    def __call__(self) -> Tensor:
        return Tensor(operation.apply(_read_value, self._array))


class VariableSlice(Tensor):
    """What ``variable[index]`` is: a Tensor with `assign`, which writes to that part of the variable."""

    __slots__ = ("_variable", "_index")

    def __init__(self, array: Array, variable: Variable, index: Index):
        self._array = array
        self._variable = variable
        self._index = index

    def assign(self, value: TensorLike, name: str | None = None, read_value: bool = True) -> Variable | None:
        """Writes `value`, broadcast to the slice's shape, into the variable and returns the variable.

        >>> v = Variable([1.0, 2.0, 3.0])
        >>> v[1:].assign([5.0, 6.0])
        <tf.Variable 'Variable:0' shape=(3,) dtype=float32, numpy=array([1., 5., 6.], dtype=float32)>
        """
        return self._variable._scatter("set", self._index, value, read_value, sliced=True)


def _read_value(x):
    return jnp.copy(x)


# A copy that is no longer weakly typed: a variable's dtype is its own.
_copy = Trial(lambda x: jnp.array(x, dtype=x.dtype, copy=True))
_columns = Trial(lambda indices: tuple(jnp.moveaxis(indices, -1, 0)))
_updates = {"add": op_of(jnp.add, {}), "subtract": op_of(jnp.subtract, {})}


class Variable(TensorBase):
    """A value that can be assigned to. Reading one is noted by the active tapes.

    Args:
      initial_value: what `convert_to_tensor` takes, or a function that returns it.
      trainable: whether tapes watch it of their own accord when it is read.
      validate_shape: whether later assigned values must have the initial shape.
      name: shown in its repr, as ``name:0``.
      dtype: its dtype; by default that of `initial_value`.
      shape: what `assign` accepts: by default the shape of `initial_value`, None for an unknown size.

    Raises:
      ValueError: there is no `initial_value`, or it does not have `shape` or `dtype`.

    >>> v = Variable([1.0, 2.0], name="v")
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'v:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
    >>> jnp.sum(v)
    Array(5., dtype=float32)
    """

    _array: Array
    _created: int  # tapes list variables in the order of their creation
    # Keras's optimizers ask for it: no variable of ours is replaced by its gradient.
    overwrite_with_gradient = False

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike] | None = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Ignored = None,
        name: str | None = None,
        variable_def: Ignored = None,
        dtype: DTypeLike | None = None,
        import_scope: Ignored = None,
        constraint: Callable | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: ShapeLike | None = None,
    ):
        if initial_value is None:
            raise ValueError("initial_value must be given: a tensor, array or number, or a function that returns one")
        self._name = scoped("Variable" if name is None else str(name))
        if constraint is not None and not callable(constraint):
            raise ValueError(f"constraint must be a function or None, got {constraint!r}")
        on_read = getattr(synchronization, "name", None) == "ON_READ"  # TensorFlow trains none that replicas keep apart
        self._trainable = not on_read if trainable is None else bool(trainable)
        self.constraint = constraint
        array = _own_array(initial_value() if callable(initial_value) else initial_value, dtype)
        reading.record_escape("new variable", into=array)
        declared = None if validate_shape else TensorShape(None)
        declared = declared if shape is None else as_shape(shape)
        if declared is not None and not declared.is_compatible_with(array.shape):
            raise ValueError(f"initial_value has shape {array.shape}, which does not agree with shape={declared}")
        self._declared = declared
        self._aggregation = aggregation
        self._array = replicas.placed(array)
        self._created = reading.next_variable()
        if reading.context.capture is not None:
            reading.context.capture.create(self)

    initializer = None  # a variable has its value from the start
    name = property(lambda self: f"{self._name}:0")
    path = property(lambda self: self._name)
    trainable = property(lambda self: self._trainable)

    @property
    def shape(self) -> TensorShape:
        return tuple.__new__(TensorShape, self._array.shape) if self._declared is None else self._declared

    @property
    def value(self) -> VariableValue:
        """The value, as a `Tensor` that may be called: both ``v.value`` (Keras) and ``v.value()`` (TensorFlow) work."""
        return VariableValue(reading.read(self))

    def read_value(self) -> Tensor:
        """The present value as a `Tensor` that later assignments do not change."""
        return Tensor(operation.apply(_read_value, reading.read(self)))

    def is_initialized(self, name: str | None = None) -> Tensor:
        return constant(True)

    def _read(self) -> Array:
        return reading.read(self)

    def _as_tensor(self) -> Tensor:
        return self.read_value()

    def _seen(self) -> Array:
        reading.access(self)
        return reading.held(self)

    def __getitem__(self, index: Index) -> VariableSlice:
        part = Tensor(reading.read(self))[index]
        return VariableSlice(part._array, self, index)

    def assign(self, value: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Replaces the value and returns the variable, or None where `read_value` is false.

        Raises:
          ValueError: `value` has another shape, or is a tensor of another dtype.
          RuntimeError: under a plain ``jax.jit``, from which the new value could not escape.
        """
        array = _own_array(value, self._array.dtype)
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(f"Variable {self.name!r} has shape {self.shape}: shape {array.shape} does not fit")
        return self._store(replicas.aggregated(array, self._aggregation, self.name), read_value)

    def assign_add(self, delta: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Adds `delta`, of the variable's shape, and returns the variable; InvalidArgumentError on another shape."""
        return self._update("add", delta, read_value)

    def assign_sub(self, delta: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Subtracts `delta`, of the variable's shape, and returns the variable; InvalidArgumentError on another."""
        return self._update("subtract", delta, read_value)

    def _update(self, name: str, delta: TensorLike, read_value: bool) -> Variable | None:
        held = reading.held(self)
        array = raw(delta, held.dtype)
        if array.shape != held.shape:
            shapes = f"has shape {held.shape}: it cannot be updated by a value of shape {array.shape}"
            raise InvalidArgumentError(f"Variable {self.name!r} {shapes}")
        array = replicas.aggregated(array, self._aggregation, self.name)
        return self._change(lambda held: runner.current.run(_updates[name], (held, array)), array, read_value)

    def _change(
        self, change: Callable[[Array], Array], by: Array | None = None, read_value: bool = False
    ) -> Variable | None:
        """Stores ``change(held)``: what another thread assigns meanwhile is changed in turn, not lost."""
        if not self._exchange(change, by):
            with reading.tracing:  # the others wait this time
                while not self._exchange(change, by):
                    pass
        return self if read_value else None

    def _exchange(self, change: Callable[[Array], Array], by: Array | None) -> bool:
        held = reading.held(self)
        if reading.plain(current_trace()) and reading.context.used is None:  # what is below, where nobody has to know
            new = change(held)
            with reading.tracing:
                unchanged = self._array is held
                if unchanged:
                    self._array = new
            return unchanged
        with active.outside():
            new = change(held)
        with reading.tracing:
            if reading.held(self) is not held:
                return False
            reading.record_escape("state", held, by, into=new)
            self._store(new)
            return True

    def _store(self, array: Array, read_value: bool = True) -> Variable | None:
        reading.access(self)  # of what it held so far
        if type(array) is ConcreteArray and type(array.sharding) is SingleDeviceSharding:  # a host's array, or zeros
            array = on_devices_of(self._array, array)
        if reading.context.capture is not None:
            reading.context.capture.assign(self, "_array", array)
        elif (isinstance(array, Tracer) or active.staging()) and not isinstance(self._array, Tracer):
            raise VariableInTraceError(
                f"Variable {self.name!r} was assigned to while JAX traces a function (jax.jit, jax.grad, scan ...): "
                "the value would leak out of the trace. Decorate the function with tapejax.function, which threads "
                "Variables through, or return the new value and assign it outside"
            )
        with reading.tracing:  # a function that another thread traces has this variable's place, and gives it back
            self._array = array
        reading.record_escape("assigned", into=array)
        return self if read_value else None

    # Updates of parts. An index is what NumPy takes.

    def _scatter(
        self, how: str, index: Index, value: TensorLike, read_value: bool = True, sliced: bool = False
    ) -> Variable | None:
        held = reading.held(self)
        update = raw(value, held.dtype)
        if not sliced:
            _require_rows(index, update.shape, held.shape)

        parts = [_plain_index(part) for part in (index if isinstance(index, tuple) else (index,))]
        arrays = [part for part in parts if is_array_like(part)]
        layout = tuple([None if is_array_like(part) else (part,) for part in parts])
        masked = any([part.dtype == bool for part in arrays])  # which JAX takes as values only

        def change(held: Array) -> Array:
            try:
                if masked:
                    return _put(held, update, *arrays, how=how, layout=layout)
                return runner.current.run(op_of(_put, {"how": how, "layout": layout}), (held, update, *arrays))
            except (TypeError, ValueError) as error:
                refuse_shapes(error, "scatter", (held, update))
                raise

        return self._change(change, update, read_value)

    if TYPE_CHECKING:  # `ops.operators` attaches them

        def _scatter_slices(
            self, sparse_delta: Slices, use_locking: bool = False, name: str | None = None
        ) -> Variable: ...
        def _scatter_nd(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable: ...

        scatter_update = scatter_add = scatter_sub = scatter_max = scatter_min = _scatter_slices
        scatter_mul = scatter_div = _scatter_slices
        scatter_nd_update = scatter_nd_add = scatter_nd_sub = scatter_nd_max = scatter_nd_min = _scatter_nd

    def __copy__(self) -> Variable:
        return self  # TensorFlow's shallow copy shares the state, too

    def _repr_html_(self) -> str:
        return value_html(self._array, f"tf.Variable {self.name!r}", repr(self))

    def __repr__(self) -> str:
        array = self._seen()
        if not isinstance(array, jax.Array):
            return f"<tf.Variable {self.name!r} {array!r}>"
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={array.dtype}, {numpy_text(array)}>"


def _refuses(operator: str, instead: str) -> Callable:
    why = f"Variable {operator} value is not supported: it would put a tensor in the variable's place."
    advice = f"Use {instead} to change the variable, or `v = v {operator[:-1]} value` for a tensor"

    def refuse(self: Variable, other: TensorLike) -> NoReturn:
        raise RuntimeError(f"{why} {advice}")

    return refuse


for _method, _operator, _instead in (
    ("__iadd__", "+=", "v.assign_add(value)"),
    ("__isub__", "-=", "v.assign_sub(value)"),
    ("__imul__", "*=", "v.assign(v * value)"),
    ("__itruediv__", "/=", "v.assign(v / value)"),
    ("__ipow__", "**=", "v.assign(v ** value)"),
):
    setattr(Variable, _method, _refuses(_operator, _instead))


def _own_array(value: TensorLike, dtype: DTypeLike | None) -> Array:
    """An array without other references, for a variable to keep."""
    array = array_or_converted(value, dtype)
    if array is None and not (isinstance(value, (list, tuple)) and holds_arrays(value)):
        return constant_array(value, dtype)
    array = raw(value if array is None else array, dtype)
    with active.outside():
        own = _copy(array)
    reading.record_escape("state", array, into=own)
    return own


def _put(held, update, *arrays, how, layout):
    """`held` with `update` at an index, whose parts are `arrays` and what is in `layout`."""
    left = iter(arrays)
    index = tuple([next(left) if part is None else part[0] for part in layout])
    return getattr(held.at[index], how)(update)


def _plain_index(index: Any) -> Any:
    return index if isinstance(index, (int, slice)) or index is None or index is Ellipsis else raw(index)


def _require_rows(index: Index, updates: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for updates of another shape than what `index` stands for, or a known index out of range."""
    parts = [raw(part) for part in index] if isinstance(index, tuple) else [raw(index)]
    for part in parts:
        if not jnp.issubdtype(part.dtype, np.integer):
            raise DTypeError(f"indices must be integer, got {part.dtype}. Use tf.cast(indices, tf.int32)")
    wanted = (*parts[0].shape, *shape[len(parts) :])
    if updates != wanted and (updates or isinstance(index, tuple)):  # a number is broadcast to all rows
        raise InvalidArgumentError(f"updates must have shape {wanted}, got {updates}")
    for part, length in zip(parts, shape, strict=False):
        if isinstance(part, Tracer) or next(iter(part.devices())).platform != "cpu":
            continue
        numbers = np.asarray(part)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < length:
            raise InvalidArgumentError(f"indices must be in [0, {length}), got {numbers}")


def nd_index(indices: TensorLike) -> tuple:
    with active.outside():
        columns = tuple(_columns(raw(indices)))
    if not columns:
        raise InvalidArgumentError("indices has rows of length 0: each row must index an axis")
    return columns


def _unflatten_variable(trainable: bool, children: Sequence) -> Variable:
    variable = object.__new__(Variable)
    variable._name, variable._trainable, variable._array = "Variable", trainable, children[0]
    variable._declared = variable.constraint = None
    return variable


# ---- to JAX it is a container of one array ----------------------------------------------------

for _kind in (VariableValue, VariableSlice):
    register_tensor(_kind)
# Only what a rebuilt variable needs is part of the structure: JAX compiles anew for every new structure.
jax.tree_util.register_pytree_node(Variable, lambda v: ((reading.read(v),), v._trainable), _unflatten_variable)
refuse_in_jax(Variable)
