"""A derivative on a tape, written as one of JAX's transformations of the function that it is of."""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value
from ...tape import jacobian as jacobians
from ...tape.derivative import DerivativeOp, compute, derivative_op
from ...tape.recording import Entry
from ...tape.slicing import Program
from ..writing.congruence import close
from ..writing.graph import Graph, ValueMap, ValueSet
from . import bodies, layout, mapped, rolling, scopes, traces, trees
from .batched import MappedOp
from .callers import Line, depth_of, inner_call
from .listing import bytecode, identifier
from .pullbacks import GIVES, LinearOp
from .recorded import Scope, Within, Writer
from .scopes import Definition, Key, Statement, new_key
from .trees import Path, item


def write(writer: Writer, line: Line, before: Sequence[Line], depth: int, scope: Scope) -> list[Statement]:
    """The statements that compute a derivative, at `depth` in `scope`; none if it is no derivative, or not one of a function
    that the lines `before` it show."""
    op = line.op
    if isinstance(op, MappedOp):
        return mapped.write(writer, line, depth, scope)
    if isinstance(op, LinearOp) and _varies(line, scope):
        about = op.sources, op.targets, [True] * len(line.outputs), _varying(line, scope)
        return _Derivative(writer, line, op, before, depth, scope, *about).called()
    if not isinstance(op, DerivativeOp):
        return bodies.write(writer, line, scope)
    values = op.values(line.inputs)
    found = _results(op, line.inputs)
    sources = [None if slot is None else values[slot] for slot in op.program.sources]
    targets = [None if slot is None else values[slot] for slot in op.program.targets]
    if found is None:
        return []
    varying = _varying(line, scope)
    made = {slot for step in op.program.steps for slot in step.outs}
    parts = _parts(line, found, made, scope)
    held = [x for x in sources if x is not None]
    if len(ValueSet(held)) < len(held) or not made.isdisjoint(op.program.sources):
        written = [write(writer, part, before, depth, scope) for part in parts[::-1]]
        return [statement for part in written[::-1] for statement in part] if all(written) else []
    fewer = any(len(part.outputs) < len(line.outputs) for part in parts)
    if fewer and not any(x in writer.places for x in sources):
        return write(writer, parts[0], before, depth, scope)
    if not all(map(has_tangent, (x for x in (*sources, *targets) if x is not None))):
        return []
    if op.kind not in GIVES and not _is_computed_again(line, varying, scope):
        return []
    if op.kind == "gradient" and all(found):
        order = mapped.in_order(writer, line, sources)
        sources, outputs = ([values[i] for i in order] for values in (sources, line.outputs))
        line = line._replace(outputs=outputs)
    return _Derivative(writer, line, op, before, depth, scope, sources, targets, found, varying).statements()


def _parts(line: Line, found: Sequence[bool], made: Set[int], scope: Scope) -> list[Line]:
    """A gradient, of what `scope` uses; with respect to one value twice, or to `made` values of its function, as several: one
    for each of these, and one for all others."""
    op: Any = line.op
    if op.kind != "gradient":
        return []
    slots = op.program.sources
    results = iter(line.outputs)
    every = {i: next(results) for i, there in enumerate(found) if there}
    output_of = {i: x for i, x in every.items() if x in scope.used}
    alone = [i for i in output_of if slots[i] in made or slots[i] in slots[:i]]
    groups = [[i for i in output_of if i not in alone], *([i] for i in alone)]
    parts = []
    for group in filter(None, groups):
        program = _from(op.program, [slots[i] for i in group])
        if op.seeded and program.targets != op.program.targets:
            return []
        part = derivative_op(op.kind, op.take, program, op.seeded)
        parts.append(line._replace(op=part, outputs=[output_of[i] for i in group]))
    return parts


def _from(program: Program, sources: Sequence[int]) -> Program:
    """The steps behind `sources`."""
    reached, steps = set(sources), []
    for step in program.steps:
        ins = tuple([i for i in step.active_ins if step.ins[i] in reached])
        if ins and reached.isdisjoint(step.outs):
            steps.append(step._replace(active_ins=ins))
            reached |= {step.outs[j] for j in step.active_outs}
    return Program.of(steps, [x if x in reached else None for x in program.targets], sources)


