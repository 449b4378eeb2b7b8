"""Keras's control flow (`keras.ops.cond`, `while_loop` ...) over functions that read and assign to variables.

On JAX these functions are those of `jax.lax`, which trace what they are given: an assignment would leak out of the trace. While a
`function` is traced, what is assigned in `cond` and `while_loop` is carried through the operation (`staging.Threaded`). On values
these two run as Python, as in TensorFlow, where the branch is known, or where what they are given assigns to a variable. In
`scan`, `map`, `fori_loop` and `switch` variables may be read only.
"""

from __future__ import annotations

import functools
import itertools
import threading
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
from ..values.staging import Threaded
from ..values.types import Array


class _Here(threading.local):
    traced = False  # whether JAX traces what was given to one of these functions, on values


_here = _Here()


def refuse_assignment(name: str) -> None:
    """Raises VariableInTraceError where an assignment to the variable of that name would leak out of such a trace."""
    if _here.traced and active.staging():
        raise VariableInTraceError(
            f"Variable {name!r} was assigned to in a function that JAX traces (keras.ops.scan, map, fori_loop, switch ...): the "
            "value would leak out of it. Return it and assign it outside, or use keras.ops.while_loop or cond."
        )


def install(core: Any, taken: Callable[[Any], Any]) -> None:
    """Puts the functions of this module in the place of those of Keras's backend, the module `core`.

    `taken` makes arrays of an argument, and of a function one of arrays, a new one at each call: JAX keeps what it traced of a
    function, with the values that variables had then.
    """
    own = {"cond": (_cond, _cond_in_program), "while_loop": (_while, _while_in_program)}
    for name in ("cond", "while_loop", "switch", "fori_loop", "scan", "map"):
        setattr(core, name, _either(getattr(core, name), taken, *own.get(name, (_traced, _called))))


def _either(original: Callable, taken: Callable, on_values: Callable, in_program: Callable) -> Callable:
    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(taken, args))
        if reading.capturing.capture is not None and active.staging():
            return in_program(original, *args, **kwargs)
        return on_values(original, *args, **kwargs) if active.eager() else original(*args, **kwargs)

    return run


def _called(original: Callable, *args: Any, **kwargs: Any) -> Any:
    return original(*args, **kwargs)


# ---- on values ------------------------------------------------------------------------------------------------------


def _traced(original: Callable, *args: Any, **kwargs: Any) -> Any:
    """The operation as Keras has it. VariableInTraceError if what it is given assigns to a variable."""
    before, _here.traced = _here.traced, True
    try:
        with reading.as_constants():
            return original(*args, **kwargs)
    finally:
        _here.traced = before


def _arrays(found: Pytree) -> Pytree:
    return jax.tree.map(jnp.asarray, found)


def _cond(original: Callable, pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    return _arrays(true_fn() if bool(pred) else false_fn())


def _while_as_python(cond: Callable, body: Callable, loop_vars: Any, maximum_iterations: int | None = None) -> Any:
    one = not isinstance(loop_vars, (tuple, list))
    now: Any = (loop_vars,) if one else tuple(loop_vars)
    for _ in itertools.count() if maximum_iterations is None else range(int(maximum_iterations)):
        if not bool(cond(*now)):
            break
        now = body(*now)
        now = (now,) if one else tuple(now)
    return _arrays(now[0] if one else now)


def _while(original: Callable, *args: Any, **kwargs: Any) -> Any:
    if reading.recording():  # JAX's own has no gradient
        return _while_as_python(*args, **kwargs)
    try:
        return _traced(original, *args, **kwargs)
    except VariableInTraceError:
        return _while_as_python(*args, **kwargs)


# ---- in a program ---------------------------------------------------------------------------------------------------


def _threaded(*bodies: tuple[Callable, tuple]) -> tuple[Threaded, list[Callable]]:
    """`Threaded` over functions of pytrees, each given with its arguments, and for each body a function of the state and
    arguments that returns the result and the next state."""
    outlines: dict[int, Any] = {}

    def flat(i: int, fn: Callable, tree: Any) -> Callable:
        def run(*leaves: Array) -> list[Array]:
            found, outlines[i] = jax.tree.flatten(fn(*tree.unflatten(leaves)))
            return found

        return run

    taken = [(fn, *jax.tree.flatten(args)) for fn, args in bodies]
    threaded = Threaded(*[(flat(i, fn, tree), leaves) for i, (fn, leaves, tree) in enumerate(taken)])

    def step(i: int, state: Sequence[Array], *args: Any) -> tuple[Pytree, list[Array]]:
        found, state = threaded(i, state, *jax.tree.leaves(args))
        return outlines[i].unflatten(found), list(state)

    return threaded, [functools.partial(step, i) for i in range(len(bodies))]


def _cond_in_program(original: Callable, pred: Any, true_fn: Callable, false_fn: Callable) -> Any:
    if not isinstance(pred, Tracer):
        return _cond(original, pred, true_fn, false_fn)
    threaded, steps = _threaded((true_fn, ()), (false_fn, ()))
    found, state = original(pred, *[functools.partial(step, threaded.state) for step in steps])
    threaded.finish(state)
    return found


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
