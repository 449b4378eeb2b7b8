"""What JAX's transformations make of a recording: its jaxpr, the linear part of that, and the transposed of the linear part.

All three come from JAX. Each operation of the tape runs in a name scope of its own, which JAX keeps through its transformations:
that is how an equation is known to belong to an operation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import Any, NamedTuple

import jax

from ...jaxprs.contents import JIT, RULES, consts_of, open_jaxpr
from ...jaxprs.fence import Literal
from ...jaxprs.types import Equation, JaxProgram, Values
from ...tf.values.shown import number_text
from .listing import Names
from .steps import SCOPE, Backward, replay

# The characters of a primitive's parameters that are shown, and that a pointer over them shows; for more there is a sign.
PARAMETERS, WHOLE = 24, 300
# More operations than this are not traced.
OPERATIONS = 200


class Programs(NamedTuple):
    """JAX's programs of what leads from sources to targets.

    `forward`: the jaxpr, from the sources to the targets, the values of the operations, and the residuals. `linear`: from the
    residuals and the tangents of the sources to those of the targets and values. `transposed`: from the residuals and the
    cotangents of the targets to those of the sources. `targets`, `values` are how many there are.
    """

    forward: JaxProgram
    linear: JaxProgram
    transposed: JaxProgram
    targets: int
    values: int


def programs(walk: Backward) -> Programs | None:
    """The programs of what `walk` differentiates; None where nothing is connected, where a source is computed from another,
    and of what JAX cannot trace or linearize."""
    program, slots = walk.program, list(dict.fromkeys(x for x in walk.program.sources if x is not None))
    made = [step.outs[j] for step in program.steps for j in step.active_outs]
    arrays = walk.active()
    targets = [slot for slot in program.targets if slot in arrays]
    if not targets or not set(slots).isdisjoint(made) or len(program.steps) > OPERATIONS:
        return None

    whole = replace(program, sources=tuple(slots), targets=(*targets, *made))

    def run(*sources: Any) -> tuple[list[Any], list[Any]]:
        outputs = replay(whole, walk.values, sources)
        return outputs[: len(targets)], outputs[len(targets) :]

    sources = [arrays[slot] for slot in slots]
    try:
        traced = jax.make_jaxpr(lambda *xs: jax.linearize(run, *xs), return_shape=True)
        forward, ((ends, _), linear_part) = traced(*sources)
        residuals, tree = jax.tree.flatten(linear_part)
        linear = jax.make_jaxpr(lambda kept, *dx: jax.tree.unflatten(tree, kept)(*dx))(residuals, *sources)

        def back(kept: Values, *cotangents: Any) -> Any:
            return jax.linear_transpose(lambda *dx: jax.tree.unflatten(tree, kept)(*dx)[0], *sources)(list(cotangents))

        transposed = jax.make_jaxpr(back)(residuals, *ends)
    except Exception:  # whatever an operation raises that JAX cannot trace, linearize or transpose
        return None
    return Programs(forward, linear, transposed, len(targets), len(made))


def listed(walk: Backward) -> list[dict[str, Any]] | None:
    """The programs as the page shows them: each with its title and rows ``[text, type and call, place of the operation]``.

    The first row has the parameters, the last the results; a name that two programs share is one value.
    """
    parts = programs(walk)
    if parts is None:
        return None
    arrays = walk.active()
    writer = _Writer(walk.names, [*arrays.values(), *walk.values])
    sources = [walk.names.of(arrays[slot]) for slot in dict.fromkeys(walk.program.sources) if slot is not None]
    ends = [walk.names.of(arrays[slot]) for slot in walk.program.targets if slot in arrays]
    values = [walk.names.of(arrays[step.outs[j]]) for step in walk.program.steps for j in step.active_outs]

    def of(mark: str, names: Sequence[str]) -> list[str]:
        return [mark + name for name in names]

    shown = parts.targets + parts.values
    forward, results = writer.rows(parts.forward, [], sources, ends + values, parts.targets)
    kept = results[shown:]
    said = [name for name in dict.fromkeys(kept) if not name[0].isdigit() and name[0] != "-"]
    forward[-1][0] += f"; keep {', '.join(said)}" if said else ""
    linear, _ = writer.rows(parts.linear, kept, of("d", sources), of("d", ends + values), parts.targets)
    back, _ = writer.rows(parts.transposed, kept, of("ct_", ends), of("ct_", sources), len(sources))
    titles = ("jaxpr, and what it keeps", "its linear part", "that transposed")
    made_by = ("jax.make_jaxpr", "jax.linearize", "jax.linear_transpose")
    rows = (forward, linear, back)
    return [{"title": t, "by": b, "rows": r} for t, b, r in zip(titles, made_by, rows, strict=True)]


class _Writer:
    """Writes programs, equation by equation. What has no name on the tape is given a letter that no other value has."""

    def __init__(self, names: Names, arrays: Values):
        self.names = names
        taken = set(map(names.of, arrays))
        letters = ("".join(x) for n in itertools.count(1) for x in itertools.product(ascii_lowercase, repeat=n))
        self.letters = (x for x in letters if x not in taken and x[0] != "d")  # d is a tangent's

    def rows(
        self, program: JaxProgram, kept: Sequence[str], parameters: Sequence[str], results: Sequence[str], shown: int
    ) -> tuple[list[list[Any]], list[str]]:
        """The rows of a program, and what its results are called; the first `shown` of them it returns."""
        equations: list[list[Any]] = []
        read = self._write(equations, program, [*kept, *parameters], results, None)
        head, end = f"λ {', '.join(parameters)}", f"return {', '.join(read[:shown])}"
        return [[head, head, None], *equations, [end, end, None]], read

    def _write(
        self,
        rows: list[list[Any]],
        program: JaxProgram,
        inputs: Sequence[str],
        results: Sequence[str],
        step: int | None,
    ) -> list[str]:
        """Adds the rows of a program's equations; gives what its results are called: as in `results`, where there is a name."""
        jaxpr = open_jaxpr(program)
        env = dict(zip(jaxpr.constvars, map(self.names.of, consts_of(program)), strict=True))
        env |= dict(zip(jaxpr.invars, inputs, strict=True))
        # the first name of a value counts; residuals have none yet
        named = list(zip(jaxpr.outvars, results, strict=False))[::-1]
        wanted = {v: name for v, name in named if _is_variable(v) and name}
        for eqn in jaxpr.eqns:
            own = re.search(SCOPE.format(r"(\d+)"), str(eqn.source_info.name_stack)) if step is None else None
            at = int(own[1]) if own else step
            inputs, inner = [_read(env, x) for x in eqn.invars], _inner(eqn)
            if inner is None:
                env |= {v: wanted.get(v) or next(self.letters) for v in eqn.outvars}
                left = ", ".join(env[v] for v in eqn.outvars)
                kinds = ", ".join(str(v.aval) for v in eqn.outvars)
                call = " ".join([eqn.primitive.name + _parameters(eqn, PARAMETERS), *inputs])
                rows.append([f"{left} = {call}", f"{kinds} = {eqn.primitive.name}{_parameters(eqn, WHOLE)}", at])
            else:
                outputs = self._write(rows, inner, inputs, [wanted.get(v, "") for v in eqn.outvars], at)
                env |= dict(zip(eqn.outvars, outputs, strict=True))
        return [_read(env, v) for v in jaxpr.outvars]


def _is_variable(atom: Any) -> bool:
    return not isinstance(atom, Literal)


def _read(env: dict[Any, str], atom: Any) -> str:
    return env[atom] if _is_variable(atom) else number_text(atom.val)


def _inner(eqn: Equation) -> JaxProgram | None:
    """The program of a jitted function, or of one with its own rule: it is written in its place."""
    if eqn.primitive.name in JIT:
        return eqn.params["jaxpr"]
    return eqn.params.get("call_jaxpr") if eqn.primitive.name in RULES else None


def _parameters(eqn: Equation, most: int) -> str:
    """The parameters of a primitive that say what it computes, in so many characters at most."""
    said = [f"{k}={v}" for k, v in eqn.params.items() if isinstance(v, (int, str, tuple)) and v not in (False, ())]
    text = " ".join(said)
    return f"[{text if len(text) <= most else '…'}]" if said else ""
