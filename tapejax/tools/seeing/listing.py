"""What a tape recorded, as a table: names, shapes, and the lines of the user's code, in text and in HTML.

Nothing here runs while a tape records. An entry holds the code object and the instruction that ran it; which line that
is, and what the user calls the values, is looked up when the table is shown.
"""

from __future__ import annotations

import ast
import bisect
import dis
import html
import itertools
import linecache
import re
import sys
import traceback
from collections import ChainMap, Counter
from collections.abc import Container, Hashable, Iterator, Sequence, Set
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from ...jaxprs import contents
from ...jaxprs.cache import memoised
from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...places import Place, line_of, serves
from ...tape import active
from ...tape.gradient_tape import GradientTape
from ...tape.query import Query, Source
from ...tape.recording import Entry, Mark, Recording, is_deleted, type_of
from ...tape.structures import Leaf
from ...tf.values.shown import ORANGE, bold, faint, number_text, page, table_html
from ...tf.values.structures import is_variable, leaf_of
from ...tf.values.tensor import Tensor
from ...tf.values.types import Array, VariableLike
from ...tf.values.variable import Variable
from ..writing.files import source_of
from ..writing.graph import Graph, ValueMap
from .tables import cut, in_columns

# Tables longer than this show their beginning and their end.
ROWS, FIRST, LAST = 60, 40, 15
# Longer than this, a loop is shown by one round, if that hides so many rows; so many lengths of a round are tried.
UNFOLDED, HIDDEN, PERIODS = 30, 12, 16
# In HTML what is between is folded into groups, as many as a browser opens without a pause.
GROUP, GROUPS = 100, 6
# How far into containers and objects names are looked for, and how many objects in all.
DEPTH, OBJECTS = 4, 5000


Variables: TypeAlias = dict[str, Any]  # of a running function or module, by name


# ---- names ----------------------------------------------------------------------------------------------------------


def user_frames() -> Iterator[FrameType]:
    """The frames of the user's running code, the innermost first."""
    frames = traceback.walk_stack(sys._getframe(1))
    return (frame for frame, _ in frames if not serves(frame.f_code.co_filename))


def running() -> list[Place]:
    """Where the user's running code is, in the form of `places.caller`: the innermost frame first."""
    return [(frame.f_code, frame.f_lasti) for frame in user_frames()]


class Space(dict[str, Any]):
    """The variables of a running function or module; `passing` are those that a loop binds anew each time."""

    passing: Set[str] = frozenset()


def namespaces() -> list[Variables]:
    """The variables in scope of the user's running code: of the innermost frame first, of ``__main__`` if there is none."""
    spaces: list[Variables] = []
    for frame in user_frames():
        spaces.append(space := Space(frame.f_locals))
        space.passing = bytecode(frame.f_code).loops
        if len(spaces) == 1 and frame.f_globals is not frame.f_locals:
            spaces.append(frame.f_globals)
    return spaces or [vars(sys.modules["__main__"])]


