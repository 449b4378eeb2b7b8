"""Which values each name holds while a function runs: to compare printed code with the code that it came of.

Both run under a tracer that takes the local variables at every line, operation by operation (`jax.disable_jit`), so that a loop
of JAX's holds numbers. Under `jax.grad` and `jax.vmap` a variable holds a tracer, of which the numbers are taken.
"""

import builtins
import re
import sys
import types
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

LINE = "<printed>"  # the file of printed code


def base(name):
    """Of ``x_2`` ``x``."""
    return re.sub(r"_\d+$", "", name)


def numbers_of(x):
    """The numbers of an array, also of one that is traced; None where there are none."""
    while isinstance(x, jax.core.Tracer):
        if hasattr(x, "primal"):
            x = x.primal
        elif hasattr(x, "batch_dim"):
            x = x.val if x.batch_dim is None else jnp.moveaxis(numbers_of(x.val), x.batch_dim, 0)
        else:
            return None
    return None if x is None or jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else np.asarray(x)


class Held:
    """The values that the local variables of functions in `file` held, by name: of each the numbers of its leaves.

    `named`: of functions with these names, and of lambdas, if not of all.
    """

    def __init__(self, file, named=None):
        self.file, self.named, self.values, self.unknown = file, named, {}, set()
        self.parameters = {}  # of the functions that ran, by their names
        self._seen = {}

    def note(self, name, value):
        if (
            isinstance(value, (types.FunctionType, types.ModuleType, str, type, Iterator))
            or (name, id(value)) in self._seen
        ):
            return
        self._seen[name, id(value)] = value  # which keeps it alive
        leaves = [
            x for x in jax.tree.leaves(value) if hasattr(x, "dtype") or isinstance(x, (bool, int, float, complex))
        ]
        if not leaves:
            return
        arrays = [numbers_of(x) if hasattr(x, "dtype") else x for x in leaves]
        if any(x is None for x in arrays):
            self.unknown.add(name)
        else:
            self.values.setdefault(name, []).append(arrays)

    def trace(self, frame, event, arg):
        code = frame.f_code
        known = self.named is None or code.co_name.startswith("<") or base(code.co_name) in self.named
        if code.co_filename != self.file or not known:
            return None
        if event == "call" and not code.co_name.startswith("<"):
            self.parameters[code.co_name] = list(code.co_varnames[: code.co_argcount])
        for name, value in [*frame.f_locals.items()]:
            self.note(name, value)
        return self.trace

    def run(self, function, *args):
        outer = sys.gettrace()
        sys.settrace(self.trace)
        try:
            with jax.disable_jit():
                return function(*args)
        finally:
            sys.settrace(outer)


def globals_of(code, space):
    """The global variables that a function and those in it and those that it calls read, by name."""
    seen, waiting, found = set(), [code], {}
    for each in waiting:  # which grows
        if each in seen:
            continue
        seen.add(each)
        waiting += [x for x in each.co_consts if isinstance(x, types.CodeType)]
        for name in each.co_names:
            value = space.get(name)
            if isinstance(value, types.FunctionType) and value.__globals__ is space:
                waiting.append(value.__code__)
            elif value is not None:
                found[name] = value
    return found


def held_by_user(function, args):
    """What the user's function, and what it calls in its file, held."""
    held = Held(function.__code__.co_filename)
    result = held.run(function, *args)
    for name, value in globals_of(function.__code__, function.__globals__).items():
        held.note(name, value)
    return held, result


def held_by_printed(code, constants, args, functions):
    """What `f` of printed code held when it ran, and what it calls that has the names of `functions`."""
    space = {"jax": jax, "jnp": jnp, "np": np, **constants}
    exec(compile(code, LINE, "exec"), space)
    held = Held(LINE, {"f", *functions})
    result = held.run(space["f"], *args)
    for name, value in space.items():
        if not name.startswith("__") and name not in vars(builtins):
            held.note(name, value)
    return held, result


def alike(xs, ys):
    """Whether the leaves of two values are the same numbers, of one shape and dtype (if both have one)."""
    if len(xs) != len(ys):
        return False
    for x, y in zip(xs, ys, strict=True):
        if hasattr(x, "dtype") and hasattr(y, "dtype") and x.dtype != y.dtype or np.shape(x) != np.shape(y):
            return False
        if not np.allclose(x, y, rtol=1e-3, atol=1e-5, equal_nan=True):
            return False
    return True


def misnamed(user, printed):
    """The names that hold in printed code what they never held in the user's; ``x_2`` is ``x`` there."""
    found = []
    for name, values in printed.values.items():
        own = name if name in user.values else base(name)
        theirs = user.values.get(own)
        if theirs is None or own in user.unknown or own.startswith("_"):
            continue
        if not all(any(alike(x, y) for y in theirs) for x in values):
            found.append(name)
    return sorted(found)


def out_of_order(user, printed):
    """The printed functions with names of the user's whose parameters are not in his order, or are none of his."""
    found = []
    for name, own in printed.parameters.items():
        theirs = user.parameters.get(base(name), own if name == "f" else None)
        if theirs is None:
            continue
        known = [each for each in own if each in theirs]
        if known != sorted(known, key=theirs.index) or any(is_lost(p, own, user) for p in theirs):
            found.append(f"{name}({', '.join(own)}) of ({', '.join(theirs)})")
    return found


def is_lost(parameter, own, user):
    """Whether a parameter that held arrays is not among a printed function's, nor are parts of it."""
    held = [x for value in user.values.get(parameter, ()) for x in value]
    there = any(each == parameter or each.startswith(f"{parameter}_") for each in own)
    return not there and any(np.ndim(x) for x in held)


def numbered(printed):
    """The printed functions that are there several times: ``net_2``."""
    return sorted(name for name in printed.parameters if re.search(r"_\d+$", name))
