"""Why a gradient is what it is: along which operations it comes, or where its path broke and what would mend it.

Three witnesses are heard, in this order. The recording knows every operation of the block, watched or not: what depends
on what, and through which operation no gradient passes. The marks on it tell what happened to the tape: when it watched,
stopped, was reset, and which values left its sight. Where all that is silent, the text of the program is read (`flow`).
"""

from __future__ import annotations

import ast
import html
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..core import jaxprs, recorder
from ..core._jax import Literal
from ..core.program import equation_links, is_inexact
from ..core.query import Query, Source
from ..core.recording import Entry, Recording, type_of
from ..core.where import Line, line_of, serves
from ..tape import GradientTape
from ..values import nest, staging
from ..values.shown import GREEN, RED, bold, faint, number_text, page
from ..values.structures import Leaf, Structure, _is_container, is_variable, sources_of, targets_of
from ..values.tensor import Variable
from .flow import Assignment, Text, root
from .listing import Names, ancestors, carrying_positions

# How wide text is printed.
WIDTH = 96
# What Python and NumPy make, and no tape sees.
_PYTHON_VALUES = (np.ndarray, np.generic, float, int, list)
_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)
# Where several paths break, so many are told.
BREAKS = 4
# A longer path is printed by its beginning and its end.
STEPS, FIRST, LAST = 24, 12, 8


class Reason(NamedTuple):
    """Why there is no gradient: a `kind` for programs, what happened, the one change that mends it; where it is known, the
    operation and the line at which the path broke."""

    kind: str
    message: str
    remedy: str
    operation: str | None = None
    line: Line | None = None

    def __str__(self) -> str:
        where = [f"  {self.line}  {self.line.text}"] if self.line else []
        remedy = textwrap.wrap(self.remedy, WIDTH, initial_indent="-> ", subsequent_indent="   ")
        return "\n".join([*textwrap.wrap(self.message, WIDTH), *where, *remedy])


class PathStep(NamedTuple):
    """An operation on the way from a source to a target, the value that it makes, and the line that ran it."""

    operation: str
    value: str
    line: Line | None