def _results(op: DerivativeOp, inputs: Sequence[Value]) -> list[bool] | None:
    """For which of the sources (of a "jvp": of the targets) there is a result."""
    try:
        shapes = jax.eval_shape(functools.partial(compute, op.kind, op.take, op.program, op.seeded), *inputs)
    except Exception:  # what may have no derivative in this form: it is written as what was run
        return None
    return [x is not None for x in shapes]


def _linked(line: Line) -> frozenset[int]:
    return traces.linked(Entry(line.op, tuple(line.inputs), tuple(line.outputs)))


def _varying(line: Line, scope: Scope) -> ValueSet:
    """The inputs that vary: also those that vary and make no difference to what was run, but to what is written."""
    found = ValueSet(line.inputs[i] for i in line.active_ins)
    others = [i for i, x in enumerate(line.inputs) if x not in found and scope.is_local(x)]
    if others:
        linked = _linked(line)
        found.update(line.inputs[i] for i in others if i not in linked)
    return found


def _varies(line: Line, scope: Scope) -> bool:
    """Whether the pullback or pushforward does that is called there."""
    at = line.inputs[0]
    return at in _varying(line, scope) or scope.varying_around(at)


def _is_computed_again(line: Line, varying: ValueSet, scope: Scope) -> bool:
    """Whether what varies is the same if the function is computed again: a tape that began after an operation takes its result
    for a constant, although its inputs vary."""
    op, inputs = line.op, line.inputs
    assert isinstance(op, DerivativeOp)
    count = len(op.values(inputs))
    other: set[int] = set()
    for level in (varying, *scope.levels()):
        made: dict[int, bool] = {}
        for step in op.program.steps:
            varies = any(made[slot] if slot in made else inputs[slot] in level for slot in step.ins)
            made |= dict.fromkeys(step.outs, varies)
            other |= {slot for slot in step.outs if slot < count and varies != (inputs[slot] in level)}
    return not other or _linked(line).isdisjoint(other)


