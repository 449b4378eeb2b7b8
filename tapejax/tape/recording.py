"""What a tape has seen, as data: the operations in order, what it watches since when, the variables that were read.

A value is known by the identity of its ``jax.Array``, which the entry that made it keeps alive.
"""

from __future__ import annotations

import copy
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import jax

from ..jaxprs.fence import Tracer
from ..jaxprs.types import Value, Where
from .where import Line, caller, line_of

if TYPE_CHECKING:
    from .operation import Op


def type_of(x: Value) -> str:
    """The dtype and shape of an array: ``float32[3,4]``; a scalar has its dtype only."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    shape = ",".join(map(str, getattr(x, "shape", ())))  # JAX's own Python numbers have a dtype only
    return f"{dtype}[{shape}]" if shape else str(dtype)


def is_deleted(x: Value) -> bool:
    """Whether `x` was deleted, most likely donated: neither a tracer is ever nor NumPy's numbers, which JAX hands on."""
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.is_deleted()


new_tuple = tuple.__new__  # a NamedTuple's own is Python, and takes three times as long


class Kept(NamedTuple):
    """What is kept of a call for its pullback: an operation that gives `arrays` after the recorded results, and these."""

    op: Op
    arrays: tuple[Any, ...]


class Entry(NamedTuple):
    """One recorded operation: `outputs = op(*inputs)`. Inputs that are no ``jax.Array`` are constants."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    where: Where = None  # what `caller` said: the line of the user's code that ran it
    kept: Kept | None = None

    @property
    def line(self) -> Line | None:
        """The line of the user's code that ran it."""
        return line_of(self.where)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(type_of, side)) for side in (self.inputs, self.outputs))
        return f"{self.op.name}: {ins} -> {outs}" + (f"  ({self.line})" if self.line else "")


class Mark(NamedTuple):
    """Something that happened to the tape, not to a value: `kind`, how many entries there were before, and the line."""

    kind: str
    position: int
    where: Where
    about: Any = None


class Recording:
    """What one tape has seen: its entries in order, what it watches since when, and the variables read."""

    __slots__ = (
        "entries",
        "watched",
        "variables",
        "watch_accessed",
        "marks",
        "forgotten",
        "forwarded",
        "origins",
        "x64",
        "reached",
    )

    def __init__(self, watch_accessed: bool = True):
        self.watch_accessed = watch_accessed
        self.x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
        self.entries: list[Entry] = []
        # id of a watched array -> (the array, kept alive; how many entries there were when the watch began)
        self.watched: dict[int, tuple[Any, int]] = {}
        # id of a watched variable -> (the variable, the arrays that it held when it was read)
        self.variables: dict[int, tuple[Any, dict[int, Value]]] = {}
        # for `execution.residuals`: how many entries it has looked at, and the ids of what is watched or computed from that
        self.reached: tuple[int, set[int]] = (0, set())
        # For `explain`: what happened to the tape, and what a recording that was reset knew (and is alive still).
        self.marks: list[Mark] = []
        self.forgotten: Any = ()
        # id of an output of a jitted call -> the input that the call returned unchanged as that output
        self.forwarded: dict[int, Value] = {}
        # id of an array of another library's variable -> what the variable held before jitted calls returned it unchanged
        self.origins: dict[int, Value] = {}

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "a tape can be neither pickled nor copied deeply: it identifies values by their arrays, and would not recognise "
            "copies of them. Take what is to be kept from it: gradients, or the function tape.as_function(target, sources)"
        )

    def mark(self, kind: str, about: Any = None) -> None:
        """Notes something that happens to the tape, for `explain`."""
        self.marks.append(Mark(kind, len(self.entries), caller(), about))

    def forget(self, former: Recording | None) -> None:
        """Takes the place of `former`, of which it keeps only which values that are still alive were in it."""
        if former is None:
            return
        seen = [x for entry in former.entries for x in entry.outputs] + [x for x, _ in former.watched.values()]
        self.forgotten = {id(x): weakref.ref(x) for x in seen if not isinstance(x, Tracer)}
        self.forgotten |= {key: ref for key, ref in dict(former.forgotten).items() if ref() is not None}

    def continuation(self) -> Recording:
        """A recording that holds what this one does, and goes on by itself."""
        found = Recording()
        for name in self.__slots__:
            setattr(found, name, copy.copy(getattr(self, name)))
        found.variables = {key: (variable, dict(arrays)) for key, (variable, arrays) in self.variables.items()}
        return found

    def watch(self, array: Value) -> None:
        self.watched.setdefault(id(array), (array, len(self.entries)))

    def watch_variable(self, variable: Any, array: Value) -> None:
        """Watches what `variable` holds now, and from here on whatever it holds when it is read."""
        arrays = self.variables.setdefault(id(variable), (variable, {}))[1]
        if id(array) not in arrays:
            arrays[id(array)] = array
            self.watch(array)

    def replace(self, old: Any, new: Any) -> None:
        """Another library's variable holds `new` in place of `old`: the same value still, if a jitted call returned it."""
        if self.forwarded.get(id(new)) is old:
            self.origins[id(new)] = self.origins.get(id(old), old)
