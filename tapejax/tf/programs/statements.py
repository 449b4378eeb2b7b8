"""Python's statements and operators as functions: on known values as Python has them, on traced tensors as JAX's control flow.

A rewritten function (`autograph`) calls them. A block is a function without arguments that reads and assigns the variables of
the function around it; `get_state` and `set_state` read and set the variables that it may change.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.threads import Context
from ...places import caller, line_of
from ..ops import array, control_flow, debugging, loops, math
from ..ops.tensor_array import TensorArray
from ..values import nest
from ..values.conversion import is_array_like, raw
from ..values.dtypes import requested
from ..values.errors import PythonNeeded
from ..values.staging import Threaded, row_type
from ..values.tensor import Tensor
from ..values.types import Array, IntLike

Local: TypeAlias = Any  # what a variable of the user's function holds: a tensor, any Python value, or a nest of these
Leaf: TypeAlias = Any  # what is no nest: a tensor, a number, None ..., or `_Held` in the place of one with arrays
Test: TypeAlias = Any  # a condition: a tensor or any Python value

# What rewritten code calls, by malt's names.
OPERATORS = """
    if_stmt while_stmt for_stmt if_exp and_ or_ not_ assert_stmt ld ldu Undefined UndefinedReturnValue FunctionScope
    with_function_scope
    """.split()


class Undefined:
    """What stands for a variable of the user's that has no value yet."""

    def __init__(self, name: str):
        self.name = name


class UndefinedReturnValue:
    """What a function returns that has reached no return statement yet."""


def ld(value: Local) -> Local:
    """A variable that is read."""
    if isinstance(value, Undefined):
        raise UnboundLocalError(f"'{value.name}' is used before assignment")
    return value


def ldu(read: Callable, name: str) -> Local:
    """What `read` gives, or `Undefined`."""
    try:
        return read()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)


def is_traced(x: object) -> bool:
    """Whether `x` is a tensor whose value is not known while tracing."""
    return is_array_like(x) and isinstance(raw(x), Tracer)


def _error(kind: type[Exception], text: str) -> Exception:
    """An error that names the user's line."""
    line = line_of(caller())
    return kind(text if line is None else f'{text} (File "{line.file}", line {line.number}: `{line.text}`)')


def _condition(x: Test, statement: str) -> Any:
    """A condition as Python may look at it, or as a traced scalar."""
    if not is_array_like(x):
        return x
    array = raw(x)
    if array.dtype != bool or array.size != 1:
        raise _error(
            ValueError,
            f"condition of {statement} expected to be `tf.bool` scalar, got {x!r}; to use as boolean Tensor, use `tf.cast`; "
            "to check for None, use `is not None`",
        )
    return array.reshape(()) if isinstance(array, Tracer) else bool(np.asarray(array).reshape(()))


# ---- Expressions ------------------------------------------------------------------------------------------------------


class _Tests(Context):
    # The last negation of a traced tensor, and what it is of: in a branch on it that value is known.
    negation: tuple[Array, Array] | None = None


_tests = _Tests()


def not_(a: Test) -> Any:
    if not is_traced(a):
        return not a
    negated = math.logical_not(Tensor(_condition(a, "`not`")))
    _tests.negation = negated._array, raw(a)
    return negated


def and_(a: Callable, b: Callable) -> Any:
    first = a()
    return if_exp(first, b, lambda: first, "and") if is_traced(first) else first and b()


def or_(a: Callable, b: Callable) -> Any:
    first = a()
    return if_exp(first, lambda: first, b, "or") if is_traced(first) else first or b()


def if_exp(condition: Test, if_true: Callable, if_false: Callable, text: str) -> Any:
    value: Local = None

    def take(branch: Callable) -> Callable:
        def run() -> None:
            nonlocal value
            value = branch()

        return run

    def set_state(state: tuple) -> None:
        nonlocal value
        (value,) = state

    if_stmt(condition, take(if_true), take(if_false), lambda: (value,), set_state, (text,), 1)
    return value


