"""Keras's control flow (`keras.ops.cond`, `while_loop`, `scan` ...) over functions that read and assign to variables.

On JAX these functions are those of `jax.lax`, which trace what they are given: an assignment would leak out of the trace. While a
`function` is traced, what is assigned is carried through the operation (`staging.Threaded`). On values the chosen branch runs as
Python; a loop is Keras's, or such a program of its own where what it is given assigns to a variable.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Pytree
from ...tape import active
from ..ops import loops
from ..values import reading
from ..values.errors import VariableInTraceError
from ..values.staging import Threaded, row_type
from ..values.types import Array
from . import adapters as libraries


def refuse_assignment(name: str) -> None:
    """Raises VariableInTraceError where what assigns to the variable of that name will become a program then."""
    if reading.context.attempt and active.staging():
        raise VariableInTraceError(f"Variable {name!r} was assigned to while JAX traces a function.")


def install(core: Any, taken: Callable[[Any], Any]) -> None:
    """Puts the functions of this module in the place of those of Keras's backend, the module `core`.

    `taken` makes arrays of an argument, and of a function one of arrays, a new one at each call: JAX keeps what it traced of a
    function, with the values that variables had then.
    """
    for name, (on_values, in_program) in _FUNCTIONS.items():
        setattr(core, name, _either(getattr(core, name), taken, on_values, in_program))


def _either(original: Callable, taken: Callable, on_values: Callable, in_program: Callable) -> Callable:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(taken, args))
        if reading.context.capture is not None and active.staging():
            return in_program(original, *args, **kwargs)
        return on_values(original, *args, **kwargs) if active.eager() else original(*args, **kwargs)

    return run


# ---- on values ------------------------------------------------------------------------------------------------------


def _as_program(in_program: Callable) -> Callable:
    """The operation as Keras has it; as a program that is run once, where what it is given assigns to a variable, or reads one of
    ours; and where a tape records a loop of JAX's that has no gradient."""

    def on_values(original: Callable, *args: Any, **kwargs: Any) -> Any:
        if in_program is not _while_in_program or not reading.recording():
            with contextlib.suppress(VariableInTraceError), reading.context.setting(attempt=True):
                return original(*args, **kwargs)
        return libraries.package.function(lambda: in_program(original, *args, **kwargs), autograph=False)()

    return on_values


def _arrays(structure: Pytree) -> Pytree:
    return jax.tree.map(jnp.asarray, structure)


def _cond(original: Callable, pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    return _arrays(true_fn() if bool(pred) else false_fn())


def _switch(original: Callable, index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    return _arrays(branches[min(max(int(index), 0), len(branches) - 1)](*operands))


# ---- in a program ---------------------------------------------------------------------------------------------------


def _threaded(*bodies: tuple[Callable, tuple]) -> tuple[Threaded, list[Callable]]:
    """`Threaded` over functions of pytrees, each given with its arguments, and for each body a function of the state and
    arguments that returns the result and the next state."""
    outlines: dict[int, Any] = {}

    def flat(i: int, fn: Callable, tree: Any) -> Callable:
        def run(*leaves: Array) -> list[Array]:
            leaves_out, outlines[i] = jax.tree.flatten(fn(*tree.unflatten(leaves)))
            return leaves_out

        return run

    taken = [(fn, *jax.tree.flatten(args)) for fn, args in bodies]
    threaded = Threaded(*[(flat(i, fn, tree), leaves) for i, (fn, leaves, tree) in enumerate(taken)])

    def step(i: int, state: Sequence[Array], *args: Any) -> tuple[Pytree, list[Array]]:
        leaves, state = threaded(i, state, *jax.tree.leaves(args))
        return outlines[i].unflatten(leaves), list(state)

    return threaded, [functools.partial(step, i) for i in range(len(bodies))]


def _branches(original: Callable, chooser: Any, branches: Sequence[Callable], operands: tuple = ()) -> Any:
    threaded, steps = _threaded(*[(branch, operands) for branch in branches])
    result, state = original(chooser, [functools.partial(step, threaded.state) for step in steps], *operands)
    threaded.finish(state)
    return result


def _cond_in_program(original: Callable, pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    if not isinstance(pred, Tracer):
        return _cond(original, pred, true_fn, false_fn)
    return _branches(lambda pred, both: original(pred, *both), pred, (true_fn, false_fn))


def _switch_in_program(original: Callable, index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    if not isinstance(index, Tracer):
        return _switch(original, index, branches, *operands)
    return _branches(original, index, branches, operands)


def _while_in_program(
    original: Callable, cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    one = not isinstance(loop_vars, (tuple, list))
    start: Any = (loop_vars,) if one else tuple(loop_vars)

    def advance(*now: Any) -> tuple:
        after = body(*now)
        return (after,) if one else tuple(after)

    threaded, (step, test) = _threaded((advance, start), (cond, start))

    def holds(carry: Pytree) -> Array:
        count, now, state = carry
        more = test(state, *now)[0]
        return more if maximum_iterations is None else more & (count < maximum_iterations)

    def next_of(carry: Pytree) -> Pytree:
        count, now, state = carry
        return count + 1, *step(state, *now)

    _, last, state = loops.while_loop(holds, next_of, (0, start, threaded.state))
    threaded.finish(state)
    return last[0] if one else last


def _fori_in_program(original: Callable, lower: Any, upper: Any, body_fun: Callable, init_val: Any) -> Any:
    i = jnp.asarray(lower)
    return _while_in_program(original, lambda i, _: i < upper, lambda i, x: (i + 1, body_fun(i, x)), (i, init_val))[1]


def _scan_in_program(original: Callable, f: Callable, init: Any, xs: Any = None, *args: Any, **kwargs: Any) -> Any:
    threaded, (step,) = _threaded((f, (init, jax.tree.map(row_type, xs))))

    def advance(carry: Pytree, row: Pytree) -> Pytree:
        (now, y), state = step(carry[1], carry[0], row)
        return (now, state), y

    (last, state), ys = original(advance, (init, threaded.state), xs, *args, **kwargs)
    threaded.finish(state)
    return last, ys


def _map_in_program(original: Callable, f: Callable, xs: Any) -> Any:
    return _scan_in_program(jax.lax.scan, lambda carry, x: (carry, f(x)), (), xs)[1]


# By its name in Keras's backend: the function on values, and in a program that a `function` traces.
_FUNCTIONS: dict[str, tuple[Callable, Callable]] = {
    "cond": (_cond, _cond_in_program),
    "switch": (_switch, _switch_in_program),
    "while_loop": (_as_program(_while_in_program), _while_in_program),
    "fori_loop": (_as_program(_fori_in_program), _fori_in_program),
    "scan": (_as_program(_scan_in_program), _scan_in_program),
    "map": (_as_program(_map_in_program), _map_in_program),
}
