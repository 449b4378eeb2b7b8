"""``tf.TensorArray``: a list of tensors of one dtype, filled by index, also in traced loops.

Where the indices are known it is a Python list, and writing records nothing. Where an index is traced (in the body of a
`while_loop` under `function`, say) it is one array with a row for each element, which is what XLA can carry through a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from ...jaxprs.fence import Tracer
from ...tape import active
from ..values import reading
from ..values.conversion import convert_to_tensor, raw
from ..values.dtypes import as_dtype, as_shape, requested
from ..values.errors import InvalidArgumentError, OutOfRangeError, PythonNeeded
from ..values.operations import op
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, Ignored, IntLike, IntsLike, ShapeLike, TensorLike
from . import array
from .table import host, static


class _Element:
    """What is known of the elements. Arrays that stand for one another, in a loop's body and around it, share it."""

    def __init__(self, dtype: DTypeLike, shape: ShapeLike, infer: bool):
        self.dtype = as_dtype(dtype)
        self.shape = as_shape(shape)
        self.infer = infer

    def admit(self, value: Tensor) -> None:
        if value.dtype != as_dtype(requested(self.dtype)):
            dtype = value.dtype.name
            raise InvalidArgumentError(f"TensorArray dtype is {self.dtype.name}, the value's {dtype}: use tf.cast")
        if not self.shape.is_compatible_with(value.shape):
            raise ValueError(f"Incompatible shape for value ({value.shape}), expected ({self.shape})")
        if self.infer:
            self.shape = self.shape.merge_with(value.shape)

    def zeros(self, *leading: int) -> Tensor:
        if self.shape.rank is None or not self.shape.is_fully_defined():
            text = f"has no known shape ({self.shape}): write it first, or give element_shape to the TensorArray"
            raise ValueError(f"an element that was never written {text}")
        return array.zeros((*leading, *self.shape), self.dtype)


