"""Why there is no gradient, as far as the recording tells: what depends on what, and what happened to the tape."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from ...jaxprs import contents
from ...jaxprs.dependence import equation_links, has_tangent
from ...jaxprs.evaluate import needed
from ...jaxprs.fence import Literal
from ...jaxprs.types import JaxProgram, Value
from ...places import SourceLine, line_of, serves
from ...tape.derivative import DerivativeOp
from ...tape.query import Query, Source
from ...tape.recording import Entry, Mark, Recording, type_of
from ...tape.slicing import Step
from ...tape.structures import Leaf
from ...tf.values import staging
from ...tf.values.structures import is_variable
from ...tf.values.types import Array
from ...tf.values.variable import Variable
from ..writing.graph import Graph, ValueSet
from .inside import traced
from .listing import Names, active_positions, name_of
from .reasons import At, Reason, as_code, at, reason

# Where several paths break, so many are reported.
BREAKS = 4
# Operations that look at nothing but the shape and dtype of their argument.
_OF_SHAPES = {"ones_like", "zeros_like", "full_like", "empty_like", "shape", "size", "rank"}

# What takes logits; and what keeps the values that it is given.
_LOSSES = "sigmoid weighted softmax sparse_softmax".split()
_OF_LOGITS = {"log_sigmoid", "log_softmax", *(f"{name}_cross_entropy" for name in _LOSSES)}
_SAME_VALUES = set("copy identity cast convert_element_type reshape squeeze expand_dims getitem".split())


class GraphEvidence(Graph):
    """A recording, seen from one source: `arrays` are what it held, `dependents` all that was computed from it."""

    def __init__(self, recording: Recording, names: Names, source: Leaf, name: str):
        super().__init__(recording.entries)
        self.recording, self.names, self.source, self.name = recording, names, source, name
        self.entries, self.marks, self.watched = recording.entries, recording.marks, recording.watched
        self.sought = source.source(recording)
        self.arrays = Query(recording, (), [self.sought]).arrays
        self.dependents = self.after(self.arrays)
        variable = isinstance(source.value, Variable) and source.value.trainable and recording.watch_accessed
        self.never_read = variable and id(source.value) not in recording.variables

    def marked(self, kind: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.kind == kind]

    def last_line(self, kind: str) -> SourceLine | None:
        """The line of the last mark of a kind."""
        return next((line_of(mark.where) for mark in self.marked(kind)[::-1] if mark.where), None)

    def first_use(self, *arrays: Array) -> Entry | None:
        """The entry that first used the first of `arrays` that any used."""
        return next((self.entries[position] for x in arrays for position in self.uses(x)), None)

    def on_tape(self, x: Array) -> bool:
        """Whether `x` was computed or watched."""
        return self.made_by(x) is not None or id(x) in self.watched

    def conversions(self) -> list[Mark]:
        """Where values that depend on the source were given to NumPy or Python, as far as that is on record."""
        marks = [mark for mark in self.marked("python") if mark.where and mark.about[1]]
        return [mark for mark in marks if (x := mark.about[1]()) is not None and x in self.dependents]

    # ---- the source: is it watched? ----

    def unwatched(self, target: Array) -> list[Reason] | None:
        """What is wrong with the watch; None if the source is not on the tape."""
        array, value, code = self.source.array, self.source.value, as_code(self.name)
        used = at(self.first_use(array, *self.arrays))
        if not has_tangent(array):
            return [reason("integer: source", used, name=self.name, type=type_of(array))]
        if any(id(x) in self.watched for x in self.arrays) or self.sought.watched:
            return self.watched_late([target])
        if self._forgotten(array):
            return [reason("reset: source", At("reset", self.last_line("reset")), name=self.name)]
        if is_variable(value):
            if not getattr(value, "trainable", True):
                return [reason("not trainable", used, name=self.name, code=code)]
            if not self.recording.watch_accessed:
                return [reason("not watching", used, name=self.name, code=code)]
            return []  # it was not read: that is reported as "unrelated", or where the path broke
        active_ones = [self.entries[position] for position in active_positions(self.recording, self.names)]
        return [] if any(x is array for entry in active_ones for x in entry.outputs) else None

    def never_watched(self) -> Reason:
        array = self.source.array
        outside = next((mark for mark in self.marked("watch outside") if mark.about is array), None)
        if outside is not None:
            return reason("never watched: outside the block", At("watch", line_of(outside.where)), name=self.name)
        if (made := self.made_by(array)) is not None:
            return reason("never watched: computed", at(made), name=self.name)
        used = at(self.first_use(array))
        after = "" if used.operation is None else f"; {used.operation} used it as a constant"
        return reason("never watched", used, name=self.name, after=after, code=as_code(self.name))

    def watched_late(self, targets: Sequence[Array], connected: bool = False) -> list[Reason]:
        """The first use on the way to a target from before the watch began."""
        held = ValueSet(self.arrays)
        begin = min((self.watched[id(x)][1] for x in held if id(x) in self.watched), default=0)
        early = {position for x in held for position in self.uses(x) if position < begin}
        if not early:
            return []
        # what the tape kept for another input, which was watched by then, counts
        links = Query(self.recording, [], [self.sought]).active()
        early -= {p for p, ins, *_ in links if any(self.entries[p].inputs[i] in held for i in ins)}
        late = [self.entries[position] for position in self.before(targets) if position in early]
        watch = next((mark for mark in self.marked("watch") if mark.about in held), None)
        where = f" at {line_of(watch.where)}" if watch is not None and watch.where else ""
        uncounted = "this use is not counted: " if connected else ""
        return [reason("watched late", at(e), name=self.name, where=where, uncounted=uncounted) for e in late[:1]]

    def swapped(self, targets: Sequence[Leaf]) -> list[Reason]:
        """Whether it is the source that was computed from the targets."""
        ends = [(leaf, leaf.source(self.recording)._replace(watched=True)) for leaf in targets]
        came = [leaf for leaf, end in ends if Query(self.recording, [self.source.array], [end]).relevant()[0]]
        if not came or not self.dependents.isdisjoint(leaf.array for leaf in targets):
            return []
        called = [self.names.of(leaf.array) for leaf in came]
        target = called[0] if len(called) == 1 else f"[{', '.join(called)}]"
        return [reason("swapped", at(self.made_by(self.source.array)), name=self.name, target=target)]

    def squashed(self, relevant: dict[int, Step]) -> list[Reason]:
        """A loss of logits on the way, among `relevant`, that is given probabilities."""
        for position, step in relevant.items():
            entry = self.entries[position]
            for i in step.active_ins if name_of(entry) in _OF_LOGITS else ():
                x, made = entry.inputs[i], self.made_by(entry.inputs[i])
                while made is not None and name_of(made) in _SAME_VALUES:
                    made = self.made_by(made.inputs[0])
                if first := self._squashes(made):
                    return [reason("squashed twice", at(entry), value=self.called(x), first=first)]
        return []

    def _squashes(self, entry: Entry | None) -> str:
        """The function that makes probabilities of logits, if an entry ends one: JAX's softmax is a quotient to the tape."""
        if entry is None or name_of(entry) in ("sigmoid", "logistic", "softmax"):
            return name_of(entry) if entry else ""
        made = [self.made_by(x) for x in entry.inputs]
        names = [each and name_of(each) for each in made]
        ends = name_of(entry) in ("true_divide", "div") and names == ["exp", "reduce_sum"]
        return "softmax" if ends and made[1] and made[1].inputs[0] is entry.inputs[0] else ""

    # ---- operations: where does the path break? ----

    def integer_target(self, target: Array) -> Reason:
        entry = self.made_by(target)
        made_by = "" if entry is None else f", as {name_of(entry)} made it"
        called = self.names.of(target)
        return reason("integer: target", at(entry), target=called, type=type_of(target), made_by=made_by)

    def breaks(self, values: Sequence[Value | None], arrays: Sequence[Array] | None = None) -> list[Reason]:
        """The operations that let no gradient through on the way from the source, or from `arrays`, to `values`, as far as these
        depend on it; none if one of them has a gradient."""
        starts = self._starts(self.arrays if arrays is None else arrays)
        ends = [x for x in values if x is not None and (arrays is not None or x in self.dependents)]
        query = Query(self.recording, ends, [Source(x, watched=True) for x in starts])
        active = ValueSet(starts)
        for link in query.active():
            active.update(self.entries[link.position].outputs[j] for j in link.linked)
        if not active.isdisjoint(ends):
            return []
        reasons: list[Reason] = []
        for position in self.before(ends):
            entry = self.entries[position]
            ended = [x for x in entry.outputs if x not in active]
            # an integer ends the path behind another break, too
            known = active if all(map(has_tangent, ended)) else self.dependents
            reached = [x for x in entry.inputs if x in known and has_tangent(x)]
            if reached and ended and len(reasons) < BREAKS:
                reasons.append(self._break(entry, reached[0], ended[0]))
        return [r for r in reasons if r.kind != "shape"] or reasons

    def called(self, x: Value) -> str:
        """The name of an operation's argument."""
        name = self.names.of(x)
        return "its argument" if name.lstrip("-")[:1].isdigit() else name  # a number without a name

    def _starts(self, arrays: Sequence[Array]) -> list[Value]:
        """What could carry gradient: `arrays`, of integers the first floating-point values computed from them."""
        integers, starts = ValueSet(x for x in arrays if not has_tangent(x)), list[Value](filter(has_tangent, arrays))
        for entry in self.entries:
            if not integers.isdisjoint(entry.inputs):
                starts += filter(has_tangent, entry.outputs)
                integers.update(x for x in entry.outputs if not has_tangent(x))
        return starts

    def _break(self, entry: Entry, came: Value, made: Value) -> Reason:
        called, line, closed = name_of(entry), entry.line, traced(entry.op, entry.inputs)
        value, out = self.called(came), self.names.of(made)
        inputs = {i for i, x in enumerate(entry.inputs) if x is came}
        output = next(j for j, x in enumerate(entry.outputs) if x is made)
        inside = closed and _ends_in(closed, inputs, output)  # of a function of the user's: what matters is in it
        name, integer = inside or (called, not has_tangent(made))
        said, where = (f"{name}, inside {called},", ": inside") if inside else (name, "")
        values = {"name": name, "called": called, "said": said, "value": value, "out": out}
        hidden = closed and not inside and not integer and contents.contains(closed, "stop_gradient")
        if "stop_gradient" in name or hidden:
            case = f"stop_gradient{where}"
        elif integer:
            case = f"integer{where}"
            values |= {"type": type_of(came), "out_type": type_of(made)}
        elif name in _OF_SHAPES:
            case = "shape"
            values |= {"binds": name, "name": value}
        elif isinstance(entry.op, DerivativeOp):  # a tape over a tape
            case, known = "no derivative: linear", entry.op.values(entry.inputs)
            targets = [known[slot] for slot in entry.op.program.targets if slot is not None]
            values["first"] = ", ".join(map(self.names.of, targets))
        else:
            case = "no derivative"
        return reason(case, At(name, line), **values)

    # ---- the tape: assigned, reset, stopped, not read ----

    def state(self, target: Array) -> Mark | None:
        """Where a variable was assigned something computed from the source that was read again on the way to the target."""
        wanted = ValueSet(x for x, _ in self.leaves([target]))
        for mark in self.marked("state"):
            if given_at(mark)[0] in wanted and self.keeps(mark):
                return mark
        return None

    def keeps(self, mark: Mark) -> bool:
        """Whether the variable that a mark is about was given something computed from the source."""
        into, *values = given_at(mark)
        return into is not None and not self.dependents.isdisjoint(values)

    def state_reason(self, mark: Mark) -> Reason:
        into, line = given_at(mark)[0], line_of(mark.where)
        if line is not None and any(given_at(made)[0] is into for made in self.marked("new variable")):
            called = "" if self.names.name(into) is None else f", {self.names.of(into)}"
            return reason("state: new variable", At("Variable", line), line=line.number, called=called, name=self.name)
        holder = "a Variable" if into is None else self.names.of(into)
        return reason("state", At("assign", line), holder=holder)

    def before_reset(self, target: Array) -> list[Reason]:
        if self._forgotten(target):
            return [reason("reset: target", At("reset", self.last_line("reset")), target=self.names.of(target))]
        parts = [(x, self.entries[position]) for x, position in self.leaves([target]) if self._forgotten(x)]
        return [reason("reset: part", at(entry), part=self.names.of(x)) for x, entry in parts[:1]]

    def _forgotten(self, x: Array) -> bool:
        reference = self.recording.forgotten.get(id(x))
        return reference is not None and reference() is x

    def is_new(self) -> bool:
        """Whether the source is a value that the tape has not seen."""
        x = self.source.array
        return self.made_by(x) is None and self.first_use(x) is None and not self.conversions()

    def by_marks(self, target: Array) -> Reason | None:
        """Without the text: what happened between the last of the source's values and the target's first constant."""
        constants = [position for x, position in self.leaves([target]) if id(x) not in self.watched]
        for mark in self.conversions():
            if any(position >= mark.position for position in constants):
                return reason("python", At(None, line_of(mark.where)), binds="a value computed from " + self.name)
        stops = self.marked("stop")
        if stops and any(position >= stops[0].position for position in constants):
            stopped_at = At(None, line_of(stops[0].where))
            return reason("stopped", stopped_at, binds="a constant that the target was computed from")
        return None

    def unexplained(self, target: Array) -> bool:
        """Whether the target was computed from a constant of unknown origin: no operation made it, nothing refers to it."""
        leaves = [x for x, _ in self.leaves([target]) if isinstance(x, jax.Array) and has_tangent(x)]
        return any(id(x) not in self.watched and self.names.name(x) is None for x in leaves)

    def unrelated(self, target: Array) -> Reason:
        made, called = at(self.made_by(target)), self.names.of(target)
        if isinstance(self.source.value, Variable) and id(self.source.value) not in self.recording.variables:
            return reason("unrelated: not read", made, name=self.name, target=called)
        if (changed := self._changed_in_library(target)) is not None:
            return changed
        ends = ", ".join([self.names.of(x) for x, _ in self.leaves([target])][:6])
        ends = f"; it was computed from {ends}" if ends else ""
        if self.unexplained(target):
            of = "constants that no operation on the tape made: from NumPy, Python or elsewhere"
            ends += f" (c0 and the like are {of})"
        return reason("unrelated", made, name=self.name, target=called, ends=ends)

    def _changed_in_library(self, target: Array) -> Reason | None:
        """A variable of another library, which is known by the array in it, after it was given another."""
        source = self.source
        if not is_variable(source.value) or id(source.value) in self.recording.variables:
            return None
        for x, position in self.leaves([target]):
            same = x.shape == source.array.shape and x.dtype == source.array.dtype and self.names.name(x) is None
            if same and id(x) not in self.watched and position < len(self.entries):
                values = {"name": self.name, "code": as_code(self.name), "seen": self.names.of(x)}
                return reason("replaced: in a library", at(self.entries[position]), **values)
        return None