def assert_stmt(condition: Test, message: Callable) -> None:
    if is_traced(condition):
        debugging.Assert(Tensor(_condition(condition, "`assert`")), [message()])
    else:
        assert condition, message()


class Range(Tensor):
    """``tf.range`` with bounds that are traced, to be looped over. Its size is not known: where it is used otherwise, the
    `function` runs as Python."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._given = args, kwargs
        bounds = inspect.signature(array.range).bind(*args, **kwargs)
        bounds.apply_defaults()
        start, limit, delta = (bounds.arguments[name] for name in ("start", "limit", "delta"))
        start, limit = (0, start) if limit is None else (start, limit)
        arrays = [raw(x) for x in (start, limit, delta)]
        dtype = bounds.arguments["dtype"]
        dtype = jnp.result_type(*arrays) if dtype is None else requested(dtype)
        self.start, self.limit, self.delta = (x.astype(dtype) for x in arrays)

    @property
    def _array(self) -> Array:
        args, kwargs = self._given
        return raw(array.range(*args, **kwargs))  # raises the error that says why not

    def holds(self, i: Array) -> Array:
        if jnp.issubdtype(self.start.dtype, jnp.floating):  # as many as `array.range` counts; `value` may be rounded
            return (self.delta != 0) & (i < jnp.ceil((self.limit - self.start) / self.delta))
        return jnp.where(self.delta > 0, self.value(i) < self.limit, self.value(i) > self.limit)

    def value(self, i: Array) -> Array:
        return self.start + self.delta * i.astype(self.start.dtype)


def _range(*args: Any) -> Range | range:
    return Range(*args) if any(map(is_traced, args)) else range(*args)


def _number(kind: type, dtype: str) -> Callable:
    def convert(*args: Any, **kwargs: Any) -> Any:
        return array.cast(args[0], dtype) if len(args) == 1 and is_traced(args[0]) else kind(*args, **kwargs)

    return convert


def _enumerate(items: Any, start: int = 0) -> Iterable:
    return items.enumerate(start) if hasattr(type(items), "_runs") else enumerate(items, start)


BUILTINS: dict[Callable, Callable] = {
    range: _range,
    enumerate: _enumerate,
    int: _number(int, "int32"),
    float: _number(float, "float32"),
}


# ---- The state of a block: which of its leaves are arrays --------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Held:
    """The place of a leaf among a block's arrays: a number, tensor or TensorArray `example`."""

    example: Leaf
    arrays: Sequence[Array]
    start: int

    def of(self, arrays: Sequence[Array]) -> Leaf:
        own = arrays[self.start : self.start + len(self.arrays)]
        if isinstance(self.example, TensorArray):
            return self.example.holding(iter(own))
        return own[0] if isinstance(self.example, jax.Array) else Tensor(own[0])


def _hold(state: Sequence[Local], arrays: list[Array]) -> list[Local]:
    """`state` with a `_Held` for each number, tensor and TensorArray, whose arrays are appended; other leaves stay."""

    def leaf(x: Leaf) -> Leaf:
        if isinstance(x, TensorArray):
            held = x.arrays()
        elif isinstance(x, (bool, int, float, complex, np.generic, np.ndarray)) or is_array_like(x):
            held = [raw(x)]
        else:
            return x
        arrays.extend(held)
        return _Held(x, held, len(arrays) - len(held))

    return [nest.map_structure(leaf, value) for value in state]


def _filled(held: Sequence[Local], arrays: Sequence[Array]) -> tuple:
    """The state that `_hold` took apart, with new arrays."""

    def leaf(x: Leaf) -> Leaf:
        return x.of(arrays) if isinstance(x, _Held) else x

    return tuple(nest.map_structure(leaf, value) for value in held)


def _is_undefined(x: object) -> bool:
    return isinstance(x, (Undefined, UndefinedReturnValue))


def _says(name: str) -> str:
    return "the return value" if name.startswith("retval_") else f"'{name}'"


# ---- if ---------------------------------------------------------------------------------------------------------------