class Names:
    """What the user calls the values of a recording, and what the tape calls those that have no name.

    A value is known by its identity. What no variable holds any more is called by the name that it was stored under when
    it was computed, with the number of its entry where others were, too: ``hidden``, ``h_3``. What was watched under a name
    that has another value now is ``x_watched``. Other results are ``t3`` (of entry 3) or ``t3_1``, other arrays ``c0,
    c1...`` in the order in which they were used, so that a value has one name in every view of a tape. `spaces` are those of
    the running code unless others are given.
    """

    def __init__(self, recording: Recording, spaces: Sequence[Variables] | None = None):
        spaces = namespaces() if spaces is None else spaces
        self._names = ValueMap[str]()
        self.variables: list[VariableLike] = []  # of other libraries, found on the way
        self._seen: set[int] = set()
        self._given = ValueMap[str]()
        self._watches = ValueMap[str]()
        self._own = ValueMap[str]()  # of variables that are parts of containers
        self._watched = recording.watched.keys()
        # the order of the search: values with a plain name, then everything else; the better name of a Variable that a
        # loop goes over is ``layers[1]``, not ``layer``
        with active.outside():
            passing: list[Set[str]] = [getattr(space, "passing", frozenset()) for space in spaces]
            named = [
                (name in loops, name, value)
                for space, loops in zip(spaces, passing, strict=True)
                for name, value in sorted(space.items(), key=lambda item: item[0] in loops)
                if not name.startswith("_")
            ]
            plain = [item for item in named if leaf_of_quietly(item[2]) and not (item[0] and is_variable(item[2]))]
            for _, name, value in (*plain, *named):
                self._add(name, value, 0)
            for variable, read in recording.variables.values():
                leaf, own = leaf_of_quietly(variable), _own_name(variable)
                held = [*read.values(), *([] if leaf is None else [leaf.array])]
                if called := (leaf and self.name(leaf.array)) or own:
                    for array in held:
                        if "[" in self._names.setdefault(array, called) and own:
                            self._own[array] = own
        self._numbers = itertools.count()  # of those without a name
        self.graph = Graph(recording.entries)
        stored = _stored(self.graph)
        # the names under which results of entries were stored
        self._stored = ValueMap((x, own) for i, own in stored.items() for x in recording.entries[i].outputs)
        often = Counter([*stored.values(), *self._names.values()])
        for position, entry in enumerate(recording.entries):
            own = stored.get(position)
            for j, x in enumerate(entry.outputs):
                name = f"t{position}" if len(entry.outputs) == 1 else f"t{position}_{j}"
                if own is not None:
                    name = own if often[own] == 1 else f"{own}_{position}"
                self._given.setdefault(x, name)
        self._name_watched(recording)
        for entry in recording.entries:
            for x in entry.inputs:
                if isinstance(x, jax.Array) and (not _is_scalar(x) or id(x) in self._watched):
                    self.of(x)

    def _name_watched(self, recording: Recording) -> None:
        """A value without other references is named as in ``tape.watch(x)``."""
        taken = {*self._names.values(), *self._stored.values()}
        for mark in recording.marks:
            if mark.kind != "watch" or mark.about in self._names or mark.about in self._given:
                continue
            if (name := watched_as(mark)) is not None:
                free = unused(f"{name}_watched", taken) if name in taken else name
                self._given[mark.about] = self._watches[mark.about] = free
                taken.add(free)

    def _add(self, name: str, value: object, depth: int) -> None:
        if isinstance(value, (str, bytes, int, float, complex, type(None), type, np.ndarray, np.generic)):
            return
        leaf = leaf_of_quietly(value)
        if leaf is not None:
            if isinstance(leaf.array, jax.Array):
                self._names.setdefault(leaf.array, name)
            if is_variable(value) and not isinstance(value, Variable):
                self.variables.append(value)
            return
        if depth >= DEPTH or len(self._seen) >= OBJECTS or id(value) in self._seen:
            return
        self._seen.add(id(value))
        for part, inner in parts_of(value):
            self._add(part[1:] if part[0] == "=" else name + part, inner, depth + 1)

    def only(self, values: Sequence[Value]) -> ValueMap[str]:
        """What the user's code calls these values."""
        names = ChainMap(self._own, self._names, self._watches, self._stored)
        return ValueMap((x, names[x]) for x in values if x in names)

    def unnamed(self, values: Sequence[Value]) -> ValueMap[str]:
        """What the tape calls those of these values that it did not compute."""
        return ValueMap((x, self._given[x]) for x in values if x in self._given and not self.is_result(x))

    def is_result(self, x: Value) -> bool:
        """Whether an entry made `x`."""
        return self.graph.position(x) is not None

    def name(self, x: Value) -> str | None:
        """What the user calls `x`, or None."""
        return self._names.get(x)

    def stored(self, x: Value) -> str | None:
        """The name under which the user's code stored `x` when it was computed."""
        return self._stored.get(x)

    def of(self, x: Value) -> str:
        """What `x` is called in the table; a number is called by its value."""
        if not isinstance(x, jax.Array):
            return number_text(x)
        name = self._names.get(x) or self._given.get(x)
        if name is None:
            if _is_scalar(x) and id(x) not in self._watched:
                return number_text(x if is_deleted(x) else np.asarray(x)[()])
            name = self._given[x] = f"c{next(self._numbers)}"
        return name

    def typed(self, x: Value) -> str:
        """Its name with its dtype and shape: ``w: float32[3,4]``."""
        name = shortened(self.of(x))  # a number is written as it is
        return f"{name}: {type_of(x)}" if x in self._names or x in self._given else name