def given_at(mark: Mark) -> list[Array | None]:
    """What a mark is about, as far as it is alive."""
    return [None if reference is None else reference() for reference in mark.about]


# ---- inside an operation --------------------------------------------------------------------------------------------


def _ends_in(closed: JaxProgram, inputs: set[int], output: int, users: bool = False) -> tuple[str, bool] | None:
    """In a function of the user's: the operation in it where the derivative of an output with respect to inputs ends, and
    whether that is because it makes integers. None for a library's function, and where it is not to be found."""
    jaxpr = contents.open_jaxpr(closed)
    users = users or _is_users(jaxpr)
    active = {v for i, v in enumerate(jaxpr.invars) if i in inputs}
    for eqn, wanted in needed(closed, [jaxpr.outvars[output]]):
        reached = {i for i, v in enumerate(eqn.invars) if not isinstance(v, Literal) and v in active}
        if not reached:
            continue
        linked = equation_links(eqn)
        ends = [j for j, v in enumerate(eqn.outvars) if v in wanted and linked[j].isdisjoint(reached)]
        if ends:
            for inner in contents.jaxprs_in(eqn.params):
                body = contents.open_jaxpr(inner)
                if len(body.invars) == len(eqn.invars) and len(body.outvars) == len(eqn.outvars):
                    if (inside := _ends_in(inner, reached, ends[0], users)) is not None:
                        return inside
            name = (eqn.params.get("name") or eqn.primitive.name).strip("_")
            return (name, not jax.numpy.issubdtype(eqn.outvars[ends[0]].aval.dtype, np.inexact)) if users else None
        active.update(v for j, v in enumerate(eqn.outvars) if not linked[j].isdisjoint(reached))
    return None


def _is_users(jaxpr: JaxProgram) -> bool:
    file = getattr(getattr(jaxpr, "debug_info", None), "func_filename", None)
    # `staging` traces the user's functions
    return file is not None and (not serves(file) or file == staging.__file__)
