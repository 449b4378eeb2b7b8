"""How operations are written, as the source has them: a candidate counts if it traces to the very operations."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import contents
from ...jaxprs.fence import Literal
from ...jaxprs.types import JaxProgram, Value
from .congruence import results_of
from .expressions import Operand, candidates

_ARITHMETIC = {"add", "sub", "mul", "div"}
# The variable of a loop is tried in so many rounds.
ROUNDS = 8
_SCOPE: Mapping[str, Any] = {"jax": jax, "jnp": jnp, "np": np}


class Spelled(NamedTuple):
    """A text with ``{0}``, ``{1}`` for the operands. `results`: what it gives, each by its position among those of the program,
    None for what that has not; `names`: what the source calls operands; `arrays`: the last operands, which the operations do not
    take."""

    text: str
    results: tuple[int | None, ...]
    names: Mapping[int, str]
    arrays: tuple[np.ndarray, ...] = ()


def spelled(
    expression: ast.expr,
    operands: Sequence[Operand],
    program: JaxProgram,
    normal_form: Callable[[JaxProgram], Any],
    modules: Mapping[str, str],
    values: Sequence[str] = (),
) -> Spelled | None:
    """The first text that does what `program` does.

    Args:
      expression: what the source has for it.
      operands: those without a text and an array are the inputs of the program.
      normal_form: what a program computes, as data that are compared.
      modules: what the source calls JAX's modules.
      values: what else names in the source may stand for, as texts.
    """
    inputs = [i for i, x in enumerate(operands) if x.text is None and x.array is None]
    arrays = {f"a{i}": x.array for i, x in enumerate(operands) if x.array is not None}
    form, avals = normal_form(program), program.in_avals
    computes = any(eqn.primitive.name in _ARITHMETIC for eqn in contents.open_jaxpr(program).eqns)  # also ``1 * x``
    if not computes and all(end[0] == "input" for end in form[1]):
        return None
    values = [*dict.fromkeys([*values, *_numbers(program), *map(str, range(ROUNDS))])]
    for text, names in candidates(expression, operands, modules, values):
        with contextlib.suppress(Exception):  # it does not fit: the next one
            code = compile(re.sub(r"\{(\d+)\}", r"a\1", text), "<spelling>", "eval")

            def call(*xs: Value, code: Any = code) -> Any:
                return eval(code, {**_SCOPE, **arrays, **{f"a{i}": x for i, x in zip(inputs, xs, strict=True)}})

            traced, result = jax.make_jaxpr(call, return_shape=True)(*avals)
            if (results := _same(normal_form(traced), form)) is not None:
                several = isinstance(result, (tuple, list))
                if several and not all(hasattr(x, "dtype") for x in result):
                    continue  # a tree in a tree
                text = f"{text}[0]" if several and len(results) == 1 else text
                return Spelled(text, results, names, tuple(arrays.values()))
    return None


def _same(form: Any, other: Any) -> tuple[int | None, ...] | None:
    """For each result of a program which one it is of another that does the same, if one; None if some of that are missing."""
    numbers: dict[Any, int] = {}
    ends, wanted = (list(zip(results_of(each, numbers), each[2], strict=True)) for each in (form, other))
    if len(set(wanted)) < len(wanted) or any(ends.count(each) != 1 for each in wanted):
        return None
    return tuple([wanted.index(each) if each in wanted else None for each in ends])


def _numbers(program: JaxProgram) -> Iterator[str]:
    """The numbers in a program, and the sizes of its results, as texts."""
    jaxpr = contents.open_jaxpr(program)
    for eqn in jaxpr.eqns:
        for key in ("start_indices", "axes", "axis", "dimension", "dimensions", "y", "permutation", "new_sizes"):
            value = eqn.params.get(key)
            if isinstance(value, tuple) and all(isinstance(x, int) for x in value):
                yield from (*map(str, value), str(value))
            elif isinstance(value, int):
                yield str(value)
        values = (np.asarray(v.val) for v in eqn.invars if isinstance(v, Literal))
        yield from (str(x[()]) for x in values if x.ndim == 0 and x.dtype.kind in "if")
    for v in jaxpr.outvars:
        shape = tuple(getattr(v.aval, "shape", ()))
        yield from (*map(str, shape), str(shape))


def round_length(operations: Sequence[Any]) -> int:
    """How many of the operations that ran at one instruction are one round of a loop; all of them where nothing repeats.

    >>> round_length(["exp", "sum", "exp", "sum"]), round_length(["exp", "sum"])
    (2, 2)
    """
    count = len(operations)
    periods = (period for period in range(1, count // 2 + 1) if count % period == 0)
    same = (p for p in periods if all(operations[i] == operations[i - p] for i in range(p, count)))
    return next(same, count)