class TensorArray:
    """A list of tensors of one dtype, filled by index.

    Args:
      dtype: the elements' dtype.
      size: how many elements there are at first.
      dynamic_size: whether writing beyond the end makes it longer. A `function` in which it does in a traced loop runs as
        Python.
      clear_after_read: whether an element can be read but once, by default true. Without meaning inside a `function`.
      element_shape: the elements' shape, where it is known beforehand.
      infer_shape: whether all elements must have one shape.
      tensor_array_name, handle, flow, colocate_with_first_write_call, name: taken for TensorFlow's sake.

    >>> import tapejax as tf
    >>> array = tf.TensorArray(tf.float32, size=2)
    >>> array = array.write(0, 1.0).write(1, 4.0)
    >>> print(array.stack().numpy())
    [1. 4.]
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: IntLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Ignored = None,
        flow: Ignored = None,
        infer_shape: bool = True,
        element_shape: ShapeLike | None = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ):
        if size is None and not (dynamic_size and active.staging()):
            raise ValueError("size must be given to a TensorArray; 0 will do for one of dynamic_size=True")
        self._element = _Element(dtype, element_shape, infer_shape)
        self._dynamic = bool(dynamic_size)
        self._clears = not reading.in_graph() and (clear_after_read is None or bool(clear_after_read))
        self._items: list[Tensor | None] | None = [None] * (0 if size is None else int(static(size, "size")))
        self._read: set[int] = set()
        self._rows: Tensor | None = None  # instead of the items, once an index is traced

    # ---- What is known of it ----

    dtype = property(lambda self: self._element.dtype, doc="The elements' dtype.")
    element_shape = property(lambda self: self._element.shape, doc="The elements' shape, as far as it is known.")
    dynamic_size = property(lambda self: self._dynamic, doc="Whether it grows.")

    def __len__(self) -> int:
        return len(self._items) if self._items is not None else self._rows._array.shape[0]  # type: ignore[union-attr]

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, int32."""
        return convert_to_tensor(len(self))

    def __repr__(self) -> str:
        return f"<tf.TensorArray: size={len(self)}, dtype={self.dtype.name}, element_shape={self.element_shape}>"

    # ---- Writing ----

    def _changing(self) -> TensorArray:
        """What a change is made to: this array, or in a graph, where arrays are values, a copy of it."""
        return self._copied() if reading.in_graph() else self

    def _copied(self) -> TensorArray:
        copy = object.__new__(TensorArray)
        vars(copy).update(vars(self))
        copy._items = None if self._items is None else list(self._items)
        copy._read = set(self._read)
        return copy

    def write(self, index: IntLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`; use what is returned.

        Raises:
          OutOfRangeError: there is no such index, and the array does not grow.
          InvalidArgumentError: `value` has another dtype.
          ValueError: `value` has another shape than the other elements.
        """
        changed = self._changing()
        changed._put(index, convert_to_tensor(value, dtype_hint=self.dtype))
        return changed

    def _put(self, index: IntLike, value: Tensor) -> None:
        place = _known(index)
        if isinstance(place, int) and place < 0:
            raise OutOfRangeError(f"Writing to negative indices (index {place}) is not allowed.")
        if isinstance(place, int) and place >= len(self):
            if not self._dynamic:
                raise OutOfRangeError(f"Tried to write to index {place} but array is not resizeable: {len(self)} long")
            if self._items is None:
                self._rows = array.concat([self._rows, self._element.zeros(place + 1 - len(self))], 0)
            else:
                self._items.extend([None] * (place + 1 - len(self._items)))
        self._element.admit(value)
        if isinstance(place, int) and self._items is not None:
            self._items[place] = value
            return
        if self._dynamic and not isinstance(place, int):
            text = "sizes are fixed in a compiled program: give the largest size, and dynamic_size=False"
            raise PythonNeeded(f"a TensorArray of dynamic_size=True was written to at a traced index: {text}")
        self._rows = op(_tensor_array_write, self._as_rows(), place, value)
        self._items = None

    def _as_rows(self) -> Tensor:
        if self._rows is not None:
            return self._rows
        return array.stack([self._filled(i) for i in range(len(self))]) if len(self) else self._element.zeros(0)

    def _filled(self, i: int) -> Tensor:
        if self._items is None:
            return array.getitem(self._rows, i)
        if self._items[i] is None:
            self._items[i] = self._element.zeros()
        return self._items[i]  # type: ignore[return-value]

    # ---- Reading ----

    def read(self, index: IntLike, name: str | None = None) -> Tensor:
        """The element at `index`.

        Raises:
          OutOfRangeError: there is no such index.
          InvalidArgumentError: the element was read before, and `clear_after_read` is true.
        """
        place = _known(index)
        if not isinstance(place, int):
            return array.getitem(self._as_rows(), place)
        if not 0 <= place < len(self):
            raise OutOfRangeError(f"Tried to read from index {place} but array size is: {len(self)}")
        if place in self._read and self._items is not None and self._items[place] is None:
            text = "it was cleared after a previous read (perhaps try setting clear_after_read = false?)"
            raise InvalidArgumentError(f"Could not read index {place} twice because {text}")
        value = self._filled(place)
        if self._clears and self._items is not None:
            self._items[place] = None
            self._read.add(place)
        return value

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis; elements that were never written are zeros."""
        return self._as_rows()

    def gather(self, indices: IntsLike, name: str | None = None) -> Tensor:
        """The elements at `indices` along a new first axis."""
        if self._items is None:
            return array.gather(self._rows, indices)
        return array.stack([self._filled(int(i)) for i in host(indices, "indices")])

    def concat(self, name: str | None = None) -> Tensor:
        """The elements joined along their first axis. Raises InvalidArgumentError for scalars."""
        if len(self) and not self._filled(0)._array.ndim:
            raise InvalidArgumentError("concat: the elements must be vectors at least, these are scalars: use stack()")
        return array.concat([self._filled(i) for i in range(len(self))], 0)

    # ---- Filling as a whole ----

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array filled with the rows of `value`.

        Raises:
          ValueError: there are more rows than elements, and the array does not grow.
        """
        rows = convert_to_tensor(value, dtype_hint=self.dtype)
        if rows._array.ndim and (count := rows._array.shape[0]) > len(self) and not self._dynamic:
            raise ValueError(f"Cannot unstack {count} tensors into a TensorArray of static size {len(self)}")
        if rows._array.shape[:1] == (0,):  # no row will say what their shape is
            changed = self._refilled(())
            changed._element.admit(array.zeros(rows._array.shape[1:], rows.dtype))
            return changed
        return self._refilled(array.unstack(rows))

    def scatter(self, indices: IntsLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` written at `indices`."""
        changed = self._changing()
        for index, row in zip(host(indices, "indices").tolist(), array.unstack(value), strict=True):
            changed._put(index, row)
        return changed

    def _refilled(self, items: Sequence[Tensor]) -> TensorArray:
        changed = self._changing()
        changed._items, changed._rows = list(items), None
        if items:
            changed._element.admit(items[0])
        return changed

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Lets go of the elements."""
        self._items, self._rows = [], None

    # ---- For what traces: control flow and JAX's tree functions ----

    def arrays(self) -> list[Array]:
        """Its elements as arrays for a loop to carry: one, or none while their shape is not known."""
        return [self._as_rows()._array] if self._has_shape() else []

    def _has_shape(self) -> bool:
        written = self._items is None or any(item is not None for item in self._items)
        return written or (self.element_shape.rank is not None and self.element_shape.is_fully_defined())

    def holding(self, arrays: Iterator[Array]) -> TensorArray:
        """An array like this one with elements from `arrays`, as many as `arrays()` of this one gave."""
        copy = self._copied()
        if self._has_shape():
            copy._items, copy._rows = None, Tensor(next(arrays))
        return copy


def _known(index: IntLike) -> int | Array:
    """An index as a number where its value is known, else as a traced array."""
    if isinstance(index, (int, np.integer)):
        return int(index)
    place = raw(index, dtype_hint="int32")
    return place if isinstance(place, Tracer) else int(host(place, "index"))


def _tensor_array_write(rows, i, row):
    return rows.at[i].set(row)


def _flatten(ta: TensorArray) -> tuple:
    element = ta._element
    shape = None if element.shape.rank is None else tuple(element.shape)
    written = None if ta._items is None else tuple(item is not None for item in ta._items)
    children = [ta._rows] if ta._items is None else [item for item in ta._items if item is not None]
    read = tuple(sorted(ta._read))
    return children, (element.dtype.name, shape, element.infer, ta._dynamic, ta._clears, written, read)


def _unflatten(settings: tuple, children: Sequence[Array]) -> TensorArray:
    dtype, shape, infer, dynamic, clears, written, read = settings
    ta = TensorArray(dtype, 0, dynamic, clears, infer_shape=infer, element_shape=shape)
    left = iter(children)
    if written is None:
        ta._items, ta._rows = None, next(left)
    else:
        ta._items = [next(left) if there else None for there in written]
    ta._read = set(read)
    return ta


jax.tree_util.register_pytree_node(TensorArray, _flatten, _unflatten)