def if_stmt(
    condition: Test,
    body: Callable,
    orelse: Callable,
    get_state: Callable,
    set_state: Callable,
    names: tuple,
    count: int,
) -> None:
    """`body()` if `condition`, else `orelse()`. The first `count` of the state are results, the others are only read."""
    statement = "if statement"
    chosen = _condition(condition, statement)
    if not isinstance(chosen, Tracer):
        return body() if chosen else orelse()
    before = get_state()
    negation, _tests.negation = _tests.negation, None
    negated = negation[1] if negation and is_array_like(condition) and negation[0] is raw(condition) else None
    ends: list[list[Local]] = []

    def block(run: Callable, known: bool) -> Callable:
        def flat() -> list[Array]:
            # In a branch on `not x`, x is known.
            set_state(tuple(known if negated is not None and _is(x, negated) else x for x in before))
            run()
            arrays: list[Array] = []
            ends.append(_hold(get_state()[:count], arrays))
            return arrays

        return flat

    try:
        threaded = Threaded((block(body, False), ()), (block(orelse, True), ()))
        picks: list[tuple[Leaf, Leaf]] = []
        merged = [_merged(name, a, b, picks) for name, a, b in zip(names[:count], ends[0], ends[1], strict=True)]
    finally:
        set_state(before)

    def branch(index: int) -> Callable:
        def run() -> tuple[list[Array], list[Array]]:
            arrays, state = threaded(index, threaded.state)
            return [x for pick in picks for x in _picked(pick[index], pick[1 - index], arrays)], state

        return run

    arrays, state = jax.lax.cond(chosen, branch(0), branch(1))
    threaded.finish(state)
    set_state(_filled(merged, arrays) + tuple(before[count:]))


def _is(x: object, array: Array) -> bool:
    return is_array_like(x) and raw(x) is array


def _picked(own: _Held | None, other: _Held, arrays: Sequence[Array]) -> Sequence[Array]:
    """A branch's arrays for one leaf; zeros where only the other branch has one, which are not read."""
    if own is None:
        return [jnp.zeros(x.shape, x.dtype) for x in other.arrays]
    return arrays[own.start : own.start + len(own.arrays)]


def _merged(name: str, main: Local, other: Local, picks: list[tuple[Leaf, Leaf]]) -> Local:
    """What `name` is after an if statement; `picks` gets a pair of places for each leaf that is an array."""
    for mine, yours, which in ((main, other, "main"), (other, main, "else")):
        if isinstance(mine, UndefinedReturnValue) and not _is_undefined(yours):
            # A later statement returns in this case, or `FunctionScope.ret` complains.
            return nest.map_structure(lambda x, main=which == "main": _one_sided(x, main, picks), yours)
        if isinstance(mine, Undefined) and not _is_undefined(yours):
            raise _error(ValueError, f"{_says(name)} must also be initialized in the {which} branch")
    if _is_undefined(main):
        return main
    try:
        nest.assert_same_structure(main, other)
    except (TypeError, ValueError) as error:
        text = f"{_says(name)} must have the same nested structure in the main and else branches: {error}"
        raise _error(TypeError, text) from None
    return nest.map_structure(lambda a, b: _merged_leaf(_says(name), a, b, picks), main, other)


def _one_sided(x: Leaf, is_else: bool, picks: list[tuple[Leaf, Leaf]]) -> Leaf:
    return _pick(None, x, picks) if is_else else _pick(x, None, picks)


def _pick(main: Leaf, other: Leaf, picks: list[tuple[Leaf, Leaf]]) -> Leaf:
    held = main if main is not None else other
    if not isinstance(held, _Held):
        return held
    start = sum(len((a if a is not None else b).arrays) for a, b in picks)
    picks.append((main, other))
    return _Held(held.example, held.arrays, start)