class SourceReport(NamedTuple):
    """What there is to say of one source: connected along `path`, or not, for `reasons`, all of which must be mended."""

    name: str
    source: Any
    connected: bool
    path: tuple[PathStep, ...]
    reasons: tuple[Reason, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(reason.kind for reason in self.reasons)

    def __str__(self) -> str:
        if not self.connected:
            several = len(self.reasons) > 1
            lines = [f"{self.name}: None" + (f", for {len(self.reasons)} reasons" if several else "")]
            for i, reason in enumerate(self.reasons, 1):
                bullet = f"{i}. " if several else ""
                lines += [
                    f"  {bullet if j == 0 else ' ' * len(bullet)}{x}" for j, x in enumerate(str(reason).splitlines())
                ]
            return "\n".join(lines)
        lines = [f"{self.name}: connected" + ("" if self.path else ": it is the target itself")]
        width = max((len(step.operation) for step in self.path), default=0)
        wide = max((len(step.value) for step in self.path), default=0)
        for step in _folded(self.path):
            if step is None:
                lines.append(f"     … {len(self.path) - FIRST - LAST} more: .path has them")
                continue
            where = f"   {step.line}  {step.line.text}" if step.line else ""
            lines.append(f"  -> {step.operation.ljust(width)}  {step.value.ljust(wide)}{where}".rstrip())
        lines += [f"  note: {reason}".replace("\n", "\n  ") for reason in self.reasons]
        return "\n".join(lines)


def _folded(path: Sequence[PathStep]) -> Sequence[PathStep | None]:
    return path if len(path) <= STEPS else (*path[:FIRST], None, *path[-LAST:])


class Explanation:
    """A `SourceReport` for each source, in the order in which a gradient has them: print it, iterate, or index."""

    def __init__(self, reports: Sequence[SourceReport], target: str):
        self.reports = tuple(reports)
        self.target = target

    def __len__(self) -> int:
        return len(self.reports)

    def __iter__(self) -> Iterator[SourceReport]:
        return iter(self.reports)

    def __getitem__(self, index: int) -> SourceReport:
        return self.reports[index]

    def __str__(self) -> str:
        return "\n".join([f"The gradient of {self.target} with respect to", *map(str, self.reports)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page(_html(self))


def explain(
    tape: GradientTape, target: Any, sources: Any, spaces: Sequence[dict], places: Sequence[Any]
) -> Explanation:
    """What `GradientTape.explain` returns; `spaces` are the user's variables, `places` where his code is that asks."""
    ends, starts = _leaves(target, targets_of), _leaves(sources, sources_of)
    recording = None if tape._recording is None else recorder.continuation_of(tape._recording)
    if recording is None:
        names = Names(Recording(), spaces)
        reason = _no_recording(tape)
        named = [(_source_name(leaf, i, names), leaf.value) for i, leaf in enumerate(starts)]
        return Explanation([SourceReport(n, v, False, (), (reason,)) for n, v in named], _ends_name(ends, names))
    with recorder.outside():
        case = _Case(tape, recording, Names(recording, spaces), spaces, places)
        reports = [case.report(ends, leaf, i) for i, leaf in enumerate(starts)]
        return Explanation(reports, _ends_name(ends, case.names))


def _leaves(structure: Any, taken_apart: Callable[[Any], Structure]) -> list[Leaf]:
    """The leaves of a structure. What `gradient` refuses, a number of Python's or NumPy's, is one too: that is explained."""
    found: list[Leaf] = []
    for item in nest.taken_apart(structure, _is_container):
        if isinstance(item, _NUMBERS):
            found.append(Leaf(item, item, type(item)))
        else:
            found += taken_apart(item).leaves
    return found


def _is_number(leaf: Leaf) -> bool:
    return isinstance(leaf.array, _NUMBERS)


def _no_recording(tape: GradientTape) -> Reason:
    if tape._used is None:
        return Reason(
            "not recorded",
            "the tape recorded nothing: it was never entered, and gradient() raises RuntimeError.",
            "compute the target inside `with tape:`",
        )
    return Reason(
        "used up",
        "the tape is used up: it is not persistent, and its one gradient was taken already. gradient() raises RuntimeError.",
        "make it GradientTape(persistent=True), or ask for all sources in one gradient() call; call explain() before it",
        "gradient",
        line_of(tape._used),
    )


def _ends_name(leaves: Sequence[Leaf], names: Names) -> str:
    found = [names.of(leaf.array) for leaf in leaves]
    return found[0] if len(found) == 1 else f"the sum of {', '.join(found[:6])}{' ...' if len(found) > 6 else ''}"


def _source_name(leaf: Leaf, position: int, names: Names) -> str:
    found = number_text(leaf.array) if _is_number(leaf) else names.name(leaf.array)
    if found is None and is_variable(leaf.value):
        found = str(getattr(leaf.value, "path", None) or getattr(leaf.value, "name", ""))
    return found or (names.of(leaf.array) if isinstance(leaf.array, jax.Array) else f"source {position}")


class _Case:
    """What is known of one tape, and the questions put to it."""

    def __init__(
        self,
        tape: GradientTape,
        recording: Recording,
        names: Names,
        spaces: Sequence[dict],
        places: Sequence[Any],
    ):
        self.tape, self.recording, self.names, self.spaces = tape, recording, names, spaces
        self.entries = recording.entries
        self.values: dict[str, Any] = {}
        for space in reversed(spaces):
            self.values.update(space)
        entered = [mark.where for mark in recording.marks if mark.kind in ("enter", "reset") and mark.where]
        self.block = Text(entered[0] if entered else None)
        # the code that asks: where it is the block's own, we know which lines have run
        self.places = [(Text(place).scope, line_of(place)) for place in places]
        self.here = Text(places[0] if places else None)
        self.made = {id(x): position for position, entry in enumerate(self.entries) for x in entry.outputs}

    # ---- one source ----

    def report(self, ends: Sequence[Leaf], source: Leaf, position: int) -> SourceReport:
        name = _source_name(source, position, self.names)
        if _is_number(source):
            return SourceReport(name, source.value, False, (), (self._number("source", source.value, []),))
        targets = [leaf.array for leaf in ends]
        sought = source.source(self.recording)
        query = Query(self.recording, targets, [sought])
        arrays, numbered, accessed = query.arrays, query.numbered, [sought.array] if sought.watched else []
        found, needed = query.relevant()
        used = {x for position, _, _ in found for x in numbered.entries[position][1]}.union(numbered.targets)
        if numbers := [self._number("target", leaf.value, arrays) for leaf in ends if _is_number(leaf)]:
            return SourceReport(name, source.value, False, (), tuple(numbers))
        if any(x in needed and x in used for x in numbered.sources):
            own = any(self.entries[position].op.pull is not None for position, _, _ in found)
            if own and (refused := self._refused(ends, source, name)):
                return SourceReport(name, source.value, False, (), tuple(refused))
            notes = self._late(source, arrays, name, targets, connected=True)
            return SourceReport(name, source.value, True, self._path(targets, arrays, found), tuple(notes))
        reasons: list[Reason] = []
        for leaf in ends:
            for reason in self._why(leaf.array, source, arrays, accessed, name):
                if reason not in reasons:
                    reasons.append(reason)
        return SourceReport(name, source.value, False, (), tuple(reasons))

    def _refused(self, ends: Sequence[Leaf], source: Leaf, name: str) -> list[Reason]:
        """Where gradient functions of the user's own returned None: only running them tells."""
        from .steps import Backward

        walk = Backward(self.tape, [leaf.value for leaf in ends], [source.value], None, self.spaces)
        try:
            if walk.gradients[0] is not None:
                return []
        except (LookupError, TypeError) as error:
            return [
                Reason(
                    "no derivative", f"the gradient with respect to {name} raises {type(error).__name__}", str(error)
                )
            ]
        return [
            Reason(
                "custom gradient",
                f"the gradient function of {step.operation}, a custom_gradient, returned None: it says that nothing depends on "
                f"its argument, and so not on {name}",
                "return a gradient from it; zeros, if it is zero",
                step.operation,
                step.line,
            )
            for step in walk
            if step.entry.op.pull is not None and not step.outgoing
        ]

    def _path(
        self,
        targets: Sequence[Any],
        arrays: Sequence[Any],
        found: Sequence[tuple[int, tuple[int, ...], tuple[int, ...]]],
    ) -> tuple[PathStep, ...]:
        """The shortest way from the source to a target, through the entries that `program.leading` found."""
        away = {id(x): 0 for x in arrays}
        before: dict[int, tuple[int, int]] = {}  # the entry that made a value, and what it made it from
        for position, wanted, present in found:
            entry = self.entries[position]
            ways = [id(entry.inputs[i]) for i in wanted if id(entry.inputs[i]) in away]
            if ways:
                came = min(ways, key=away.__getitem__)
                for made in (id(entry.outputs[j]) for j in present):
                    if made not in away:
                        away[made], before[made] = away[came] + 1, (position, came)
        ends = [id(x) for x in targets if id(x) in away]
        at = min(ends, key=away.__getitem__) if ends else None
        best: list[int] = []
        while at in before:
            position, at = before[at]
            best.append(position)
        return tuple(
            PathStep(
                _name(self.entries[i]),
                ", ".join(map(self.names.typed, self.entries[i].outputs)),
                line_of(self.entries[i].where),
            )
            for i in reversed(best)
        )

    def _why(
        self, target: Any, source: Leaf, arrays: Sequence[Any], accessed: Sequence[Any], name: str
    ) -> list[Reason]:
        reasons = []
        if not is_inexact(target):
            reasons.append(self._integer_target(target))
        unwatched = self._unwatched(source, arrays, accessed, name, target)
        reasons += unwatched
        reasons += self._broken(target, source, arrays, name)
        return reasons or [self._unrelated(source, name, target)]

    def _known(self, x: Any) -> bool:
        return id(x) in self.made or id(x) in self.recording.watched

    def _integer_target(self, target: Any) -> Reason:
        entry = self.entries[self.made[id(target)]] if id(target) in self.made else None
        before = "" if entry is None else f", as {_name(entry)} made it"
        return Reason(
            "integer",
            f"the target {self.names.of(target)} is {type_of(target)}{before}: integers and booleans do not vary smoothly: they "
            "have no derivative",
            "take the gradient of the floating-point value that it was made from",
            None if entry is None else _name(entry),
            None if entry is None else line_of(entry.where),
        )

    # ---- the source's side: is it watched? ----

    def _unwatched(
        self, source: Leaf, arrays: Sequence[Any], accessed: Sequence[Any], name: str, target: Any
    ) -> list[Reason]:
        watched = self.recording.watched
        if not is_inexact(source.array):
            return [
                Reason(
                    "integer",
                    f"{name} is {type_of(source.array)}: only floating-point and complex values carry gradient",
                    f"make {name} a float before it is watched: tf.cast({name}, tf.float32), {name}.astype(jnp.float32)",
                    *self._used_at(arrays),
                )
            ]
        if any(id(x) in watched for x in (*arrays, *accessed)) or accessed:
            return self._late(source, arrays, name, [target], connected=False)
        if self._forgotten(source.array):
            line = self._mark_line("reset")
            return [
                Reason(
                    "reset",
                    f"{name} was watched or computed before tape.reset(), which forgets everything",
                    f"call tape.watch({name}) after the reset, or do not reset",
                    "reset",
                    line,
                )
            ]
        if is_variable(source.value):
            return self._variable(source, name, self._used_at([source.array, *arrays]))
        if self._computed_from_watched(source.array):
            return []
        if (replaced := self._replaced(source, name)) is not None:
            return [replaced]
        outside = next((m for m in self.recording.marks if m.kind == "watch outside" and m.about is source.array), None)
        if outside is not None:
            return [
                Reason(
                    "never watched",
                    f"tape.watch({name}) was called outside the tape's block, where it has no effect",
                    "move this line into the block, before the first use",
                    "watch",
                    line_of(outside.where),
                )
            ]
        made = self.made.get(id(source.array))
        if made is not None:
            entry = self.entries[made]
            return [
                Reason(
                    "never watched",
                    f"{name} was computed on the tape by {_name(entry)}, but from nothing that the tape watches",
                    f"call tape.watch({name}) right after that line, or watch what it is computed from",
                    _name(entry),
                    line_of(entry.where),
                )
            ]
        operation, line = self._used_at([source.array])
        after = "" if operation is None else f"; {operation} used it as a constant"
        return [
            Reason(
                "never watched",
                f"{name} was never watched: a tape watches trainable Variables by itself, and nothing else{after}",
                f"call tape.watch({_code(name)}) in the block, before it is used",
                operation,
                line,
            )
        ]

    def _variable(self, source: Leaf, name: str, used_at: tuple[str | None, Line | None]) -> list[Reason]:
        value = source.value
        if not getattr(value, "trainable", True):
            return [
                Reason(
                    "not trainable",
                    f"{name} is a Variable with trainable=False: a tape does not watch it of its own accord",
                    f"make it trainable, or call tape.watch({_code(name)}) in the block, before it is used",
                    *used_at,
                )
            ]
        if not self.recording.watch_accessed:
            return [
                Reason(
                    "not watching",
                    f"the tape was made with watch_accessed_variables=False, and {name} was not watched by hand",
                    f"call tape.watch({_code(name)}) in the block, before it is used; or leave watch_accessed_variables on",
                    *used_at,
                )
            ]
        return []  # it was not read: that is told as "unrelated", or where the path broke

    def _late(
        self, source: Leaf, arrays: Sequence[Any], name: str, targets: Sequence[Any], connected: bool
    ) -> list[Reason]:
        """Uses on the way to a target from before the watch began."""
        begins = [self.recording.watched[id(x)][1] for x in arrays if id(x) in self.recording.watched]
        if not begins:
            return []
        begin = min(begins)
        ids = {id(x) for x in arrays}
        leading_to = set(ancestors(self.entries, targets)[0])
        for position in range(begin):
            entry = self.entries[position]
            if position in leading_to and any(id(x) in ids for x in entry.inputs):
                watch = next((m for m in self.recording.marks if m.kind == "watch" and id(m.about) in ids), None)
                at = f" at {line_of(watch.where)}" if watch is not None and watch.where else ""
                some = "this use is not counted: " if connected else ""
                return [
                    Reason(
                        "watched late",
                        f"{some}{name} was used by {_name(entry)} before tape.watch({name}){at}: what was recorded "
                        "earlier took it for a constant",
                        f"move tape.watch({name}) above this line",
                        _name(entry),
                        line_of(entry.where),
                    )
                ]
        return []

    def _computed_from_watched(self, x: Any) -> bool:
        made = self.made.get(id(x))
        return made is not None and made in carrying_positions(self.recording, self.names)

    def _used_at(self, arrays: Sequence[Any]) -> tuple[str | None, Line | None]:
        """The operation, and its line, that first used one of these."""
        uses = [entry for entry in map(self._first_use, arrays) if entry is not None]
        return (_name(uses[0]), line_of(uses[0].where)) if uses else (None, None)

    def _first_use(self, x: Any) -> Entry | None:
        return next((entry for entry in self.entries if any(i is x for i in entry.inputs)), None)

    def _replaced(self, source: Leaf, name: str) -> Reason | None:
        """A name that was a Variable's until a tensor was bound to it."""
        for text in (self.block, self.here):
            bound = text.of(root(name))
            was = [a for a in bound if "Variable(" in a.line.text]
            new = [a for a in bound if "Variable(" not in a.line.text and root(name) in a.uses]
            if was and new:
                statement = new[0].line
                former = [a for a in was if a.line.number < statement.number]
                return Reason(
                    "replaced",
                    f"{name} is a Tensor now, no longer the Variable of {(former or was)[0].line}: this line put a new tensor in "
                    "its place, which the tape does not watch",
                    f"change the Variable, not the name: {name}.assign(...), {name}.assign_add(...), {name}.assign_sub(...)",
                    None,
                    statement,
                )
        return None

    # ---- the path's side: where does it break? ----

    def _broken(self, target: Any, source: Leaf, arrays: Sequence[Any], name: str) -> list[Reason]:
        """Where the path breaks, were the source watched from the start: every place that has to be mended."""
        everything = self._dependents(arrays)
        if not is_inexact(source.array):  # that is said; what matters behind it are the numbers made from it
            arrays = self._first_inexact(arrays)
        if id(target) in everything:
            return self._cut_by_operations(target, arrays, everything)
        if (mark := self._state(target, everything)) is not None:
            into, *given = (None if ref is None else ref() for ref in mark.about)
            return [
                self._state_reason(mark, into),
                *self._before(given, arrays, everything),
                *self._behind(into, target),
            ]
        if (reset := self._before_reset(target)) is not None:
            return [reset]
        known = self._known(target)
        said, text, found = self._by_text(target, name, everything)
        if text is not None and found is not None:
            statement, binds = found
            came = self._frontier(statement, everything)
            if came and not any(map(is_inexact, came)):  # an index, a count: the path broke when it was made
                return self._before(came, arrays, everything)
            reason = self._statement(text, statement, binds, came, everything, name)
            late = [] if known else [self._outside(target)]  # the target itself may stand outside as well
            late = [r for r in late if r.kind in ("before", "after", "stopped") and r.kind != reason.kind]
            return [
                reason,
                *self._before(came, arrays, everything),
                *self._behind(self._constant(binds, target), target),
                *late,
            ]
        if not known:
            return [self._outside(target)]
        marked = None if said and not self._unexplained(target) else self._by_marks(target, everything, name)
        return [marked or self._unrelated(source, name, target)]

    def _unexplained(self, target: Any) -> bool:
        """Whether the target was computed from a constant that came from nowhere: no operation made it, nobody has it."""
        leaves = [x for x, _ in ancestors(self.entries, [target])[1].values() if x.ndim or not self.names.is_result(x)]
        return any(id(x) not in self.recording.watched and self.names.name(x) is None for x in leaves if is_inexact(x))

    def _first_inexact(self, arrays: Sequence[Any]) -> list[Any]:
        """The first floating-point values that were computed from these integers."""
        whole, found = {id(x) for x in arrays}, list[Any]()
        for entry in self.entries:
            if any(id(x) in whole for x in entry.inputs):
                found += filter(is_inexact, entry.outputs)
                whole.update(id(x) for x in entry.outputs if not is_inexact(x))
        return found

    def _frontier(self, statement: Assignment, everything: set[int]) -> list[Any]:
        """The values depending on the source that a statement uses: the last that it computed itself, or what it names."""
        used = {id(x) for entry in self.entries for x in entry.inputs}
        made = [x for entry in self._at(statement) for x in entry.outputs if id(x) in everything and id(x) not in used]
        named = [x for x in map(self._array_of, sorted(statement.uses)) if x is not None and id(x) in everything]
        return made or named

    def _at(self, statement: Assignment) -> list[Entry]:
        """The entries that ran on the lines of a statement."""
        return [
            entry
            for entry in self.entries
            if (line := line_of(entry.where)) is not None
            and line.file == statement.line.file
            and statement.line.number <= line.number <= statement.end
        ]

    def _before(self, given: Sequence[Any], arrays: Sequence[Any], everything: set[int]) -> list[Reason]:
        """What is broken between the source and values that depend on it."""
        cuts = []
        for x in given:
            if x is None or id(x) not in everything:
                continue
            if is_inexact(x):
                cuts.append(self._cut_by_operations(x, arrays, everything))
            elif id(x) in self.made:
                entry = self.entries[self.made[id(x)]]
                came = [i for i in entry.inputs if id(i) in everything]
                last = [self._cut(entry, i, x) for i in came[:1] if is_inexact(i)]
                cuts.append([*self._before(came[:1], arrays, everything), *last])
        return cuts[0] if cuts and all(cuts) else []

    def _constant(self, binds: str, target: Any) -> Any:
        """The value under the name `binds` from which the target was computed; where the name means another now, the one
        constant that it was computed from."""
        x = self._array_of(binds)
        leaves = [y for y, _ in ancestors(self.entries, [target])[1].values() if is_inexact(y) and y is not target]
        leaves = [y for y in leaves if y.ndim or self.names.name(y) or id(y) not in self.recording.watched]
        return leaves[0] if len(leaves) == 1 and (x is None or x is target) else x

    def _behind(self, x: Any, target: Any) -> list[Reason]:
        """What else is broken between a value and the target."""
        if x is None or x is target or id(target) not in (everything := self._dependents([x])) or not is_inexact(x):
            return []
        return self._cut_by_operations(target, [x], everything)

    def _before_reset(self, target: Any) -> Reason | None:
        if self._forgotten(target):
            message = f"{self.names.of(target)} was computed before tape.reset(), which forgets everything"
            return Reason(
                "reset",
                message,
                "compute it after the reset, or do not reset",
                "reset",
                self._mark_line("reset"),
            )
        for x, position in ancestors(self.entries, [target])[1].values():
            if self._forgotten(x):
                use = self.entries[position]
                return Reason(
                    "reset",
                    f"{self.names.of(x)}, from which the target was computed, was made before tape.reset(), which forgets it",
                    "compute it again after the reset, or do not reset",
                    _name(use),
                    line_of(use.where),
                )
        return None

    def _dependents(self, arrays: Sequence[Any]) -> set[int]:
        """All that was computed from `arrays`, gradient or not, by id."""
        found = {id(x) for x in arrays}
        for entry in self.entries:
            if any(id(x) in found for x in entry.inputs):
                found.update(id(x) for x in entry.outputs)
        return found

    def _cut_by_operations(self, target: Any, arrays: Sequence[Any], everything: set[int]) -> list[Reason]:
        """The operations that depend on a source and let no gradient through, on the way to the target."""
        query = Query(self.recording, [target], [Source(x, watched=True) for x in arrays])
        live = {id(x) for x in arrays}
        for link in query.active():
            live.update(id(self.entries[link.position].outputs[j]) for j in link.linked)
        if id(target) in live or not is_inexact(target) and self._maker_is_live(target, live):
            return []
        reasons: list[Reason] = []
        for position in ancestors(self.entries, [target])[0]:
            entry = self.entries[position]
            reached = [x for x in entry.inputs if id(x) in live]
            cut = [x for x in entry.outputs if id(x) in everything and id(x) not in live]
            if reached and cut and len(reasons) < BREAKS:
                reasons.append(self._cut(entry, reached[0], cut[0]))
        return [r for r in reasons if r.kind != "shape"] or reasons

    def _maker_is_live(self, target: Any, live: set[int]) -> bool:
        made = self.made.get(id(target))
        return made is not None and any(id(x) in live for x in self.entries[made].inputs)

    def _cut(self, entry: Entry, came: Any, made: Any) -> Reason:
        name, line = _name(entry), line_of(entry.where)
        value, out = self.names.of(came), self.names.of(made)
        if value[:1].isdigit():  # a number without a name
            value = "its argument"
        inside = _inside(entry, came, made)
        if inside is not None:  # a function of the user's: what matters is in it
            (name, integer), called = inside, name
            said = f"{name}, inside {called},"
        else:
            integer, said = not is_inexact(made), name
        if "stop_gradient" in name or inside is None and is_inexact(made) and _contains(entry, "stop_gradient"):
            return Reason(
                "stop_gradient",
                f"{said} was applied to {value}: what comes out is a constant to every derivative"
                if inside is None
                else f"{said} stands on the way from {value}: what comes out is a constant to every derivative",
                f"use {value} itself where the gradient should flow" if inside is None else f"take it out of {called}",
                name,
                line,
            )
        if integer:
            return Reason(
                "integer",
                f"{said} turned {value} ({type_of(came)}) into {out} ({type_of(made)}): no gradient passes through integers and "
                "booleans"
                if inside is None
                else f"{said} makes integers or booleans of what comes from {value}: no gradient passes through these",
                "keep this path in floating point; in place of a hard choice (argmax, round, a comparison) use a smooth one "
                "(softmax, sigmoid, where on the values)",
                name,
                line,
            )
        if name in _OF_SHAPES:
            return self._shape(name, value, name, line)
        if name.endswith("_pullback"):  # a tape over a tape
            first = name.removesuffix("_pullback")
            return Reason(
                "no derivative",
                f"the derivative of {first}, which another tape took, does not depend on {value}: {first} is linear there, so "
                f"{out} is a constant",
                "there is nothing to mend: it is zero; unconnected_gradients='zero' gives zeros in place of None",
                name,
                line,
            )
        return Reason(
            "no derivative",
            f"the derivative of {said} by {value} is zero everywhere, so JAX and TensorFlow treat {out} as a constant",
            "use a smooth operation in its place, or give it a gradient of your own with tapejax.custom_gradient",
            name,
            line,
        )

    def _state(self, target: Any, everything: set[int]) -> Any:
        """Where a variable was assigned something computed from the source that was read again on the way to the target."""
        wanted = {id(x) for x, _ in ancestors(self.entries, [target])[1].values()}
        for mark in self.recording.marks:
            if mark.kind == "state":
                into, *given = (None if ref is None else ref() for ref in mark.about)
                if (
                    into is not None
                    and id(into) in wanted
                    and any(x is not None and id(x) in everything for x in given)
                ):
                    return mark
        return None

    def _state_reason(self, mark: Any, into: Any) -> Reason:
        holder = "a Variable" if into is None else self.names.of(into)
        return Reason(
            "state",
            f"the path goes through the state of {holder}: a Variable that is assigned keeps the number, not how it was "
            "computed",
            "compute the target from the value itself, and assign it to the Variable beside that",
            "assign",
            line_of(mark.where),
        )

    def _by_text(
        self, target: Any, name: str, everything: set[int]
    ) -> tuple[bool, Text | None, tuple[Assignment, str] | None]:
        """Whether the program's text could be followed back from the target's name; which text, and the statement in it where
        the path leaves the tape: one that says how, if there is one."""
        # in the block's function the target may have another name than where it is asked about
        names = {self.block: self.names.stored(target)}
        for text in (self.block, self.here):
            called = (self.names.name(target), names.get(text))
            start = next((n for n in called if n is not None and text.readable and text.of(root(n))), None)
            if start is None:
                continue
            found = list(self._leaving(text, root(start), root(name), everything, set(), self._asked(text)))
            if found:
                return True, text, next((pair for pair in found if self._says_how(text, *pair)), found[0])
            return root(name) in {n for a in text.assignments for n in (*a.names, *a.uses)}, None, None
        return False, None, None

    def _leaving(
        self,
        text: Text,
        wanted: str,
        source: str,
        everything: set[int],
        seen: set[tuple[str, int]],
        line: int | None,
    ) -> Iterator[tuple[Assignment, str]]:
        """The statements, on the way back from a name as it is used at `line`, that get what depends on the source and make
        what does not."""
        for statement in text.of(wanted, line):
            if (wanted, statement.line.number) in seen:
                continue
            seen.add((wanted, statement.line.number))
            if self._makes(text, statement, wanted, everything):
                continue
            before = statement.line.number - (not statement.changes)
            for used in sorted(statement.uses, key=lambda n: n != source):
                made = text.of(used, before)
                reads = any(s.defines and source in s.uses for s in made)
                if used == source or reads or any(self._makes(text, s, used, everything) for s in made):
                    if not statement.defines:
                        yield statement, wanted
                    break
            for used in sorted(statement.uses):
                yield from self._leaving(text, used, source, everything, seen, before)

    def _says_how(self, text: Text, statement: Assignment, binds: str) -> bool:
        """Whether it is seen how a path leaves the tape at a statement."""
        number, block = statement.line.number, text.block
        return (
            statement.python
            or statement.threaded
            or statement.shape
            or statement.function is not None
            or isinstance(self.values.get(binds), _PYTHON_VALUES)
            or block is None
            or not block.holds(number)
            or any(span.holds(number) for span in self._stops(text))
            or not self._at(statement)
        )

    def _makes(self, text: Text, statement: Assignment, name: str, everything: set[int]) -> bool:
        """Whether what a statement binds to `name` depends on the source, as far as the tape knows."""
        if text.of(name, self._asked(text))[:1] == [statement] and name in self.values:
            return self._depends(name, everything)
        if statement.python or statement.threaded:
            return False
        return any(id(x) in everything for entry in self._at(statement) for x in entry.outputs)

    def _asked(self, text: Text) -> int | None:
        """The line of `text` that asks, or None if that is another text's."""
        return next((line.number for scope, line in self.places if line is not None and scope == text.scope), None)

    def _array_of(self, name: str) -> Any:
        value = self.values.get(name)
        value = getattr(value, "_array", value)
        return value if isinstance(value, jax.Array) else None

    def _depends(self, name: str, everything: set[int]) -> bool:
        return (array := self._array_of(name)) is not None and id(array) in everything

    def _statement(
        self,
        text: Text,
        statement: Assignment,
        binds: str,
        came: Sequence[Any] = (),
        everything: Collection[int] = (),
        name: str = "its argument",
    ) -> Reason:
        line, value = statement.line, self.values.get(binds)
        for mark in self.recording.marks:
            if mark.kind == "state" and line_of(mark.where) == line and mark.about[0] is not None:
                return self._state_reason(mark, mark.about[0]())
        for span in self._stops(text):
            if span.holds(line.number):
                return self._stopped(binds, line)
        if (started := text.started(statement.function)) is not None:
            return self._thread(binds, started.line)
        thread = text.threads(text.block) if statement.threaded or not statement.python else None
        numpy = statement.python or isinstance(value, _PYTHON_VALUES)
        if text.block is not None and text.block.holds(line.number):
            if thread is not None and not (numpy and not statement.threaded and not isinstance(value, list)):
                return self._thread(binds, thread.line if not statement.threaded else line)
            mark = self._converted(text, statement, came, everything)
            if mark is None and not numpy and statement.shape:
                return self._shape(binds, name, None, line)
            return self._python(binds, line if mark is None else line_of(mark.where))
        if numpy:
            return self._python(binds, line)
        return self._elsewhere(text, binds, line)

    def _converted(self, text: Text, statement: Assignment, came: Sequence[Any], everything: Collection[int]) -> Any:
        """Where a function that a statement calls converted a value to NumPy or Python, if that is on record."""
        begin = max([self.made[id(x)] + 1 for x in came if id(x) in self.made], default=0)
        ran = [self.made[id(entry.outputs[0])] for entry in self._at(statement) if entry.outputs]
        end = min([position for position in ran if position >= begin], default=len(self.entries))
        found = [mark for mark in self._conversions(everything) if begin <= mark.position <= end]
        lines = [line_of(mark.where) for mark in found]
        own = range(statement.line.number, statement.end + 1)
        if any(line is not None and line.file == statement.line.file and line.number in own for line in lines):
            return None
        return next((mark for mark in found if Text(mark.where).scope != text.scope), None)

    def _conversions(self, everything: Collection[int]) -> list[Any]:
        """Where values that depend on the source were given to NumPy or Python, as far as that is on record."""
        marks = [mark for mark in self.recording.marks if mark.kind == "python" and mark.where and mark.about[1]]
        return [mark for mark in marks if (x := mark.about[1]()) is not None and id(x) in everything]

    def _shape(self, binds: str, name: str, operation: str | None, line: Line | None) -> Reason:
        return Reason(
            "shape",
            f"{binds} takes only the shape and dtype of {name}: it does not depend on its values",
            f"compute it from the values of {name}; or pass unconnected_gradients='zero' if zero is what you mean",
            operation,
            line,
        )

    def _stops(self, text: Text) -> list[Any]:
        marks = [line_of(m.where) for m in self.recording.marks if m.kind == "stop"]
        return [s for m in marks if m is not None and text.readable and (s := text.span_at(m.number)) is not None]

    def _mark_line(self, kind: str) -> Line | None:
        return next((line_of(m.where) for m in self.recording.marks[::-1] if m.kind == kind and m.where), None)

    # ---- what the tape did not see ----

    def _outside(self, target: Any) -> Reason:
        """Why the target is nothing that the tape recorded, where it is not seen how it comes from the source."""
        name = self.names.of(target)
        for text in (self.block, self.here):
            if text.readable and (bound := text.of(root(name), self._asked(text))):
                return self._statement(text, bound[0], name)
        stopped = self._mark_line("stop")
        if stopped is not None and self._first_use(target) is not None:
            return self._stopped(name, stopped)
        return Reason(
            "outside",
            f"{name} is no result of anything that the tape recorded: it was computed before, after or outside its block"
            f"{', or while recording was stopped' if stopped else ''}, in another thread, or by NumPy",
            "compute it inside `with tape:`, with jnp or tf operations",
            None,
            stopped,
        )

    def _elsewhere(self, text: Text, binds: str, line: Line) -> Reason:
        block = self.block.block
        if block is None or text.scope != self.block.scope:
            kind, when = "outside", "outside the tape's block"
        elif line.number < block.first:
            kind, when = "before", f"before the tape's block, which begins at line {block.first}"
        else:
            kind, when = "after", f"after the tape's block, which ends at line {block.last}"
        return Reason(
            kind,
            f"{binds} was computed {when}",
            "move this line, and what is computed from it, into the `with` block",
            None,
            line,
        )

    def _stopped(self, binds: str, line: Line | None) -> Reason:
        return Reason(
            "stopped",
            f"{binds} was computed while recording was stopped (tape.stop_recording()): the tape takes it for a constant",
            "move this line out of the stop_recording() block",
            None,
            line,
        )

    def _number(self, role: str, value: Any, arrays: Sequence[Any]) -> Reason:
        made_by = (
            f"NumPy {value.dtype}" if isinstance(value, (np.ndarray, np.generic)) else f"Python {type(value).__name__}"
        )
        name = next((name for name, x in self.values.items() if x is value), "")
        texts = [text for text in (self.here, self.block) if text.readable and name]
        lines: list[Line | None] = [statement.line for text in texts for statement in text.of(name)]
        lines += [line_of(mark.where) for mark in self._conversions(self._dependents(arrays))[::-1]]
        return Reason(
            "python",
            f"the {role} {name or number_text(value)} is a {made_by} and no tensor: the tape does not see what such a number is "
            "computed from, and gradient() raises TypeError",
            "pass the tensor that it was made from, before float(), .numpy() or np.asarray(); or compute it in jnp or tf",
            None,
            next(iter(lines), None),
        )

    def _python(self, binds: str, line: Line | None) -> Reason:
        return Reason(
            "python",
            f"{binds} was computed by NumPy or plain Python, which the tape does not see: to it the result is a new constant",
            "use the jnp or tf function of the same name, and do not convert (float(), np.asarray(), .numpy()) on the way",
            None,
            line,
        )

    def _thread(self, binds: str, line: Line | None) -> Reason:
        return Reason(
            "thread",
            f"{binds} was computed in another thread: a tape records the thread that entered it",
            "compute it in the tape's thread, or enter a tape in the thread that computes",
            None,
            line,
        )

    def _by_marks(self, target: Any, everything: set[int], name: str) -> Reason | None:
        """Without the text: what happened between the last of the source's values and the target's first constant."""
        for mark in self._conversions(everything):
            return self._python("a value computed from " + name, line_of(mark.where))
        leaves = ancestors(self.entries, [target])[1]
        constants = [position for x, position in leaves.values() if id(x) not in self.recording.watched]
        stops = [m for m in self.recording.marks if m.kind == "stop"]
        if stops and any(position >= stops[0].position for position in constants):
            return self._stopped("a constant that the target was computed from", line_of(stops[0].where))
        return None

    def _unrelated(self, source: Leaf, name: str, target: Any) -> Reason:
        ends = ancestors(self.entries, [target])
        made = self.made.get(id(target))
        entry = None if made is None else self.entries[made]
        if isinstance(source.value, Variable) and id(source.value) not in self.recording.variables:
            return Reason(
                "unrelated",
                f"{name} was not read while the tape recorded, so {self.names.of(target)} does not depend on it",
                f"use {name} itself in the block: not a value that was read from it before, and not its .numpy()",
                None if entry is None else _name(entry),
                None if entry is None else line_of(entry.where),
            )
        if (changed := self._changed(source, name, ends[1])) is not None:
            return changed
        froms = [self.names.of(x) for x, _ in ends[1].values()][:6]
        of = f"; it was computed from {', '.join(froms)}" if froms else ""
        if self._unexplained(target):
            of += " (c0 and the like are constants that no operation on the tape made: from NumPy, Python or elsewhere)"
        return Reason(
            "unrelated",
            f"nothing on the tape leads from {name} to {self.names.of(target)}{of}",
            f"compute {self.names.of(target)} from {name}, or pass unconnected_gradients='zero' if zero is what you mean",
            None if entry is None else _name(entry),
            None if entry is None else line_of(entry.where),
        )

    def _changed(self, source: Leaf, name: str, leaves: dict[int, tuple[Any, int]]) -> Reason | None:
        """A variable of another library, which is known by the array in it, after it was given another."""
        if not is_variable(source.value) or id(source.value) in self.recording.variables:
            return None
        for x, position in leaves.values():
            same = x.shape == source.array.shape and x.dtype == source.array.dtype and self.names.name(x) is None
            if same and id(x) not in self.made and id(x) not in self.recording.watched and position < len(self.entries):
                use = self.entries[position]
                return Reason(
                    "replaced",
                    f"{name} holds another value now than when the tape saw it (by all appearance {self.names.of(x)}, which "
                    f"{_name(use)} used): a library's variable is known by the array in it",
                    f"take the gradient before the variable is changed, or call tape.watch({_code(name)}) in the block, before "
                    "it is used",
                    _name(use),
                    line_of(use.where),
                )
        return None

    def _forgotten(self, x: Any) -> bool:
        reference = self.recording.forgotten.get(id(x)) if self.recording.forgotten else None
        return reference is not None and reference() is x


def _code(name: str) -> str:
    """A name as it would stand in code; a library's own name for its variable does not."""
    try:
        ast.parse(name, mode="eval")
    except SyntaxError:
        return "..."
    return "..." if "/" in name else name


def _name(entry: Entry) -> str:
    return entry.op.name.strip("_")


# Operations that look at nothing but the shape and dtype of their argument.
_OF_SHAPES = {"ones_like", "zeros_like", "full_like", "empty_like", "shape", "size", "rank"}


def _inside(entry: Entry, came: Any, made: Any) -> tuple[str, bool] | None:
    """In a function of the user's: the operation in it where the derivative of `made` by `came` ends, and whether that is
    because it makes integers. None for a library's function, and where it is not to be found."""
    try:
        with recorder.outside():
            closed = jax.make_jaxpr(entry.op.fn)(*entry.inputs)
        output = next(j for j, x in enumerate(entry.outputs) if x is made)
        return _ends_in(closed, {i for i, x in enumerate(entry.inputs) if x is came}, output, False)
    except Exception:  # it looks at values: not to be traced
        return None


def _ends_in(closed: Any, inputs: set[int], output: int, users: bool) -> tuple[str, bool] | None:
    jaxpr = jaxprs.open_jaxpr(closed)
    users = users or _is_users(jaxpr)
    needed = {jaxpr.outvars[output]} if not isinstance(jaxpr.outvars[output], Literal) else set()
    for eqn in reversed(jaxpr.eqns):
        if needed.intersection(eqn.outvars):
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    live = {v for i, v in enumerate(jaxpr.invars) if i in inputs}
    for eqn in jaxpr.eqns:
        reached = {i for i, v in enumerate(eqn.invars) if not isinstance(v, Literal) and v in live}
        if not reached:
            continue
        linked = equation_links(eqn)
        ends = [j for j, v in enumerate(eqn.outvars) if v in needed and linked[j].isdisjoint(reached)]
        if ends:
            for inner in jaxprs.jaxprs_in(eqn.params):
                body = jaxprs.open_jaxpr(inner)
                if len(body.invars) == len(eqn.invars) and len(body.outvars) == len(eqn.outvars):
                    if (found := _ends_in(inner, reached, ends[0], users)) is not None:
                        return found
            name = (eqn.params.get("name") or eqn.primitive.name).strip("_")
            return (name, not jax.numpy.issubdtype(eqn.outvars[ends[0]].aval.dtype, np.inexact)) if users else None
        live.update(v for j, v in enumerate(eqn.outvars) if not linked[j].isdisjoint(reached))
    return None


def _is_users(jaxpr: Any) -> bool:
    file = getattr(getattr(jaxpr, "debug_info", None), "func_filename", None)
    # `staging` traces the user's functions
    return file is not None and (not serves(file) or file == staging.__file__)


def _contains(entry: Entry, primitive: str) -> bool:
    try:
        return jaxprs.contains(jax.make_jaxpr(entry.op.fn)(*entry.inputs), primitive)
    except Exception:  # it looks at values: not to be traced
        return False


_BADGE = "border:1px solid rgba(128,128,128,.5);border-radius:3px;padding:0 4px"


def _html(explanation: Explanation) -> str:
    blocks = []
    for report in explanation.reports:
        state, colour = ("connected", GREEN) if report.connected else ("None", RED)
        rows = [f"<div>{bold(f'{report.name}: ')}{bold(state, colour)}</div>"]
        for step in _folded(report.path):
            if step is None:
                rows.append(f"<div>&nbsp;{faint(f'… {len(report.path) - FIRST - LAST} more')}</div>")
                continue
            line = f"{step.line}  {step.line.text}" if step.line else ""
            rows.append(f"<div>&nbsp;&rarr; {bold(step.operation)} {html.escape(step.value)} {faint(line)}</div>")
        for reason in report.reasons:
            line = f"<div><code>{html.escape(f'{reason.line}  {reason.line.text}')}</code></div>" if reason.line else ""
            rows.append(
                f'<div style="margin:3px 0 3px 1em"><b style="{_BADGE}">{html.escape(reason.kind)}</b> '
                f"{html.escape(reason.message)}{line}<div>&rarr; {html.escape(reason.remedy)}</div></div>"
            )
        blocks.append("".join(rows))
    head = f"<div>The gradient of <b>{html.escape(explanation.target)}</b> with respect to</div>"
    return head + "".join(f'<div style="margin:4px 0 4px 1em">{block}</div>' for block in blocks)
