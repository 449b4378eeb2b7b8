"""What JAX's transformations make of a recording: its jaxpr, the linear part of that, and the transposed of the linear part.

All three come from JAX. Each operation of the tape runs in a name scope of its own, which JAX keeps through its transformations:
that is how an equation is known to belong to an operation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import Any, NamedTuple

import jax

from ...jaxprs.contents import JIT, RULES, consts_of, open_jaxpr
from ...jaxprs.dependence import is_key
from ...jaxprs.fence import Literal
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...tape.recording import type_of
from ...tf.values.shown import number_text
from .listing import name_of
from .steps import SCOPE, Backward, replay

# The characters of a primitive's parameters that are shown, and that a pointer over them shows; for more there is a sign.
PARAMETERS, WHOLE = 24, 300
# More operations than this are not traced.
OPERATIONS = 200
# Of a function with a rule of its own so many equations are shown; more are one row, with its name.
EQUATIONS = 2
# What a pointer shows over a row without an equation.
PASSED = "passed on"


class Programs(NamedTuple):
    """JAX's programs of a function from sources to targets.

    `forward`: the jaxpr, from the sources to the targets, the values of the operations, and the residuals. `linear`: from the
    residuals and the tangents of the sources to those of the targets and values. `transposed`: from the residuals and the
    cotangents of the targets to those of the sources. `targets`, `values` are how many there are; `units` the steps that are
    one call of a function with a rule of its own.
    """

    forward: JaxProgram
    linear: JaxProgram
    transposed: JaxProgram
    targets: int
    values: int
    units: set[int]


class Row(NamedTuple):
    """An equation; without `outs` a remark. `at`: the position of its operation on the tape."""

    outs: list[str]
    call: str
    ins: list[str]
    whole: str
    at: int | None

    def __str__(self) -> str:
        left = f"{', '.join(self.outs)} = " if self.outs else ""
        return left + " ".join([self.call, *self.ins])


class _Replayed:
    """What `walk` differentiates, as a function from sources to targets. Of those that no path connects, the slot is None."""

    def __init__(self, walk: Backward):
        program = walk.program
        self.made = [(at, step.outs[j]) for at, step in enumerate(program.steps) for j in step.active_outs]
        self.starts, self.sources = _distinct(program.sources, walk.query.arrays)
        self.ends, self.targets = _distinct(program.targets, walk.query.targets)
        targets = (*self.ends, *[slot for _, slot in self.made])
        self.program, self.values = replace(program, sources=tuple(self.starts), targets=targets), walk.values

    def __call__(self, *sources: Any) -> tuple[list[Any], list[Any]]:
        outputs = replay(self.program, self.values, sources)
        ends = [y if slot is None else x for slot, y, x in zip(self.ends, self.targets, outputs, strict=False)]
        return ends, outputs[len(ends) :]


def _distinct(slots: Sequence[int | None], arrays: Values) -> tuple[list[int | None], list[Any]]:
    """The slots and arrays, each array once."""
    found = {id(x): (slot, x) for slot, x in zip(slots, arrays, strict=True)}
    return [slot for slot, _ in found.values()], [x for _, x in found.values()]


def programs(walk: Backward) -> Programs | None:
    """The programs of what `walk` differentiates; None where a source is computed from another, where a source or target is an
    integer, and of what JAX cannot trace or linearize."""
    run = _Replayed(walk)
    if not {slot for _, slot in run.made}.isdisjoint(run.starts) or len(walk.program.ops) > OPERATIONS:
        return None
    sources = run.sources
    try:
        plain = jax.make_jaxpr(run)(*sources)
        traced = jax.make_jaxpr(lambda *xs: jax.linearize(run, *xs), return_shape=True)
        forward, ((ends, _), linear_part) = traced(*sources)
        residuals, tree = jax.tree.flatten(linear_part)
        linear = jax.make_jaxpr(lambda kept, *dx: jax.tree.unflatten(tree, kept)(*dx))(residuals, *sources)

        def back(kept: Values, *cotangents: Any) -> Any:
            return jax.linear_transpose(lambda *dx: jax.tree.unflatten(tree, kept)(*dx)[0], *sources)(list(cotangents))

        transposed = jax.make_jaxpr(back)(residuals, *ends)
    except Exception:  # whatever an operation raises that JAX cannot trace, linearize or transpose
        return None
    return Programs(forward, linear, transposed, len(run.targets), len(run.made), _units(plain))


def _units(program: JaxProgram) -> set[int]:
    """The steps that are one call of a function with a rule of its own."""
    calls: dict[int, list[bool]] = {}
    for eqn in open_jaxpr(program).eqns:
        if (step := _step(eqn)) is not None:
            calls.setdefault(step, []).append(_has_rule(eqn))
    return {step for step, ruled in calls.items() if ruled == [True]}


def _has_rule(eqn: Equation) -> bool:
    while eqn.primitive.name in JIT and len(open_jaxpr(eqn.params["jaxpr"]).eqns) == 1:
        (eqn,) = open_jaxpr(eqn.params["jaxpr"]).eqns
    return eqn.primitive.name in RULES


def listed(walk: Backward) -> list[dict[str, Any]] | None:
    """The programs as the page shows them: each with its title and rows ``[text, type and call, position of the operation]``.

    The first row has the parameters, the last the results; a name that two programs share is one value.
    """
    if (parts := programs(walk)) is None:
        return None
    function = _Replayed(walk)
    writer = _ProgramWriter(walk, function)
    forward, read = writer.written(parts.forward, "")
    kept = read[len(function.ends) + len(function.made) :]
    linear, tangents = writer.written(parts.linear, "d", kept)
    back, cotangents = writer.transposed(parts.transposed, kept, linear)
    said = [name for name in dict.fromkeys(kept) if _is_name(name)]
    zero = " # 0.0 where the tape says None" if None in function.starts else ""
    results = [
        ", ".join(read[: len(function.ends)]) + (f"; keep {', '.join(said)}" if said else ""),
        ", ".join(tangents[: len(function.ends)]),
        ", ".join(cotangents) + zero,
    ]
    heads = [writer.sources, _marked("d", writer.sources), _marked("ct_", writer.ends)]
    columns, marks = [forward, linear, back], ("", "_linear", "_transposed")
    units = {walk.positions[step]: writer.label(step) for step in parts.units}
    titles = ("jaxpr, and what it keeps", "its linear part", "that transposed")
    made_by = ("jax.make_jaxpr", "jax.linearize", "jax.linear_transpose")
    needed = [*itertools.chain(*columns), _remark(None, "return", [*read, *kept, *tangents, *cotangents])]
    shown = []
    for title, by, names, rows, mark, end in zip(titles, made_by, heads, columns, marks, results, strict=True):
        first, last = f"λ {', '.join(names)}", f"return {end}"
        lines = [[str(row), row.whole, row.at] for row in _in_units(rows, units, mark, needed)]
        shown.append({"title": title, "by": by, "rows": [[first, first, None], *lines, [last, last, None]]})
    return shown


def _marked(mark: str, names: Sequence[str]) -> list[str]:
    return [mark + name for name in names]


def _is_name(text: str) -> bool:
    return text.replace("_", "a")[:1].isalpha() and text not in ("inf", "nan", "True", "False")


def _remark(at: int | None, text: str, names: Sequence[str] = ()) -> Row:
    return Row([], text, list(names), text, at)


def _in_units(rows: Sequence[Row], units: dict[int, str], mark: str, needed: Sequence[Row]) -> list[Row]:
    """The rows, with one for all equations of a function with a rule of its own, where these are many."""
    made: list[Row] = []
    for at, group in itertools.groupby(rows, lambda row: row.at):
        inside = list(group)
        if at in units and len(inside) > EQUATIONS:
            defined = {name for row in inside for name in row.outs}
            outside = {name for row in needed if not any(row is x for x in inside) for name in row.ins}
            outs = [name for row in inside for name in row.outs if name in outside]
            ins = dict.fromkeys(x for row in inside for x in row.ins if x not in defined and _is_name(x))
            inside = [Row(outs, units[at] + mark, [*ins], "; ".join(map(str, inside)), at)]
        made += inside
    return made


class _ProgramWriter:
    """Writes programs, equation by equation. What has no name on the tape is given a letter that no other value has."""

    def __init__(self, walk: Backward, function: _Replayed):
        self.walk, self.function, self.of = walk, function, walk.names.of
        arrays = walk.active()
        taken = {*map(self.of, [*arrays.values(), *walk.values, *function.sources, *function.targets])}
        letters = ("".join(x) for n in itertools.count(1) for x in itertools.product(ascii_lowercase, repeat=n))
        self.letters = (x for x in letters if x not in taken and x[0] != "d")  # d is a tangent's
        self.sources, self.ends = (list(map(self.of, values)) for values in (function.sources, function.targets))
        self.named = {slot: self.of(x) for slot, x in arrays.items()}
        self.constants: set[str] = set()  # that a row defines

    def label(self, step: int) -> str:
        return name_of(self.walk.recording.entries[self.walk.positions[step]])

    def written(self, program: JaxProgram, mark: str, kept: Sequence[str] = ()) -> tuple[list[Row], list[str]]:
        """The rows of the program of values, or of tangents, and what its results are called.

        A value that is another one, as of an addition of a constant that of its tangent, has a row that says so.
        """
        made = {slot: mark + self.named[slot] for _, slot in self.function.made}
        ends = self.function.ends
        results = [*[""] * len(ends), *made.values()]  # what an operation made has its name from there
        rows: list[Row] = []
        read = self._write(rows, program, [*kept, *_marked(mark, self.sources)], results)
        called: dict[int | None, str] = dict(zip(self.function.starts, _marked(mark, self.sources), strict=True))
        for (step, slot), name in zip(self.function.made, read[len(ends) :], strict=False):
            called[slot] = name
            if name != made[slot]:
                _insert(rows, self._passed(step, made[slot], name, mark, called), 1)
        return rows, [
            *[name if slot is None else made.get(slot, name) for slot, name in zip(ends, read, strict=False)],
            *read[len(ends) :],
        ]

    def _passed(self, step: int, own: str, name: str, mark: str, called: Mapping[int | None, str]) -> Row:
        """The row of a result that is what came in, or a number."""
        passed = self.walk.program.steps[step]
        inputs = [passed.ins[i] for i in passed.active_ins]
        same = [f"{mark}{self.named[slot]}, as it is" for slot in inputs if called.get(slot) == name]
        return Row([own], (*same, name)[0], [], PASSED, self.walk.positions[step])

    def transposed(
        self, program: JaxProgram, kept: Sequence[str], linear: Sequence[Row]
    ) -> tuple[list[Row], list[str]]:
        """The rows of the program of cotangents. An operation without an equation there has a row that says what it does."""
        rows: list[Row] = []
        read = self._write(rows, program, [*kept, *_marked("ct_", self.ends)], _marked("ct_", self.sources))
        for step, at in enumerate(self.walk.positions):
            if not any(row.at == at for row in rows):
                own = [row for row in linear if row.at == at]
                passes = all(row.whole == PASSED or row.call in ("add", "add_any") for row in own)
                said = "passes its cotangent on as it is" if passes else "has no equation left"
                _insert(rows, _remark(at, f"# {self.label(step)} {said}"), -1)
        return rows, read

    def _write(
        self, rows: list[Row], program: JaxProgram, inputs: Sequence[str], results: Sequence[str], at: int | None = None
    ) -> list[str]:
        """Adds the rows of a program's equations; gives what its results are called: as in `results`, where there is a name."""
        jaxpr = open_jaxpr(program)
        env = dict(zip(jaxpr.constvars, map(self.of, consts_of(program)), strict=True))
        rows += filter(None, map(self._constant, consts_of(program)))
        env |= dict(zip(jaxpr.invars, inputs, strict=True))
        # the first name of a value counts; residuals have none yet
        named = list(zip(jaxpr.outvars, results, strict=False))[::-1]
        wanted = {v: name for v, name in named if name and not isinstance(v, Literal)}
        for eqn in jaxpr.eqns:
            step = _step(eqn) if at is None else None
            place = at if step is None else self.walk.positions[step]
            inputs, inner = [_read(env, x) for x in eqn.invars], _inner(eqn)
            if inner is None:
                env |= {v: wanted.get(v) or next(self.letters) for v in eqn.outvars}
                outs, kinds = [env[v] for v in eqn.outvars], ", ".join(str(v.aval) for v in eqn.outvars)
                call, whole = (eqn.primitive.name + _parameters(eqn, most) for most in (PARAMETERS, WHOLE))
                rows.append(Row(outs, call, inputs, f"{kinds} = {whole}", place))
            else:
                outputs = self._write(rows, inner, inputs, [wanted.get(v, "") for v in eqn.outvars], place)
                env |= dict(zip(eqn.outvars, outputs, strict=True))
        return [_read(env, v) for v in jaxpr.outvars]

    def _constant(self, x: Value) -> Row | None:
        """The row of what the tape holds and the program takes as it is; a number that has no name needs none."""
        name = self.of(x)
        if name in self.constants or not _is_name(name):
            return None
        self.constants.add(name)
        said = type_of(x) if is_key(x) or x.size != 1 else number_text(x)
        return Row([name], f"constant {said}", [], f"{type_of(x)}, a constant", self.walk.names.graph.position(x))


def _insert(rows: list[Row], row: Row, direction: int) -> None:
    """Puts a row where it belongs: operations stand in the order of the tape (`direction` 1), or the other way (-1)."""
    at = -1 if row.at is None else row.at
    behind = [i for i, other in enumerate(rows) if other.at is not None and direction * (other.at - at) > 0]
    rows.insert(behind[0] if behind else len(rows), row)


def _step(eqn: Equation) -> int | None:
    """The step of the program in whose name scope an equation was traced."""
    found = re.search(SCOPE.format(r"(\d+)"), str(eqn.source_info.name_stack))
    return int(found[1]) if found else None


def _read(env: dict[Any, str], atom: Any) -> str:
    return number_text(atom.val) if isinstance(atom, Literal) else env[atom]


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