def _require_same_types(says: str, one: _Held, other: _Held, here: str, there: str, may_change: bool = True) -> None:
    """`may_change`: whether TensorFlow lets the shape differ, so that the `function` shall run as Python."""
    for a, b in zip(one.arrays, other.arrays, strict=False):
        if a.dtype != b.dtype:
            raise _error(TypeError, f"{says} has dtype {a.dtype} {here}, but dtype {b.dtype} {there}")
    shapes, others = ([x.shape for x in held.arrays] for held in (one, other))
    if shapes != others:
        may_change |= isinstance(one.example, TensorArray)
        text = f"{says} has shape {_first(shapes)} {here}, but shape {_first(others)} {there}"
        raise _error(PythonNeeded if may_change else ValueError, f"{text}: JAX's programs have fixed shapes")


def _first(shapes: Sequence[tuple[int, ...]]) -> object:
    return shapes[0] if shapes else "unknown"  # of a TensorArray that was never written


def _merged_leaf(says: str, main: Leaf, other: Leaf, picks: list[tuple[Leaf, Leaf]]) -> Leaf:
    held = isinstance(main, _Held), isinstance(other, _Held)
    if all(held):
        if isinstance(main.example, bool) and main.example is other.example:
            return main.example
        _require_same_types(says, main, other, "in the main branch", "in the else branch")
        return _pick(main, other, picks)
    if main is other or not any(held) and main == other:
        return main
    for x, which in ((main, "main"), (other, "else")):
        if x is None:
            raise _error(ValueError, f"{says} is None at the end of the {which} branch.")
    text = f"{says} is not a tensor, and differs between the branches of a traced condition"
    raise _error(TypeError, f"{text}: {_shown(main)} and {_shown(other)}")


def _shown(x: Leaf) -> str:
    return repr(x.example if isinstance(x, _Held) else x)[:100]


# ---- Loops ------------------------------------------------------------------------------------------------------------


def while_stmt(
    test: Callable, body: Callable, get_state: Callable, set_state: Callable, names: tuple, options: dict
) -> None:
    """A `while` loop: Python's until its condition is a tensor, a program's from then on."""
    while not is_array_like(first := test()):
        if not first:
            return
        body()
    loop = _StagedLoop(test, lambda _: body(), (get_state, set_state, names), options)
    loop.run(None, _condition(first, "while loop"), options.get("maximum_iterations"))


def for_stmt(
    iterable: Any,
    extra_test: Callable | None,
    body: Callable,
    get_state: Callable,
    set_state: Callable,
    names: tuple,
    options: dict,
) -> None:
    """A `for` loop: one program for all iterations over a tensor, `tf.range` or dataset, Python's loop over anything else.

    Python's loop is unrolled: a program that has the body once for each item, and is compiled so. A dataset is read as a whole,
    whenever the program runs. `extra_test` says whether to go on: neither `break` nor `return` has been met.
    """
    if isinstance(iterable, Range):
        _for_range(iterable, extra_test, body, get_state, set_state, names, options)
    elif is_array_like(iterable) and not _must_unroll(body, get_state()):
        if not raw(iterable).ndim:
            raise _error(TypeError, "a scalar tensor cannot be iterated over")
        rows = raw(iterable)[: options.get("maximum_iterations")]
        state = get_state, set_state, names
        of = (lambda row: row) if isinstance(iterable, jax.Array) else Tensor  # JAX's own stay so
        _StagedLoop(extra_test, lambda row: body(of(row[0])), state, options).run([rows], True)
    elif hasattr(type(iterable), "_runs"):
        for structure, columns in iterable._runs():
            take = lambda row, structure=structure: body(nest.pack_sequence_as(structure, [Tensor(x) for x in row]))  # noqa: E731
            _StagedLoop(extra_test, take, (get_state, set_state, names), options).run(columns, True)
    else:
        for item in iterable:
            goes_on = True if extra_test is None else extra_test()
            if is_traced(goes_on):
                if_stmt(goes_on, functools.partial(body, item), lambda: None, get_state, set_state, names, len(names))
            elif goes_on:
                body(item)
            else:
                break


_CHANGES = frozenset(("append", "appendleft", "extend", "insert", "setdefault"))  # `add` may be tf.add