@dataclass
class _Derivative:
    """`sources`, `targets`: what the derivative's program begins and ends with, `found`: for which there is a result;
    `varying`: the inputs that vary."""

    writer: Writer
    line: Line
    op: Any  # a `DerivativeOp` or `LinearOp`
    before: Sequence[Line]
    depth: int
    scope: Scope
    sources: Sequence[Value | None]
    targets: Sequence[Value | None]
    found: Sequence[bool]
    varying: ValueSet
    aux: Sequence[Value] = ()  # what the function gives beside its targets

    def statements(self) -> list[Statement]:
        names = self.writer.names
        self.given = [x for x in self.sources if x is not None]
        self.ends = [x for x in self.targets if x is not None]
        self.inside = self.writer.lines(self.op.program, self.op.values(self.line.inputs))
        self.calls = {self._call(each) for each in self.inside}  # of the functions that it is of
        self.own = [each for each in self.before if self._call(each) in self.calls - {None}]
        self._show()
        inner = self._scope()
        function = self._function(inner)
        of = new_key()
        called = self.writer.called.get(self.ends[0], "").partition("[")[0]
        name = names.hints.pop(inner.keys[self.ends[0]], None) or called
        for out in (out for s in function.statements for out in s.outs if out and names.hints.get(out) == name):
            del names.hints[out]  # the name is the target's by now
        if not (used := self.ends[0] in self.scope.used) and self.aux and name in self._parts():
            name = ""  # it is that of the gradient
        if used and name:
            names.hints.setdefault(self.scope.key(self.ends[0]), identifier(name))
        names.hints[of] = f"{identifier(name)}_fn" if used and name else identifier(name or "function")
        rolling.roll(function, names, self.writer.shapes)
        scopes.inline(function, names, self.depth + 2)
        self.function, self.of = function, of
        return [Statement([of], function=function), *getattr(self, f"_{self.op.kind}")()]

    def _scope(self) -> Within:
        local = ValueSet([*self.given, *(each.outputs[j] for each in self.inside for j in each.active_outs)])
        self.aux = self._beside()
        constant = self._constant_lines(local)
        made = ValueSet([*local, *(x for each in constant for x in each.outputs)])
        constant += [self.own[i] for i in Graph(self.own).before(self.aux) if made.isdisjoint(self.own[i].outputs)]
        if constant:
            self.varying.update(each.inputs[i] for each in constant for i in each.active_ins)
            optional = self.writer.sourced.optional  # which are written where they are used
            local.update(x for each in constant for x in each.outputs if x not in optional)
            lines = sorted([*self.inside, *constant], key=self._position)
            actives = (tuple([i for i, x in enumerate(line.inputs) if x in local]) for line in lines)
            self.inside = [line._replace(active_ins=ins) for line, ins in zip(lines, actives, strict=True)]
        inner = Within(self.scope, local, self.varying)
        self._find_trees()
        inner.tree = ValueSet(self.given if self.tree else ())
        return inner

    def _find_trees(self) -> None:
        """Sets where the trees are that all sources and all targets are of; empty where there is none."""
        tangents = self.op.kind in ("jvp", "linearize", "push")  # these are such trees, too
        tree = () if self.op.kind == "batch_jacobian" else self._tree_of(self.given, tangents)
        self.tree = tree if tree and self.scope.has_tree(tree[0], self.given) else ()
        self.result = self._tree_of(self.targets, True) if tangents else ()

    def _tree_of(self, values: Sequence[Any], whole: bool) -> Path:
        """Where the tree is that some values are of. `whole`: that they are all leaves of, and which can be written out."""
        writer, roots = self.writer, {self.writer.places.get(x, ("",))[0] for x in values}
        if len(values) < 2 or len(roots) > 1 or not roots <= writer.shapes.keys():
            return ()
        tree = writer.common(values)
        part = trees.part_at(writer.shapes[tree[0]], tree[1:]) if whole else ()
        return () if whole and (len(jax.tree.leaves(part)) > len(values) or not trees.is_written_out(part)) else tree

    def _packed(self, parts: Sequence[ast.expr], of: Sequence[Any], tree: Path) -> list[ast.expr]:
        """The code for a `tree` whose leaves are the values `of`, made of the `parts` for these; without one these."""
        if not tree:
            return [*parts]
        leaves: Any = {self.writer.places[x][len(tree) :]: part for x, part in zip(of, parts, strict=True)}
        whole = trees.part_at(self.writer.shapes[tree[0]], tree[1:])
        return [trees.written(trees.filled(whole, leaves))]

    def _constant_lines(self, local: ValueSet) -> list[Line]:
        """Lines between those of the function that its derivative does not go through, as ``y[:, None]`` or a comparison is, and
        which only the function uses. None if it would go through them here, which the tape may have been stopped at."""
        positions, found = list(map(self._position, self.inside)), list[Line]()
        needed = ValueSet(x for each in self.inside for x in each.inputs)
        ends = needed - local
        fixed = (each for each in self.writer.sourced.optional.values() if self._call(each) in self.calls - {None})
        before = sorted([*self.before, *ValueMap((x.outputs[0], x) for x in fixed).values()], key=self._position)
        for each in reversed(before if -1 not in positions and positions == sorted(positions) else ()):
            made = ValueSet(each.outputs)
            if not made.isdisjoint(needed - local) and made.isdisjoint(self.scope.used):
                ran = self._position(each) > positions[0] or self._call(each) in self.calls - {None}
                if ran and not isinstance(each.op, DerivativeOp):
                    found.insert(0, each)
                    needed.update(each.inputs)
        moving = ValueSet(local)
        for each in found:
            if not moving.isdisjoint(each.inputs[i] for i in _linked(each)):
                moving.update(each.outputs)
        return found if moving.isdisjoint(ends) else []

    def _show(self) -> None:
        """Notes what another round shows of what the function gives."""
        rounds, given = self.writer.last_rounds, (x for each in self.own for x in each.outputs)
        shown = [x for x in (*self.ends, *given) if rounds.shown.get(x) == self.depth]
        rounds.keys.update(map(self.scope.key, shown))

    def _beside(self) -> list[Value]:
        """What the one call that the function is gives beside its target, and which is used after the derivative alone."""
        sums = self.op.kind == "gradient" and (len(self.ends) > 1 or self.op.seeded or jnp.ndim(self.ends[0]))
        if len(self.calls) != 1 or None in self.calls or sums or self.op.kind in ("jvp", "batch_jacobian"):
            return []
        graph, own = Graph(self.before), [*map(self._call, self.before)]
        made = (x for each in self.own for x in each.outputs if x in self.scope.used)
        late = (x for x in made if all(own[i] in self.calls for i in graph.uses(x)))
        return [x for x in late if all(x is not end for end in self.ends)]

    def _call(self, line: Line) -> int | None:
        """The call of a function that the derivative is of, in which a line was run."""
        return inner_call(line.calls, self.depth)

    def _position(self, line: Line) -> int:
        made, inside = self.writer.made, self.writer.made_inside  # a result of a call is made by the call, too
        return min(inside.get(x, made.get(x, -1)) for x in line.outputs)

    def _function(self, inner: Within) -> Definition:
        writer, names = self.writer, self.writer.names
        ends: list[ast.expr] = [ast.Name(inner.key(x), ast.Load()) for x in self.ends]
        results = self._packed(ends, self.ends, self.result)
        aux: list[ast.expr] = [ast.Name(inner.key(x), ast.Load()) for x in self.aux]
        depth = min(self.depth, depth_of([self.line, *self.inside]))
        statements = writer.block(self.inside, depth, inner)
        parameters = [inner.key(x) for x in self.given]
        arguments = list(map(self._argument, self.given))
        if self.tree:
            root = writer.root(self.tree)
            there = [*zip(parameters, (writer.places[x] for x in self.given), strict=True), *inner.trees.items()]
            names.meanings |= {key: item(root, path[len(self.tree) :]) for key, path in there}
            parameters = [root]
            arguments = [self.scope.part(self.tree, self.given)]
            if len(self.tree) == 1:  # as the function around it calls it
                names.pending[root] = ast.Name(names.hint(root) or "params", ast.Load())
                names.hints.pop(root, None)
                names.arguments[root] = arguments[0]
        else:
            for key, x, argument in zip(parameters, self.given, arguments, strict=True):
                called = writer.called.get(x, "").split(".")[-1]
                if called.isidentifier() and self.scope.parent is None:
                    names.hints.setdefault(key, called)
                elif argument.isidentifier():
                    names.arguments[key] = argument
        self.arguments = ", ".join(arguments)
        self.argnums = f", argnums={tuple(range(len(arguments)))}" if len(arguments) > 1 else ""
        self.with_aux = ", has_aux=True" if aux else ""
        if not aux:
            return Definition(parameters, statements, layout.one_or_tuple(results))
        if len(statements) == len(aux) == 1 and [ast.unparse(x) for x in (*results, *aux)] == statements[0].outs:
            return Definition(parameters, [], statements[0].expression)
        result = [layout.one_or_tuple(results), layout.one_or_tuple(aux)]
        return Definition(parameters, statements, layout.one_or_tuple(result))

    def _argument(self, x: Value) -> str:
        return self.writer.argument(x, x in self.varying, self.scope)

    def _ends(self) -> list[str]:
        """The cotangents or tangents that are given."""
        return [self._argument(x) for seeds in self.op.seeds(self.line.inputs) for x in seeds if x is not None]

    # -- the kinds

    def _gradient(self) -> list[Statement]:
        target, ends = self.ends[0], self._ends()
        if len(ends) > 1 or any(jnp.iscomplexobj(x) for x in (*self.ends, *self.given)):
            ends = ends or [f"jnp.ones({tuple(x.shape)}, jnp.{x.dtype.name})" for x in self.ends]
            cotangents = ends[0] if len(ends) == 1 else f"({', '.join(ends)})"
            return [self._taken(f"jax.vjp({self.of}, {self.arguments})[1]({cotangents})", is_tuple=True)]
        if ends or len(self.ends) > 1 or jnp.ndim(target):
            return [*self._value(), *self._summed(*ends)]
        if self._is_free(target):
            return [self._taken(self._transform("jax.value_and_grad"), value=self._made_here(target))]
        return [self._taken(self._transform("jax.grad"))]

    def _summed(self, weights: str = "") -> list[Statement]:
        """Of the sum of all elements of the targets, or of the product of the one with its cotangent, `weights`."""
        function, several = self.function, len(self.ends) > 1
        parts = function.result.elts if several else [function.result]  # type: ignore[attr-defined]
        total = _sum(parts, self.ends, weights)
        room = (
            self.writer.names.width - len("gradient = jax.grad(lambda x: )(x)") - len(layout.INDENT) * (self.depth + 1)
        )
        function.defined |= not several and len(self.writer.names.shown(total)) > room
        outer = []
        if several or not function.statements and not function.defined:
            function.result = total
        else:
            keys, names = [new_key() for _ in function.parameters], self.writer.names
            names.arguments |= dict(zip(keys, function.parameters, strict=True))
            total = _sum([layout.parsed(f"{self.of}({', '.join(keys)})")], self.ends, weights)
            self.of = new_key()
            names.hints[self.of] = "total"
            outer = [Statement([self.of], function=Definition(keys, [], total))]
        return [*outer, self._taken(self._transform("jax.grad"))]

    def _jvp(self) -> list[Statement]:
        seeds = self._seeds()
        text = f"jax.jvp({self.of}, {_tuple(self.arguments)}, {_tuple(', '.join(['{}'] * len(seeds)))})"
        (first, *others), here = self._parts() or [""], self.line.calls[-1:]
        # of ``_, dy = jax.jvp(...)``, or its item
        items = [bytecode(each.code).items.get(each.instruction) for each in here]
        outs = self._as_one(self._each(self.targets), self.ends, self.result, next(iter(others or items), None))
        used, before = ValueSet(x for x in self.ends if x in self.scope.used), Graph(self.before)
        last = max(before.position(x) or -1 for x in self.ends)
        if not used or any(i > last for x in self.ends for i in before.uses(x)):
            return [Statement(outs, _fill(f"{text}[1]", seeds))]
        return [_assigned([self._values(used, first), outs], _fill(text, seeds))]

    def _seeds(self) -> list[ast.expr]:
        """The tangents, as a tree if the function is of one."""
        return self._packed([*map(layout.parsed, self._ends())], self.given, self.tree)

    def _values(self, used: ValueSet, name: str | None) -> list[Key | None]:
        """The keys of the targets, of which some are `used`."""
        keys = [self._made_here(x) if x in used else None for x in self.ends]
        return self._as_one(keys, self.ends, self.result, name)

    def _vjp(self) -> list[Statement]:
        """The value and the pullback or pushforward, of a point that only its calls read."""
        parts = self._parts()
        values = self._values(self.scope.used, next(iter(parts), None))
        (linear,) = self._outs()
        name = dict(enumerate(parts)).get(len(values), "pull" if self.op.kind == "vjp" else "f_jvp")
        self.writer.names.hints[str(linear)] = name
        call = layout.parsed(f"jax.{self.op.kind}({self.of}, {self.arguments}{self.with_aux})")
        aux = [self._made_here(x) for x in self.aux]
        return [_assigned([values, linear, *([aux] if aux else [])], call)]

    _linearize = _vjp

    def called(self) -> list[Statement]:
        """A call of a pullback or pushforward."""
        calls, linear = self.line.calls, self._argument(self.sources[0])
        self.given = [self.op.origin, *self.sources[1:]]
        self._find_trees()
        if self.op.kind == "push":
            outs, seeds = self._each(self.targets), self._seeds()
            outs = self._as_one(outs, self.targets, self.result, self._stored(False))
            return [Statement(outs, _fill(f"{linear}({', '.join(['{}'] * len(seeds))})", seeds))]
        ends = self._ends()
        text = f"{linear}({ends[0] if len(ends) == 1 else _tuple(', '.join(ends))})"
        alone = (len(self.given) == 1 or self.tree) and calls[-1:] != getattr(self.scope, "called", ())
        apart = alone and calls and len(bytecode(calls[-1].code).parts.get(calls[-1].place, ())) == 1
        statement = self._taken(text, is_tuple=not apart)
        statement.pattern = "({},)" if apart else ""
        return [statement]

    def _jacobian(self) -> list[Statement]:
        forward = self.op.take is jacobians._forward_columns
        return [*self._value(), self._taken(self._transform("jax.jacfwd" if forward else "jax.jacrev"))]

    def _batch_jacobian(self) -> list[Statement]:
        """Of each example alone, where the code for a batch does for that; else of the sum over the batch, as it was computed."""
        value, function = self._value(), self.function
        key, total = new_key(), new_key()
        self.writer.names.arguments[key] = function.parameters[0]
        self.writer.names.hints[total] = "example"
        example = self._of_an_example()
        argument, result = example or ("{}", "jnp.sum({}, axis=0)")
        given = argument.format(key)
        if function.statements or function.defined:
            called = layout.parsed(f"{self.of}({given})")
        else:
            called = layout.replaced(function.result, {function.parameters[0]: layout.parsed(given)})
        of_each = f"jax.vmap(jax.jacrev({total}))({self.arguments})"
        of_sum = f"jnp.moveaxis(jax.jacrev({total})({self.arguments}), {jnp.ndim(self.ends[0]) - 1}, 0)"
        return [
            *value,
            Statement([total], function=Definition([key], [], _fill(result, [called]))),
            Statement(self._outs(), layout.parsed(of_each if example else of_sum)),
        ]

    def _of_an_example(self) -> tuple[str, str] | None:
        """What the function is given of one example of a batch, and what is taken of its result, where that gives what it gives
        for the batch: at what was recorded, and at others."""
        x, wanted = self.given[0], self.line.outputs[0]
        rng = np.random.default_rng(0)
        with contextlib.suppress(Exception):  # traced values, or no code
            of = self.writer.runnable(self.function, self.scope)
            others = [x[::-1] * rng.uniform(0.5, 1.5, x.shape).astype(x.dtype) for _ in range(2)]
            for argument, result in (("{}", "{}"), ("{}[None]", "{}[0]")):
                one = eval(f"lambda x: {result.format(f'of({argument})').format('x')}", {"of": of})
                with contextlib.suppress(Exception):  # what it does has no meaning for one example
                    same = all(close(jax.vmap(one)(y), of(y)) for y in (x, *others))
                    if same and close(jax.vmap(jax.jacrev(one))(x), wanted):
                        return argument, result
        return None

    # -- parts

    def _value(self) -> list[Statement]:
        """The value of the target by the function, where it is used too: of one that is long, or has a derivative in it."""
        function, target = self.function, self.ends[0]
        long = function.statements or any(isinstance(line.op, DerivativeOp) for line in self.inside)
        if len(self.ends) > 1 or not long or function.forwarded() is not None or not self._is_free(target):
            return []
        function.defined = True
        return [Statement([self._made_here(target)], layout.parsed(f"{self.of}({self.arguments})"))]

    def _is_free(self, x: Value) -> bool:
        """Whether a value is used only after the derivative: then one call may give both."""
        before = Graph(self.before)
        late = all(isinstance(self.before[i].op, DerivativeOp) for i in before.uses(x))
        return x in self.scope.used and before.made_by(x) is not None and late

    def _made_here(self, x: Value) -> Key:
        """The key of a value that lines before the derivative need not make."""
        key = self.scope.key(x)
        self.scope.used.discard(x)
        self.writer.last_rounds.shown.pop(x, None)
        return key

    def _transform(self, name: str) -> str:
        return f"{name}({self.of}{self.argnums}{self.with_aux})({self.arguments})"

    def _outs(self) -> list[Key | None]:
        return [self.scope.key(x) if x in self.scope.used else None for x in self.line.outputs]

    def _each(self, of: Sequence[Value | None]) -> list[Key | None]:
        """The results for each of the sources or targets `of`."""
        outs = iter(self._outs())
        return [next(outs) if there else None for x, there in zip(of, self.found, strict=True) if x is not None]

    def _parts(self) -> list[str]:
        """The names that the source takes the result apart into."""
        return [part for each in self.line.calls[-1:] for part in bytecode(each.code).parts.get(each.instruction, ())]

    def _stored(self, after: bool) -> str | None:
        """Under which name the source stores the tree that is the result, alone or `after` a value, or before or after others."""
        whole = self.writer.shapes.get(self.tree[0]) if self.tree else None
        if whole is None or isinstance(trees.part_at(whole, self.tree[1:]), (list, tuple)):
            return None  # the source may take it apart
        if parts := self._parts():
            first = len(parts) == 1 or parts[-1] == "_" or self.aux and not after and parts[0] != "_"
            return parts[0] if first else parts[-1]
        return next((bytecode(each.code).stores.get(each.instruction) for each in self.line.calls[-1:]), None)

    def _as_one(self, outs: list[Key | None], of: Sequence[Any], tree: Path, name: str | None) -> list[Key | None]:
        """Results that are a `tree` like that of the values `of`, as one; without one as they are. One has a `name`."""
        writer, roots = self.writer, {self.writer.places.get(x, ("",))[0] for x in self.line.outputs}
        if tree and any(outs):
            made = next(iter(roots & self.scope.makes), "")
            root = writer.bind(made, self.scope) if made else new_key()
            paths = (writer.places[x][len(tree) :] for x in of)
            writer.names.meanings |= {out: item(root, path) for out, path in zip(outs, paths, strict=True) if out}
            if writer.names.hint(root) is None:
                writer.names.hints[root] = name or "grads"
            return [root]
        if name and len(outs) == 1 and outs[0]:
            writer.names.hints[outs[0]] = name
        return [None] if tree else outs

    def _taken(self, text: str, value: Key | None = None, is_tuple: bool = False) -> Statement:
        """What takes a result apart: one for each source, and before them the `value`."""
        outs = self._each(self.sources)
        called = [self.writer.called.get(x, "") for x in self.line.outputs]
        base = called[0].partition("[")[0]
        if not self.tree and len(outs) > 1 and called == [f"{base}[{i}]" for i in range(len(outs))]:
            root = new_key()
            self.writer.names.hints[root] = base
            self.writer.names.meanings |= {out: item(root, (i,)) for i, out in enumerate(outs) if out is not None}
            outs = [root]
        outs = self._as_one(outs, self.given, self.tree, self._stored(value is not None))
        expression = layout.parsed(f"{text}[0]" if is_tuple and len(outs) == 1 else text)
        aux = [self._made_here(x) for x in self.aux]
        if value is None:
            return _assigned([outs, aux] if aux else outs, expression)
        return _assigned([[value, aux] if aux else value, outs], expression)