def identifier(hint: str) -> str:
    """`hint` as an identifier."""
    base = re.sub(r"\W+", "_", hint).strip("_") or "x"
    return f"x{base}" if base[0].isdigit() else base


def unused(hint: str, taken: Container[str], first: int = 2) -> str:
    """A name that is not taken: `hint`, or with a number behind it."""
    names = itertools.chain([hint], (f"{hint}_{i}" for i in itertools.count(first)))
    return next(name for name in names if name not in taken)


def _is_scalar(x: Array) -> bool:
    """Whether `x` is a number with a value that can be written down."""
    return not isinstance(x, Tracer) and x.ndim == 0 and bool(jax.numpy.issubdtype(x.dtype, np.number))


def watched_as(mark: Mark) -> str | None:
    """The name in ``tape.watch(x)`` that a mark notes, where the argument is no more than a name."""
    names = () if mark.where is None else operands(*mark.where)
    return names[0] if len(names) == 1 else None


def _stored(graph: Graph) -> dict[int, str]:
    """The name under which the user's code stored the result of an entry, by position, where that is sure.

    The instruction behind the one that ran an entry says which. One instruction may run several operations: what it gave
    back is then the last one's result, unless only another's was used afterwards.
    """
    # by instruction where its entries begin and end, with those of functions that it called
    runs: list[tuple[Place, list[int]]] = []
    running: dict[int, tuple[int, list[int]]] = {}  # by code object: its last instruction, and the run
    for position, entry in enumerate(graph.operations):
        if entry.where is not None:
            code, instruction = entry.where
            before, run = running.get(id(code), (None, []))
            if before == instruction:
                run[1] = position + 1
            else:
                runs.append((entry.where, [position, position + 1]))
                running[id(code)] = instruction, runs[-1][1]
    names = {}
    for (code, instruction), (start, stop) in runs:
        name = bytecode(code).stores.get(instruction)
        if name is None or len(graph.operations[stop - 1].outputs) != 1:
            continue
        used = {
            i for i in range(start, stop) for x in graph.operations[i].outputs if max(graph.uses(x), default=-1) >= stop
        }
        if used <= {stop - 1}:
            names[stop - 1] = name
    return names


class Bytecode(NamedTuple):
    """What the instructions of a code object say: the name under which the result of each is stored right away, or the names
    of its parts, the names that loops bind, where loops begin and end, the names that others got (``x = y``), where the
    comprehension ends that each is in (a code object of its own before Python 3.12), what computes
    what is returned; where in the source each is; of those in ``a, b = f(x), g(x)`` the line of all; and under which name an
    item of the result is stored, as ``a = f(x)[1]`` does."""

    stores: dict[int, str]
    parts: dict[int, list[str]]
    loops: set[str]
    rounds: list[tuple[int, int]]
    same: dict[str | None, str]
    comprehensions: dict[int, int]
    returned: list[int]
    positions: list[tuple[int | None, int | None, int | None, int | None]]
    pairs: dict[int, int]
    items: dict[int, str]


def target_of(code: CodeType, instruction: int) -> str:
    """The name that a ``for`` binds whose rows an instruction makes; empty if it binds several."""
    steps = itertools.dropwhile(lambda step: step.offset < instruction, dis.get_instructions(code))
    for step in steps:
        if step.opname == "FOR_ITER":
            store = next(steps)
            name = store.argval[0] if isinstance(store.argval, tuple) else store.argval
            return name if store.opname.startswith("STORE_") else ""
    return ""