def _must_unroll(body: Callable, state: Sequence[Local]) -> bool:
    """Whether a loop's body seems to do what a program cannot: fill a list or dict around it, let a TensorArray grow."""
    if any(isinstance(x, TensorArray) and x.dynamic_size for x in nest.flatten(state)):
        return True
    names: set[str] = set()
    codes = [body.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [x for x in code.co_consts if inspect.iscode(x)]
    cells = inspect.getclosurevars(body).nonlocals.values()
    return not names.isdisjoint(_CHANGES) and any(isinstance(x, (list, dict)) for x in cells)


def _for_range(bounds: Range, extra_test, body, get_state, set_state, names, options) -> None:
    i: Any = Tensor(jnp.zeros((), bounds.start.dtype if bounds.start.dtype.kind == "i" else "int32"))

    def set_all(state: Sequence[Local]) -> None:
        nonlocal i
        i, *rest = state
        set_state(tuple(rest))

    def test() -> Test:
        inside = Tensor(bounds.holds(raw(i)))
        return inside if extra_test is None else and_(lambda: inside, extra_test)

    def step(_: Sequence[Array]) -> None:
        nonlocal i
        body(Tensor(bounds.value(raw(i))))
        i = i + 1

    loop = _StagedLoop(test, step, (lambda: (i, *get_state()), set_all, ("index", *names)), options)
    loop.run(None, raw(test()), options.get("maximum_iterations"), options.get("iterate_names", ""))


class _StagedLoop:
    """A loop that becomes a program. What is assigned in it is carried from one iteration to the next.

    `state`: the functions that get and set what may change, and its names.
    """

    def __init__(self, test: Callable | None, body: Callable, state: tuple[Callable, Callable, tuple], options: dict):
        self.test, self.body = test, body
        self.get_state, self.set_state, self.names = state
        self.may_change = bool(options.get("shape_invariants"))
        self.before = self.get_state()

    def run(self, rows: list[Array] | None, first: Test, limit: IntLike | None = None, target: str = "") -> None:
        """Runs it over `rows`, or while the test holds, at most `limit` times. `first`: whether it holds at first; `target`:
        the name that a `for` assigns to, which is zero after one that never ran, as in TensorFlow."""
        if first is False or limit == 0 or rows is not None and rows[0].shape[0] == 0:
            return
        state, row = self.before, [row_type(x) for x in rows or ()]
        if rows is not None and any(x is None for x in state) and (self.test is None or self.test() is True):
            self.body([x[0] for x in rows])  # `if x is None: x = ...` in the first iteration
            rows = [x[1:] for x in rows]
            state = self.before = self.get_state()
            if rows[0].shape[0] == 0:
                return
        undefined = [_is_undefined(x) for x in state]
        start: list[Array] = []
        self.held = _hold(state, start)
        if any(undefined) or any(isinstance(x, TensorArray) for x in nest.flatten(state)):
            self._complete(row, start, undefined)
        try:
            bodies = [(self._advance, [*row, *start])] + [(self._holds, start)] * (self.test is not None)
            threaded = Threaded(*bodies)
        finally:
            self.set_state(self.before)
        arrays, final = control_flow.run_loop(threaded, start, rows, self.test is not None, limit, loops.while_loop)
        threaded.finish(final)
        if isinstance(first, Tracer):
            undefined = [missing and name != target for missing, name in zip(undefined, self.names, strict=True)]
            arrays = self._without_placeholders(undefined, arrays, first)
        self.set_state(_filled(self.held, arrays))

    def _holds(self, *arrays: Array) -> list[Array]:
        assert self.test is not None
        self.set_state(_filled(self.held, arrays))
        holds = _condition(self.test(), "while loop")
        return [holds if isinstance(holds, Tracer) else jnp.asarray(holds)]

    def _advance(self, *arrays: Array) -> list[Array]:
        after = self._after(*arrays)
        new: list[Array] = []
        for name, old, held in zip(self.names, self.held, _hold(after, new), strict=True):
            _check_carried(_says(name), old, held, self.may_change)
        return new

    def _after(self, *arrays: Array) -> tuple:
        """The state after an iteration. `arrays`: the row, if there are rows, and those of the state."""
        count = sum(len(x.arrays) for value in self.held for x in nest.flatten(value) if isinstance(x, _Held))
        row, arrays = arrays[: len(arrays) - count], arrays[len(arrays) - count :]
        self.set_state(_filled(self.held, arrays))
        self.body(row)
        return self.get_state()

    def _complete(self, row: list[jax.ShapeDtypeStruct], start: list[Array], undefined: list[bool]) -> None:
        """Gives what is undefined before the loop a place: one iteration is traced to see what it becomes."""
        ends: list[list[Local]] = []

        def look(*arrays: Array) -> list[Array]:
            arrays_after: list[Array] = []
            ends.append(_hold(self._after(*arrays), arrays_after))
            return arrays_after

        try:
            Threaded((look, [*row, *start]))
        finally:
            self.set_state(self.before)
        zeros = [
            nest.map_structure(lambda x: _zeros(x) if isinstance(x, _Held) else x, end) if missing else value
            for missing, value, end in zip(undefined, self.before, ends[0], strict=True)
        ]
        start.clear()
        self.held = _hold(zeros, start)

    def _without_placeholders(self, undefined: list[bool], arrays: Sequence[Array], ran: Array) -> list[Array]:
        """What is first assigned in a loop that perhaps never ran: no number, then."""
        arrays = list(arrays)
        for name, missing, value in zip(self.names, undefined, self.held, strict=True):
            if not missing or name.startswith(("retval_", "do_return", "break_", "continue_")):
                continue
            for x in nest.flatten(value):
                if not isinstance(x, _Held):
                    continue
                for place in range(x.start, x.start + len(x.arrays)):
                    if not jnp.issubdtype(arrays[place].dtype, jnp.inexact):
                        text = f"{_says(name)} must be defined before the loop, which may not run at all"
                        raise _error(PythonNeeded, text)
                    arrays[place] = jnp.where(ran, arrays[place], jnp.nan)
        return arrays


def _zeros(x: _Held) -> Tensor | TensorArray:
    return x.example if isinstance(x.example, TensorArray) else Tensor(jnp.zeros(x.arrays[0].shape, x.arrays[0].dtype))


def _check_carried(says: str, old: Local, new: Local, may_change: bool) -> None:
    """Raises unless what is carried out of an iteration is as what was carried into it."""
    try:
        nest.assert_same_structure(old, new)
    except (TypeError, ValueError) as error:
        text = f"{says} does not have the same nested structure after one iteration: {error}"
        raise _error(TypeError, text) from None
    for a, b in zip(nest.flatten(old), nest.flatten(new), strict=True):
        if not isinstance(a, _Held) or not isinstance(b, _Held):
            if a is b or _is_undefined(a) and _is_undefined(b) or not isinstance(a, _Held) and a == b:
                continue
            if a is None:
                raise _error(ValueError, f"{says} is not allowed to be None before the loop")
            if b is None:
                raise _error(ValueError, f"{says} is None at the end of the iteration.")
            text = (
                f"{says} is not a tensor, and changes in a loop that is compiled: {_shown(a)} before, {_shown(b)} after"
            )
            raise _error(TypeError, text)
        _require_same_types(says, a, b, "before the loop", "after one iteration", may_change)


# ---- Functions --------------------------------------------------------------------------------------------------------


class FunctionScope:
    """The body of a rewritten function."""

    callopts = None

    def __init__(self, function: str, name: str, options: Any):
        self.function, self.name = function, name

    def __enter__(self) -> FunctionScope:
        return self

    def __exit__(self, *exception: Any) -> None:
        _tests.negation = None

    def ret(self, value: Local, returned: Local) -> Local:
        """What the function returns. `returned`: whether a return statement was met."""
        if value is None or isinstance(value, UndefinedReturnValue):
            return None
        if is_traced(returned):
            text = f"{self.function} returns a value in some cases only, depending on a tensor"
            raise _error(ValueError, f"{text}: the else branch must also have a return statement")
        return value


def with_function_scope(run: Callable, name: str, options: Any) -> Local:
    return run(FunctionScope("lambda", name, options))