def _assigned(parts: Sequence[Any], expression: ast.expr) -> Statement:
    """The statement that takes a result apart into `parts`, which may have parts; a part alone stands for what it is in."""
    keys = jax.tree.leaves(parts, is_leaf=lambda x: x is None)
    pattern = _pattern(parts)[1:-1]
    return Statement(keys, expression, pattern=pattern if "(" in pattern else "")


def _pattern(parts: Any) -> str:
    if not isinstance(parts, list):
        return "{}"
    inside = [*map(_pattern, parts)]
    return inside[0] if len(inside) == 1 else f"({', '.join(inside)})"


def _tuple(items: str) -> str:
    return f"({items})" if ", " in items else f"({items},)"


def _sum(parts: Sequence[ast.expr], of: Sequence[Value], weights: str) -> ast.expr:
    if weights:
        return _fill(f"{{}} * {weights}" if jnp.ndim(of[0]) == 0 else f"jnp.vdot({{}}, {weights})", parts)
    return _fill(" + ".join("{}" if jnp.ndim(x) == 0 else "jnp.sum({})" for x in of), parts)


def _fill(text: str, parts: Sequence[ast.expr]) -> ast.expr:
    """The expression `text` with others in the place of its ``{}``."""
    keys = [new_key() for _ in parts]
    return layout.replaced(layout.parsed(text.format(*keys)), dict(zip(keys, parts, strict=True)))