@memoised(256)
def bytecode(code: CodeType) -> Bytecode:
    facts = Bytecode({}, {}, set(), [], {}, {}, [], list(code.co_positions()), {}, {})
    recent = [0] * 3
    binding, unpacking, before, parts, read, inlined, end, last = False, False, 0, list[str](), "", -1, -1, -1
    for step in dis.get_instructions(code):
        opname = step.opname
        names: tuple = step.argval if isinstance(step.argval, tuple) else (step.argval,)  # 3.13 has two in one
        binding = opname == "FOR_ITER" or binding and opname.startswith(("UNPACK_", "STORE_"))
        if opname == "UNPACK_SEQUENCE":
            parts = parts if unpacking else []  # ``(a, b), c`` as a, b, c
            facts.parts.update(dict.fromkeys(range(before, step.offset + 1), parts))
        elif unpacking and opname.startswith("STORE_"):
            parts += names
        unpacking = opname == "UNPACK_SEQUENCE" or unpacking and opname.startswith("STORE_")
        if binding and opname.startswith("STORE_"):
            facts.loops.update(filter(None, names))
        if opname == "LOAD_FAST_AND_CLEAR" and step.offset > end and inlined < 0:
            inlined = step.offset
        if opname == "FOR_ITER" and inlined >= 0:
            facts.comprehensions.update(dict.fromkeys(range(inlined, end := step.argval), end))
            inlined = -1
        if "BACKWARD" in opname:
            facts.rounds.append((step.argval, step.offset))
        if opname == "STORE_FAST" and read:
            facts.same[names[0]] = read
        if opname == "RETURN_VALUE":
            facts.returned.append(last)
        read, last = step.argval if opname == "LOAD_FAST" else "", step.offset
        if opname.startswith(_STORES) and before not in facts.parts and not names[0].startswith("_"):
            facts.stores.update(dict.fromkeys(range(before, step.offset), names[0]))
            facts.items.update(dict.fromkeys(range(*recent[:2]), names[0]))
        recent = [*recent[1:], step.offset]
        if opname != "COPY" and not (opname == "POP_TOP" and before == end):  # of ``a = b = f(x)`` or ``(a := f(x))``
            before = step.offset
    if pairs := source_of(code.co_filename).pairs:
        named = ((2 * i, pairs[where]) for i, where in enumerate(facts.positions) if where in pairs)
        for instruction, (name, line) in named:
            facts.pairs[instruction] = line
            if not name.startswith("_"):
                facts.stores[instruction] = name
    return facts


_STORES = tuple(f"STORE_{of}" for of in ("FAST", "NAME", "GLOBAL", "DEREF"))


