"""What becomes a parameter of the function that `GradientTape.as_function` makes, beside its sources.

A recording runs again with other values of an array only where all that came of the array was recorded. What Python made of
its value was not: a branch that was taken, a number, a NumPy array, the state of a variable. `Parameters.require_replayable`
looks for the traces which that leaves, and refuses.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MethodType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.dependence import is_key
from ...places import is_jaxs, line_of, serves
from ...tape.operation import PythonOp, is_ref
from ...tape.query import Query, Source
from ...tape.recording import Entry, Mark, Recording, type_of
from ...tape.slicing import Program
from ...tape.structures import Leaf
from ...tf.ops.opaque import ConstantOp
from ...tf.values.structures import is_variable, leaf_of
from ...tf.values.types import Array, Nest, TensorLike
from ..writing.graph import Graph, ValueMap, ValueSet
from .graph_evidence import given_at
from .listing import Names, name_of
from .spelling import SCOPE
from .tables import sections
from .trees import leaves_of, part_at

_NAMES_IN_CODE = {*SCOPE, "f", "sources", "scan", "while_loop", "while_rows", "flat"}
_LOOKED = ("python", "static", "closure")
_SAID = {case: text.strip() for case, text in sections(Path(__file__).with_suffix(".txt")).items()}


class Parameter(NamedTuple):
    """An argument, or by its `path` a part of one, `of`: its name, what the user holds, and the array that the tape saw."""

    name: str
    value: TensorLike
    array: Array
    path: tuple[Any, ...] = ()
    of: Nest = None

    def given(self, value: TensorLike) -> Array:
        """The array of a value that is given for it.

        Raises:
          TypeError: it has another shape or dtype, for which the recorded operations may not be right.
        """
        leaf, weak = leaf_of(value), _is_weak(self.array)
        if leaf is not None:
            array = leaf.array
        elif isinstance(value, (bool, int, float, complex)):
            fits = np.can_cast(type(value), self.array.dtype, "same_kind")
            array = jnp.asarray(value, None if weak or not fits else self.array.dtype)
        else:
            array = jnp.asarray(value)
        require_type(self.name, array, self.array)
        if weak and not _is_weak(array):
            raise _other_type(self.name, type_of(self.array) + ", from a Python number", array)
        return array


def require_type(name: str, array: Array, recorded: Array) -> None:
    """Raises a TypeError where `array` has another shape or dtype than was `recorded`.

    Sizes and dtypes are constants of recorded operations, which would give a wrong number.
    """
    if array.shape != recorded.shape or array.dtype != recorded.dtype:
        raise _other_type(name, type_of(recorded), array)


def require_independent(program: Program, owners: Sequence[int]) -> None:
    """Raises a ValueError where sources, or what one of them held at two times, cannot be given independently."""
    used = [i for i, slot in zip(owners, program.sources, strict=True) if slot is not None]
    made = {slot for step in program.steps for slot in step.outs}
    if len(used) > len(set(used)) or not made.isdisjoint(program.sources):
        raise ValueError(_said("dependent"))


def _other_type(name: str, expected: str, array: Array) -> TypeError:
    return TypeError(_said("other type", name=name, expected=expected, got=type_of(array)))


class Parameters:
    """The `arguments` of `as_function`, beside the leaves `starts` of its sources.

    Raises:
      TypeError: they are neither a dict, list nor tuple of tensors, arrays and variables.
      ValueError: a name cannot be a parameter's, a variable has changed, or a value is not an argument's alone.
    """

    def __init__(self, recording: Recording, arguments: Nest, starts: Sequence[Leaf], names: Names | None):
        self.recording = recording
        single = leaf_of(arguments) is not None
        named = isinstance(arguments, Mapping)
        if not (single or named or isinstance(arguments, (list, tuple))):
            raise TypeError(_said("no structure", got=arguments))
        values = [arguments] if single else list(arguments.values() if named else arguments)
        hints = list(arguments) if named else [None] * len(values)
        self.all: list[Parameter] = []
        for i, (hint, value) in enumerate(zip(hints, values, strict=True)):
            what = f"arguments[{(i if hint is None else hint)!r}]"
            leaves = [(path, leaf.value, self._seen(leaf, what)) for path, leaf in _leaves(value, what)]
            named_so = names.name(leaves[0][2]) if names and len(leaves) == 1 else None
            name = self._unused(named_so, i) if hint is None else hint
            if not is_parameter_name(name) or any(name == other.name for other in self.all):
                raise ValueError(_said("name", what=what, name=name))
            self.all += [Parameter(name, each, array, path, value) for path, each, array in leaves]
        self._require_own(starts)
        first = inspect.Parameter("sources", inspect.Parameter.POSITIONAL_ONLY)
        rest = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.names()]
        self.signature = inspect.Signature([first, *rest])

    def arrays_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Nest, list[Array]]:
        """The sources and, for each parameter, the array that a call gives."""
        sources, *values = self.signature.bind(*args, **kwargs).args
        of = dict(zip(self.names(), values, strict=True))
        return sources, [each.given(part_at(of[each.name], each.path)) for each in self.all]

    def names(self) -> list[str]:
        return list(dict.fromkeys(each.name for each in self.all))

    def sources(self) -> list[Source]:
        """The arguments as sources of a `Query`: they count from the beginning of the recording."""
        return [Source(each.array, watched=True) for each in self.all]

    def _seen(self, leaf: Leaf, what: str) -> Array:
        """The array that an argument held when the tape read it."""
        array = self.recording.origins.get(id(leaf.array), leaf.array)
        if not is_variable(leaf.value):
            return array
        _, read = self.recording.variables.get(id(leaf.value), (None, {}))
        held = list(read.values()) or [array]
        changes = [mark for mark in self.recording.marks if mark.kind in ("state", "assigned")]
        change = next((mark for mark in changes if given_at(mark)[0] is held[-1]), None)
        if len(held) > 1 or change is not None:
            raise ValueError(_said("assigned", what=what, at=_at(change)))
        return held[0]

    def _unused(self, hint: str | None, position: int) -> str:
        base = hint if hint is not None and is_parameter_name(hint) else f"x{position}"
        taken = {each.name for each in self.all}
        return base if base not in taken else f"{base}_{position}"

    def _require_own(self, starts: Sequence[Leaf]) -> None:
        """Values are known by identity: what is one array cannot have two values."""
        holders = ValueMap((leaf.array, "a source") for leaf in starts)
        for variable, read in self.recording.variables.values():
            for x in read.values():
                if not any(variable is each.value for each in self.all):
                    holders[x] = f"the variable {getattr(variable, 'name', variable)!r}"
        for each in self.all:
            if other := holders.get(each.array):
                raise ValueError(_said("same array", name=each.name, other=other))
            holders[each.array] = f"the argument {each.name!r}"

    # -- what cannot be replayed

    def require_replayable(self, query: Query, arrays: Sequence[Array]) -> None:
        """Refuses arguments on which the program depends through something that was not recorded.

        Args:
          query: of the targets, the sources and these arguments.
          arrays: all that the sources held.

        Raises:
          ValueError: there is one; it says which, through what, and at which line.
        """
        stop = next((mark for mark in self.recording.marks if mark.kind in ("stop", "reset")), None)
        if self.all and stop is not None:
            raise ValueError(_said("stopped", at=_at(stop)))
        graph = Graph(self.recording.entries)
        held = ValueSet(arrays)  # these are given anew, whatever they were computed from
        looks = [(mark, given_at(mark)) for mark in self.recording.marks if mark.kind in (*_LOOKED, "state")]
        came_of = ValueMap[str]()  # of a value the argument that it was computed from
        for each in self.all:
            came = graph.after([each.array], held)
            state = ValueMap[Mark]()  # what was computed from it through an assignment to a variable
            for mark, (into, *values) in looks:
                if mark.kind in _LOOKED and not came.isdisjoint(values):
                    _refuse(each.name, _said(mark.kind), mark)
                if mark.kind == "state" and into is not None and into not in held:
                    ways = (mark if x in came else state.get(x) for x in values)
                    if (first := next(filter(None, ways), None)) is not None:
                        state.update((x, first) for x in graph.after([into], held))
            for target in query.targets:
                if target in state:
                    _refuse(each.name, "a variable was assigned what was computed of", state[target])
            came_of.update((x, each.name) for x in came)
        if self.all:
            self._require_connected(query)
            used = ValueSet([*query.targets, *(x for _, (_, *values) in looks for x in values)])
            self._require_recorded(came_of, graph, used)
            self._require_no_python(graph, query)

    def _require_connected(self, query: Query) -> None:
        used, computed = ValueSet(query.targets), ValueSet()
        for position, step in query.relevant()[0].items():
            entry = self.recording.entries[position]
            used.update(entry.inputs[i] for i in step.active_ins)
            computed.update(entry.outputs[j] for j in step.active_outs)
        for each in self.all:
            if each.array in computed:
                raise ValueError(_said("computed", name=each.name))
            if each.array not in used:
                why = "it has been assigned to since, or was" if is_variable(each.value) else "it was"
                raise ValueError(_said("not used", name=each.name, why=why))

    def _require_recorded(self, came_of: ValueMap[str], graph: Graph, used: ValueSet) -> None:
        """What was computed of an argument and not used by any operation may have been used by Python, as ``if x > 0`` does."""
        for entry in graph.operations:
            name = next((came_of[x] for x in entry.inputs if hasattr(x, "dtype") and x in came_of), None)
            if name is None:
                continue
            if any(map(is_ref, (*entry.inputs, *entry.outputs))):
                _refuse(name, "a jax.Ref holds what was computed of", entry)
            tensors = entry.op.bound is not None and not hasattr(entry.op.bound[0], "bind")  # their reads leave marks
            if not (tensors or _is_traceable(entry) or any(graph.uses(x) or x in used for x in entry.outputs)):
                _refuse(name, _said("unused", operation=name_of(entry)), entry, " " + _SAID["unused: advice"])

    def _require_no_python(self, graph: Graph, query: Query) -> None:
        """Python that runs as one operation may use any value, and NumPy can read a jax.Array without a trace."""
        plain = [each.name for each in self.all if isinstance(each.value, jax.Array) and not is_key(each.array)]
        for position in reversed(graph.before(query.targets)):
            entry = graph.operations[position]
            op = entry.op
            unbound = type(op) in (PythonOp, ConstantOp) and op.bound is None
            if unbound and not isinstance(getattr(op.fn, "func", None), MethodType):
                _refuse(self.all[0].name, f"{op.name} runs Python, which may use the value of", entry)
            numpy = (x for x in entry.inputs if hasattr(x, "dtype") and not isinstance(x, jax.Array))
            if plain and any(np.size(x) > 1 for x in numpy):
                _refuse(plain[0], _said("NumPy", operation=name_of(entry)), entry, " " + _SAID["NumPy: advice"])


def _is_traceable(entry: Entry) -> bool:
    """Whether code of Keras's or JAX's ran it, which looks at no values: it can be traced."""
    files = [code.co_filename for code, _ in entry.calls[-1:]]
    return any(is_jaxs(file) or serves(file) and f"{os.sep}keras{os.sep}" in file for file in files)


def _leaves(value: Nest, what: str) -> Iterator[tuple[tuple[Any, ...], Leaf]]:
    """The tensors in an argument, each with its path."""
    for path, x in leaves_of(value):
        leaf = leaf_of(x)
        if leaf is None or None in path:
            raise TypeError(_said("no tensor", what=what, value=x))
        yield path, leaf


def _refuse(name: str, why: str, where: Mark | Entry, advice: str = "") -> None:
    raise ValueError(_said("not recorded", name=name, why=why, at=_at(where), advice=advice))


def _said(case: str, **values: Any) -> str:
    return _SAID[case].format(**values)


def _at(where: Mark | Entry | None) -> str:
    line = None if where is None else line_of(where.where)
    return f" ({line}: `{line.text}`)" if line else ""


def _is_weak(array: Array) -> bool:
    return bool(getattr(jax.typeof(array), "weak_type", False))


def is_parameter_name(name: Any) -> bool:
    """Whether printed code can have a parameter of that name: of what is built in, code uses types only."""
    plain = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    return plain and name not in _NAMES_IN_CODE and not isinstance(getattr(builtins, name, None), type)