def expression_at(code: CodeType, instruction: int) -> ast.expr | None:
    """What an instruction computes, as the source has it, and where."""
    line, last, start, stop = bytecode(code).positions[instruction // 2]
    try:
        lines = [text.encode() for text in linecache.getlines(code.co_filename)[line - 1 : last]]  # type: ignore[operator]
        text = b"".join([*lines[:-1], lines[-1][:stop]])[start:].decode()
        return _expression(text, line, start)  # type: ignore[arg-type]
    except (TypeError, IndexError, SyntaxError):  # no source, or no expression
        return None


def _expression(text: str, line: int, start: int) -> ast.expr:
    """An expression that begins at a line and a column; of ``x += y`` what it computes, ``x + y``."""
    tree: Any
    try:
        tree = ast.parse(f"(\n{' ' * start}{text}\n)", mode="eval")
        return ast.increment_lineno(tree, line - 2).body
    except SyntaxError:
        tree = ast.parse(f"if 1:\n{' ' * start}{text}" if start else f"\n{text}").body[0]
        tree = tree.body[0] if start else tree
        if not isinstance(tree, ast.AugAssign):
            raise
        left, right = ast.parse(ast.unparse(tree.target), mode="eval").body, tree.value
        return ast.copy_location(ast.BinOp(left, tree.op, ast.increment_lineno(right, line - 2)), right)


def operands(code: CodeType, instruction: int, items: bool = False) -> tuple[str | None, ...]:
    """The names of what a call or an operator takes, in their order, None where that is no name; () where none is. `items`: of
    ``p["w"]``, too, ``p_w``."""
    parts: Sequence[ast.expr] = ()
    match expression_at(code, instruction) if instruction >= 0 else None:
        case ast.Call(args=args) if not any(isinstance(arg, ast.Starred) for arg in args):
            parts = args
        case ast.BinOp(left=left, right=right):
            parts = [left, right]
    same = bytecode(code).same if serves(code.co_filename) else {}
    names = tuple([same.get(name, name) for name in (name_of_operand(part, items) for part in parts)])
    return names if any(names) else ()


def name_of_operand(operand: ast.expr, items: bool) -> str | None:
    match operand:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if items:
            return f"{name}_{key}"
    return None


def arguments_at(code: CodeType, instruction: int, parameters: Sequence[str]) -> dict[Hashable, str]:
    """By where in the source the arguments of a call are, as in `Bytecode.positions`, the parameters that they are for."""
    given = arguments_of(code, instruction, parameters).items()
    return {(x.lineno, x.end_lineno, x.col_offset, x.end_col_offset): name for name, x in given}


def calls_of_parts(code: CodeType, instruction: int) -> list[int]:
    """The instructions at which a function is called, alone or mapped, that is a part of what `instruction` gives."""
    parts, offsets = bytecode(code).parts.get(instruction, ()), list[int]()
    for step in dis.get_instructions(code):
        match expression_at(code, step.offset) if step.opname.startswith("CALL") else None:
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Call(args=[ast.Name(id=name), *_])):
                offsets += [step.offset] if name in parts else []
    return offsets


def returned_by(code: CodeType) -> dict[Hashable, int]:
    """The place of each part of the tuple that a function returns, by its name and by where in the source it is, as in
    `Bytecode.positions`; empty if it does not return one, written as that, in one place."""
    ends = bytecode(code).returned
    tree = expression_at(code, ends[0]) if len(ends) == 1 else None
    parts = tree.elts if isinstance(tree, ast.Tuple) else []
    places: dict[Hashable, int] = {x.id: i for i, x in enumerate(parts) if isinstance(x, ast.Name)}
    return places | {(x.lineno, x.end_lineno, x.col_offset, x.end_col_offset): i for i, x in enumerate(parts)}


def arguments_of(code: CodeType, instruction: int, parameters: Sequence[str]) -> dict[str, ast.expr]:
    """What a call gives for each of its `parameters`, as the source has it."""
    match expression_at(code, instruction) if instruction >= 0 else None:
        case ast.Call(args=args, keywords=keywords) if not any(isinstance(arg, ast.Starred) for arg in args):
            return dict(zip(parameters, args, strict=False)) | {each.arg or "": each.value for each in keywords}
    return {}


def texts_at(code: CodeType, instruction: int, parameters: Sequence[str]) -> list[str]:
    """The parameters for which a call has a string in it: they are no arrays."""
    given = arguments_of(code, instruction, parameters).items()
    return [name for name, x in given if isinstance(x, ast.Constant) and isinstance(x.value, str)]


def parameters_of(code: CodeType) -> list[str]:
    """Its parameters by position, without the object that a method is of."""
    return [name for name in code.co_varnames[: code.co_argcount] if name not in ("self", "cls")]


def handed_on(places: Sequence[Place], names: tuple[str | None, ...] = ()) -> tuple[str | None, ...]:
    """`operands` of the innermost of functions that call each other, or `names` that it has; what is handed on has the name that
    the outermost has."""
    (code, instruction), *outer = reversed(places)
    names = names or operands(code, instruction, items=True)
    for place in outer:
        own = parameters_of(code)
        handed = dict(zip(own, operands(*place), strict=False))
        names = tuple([handed.get(name or "") if name in own else name for name in names])
        code = place[0]
    return names


def leaf_of_quietly(value: object) -> Leaf | None:
    """`leaf_of`, or None where a foreign object fails: names are looked for in all of the user's objects."""
    if isinstance(value, (Tensor, Variable, jax.Array)):
        return leaf_of(value)
    try:
        return leaf_of(value) if is_variable(value) else None
    except Exception:
        return None


def _own_name(variable: VariableLike) -> str | None:
    name = getattr(variable, "path", None) or getattr(variable, "_name", None)
    return None if name in (None, "Variable") else str(name)


def parts_of(value: Any) -> Iterator[tuple[str, object]]:
    """The parts of a container or an object, each with the code that follows its name; of a Keras layer its variables."""
    if type(value).__module__.split(".")[0] in _NOT_MODELS - {"builtins"}:
        return
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", inner) for key, inner in list(value.items())[:200])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{field}", getattr(value, field)) for field in value._fields)
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", inner) for i, inner in enumerate(value[:200]))
    elif not callable(value) or not hasattr(value, "__name__"):  # it may be a model: no function or module
        if type(value).__module__.split(".")[0] in _NOT_MODELS:
            return
        if any(base.__module__.startswith("keras.") for base in type(value).__mro__):  # its variables have names
            yield from ((f"={getattr(v, 'path', i)}", v) for i, v in enumerate(getattr(value, "variables", None) or ()))
            return
        held = list(getattr(value, "__dict__", {}).items())
        yield from ((f".{name}", inner) for name, inner in held if name[:1] != "_")


_NOT_MODELS = set("builtins jax jaxlib numpy tapejax IPython ipykernel matplotlib _pytest argparse".split())


# The arguments that say what an operation does, where its inputs and its result do not.
_TELLING = ("axis", "axes", "perm", "permutation", "dimension", "keepdims", "equation", "y", "exponent")


def name_of(entry: Entry) -> str:
    """What an operation is called when it is shown."""
    return entry.op.name.strip("_")


def options(entry: Entry) -> list[str]:
    """The static arguments of an operation: ``2`` of a power, ``axis=1`` of a sum."""
    if entry.op.bound is None:
        return []
    what, static = entry.op.bound
    if "jaxpr" in static:  # a function of `jnp`: the static arguments of its one operation
        equations = [{**eqn.params} for eqn in contents.open_jaxpr(static["jaxpr"]).eqns]
        equations = [params for params in equations if any(key in params for key in _TELLING)]
        static = equations[0] if len(equations) == 1 and getattr(what, "name", None) in contents.JIT else {}
    keys = [key for key in _TELLING if static.get(key) not in (None, False, ())]
    if all(getattr(x, "shape", None) == () for x in entry.outputs):  # of all axes
        keys = [key for key in keys if key not in ("axis", "axes")]
    return [_option(key, static[key]) for key in keys]


def _option(key: str, value: object) -> str:
    value = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    text = repr(value) if isinstance(value, str) else str(value).replace(" ", "")
    plain = {"y": "", "exponent": "", "equation": "", "axes": "axis=", "dimension": "axis=", "permutation": "perm="}
    return plain.get(key, f"{key}=") + text


# ---- the table ------------------------------------------------------------------------------------------------------


class Repetition(NamedTuple):
    """Entries that go in circles: the first, how many one round has, and how many rounds there are."""

    first: int
    period: int
    rounds: int

    @property
    def stop(self) -> int:
        return self.first + self.period * self.rounds


def folded(keys: Sequence[Hashable]) -> list[int | Repetition]:
    """The positions in `keys`, with a `Repetition` for the rounds after the first where that hides enough of them."""
    later: dict[Hashable, list[int]] = {}  # where each comes again
    for position, key in enumerate(keys):
        later.setdefault(key, []).append(position)
    parts: list[int | Repetition] = []
    start = 0
    while start < len(keys):
        again = later[keys[start]]
        next_ones = again[bisect.bisect(again, start) :][:PERIODS]
        best = max((_rounds(keys, start, stop - start) for stop in next_ones), default=None, key=lambda loop: loop.stop)
        if best is not None and best.stop - start - best.period >= HIDDEN and best.rounds > 2:
            parts += [*range(start, start + best.period), best]
            start = best.stop
        else:
            parts.append(start)
            start += 1
    return parts


def _rounds(keys: Sequence[Hashable], first: int, period: int) -> Repetition:
    """How often `period` entries repeat."""
    stop = first + period
    while keys[first : first + period] == keys[stop : stop + period]:
        stop += period
    return Repetition(first, period, (stop - first) // period)


def shown(keys: Sequence[Hashable], unfolded: int, most: int, first: int, last: int) -> list[int | Repetition | range]:
    """What is shown of rows with these keys: their positions; of more than `unfolded` rows a `Repetition` for its later rounds,
    and of what is longer than `most` then the `first` and `last` parts, with the range between them."""
    parts = folded(keys) if len(keys) > unfolded else [*range(len(keys))]
    if len(parts) <= most:
        return [*parts]
    ends = (parts[first], parts[-last])
    start, stop = (part.first + part.period if isinstance(part, Repetition) else part for part in ends)
    return [*parts[:first], range(start, stop), *parts[-last:]]


class Table:
    """The rows of a recording, each made when it is read: the number of an entry, a sign where gradient can pass through it to
    what the tape watches, its value, its operation, the inputs, the place of the line that ran it, and its text."""

    def __init__(self, tape: GradientTape, recording: Recording):
        self.names, self._entries = Names(recording), recording.entries
        self._active = active_positions(recording, self.names)
        self.heading = heading(tape, recording, self.names)

    def parts(self) -> list[int | Repetition | range]:
        """What is shown of it: rows by their position, and what is hidden between them."""
        facts = [(name_of(entry), entry.where, i in self._active) for i, entry in enumerate(self._entries)]
        types = [tuple(map(type_of, entry.outputs)) for entry in self._entries]
        return shown(list(zip(facts, types, strict=True)), UNFOLDED, ROWS, FIRST, LAST)

    def __getitem__(self, position: int) -> tuple[str, ...]:
        entry, line = self._entries[position], self._entries[position].line
        outputs, inputs = (list(map(self.names.typed, side)) for side in (entry.outputs, entry.inputs))
        texts = ", ".join(outputs), name_of(entry), ", ".join([*inputs, *options(entry)])
        return str(position), "∂" * (position in self._active), *texts, str(line or ""), line.text if line else ""


def in_words(hidden: Repetition | range) -> tuple[str, str]:
    """A sign for rows that are not shown, and which they are."""
    if isinstance(hidden, range):
        return "…", f"{len(hidden)} more: tape[{hidden[0]}] to tape[{hidden[-1]}]"
    first, last = hidden.first, hidden.first + hidden.period - 1
    these = f"tape[{first}]" + (f" to tape[{last}]" if last > first else "")
    return f"×{hidden.rounds}", f"{hidden.rounds} rounds like {these}, up to tape[{hidden.stop - 1}]"


def watching(recording: Recording, names: Names) -> list[Source]:
    """What the tape watches: also the arrays of other libraries' variables, of those that it has used."""
    accessed: list[Array] = []
    if recording.watch_accessed:
        trainable = [v for v in names.variables if getattr(v, "trainable", True)]
        arrays = [leaf.array for leaf in map(leaf_of_quietly, trainable) if leaf is not None]
        accessed = [x for x in arrays if names.graph.uses(x)]
    return [*(Source(x) for x, _ in recording.watched.values()), *(Source(x, watched=True) for x in accessed)]


def active_positions(recording: Recording, names: Names) -> set[int]:
    """The entries through which gradient reaches what the tape watches."""
    query = Query(recording, (), watching(recording, names))
    with active.outside():
        return {link.position for link in query.active()}


def heading(tape: GradientTape, recording: Recording | None, names: Names | None = None) -> str:
    """A summary of a tape in one line."""
    kind = "persistent GradientTape" if tape._persistent else "GradientTape"
    if recording is None:
        used = f"used up by the gradient taken at {line_of(tape._used) or 'some line'}"
        return f"{kind}, {'nothing recorded yet' if tape._used is None else used}"
    count = len(recording.entries)
    text = f"{kind}{', recording' if tape._active is not None else ''}: {count} operation{'' if count == 1 else 's'}"
    if names is not None:
        watched = list(dict.fromkeys(names.of(source.array) for source in watching(recording, names)))
        if watched:
            more = f" and {len(watched) - 8} more" if len(watched) > 8 else ""
            text += f"; watching {', '.join(watched[:8])}{more}"
    return text


def shortened(name: str, width: int = 32) -> str:
    """A long path by its end: ``…/dense_1/kernel``."""
    while len(name) > width and "/" in name.removeprefix("…/"):
        name = "…/" + name.removeprefix("…/").partition("/")[2]
    return name


def text_table(tape: GradientTape, recording: Recording | None) -> str:
    """What ``print(tape)`` prints."""
    if recording is None:
        return heading(tape, None)
    table = Table(tape, recording)
    rows: list[tuple[str, ...]] = [_TITLES]
    for part in table.parts():
        mark, text = ("", "") if isinstance(part, int) else in_words(part)
        rows.append(table[part] if isinstance(part, int) else (mark, "", "…", "…", "…", text, ""))
    carries = max(len(mark) for _, mark, *_ in rows)
    lines = in_columns(
        [
            (f"{number} {mark.ljust(carries)}", cut(value, 44), operation, cut(inputs, 60), cut(f"{where}  {text}", 64))
            for number, mark, value, operation, inputs, where, text in rows
        ],
        ">~<~~",
    )
    legend = ["∂: carries gradient to what the tape watches"] if carries else []
    return "\n".join([table.heading, *lines, *legend])


_TITLES = ("#", "", "value", "operation", "inputs", "line", "")


# A notebook that its reader has not run yet is not trusted: its <style> is dropped, and inline styles stay. So the
# essentials are inline, as short as can be: there are many cells.
def html_table(tape: GradientTape, recording: Recording | None) -> str:
    """What a notebook shows for a tape: a table, folded where it is long."""
    if recording is None:
        return page(html.escape(heading(tape, None)))
    table = Table(tape, recording)
    body = f"<div>{bold(table.heading)}</div>"
    for i, (_, run) in enumerate(itertools.groupby(table.parts(), type)):
        parts = list(run)
        rows = [table[part] for part in parts if isinstance(part, int)]
        body += table_html(rows, _COLUMNS, () if i else _TITLES) if rows else ""
        body += "".join(_html_hidden(table, part) for part in parts if not isinstance(part, int))
    return page(body + _LEGEND)


def _html_hidden(table: Table, hidden: Repetition | range) -> str:
    """Rows to be unfolded: of a loop its last round."""
    positions = range(hidden.stop - hidden.period, hidden.stop) if isinstance(hidden, Repetition) else hidden
    body, rest = "", positions[GROUP * GROUPS :]
    for i in range(0, len(positions) - len(rest), GROUP):
        part = positions[i : i + GROUP]
        summary = (
            " ".join(in_words(hidden)) if isinstance(hidden, Repetition) else f"operations {part[0]} to {part[-1]}"
        )
        body += f"<details><summary>{summary}</summary>{table_html(map(table.__getitem__, part), _COLUMNS)}</details>"
    return body + (f"<div>{faint(' '.join(in_words(rest)))}</div>" if rest else "")


_LEGEND = f"<div>{bold('∂', ORANGE)} {faint('carries gradient to what the tape watches')}</div>"


def _typed_html(text: str) -> str:
    """Names as they are, their types faint."""
    items = (item.partition(": ") for item in text.split(", "))
    return ", ".join(html.escape(name) + (f" {faint(kind)}" if colon else "") for name, colon, kind in items)


_COLUMNS = (
    *(faint, lambda mark: bold(mark, ORANGE), _typed_html, bold, _typed_html),
    *(faint, lambda text: html.escape(cut(text, 80))),
)
