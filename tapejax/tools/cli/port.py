"""``python -m tapejax port PROGRAM.py -o OUT.py``: a JAX program for a TensorFlow program that trains with a tape.

The program is run, as `tapejax run` does, with its ``tf.function``s run by Python; its steps are observed (`observing`), and the
values of its expressions are noted (`probes`). What the steps have in common (`recorded`) is printed by ``tape.as_function``: the
loss of each gradient, and what the program does with gradients and variables itself. Around that come ``jax.value_and_grad``,
Optax and ``jax.jit``; and the text of the program (`kept`), where what TensorFlow evaluated is a call of a recorded function.

Programs of these shapes are taken:

* a step with one or more tapes, nested ones as well, whose gradients with respect to variables change these variables, by a Keras
  optimizer or by ``assign``, ``assign_add``, ``assign_sub``, also twice in a step; or with respect to tensors that the program
  carries by names (``x = x - rate * gradient``); in a function, compiled or not, in a method or in a loop;
* several steps (a discriminator and a generator; batches of a few sizes), each the same operations whenever it runs;
* state that a step assigns (averages of batch normalisation, counters, velocities, seeds of dropout), or a statement between the
  steps (metrics, a target network), is passed along.

Refused, with the line: steps whose operations change from one to the next, Python that reads a batch's values, gradients
started by ``output_gradients``, optimizers and settings of them that have no equal in Optax, complex variables.

What OUT.py computes is compared with what the program computed, in a process of its own in which neither tapejax nor
TensorFlow can be imported: its step on the arguments of the first steps; and OUT.py as a whole where the program's loop was kept.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import tokenize
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import Value
from ...tape.gradient_tape import GradientTape
from ...tape.recording import type_of
from ...tf.programs.data import Dataset
from ...tf.programs.function import functions_run_eagerly, run_functions_eagerly
from ...tf.values.tensor import Tensor
from ...tf.values.types import Array, Nest, TensorLike
from . import imports, kept, probes, runner
from .observing import Applied, Assigned, Block, Computed, Enough, Gradient, Observer, Optimizer, Step
from .recorded import Kind, Piece, Refused, Steps, as_function

STEPS = 10  # that are kept and compared, with their arguments
TOLERANCE = 1e-3  # of a loss, relative to its size
GROWTH = 5  # of a difference from one step to the next that is still rounding


def port(
    program: str | os.PathLike[str],
    out: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    steps: int | None = None,
    tolerance: float = TOLERANCE,
) -> int:
    """Writes ``out``, a JAX program for ``program``, with its arrays in an ``.npz`` beside it; runs both and compares.

    Args:
      program: the file; it runs as `run` runs it.
      out: the file to write.
      arguments: what the program finds in ``sys.argv[1:]``.
      steps: after how many training steps the program is ended; None: it runs to its end.
      tolerance: how far losses may differ, relative to their size.

    Returns the exit status: 0; 1 if losses differ by more or the written program fails; 2 if the program cannot be ported or
    run, with the line that stopped it and what to do by hand on stderr.
    """
    path, target = Path(program).absolute(), Path(out).absolute()
    if path.suffix == ".ipynb":
        return _refuse(f"{program}: a notebook; save its code cells as a program first (jupyter nbconvert --to script)")
    if path.resolve() == target.resolve() or not target.parent.is_dir():
        return _refuse(f"{out}: a file of its own, in a folder that exists, is needed for the JAX program")
    observer = Observer(STEPS, steps)
    randoms, values = probes.Randoms(), probes.Values(observer, STEPS)
    noted = {probes.BEFORE: randoms.note, probes.VALUE: values.note, probes.BEGIN: values.begin, probes.END: values.end}
    with runner._settings(False):
        eagerly = functions_run_eagerly()
        run_functions_eagerly(True)
        try:
            with observer.installed(), imports.replaced(vars(builtins), **noted):
                observer.patch(Dataset, "__iter__", values.iterate)
                status = runner.run(path, arguments, prepare=lambda tree: values.prepare(randoms.prepare(tree)))
        except Enough:
            status = 0
        except SystemExit as end:
            status = 0 if not end.code else 1
        finally:
            run_functions_eagerly(eagerly)
        if status:
            return _refuse(f"{program} does not run whole: see above, and `python -m tapejax check {program}`")
        try:
            make = functools.partial(_Port, path, target, arguments, observer, randoms, values, tolerance)
            return _best(observer, make)
        except Refused as refusal:
            return _refuse(str(refusal))


class Written(NamedTuple):
    """A JAX program: its text, and the arrays that it reads."""

    text: str
    data: dict[str, Any]


def _best(observer: Observer, make: Callable[..., _Port]) -> int:
    """Writes the program with all that it reads and assigns between its steps; or with less, if its loop is not kept so."""
    refusal: Refused | None = None
    ports: list[_Port] = []
    given: tuple[set[int], set[int]] = set(), {place for _, place in observer.firsts if place}
    for grows in (True, False):
        try:
            for _ in range(5 if grows else 1):
                ported = make(*given, grows)
                ported.texts()
                if given == (given := (ported.steps.state, ported.apart)):
                    break
            ports.append(ported)
        except Refused as error:
            refusal = error
        given = set(), set()
    if not ports:
        assert refusal is not None
        raise refusal
    return ports[-1].write([each for each in ports if each.whole is not None])


def _refuse(message: str) -> int:
    print(f"tapejax port: {message}", file=sys.stderr)
    return 2


class _Port:
    """One program on its way: `head` is the part of OUT.py that holds functions, `data` what it reads from the ``.npz``."""

    def __init__(
        self,
        path: Path,
        target: Path,
        arguments: Any,
        observer: Observer,
        randoms: probes.Randoms,
        values: probes.Values,
        tolerance: float,
        state: set[int],
        apart: set[int],
        grows: bool,
    ):
        self.path, self.target, self.arguments = path, target, arguments
        self.observer, self.randoms, self.values, self.tolerance = observer, randoms, values, tolerance
        self.source = path.read_text()
        if not observer.steps:
            raise Refused(
                path.name,
                "no step was seen: no tape's gradient with respect to variables was followed by an update of them",
                self._without_steps(),
            )
        self.tree = probes.numbered(ast.parse(self.source))
        self.nodes: dict[int, Any] = {node.place: node for node in ast.walk(self.tree)}  # type: ignore[attr-defined]
        words = re.findall(r"[^\W\d]\w*", self.source)
        self.taken = {*words, *_HEAD_NAMES, *keyword.kwlist}
        self.data: dict[str, Any] = {}
        self.chunks: list[str] = []
        self.known: dict[Hashable, str] = {}  # text of a definition, or an array's dtype, shape and bytes -> its name
        self.expressions: dict[tuple, str | None] = {}  # place, and what may be arguments -> text
        self.optimizers: dict[int, tuple[Optimizer, str]] = {}
        self.steps = Steps(
            observer, lambda block: kept.used_after(self.tree, block.line) if self._is_own(block) else [], state, apart
        )
        self.needed, self.grows = set(self.steps.state), grows
        self.notes = ""
        self.apart: set[int] = set()  # statements that assign to variables apart from the steps

    def _is_own(self, block: Block) -> bool:
        return Path(block.file).resolve() == self.path.resolve()

    def texts(self) -> None:
        """Makes the program on the recorded arguments, and with its own data and loop; or says in `notes` why not."""
        names = [self._unique("update") for _ in self.steps.kinds]
        for kind in self.steps.kinds:
            kind.outputs = self._outputs(kind)
        whole = ""
        try:
            whole = self._whole(names)
        except kept.NotKept as reason:
            self.notes = str(reason)
        for kind, name in zip(self.steps.kinds, names, strict=True):
            self._update(kind, name)
        self.recorded = self._written(
            _RECORDED.format(
                batches=f"{self.target.stem}_batches.npz",
                plan=[self.steps.kind_of[step.number] for step in self._first],
                updates=f"({', '.join(names)},)",
                arguments=[list(kind.arguments) for kind in self.steps.kinds],
                count=len(self._first),
                first=names[0],
            )
        )
        self.whole = self._written(whole) if whole else None

    @property
    def _first(self) -> list[Step]:
        return [step for step in self.observer.steps if step.number < STEPS]

    def write(self, wholes: list[_Port]) -> int:
        """Writes the first program of `wholes` whose losses are right, or the one on the recorded arguments."""
        beside = self.target.with_name(f"{self.target.stem}_batches.npz")
        np.savez_compressed(beside, **dict(self._batches(self._first)))
        # of a step's gradients those that changed variables, which are the first, second ... of so many
        used = {
            len(k.steps[0].gradients): [int(piece.name.rpartition("_")[2]) - 1 for piece in k.losses]
            for k in self.steps.kinds
        }
        expected = [tuple(loss[i] for i in used.get(len(loss), range(len(loss)))) for loss in self.observer.losses]
        results = self._run([self.recorded, *(each.whole for each in wholes[:1] if each.whole)])
        status = self._compare(
            "step by step, on the recorded arguments", results[0], [expected[step.number] for step in self._first]
        )
        written, notes = self.recorded, self.notes
        for i, each in enumerate(wholes):
            assert each.whole is not None
            result = self._run([each.whole])[0] if i else results[1]
            if not self._compare("as a whole, with the program's own data and loop", result, expected):
                written, notes = each.whole, ""
                beside.unlink()
                break
            notes = "run as a whole it does not give the same losses, see above"
        text = written.text
        if notes:
            print(f"The program's loop was not kept: {notes}. {self.target.name} runs on the recorded arguments.")
            text += "\n\n# What the program did around its steps, to be done here by hand:\n#\n"
            text += textwrap.indent(self.source, "# ", lambda _: True)
        self.target.write_text(text)
        np.savez_compressed(self.target.with_suffix(".npz"), **written.data)
        print(f"wrote {self.target.name} and {self.target.stem}.npz: {self._summary()}")
        return status

    def _summary(self) -> str:
        looks = self.target.read_text().count("# LOOK")
        return f"{len(self.steps.variables)} variables, {len(self.steps.kinds)} kind(s) of step, {looks} place(s) marked LOOK"

    # -- the functions

    def _update(self, kind: Kind, name: str) -> None:
        """Prints the functions of a kind of step, and the step made of them."""
        arguments = list(kind.arguments)
        lines: list[str] = []
        losses: list[str] = []
        before: list[str] = []  # what changes the state
        for i, piece in enumerate(kind.losses, 1):
            gradient = piece.subject[0]
            labels = piece.slices[0].labels
            params = {name: x for (group, name), x in labels.items() if group == "params"}
            held = {name: x for (group, name), x in labels.items() if group == "state"}
            if any(x.dtype.kind == "c" for x in params.values()):
                raise Refused(
                    self._at(gradient), "a complex variable", "JAX's gradient is the conjugate of TensorFlow's"
                )
            function = self._print(piece, params, held, "loss_function", gradient)
            has_aux = isinstance(piece.targets, tuple)
            if not (len(gradient.targets) == 1 and np.ndim(gradient.targets[0]) == 0):
                function = (
                    f"{self._helper(_SUMMED)}({function})" if has_aux else f"{self._helper(_SUMMED_ALONE)}({function})"
                )
            given = ", ".join(["params", *(f"state[{n!r}]" for n in held), *self._names(piece)])
            result = f"(loss_{i}, found_{i})" if has_aux else f"loss_{i}"
            option = ", has_aux=True" if has_aux else ""
            if all(part.line != gradient.line for p in kind.pieces for part in p.subject[:1] if p.role == "change"):
                lines.append(f"# {self._at(gradient)}: {self._text(gradient.line)}")
            lines.append(f"{result}, {piece.name} = jax.value_and_grad({function}{option})({given})")
            losses.append(f"loss_{i}")
            changed = [n for n in piece.targets[1] if n in self.steps.variables] if has_aux else []
            before += [self._part(f"found_{i}", changed, "state")] if changed else []
        carried = [n for n in arguments if n in self.steps.variables]
        if carried:
            lines.insert(0, f"params = params | {{{', '.join(f'{n!r}: {n}' for n in carried)}}}")
        updated = "params"
        for piece in kind.pieces:
            if piece.role == "change":
                lines += self._applied(piece, updated)
                updated = "updated"
        for piece in kind.pieces:
            if piece.role == "assign":
                function = self._print(piece, self._sources(piece), {}, "assigned_values", None)
                lines.append(f"assigned = {self._call(function, piece, updated)}")
                trained = [n for n in piece.targets if self.steps.group(self.steps.variables[n]) == "params"]
                rest = [n for n in piece.targets if n not in trained]
                if trained:
                    lines.append(f"updated = {updated} | {self._part('assigned', trained, 'params')}")
                    updated = "updated"
                before += [self._part("assigned", rest, "state")] if rest else []
        for piece in kind.pieces:
            if piece.role == "value":
                function = self._print(piece, self._sources(piece), {}, piece.name, None)
                kind.outputs[piece.name] = self._call(function, piece, updated)
        if before:
            lines.append(f"state_after = {' | '.join(['state', *before])}")
        found = "{" + ", ".join(f"{n!r}: {text}" for n, text in kind.outputs.items()) + "}"
        types = ", ".join(f"{n}: {_type(values[0])}" for n, values in kind.arguments.items())
        text = [
            "@jax.jit",
            f"def {name}({', '.join(['carry', *arguments])}):",
            f'    """A step: {self._at(kind.block)}. Returns the new carry, the losses and what the block computed.',
            "",
            f"    {types or 'No arguments'}.",
            '    """',
            "    params, state, optimizers = carry",
            *(f"    {line}" for line in lines),
            f"    return ({updated}, {'state_after' if before else 'state'}, optimizers), ({', '.join(losses)},), {found}",
        ]
        self.chunks.append("\n".join(text))

    def _outputs(self, kind: Kind) -> dict[str, str]:
        """The names that a step's block binds and the program reads afterwards, with code for each in the step."""
        outputs: dict[str, str] = {}
        for i, piece in enumerate(kind.losses, 1):
            block, targets = piece.subject[0].block, piece.subject[0].targets[:1]
            ends = [id(x) for x in targets if np.ndim(x) == 0]
            made = {n: f"loss_{i}" for n, x in block.after.items() if id(x) in ends}
            aux = piece.targets[1] if isinstance(piece.targets, tuple) else ()
            made |= {n: f"found_{i}[{n!r}]" for n in aux if n not in self.steps.variables}
            wanted = self.steps.outputs(block)
            outputs |= {n: text for n, text in made.items() if n in wanted}
        return outputs

    def _applied(self, piece: Piece, updated: str) -> list[str]:
        applied: Applied = piece.subject[0]
        optimizer = self._optimizer(
            [each for kind in self.steps.kinds for p in kind.pieces for each in p.subject], applied
        )
        names = tuple(piece.targets)
        labels = dict(zip(sorted(names), piece.slices[0].key[1], strict=True))  # type: ignore[index]
        groups = {label[0] if isinstance(label, tuple) else label for label in labels.values()}
        if len(groups) == 1 and not piece.slices[0].entries and all(n == label[1] for n, label in labels.items()):
            lines = [f"gradients = {self._part(next(iter(groups)), names, 'params')}"]
        else:
            function = self._print(piece, self._sources(piece), {}, "changed_gradients", None)
            lines = [f"gradients = {self._call(function, piece, updated)}"]
        return [
            *lines,
            f"# {self._at(applied)}: {self._text(applied.line)}",
            f"trained = {self._part(updated, names, 'params')}",
            f"changes, {optimizer}_state = {optimizer}.update(gradients, optimizers[{optimizer!r}], trained)",
            f"updated = {updated} | optax.apply_updates(trained, changes)",
            f"optimizers = optimizers | {{{optimizer!r}: {optimizer}_state}}",
        ]

    def _part(self, values: str, names: Sequence[str], group: str) -> str:
        """Code for the part of a dict that has these names."""
        if set(names) == {
            n for n, v in self.steps.variables.items() if n in self.steps.initial and self.steps.group(v) == group
        }:
            return values if values in ("params", "updated") else f"{{name: {values}[name] for name in {group}}}"
        text = _tuple(names)
        if text not in self.known:
            self.known[text] = self._unique(f"{group.upper()}_{len(self.known)}")
            self.chunks.append(f"{self.known[text]} = {text}")
        return f"{{name: {values}[name] for name in {self.known[text]}}}"

    def _sources(self, piece: Piece) -> dict[str, dict[str, Array]]:
        found: dict[str, dict[str, Array]] = {}
        for (group, name), x in piece.slices[0].labels.items():
            found.setdefault(group, {})[name] = x
        return found

    def _call(self, function: str, piece: Piece, updated: str) -> str:
        groups = ", ".join(f"{g!r}: {updated if g == 'updated' else g}" for g in self._sources(piece))
        return f"{function}({', '.join([f'{{{groups}}}', *self._names(piece)])})"

    def _without_steps(self) -> str:
        if ".fit(" in self.source:
            return "where Keras trains (`fit` of a compiled model), it runs on JAX already: KERAS_BACKEND=jax"
        if "GradientTape" not in self.source:
            return "port is for programs with a tape; `python -m tapejax run` runs others on JAX"
        return (
            "give what is trained a name, take the gradient with respect to it, and let it change by the gradient: "
            "`w = w - rate * gradient`, `assign`, or a Keras optimizer; of a gradient that is only looked at, tape.as_function "
            "prints the function"
        )

    @staticmethod
    def _names(piece: Piece) -> list[str]:
        return list(dict.fromkeys(piece.arguments.values()))

    def _print(self, piece: Piece, sources: Nest, state: dict[str, Array], wish: str, subject: Any) -> str:
        names, look = dict(piece.block.before), ""
        try:
            for (group, name), x in piece.slices[0].labels.items():
                names[name if group in ("params", "state") else f"{name}_{group.partition('_')[0].rstrip('s')}"] = x
            try:
                code, constants = as_function(piece, sources, state, names, unused=True)
            except ValueError as error:
                if "may have looked" not in str(error):
                    raise
                # The tape only suspects it, and all steps are the same operations.
                look = f"# LOOK: {str(error).partition(';')[0]}\n"
                code, constants = as_function(piece, sources, state, names, unused=False)
            for name, x in constants.items():
                if getattr(getattr(x, "dtype", None), "kind", "V") == "V":
                    raise LookupError(f"there is no code for the operation {name}, outside of tapejax")
        except (ValueError, TypeError, LookupError) as error:
            place = self._at(subject) if subject is not None else self.path.name
            raise Refused(place, str(error), "change that line, or write that part of the step in JAX") from error
        if state or "params" not in code and piece.role == "loss":
            code = re.sub(r"\bsources\b", "params", code)
        if not sources:
            code = re.sub(r"^def f\(sources,? ?", "def f(", code, flags=re.MULTILINE)
        found = self._add(code, constants, wish)
        if look:
            self.chunks[-1] = look + self.chunks[-1]
        return found

    def _helper(self, text: str) -> str:
        if text not in self.known:
            self.known[text] = self._add(text, {}, {_ASSIGN: "assign", _BATCHES: "Batches"}.get(text, "summed"))
        return self.known[text]

    def _add(self, code: str, constants: dict[str, Array], wish: str) -> str:
        """Adds the definitions in `code`, under names of their own; returns that of its function ``f``."""
        renamed: dict[str, str] = {}
        chunks = []
        definitions = ast.parse(code).body
        for node in definitions:  # arrays that are not read go to the data
            if isinstance(node, ast.Assign) and node.end_lineno - node.lineno > 8:  # type: ignore[operator]
                value = ast.unparse(node.value)
                constants = constants | {ast.unparse(node.targets[0]): eval(value, {"jnp": jnp, "np": np, "jax": jax})}
        for name, value in constants.items():
            array = np.asarray(value)
            key = array.dtype, array.shape, array.tobytes()
            if key not in self.known:
                self.known[key] = self._unique(name)
                self.data[f"constants/{self.known[key]}"] = array
                chunks.append(f'{self.known[key]} = jnp.asarray(NPZ["constants/{self.known[key]}"])')
            renamed[name] = self.known[key]
        for node in definitions:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            text = "\n".join(code.splitlines()[first - 1 : node.end_lineno])
            own: Any = getattr(node, "name", None) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]))
            text = _renamed(text, renamed)
            if not own:
                chunks.append(text)
            elif own in constants:
                continue
            elif text in self.known and own != "f":
                renamed[own] = self.known[text]
            else:
                renamed[own] = self.known[text] = self._unique(wish if own == "f" else own)
                chunks.append(_renamed(text, {own: renamed[own]}))
        self.chunks += chunks
        return renamed["f"]

    def _unique(self, wish: str) -> str:
        names = [wish, *(f"{wish}_{i}" for i in range(2, len(self.taken) + 3))]
        name = next(name for name in names if name not in self.taken)
        self.taken.add(name)
        return name

    def _at(self, part: Block | Gradient | Applied | Assigned) -> str:
        return f"{self.path.name}:{part.line}"

    def _text(self, line: int) -> str:
        lines = self.source.splitlines()
        return lines[line - 1].strip() if line <= len(lines) else ""

    # -- optimizers

    def _optimizer(self, all_applied: list[Any], applied: Applied) -> str:
        optimizer = applied.optimizer
        if id(optimizer) in self.optimizers:
            return self.optimizers[id(optimizer)][1]
        mine = [each for each in all_applied if isinstance(each, Applied) and each.optimizer is optimizer]
        if min(each.count for each in mine) > 0:
            raise Refused(
                self._at(applied), "the optimizer was restored: its slots are not zero", "load them into Optax's state"
            )
        if len({tuple(map(id, each.variables)) for each in mine}) > 1:
            raise Refused(self._at(applied), "one optimizer updates different variables", "use an optimizer for each")
        schedule = optimizer._learning_rate
        if callable(schedule):
            rate = self._schedule(applied, schedule)
        else:
            rate = repr(float(f"{applied.rate:.7g}"))
            if len({each.rate for each in mine}) > 1:
                rates = ", ".join(f"{r:.4g}" for r in dict.fromkeys(each.rate for each in mine))
                raise Refused(self._at(applied), f"the learning rate is assigned to ({rates})", "use a schedule")
        text, look = optax_text(optimizer, rate, callable(schedule), self._at(applied))
        name = self._unique(re.sub(r"\W", "_", optimizer.name))
        self.optimizers[id(optimizer)] = optimizer, name
        self.chunks.append((f"# LOOK: {look}\n" if look else "") + f"{name} = {text}")
        return name

    def _schedule(self, applied: Applied, schedule: Callable[..., TensorLike]) -> str:
        count = Tensor(jnp.asarray(3, jnp.int32))
        with GradientTape(persistent=True) as tape:
            tape._recording.watch(count._array)  # type: ignore[union-attr]  # `watch` takes no integers
            rate = schedule(count)
        function = tape.as_function(rate, count)
        for i in (0, 1, 7, 100, 12345):
            expected, found = (np.asarray(f(jnp.asarray(i, jnp.int32))) for f in (schedule, function))
            if not np.allclose(expected, found, rtol=1e-6, atol=0):
                raise Refused(
                    self._at(applied), "the learning rate's schedule branches in Python", "write it for Optax"
                )
        return self._add(function.code, function.constants, "learning_rate")

    # -- text

    def _written(self, text: str) -> Written:
        """A text of the program with what it needs of the functions above it."""
        steps = self.steps
        groups: dict[str, list[str]] = {"params": [], "state": []}
        for name, variable in steps.variables.items():
            if name in steps.initial:
                groups[steps.group(variable)].append(name)
        for group, members in groups.items():
            self.data |= {f"{group}/{name}": np.asarray(steps.initial[name]) for name in members}
        optimizers = []
        for optimizer, name in self.optimizers.values():
            first = next(
                p for k in steps.kinds for p in k.pieces if p.role == "change" and p.subject[0].optimizer is optimizer
            )
            optimizers.append(f"{name!r}: {name}.init({self._part('params', tuple(first.targets), 'params')})")
        body = self._needed(text + "".join(optimizers))
        data = {key: x for key, x in self.data.items() if not key.startswith("constants/") or f'"{key}"' in body}
        body = re.sub(r"\n\n\n(?=\w+ = )", "\n", body)
        wide = any(x.dtype.itemsize == 8 and x.dtype.kind in "fiu" or x.dtype.kind == "c" for x in data.values())
        wide = wide or bool(re.search(r"(float|int|uint)64", body))
        wide = wide or any(
            "64" in _type(v[0]) for k in steps.kinds for v in k.arguments.values() if hasattr(v[0], "dtype")
        )
        head = _HEAD.format(
            docstring=(ast.get_docstring(self.tree) or self.path.stem).replace("\\", r"\\").replace('"""', "'" * 3),
            program=self.path.name,
            x64=_X64 if wide else "",
            extend="import jax.extend\n" if "jax.extend" in body else "",
            optax="import optax\n" if self.optimizers else "",
            body=body,
            params=_tuple(groups["params"]),
            state=_tuple(groups["state"]),
            optimizers="{" + ", ".join(optimizers) + "}",
        )
        return Written(head + text, data)

    def _needed(self, text: str) -> str:
        """Those of the definitions that a text uses, and what they use."""
        owners = [_owner(chunk) for chunk in self.chunks]
        found: set[int] = set()
        while new := {i for i, name in enumerate(owners) if i not in found and re.search(rf"\b{name}\b", text)}:
            found |= new
            text = "\n".join(self.chunks[i] for i in new)
        return "\n\n\n".join(self.chunks[i] for i in sorted(found))

    def _batches(self, first: Sequence[Step]) -> Iterator[tuple[str, Value]]:
        for i, step in enumerate(first):
            kind = self.steps.kinds[self.steps.kind_of[step.number]]
            position = kind.steps.index(step)
            for name, values in kind.arguments.items():
                value = values[position]
                if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended):
                    raise Refused(
                        self._at(kind.block), f"the argument {name!r} is a jax.random key", "split keys in the step"
                    )
                end = ".number" if isinstance(value, (bool, int, float)) else ""
                yield f"{i}.{name}{end}", np.asarray(value)

    def _whole(self, names: list[str]) -> str:
        """What follows the functions where the program's own data and loop are kept.

        Raises:
          NotKept: they cannot be.
        """
        sites: dict[int, kept.Site] = {}
        for kind, name in zip(self.steps.kinds, names, strict=True):
            block, at = kind.block, self._at(kind.block)
            if not self._is_own(block):
                raise kept.NotKept(f"the tape is entered in {Path(block.file).name}")
            for n, expression in kind.expressions.items():
                if expression is None:
                    what = f"{n} ({_type(kind.arguments[n][0])}) at {at}"
                    raise kept.NotKept(f"{what} differs from step to step; give it a name before that line")
            expressions: list[str | None] = list(kind.expressions.values())
            types = [str(v[0].dtype) if hasattr(v[0], "dtype") else "" for v in kind.arguments.values()]
            if block.line not in sites:
                own = self._unique("train")
                sites[block.line] = kept.Site(own, list(kind.arguments), expressions, types, set())
            site = sites[block.line]
            if site.expressions != expressions:
                raise kept.NotKept(f"the steps at {at} take different arguments")
            shapes = tuple(np.shape(values[0]) for values in kind.arguments.values())
            if shapes in [known for known, _ in site.updates]:
                raise kept.NotKept(f"which of the steps at {at} is to run depends on more than shapes")
            site.updates.append((shapes, name))
            site.lines |= {line for step in kind.steps for line in self.steps.lines(step)}
            site.outputs = list(dict.fromkeys([*site.outputs, *kind.outputs]))
        return kept.rewrite(self.source, self.tree, sites, self.randoms, self.path.name, self.data, self)

    def expression(self, node: ast.expr, reads: bool, fitting: kept.Fitting) -> str | None:
        """A text for an expression that TensorFlow evaluated: what a variable holds, a result of a step, or a function's call."""
        place: int = node.place  # type: ignore[attr-defined]
        if place in self.values.rows:
            return self._batched(node, self.values.rows[place])
        runs = self.values.computed.get(place, [])
        if not runs or runs[0].of_variable and not reads:
            return None
        texts = self._parts(place, fitting)
        key = place, *texts.values()
        if key not in self.expressions:
            self.expressions[key] = self._computed(node, runs, texts)
        return self.expressions[key]

    def _batched(self, node: ast.expr, rows: probes.Rows) -> str | None:
        """A text for a dataset over which the program went: what gives the same batches."""
        name = f"data_{node.lineno}_{node.col_offset}"
        data = rows.data(name)
        if data is None:
            return None
        self.data |= data
        return f"{self._helper(_BATCHES)}({name!r}, {rows.form})"

    def statement(self, node: ast.stmt, fitting: kept.Fitting) -> str | None:
        """A text for a statement that assigned to variables, but in a step."""
        place: int = node.place  # type: ignore[attr-defined]
        runs = self.values.computed.get(place, [])
        if not runs or not self.grows:
            return None
        texts = self._parts(place, fitting)
        key = place, *texts.values()
        if key not in self.expressions:
            result = self.steps.expression(runs, texts)
            call = result and self._called(f"assigned_{node.lineno}", *result)
            self.expressions[key] = call and f"{self._helper(_ASSIGN)}({call})"
        if self.expressions[key]:
            self.apart.add(place)
        return self.expressions[key]

    def _parts(self, place: int, fitting: kept.Fitting) -> dict[int, str]:
        """Texts of the parts of an expression or a statement that fit, names first."""
        known = self.values.computed[place][0].parts  # what is NumPy's array comes from what no recording shows
        inner = [(p, isinstance(known.get(p), np.ndarray)) for p in self.values.inner[place]]
        texts = {p: text for p, others in inner if (text := fitting(self.nodes[p], others))}
        return dict(sorted(texts.items(), key=lambda item: (not item[1].isidentifier(), len(item[1]))))

    def _computed(self, node: ast.expr, runs: list[Computed], texts: dict[int, str]) -> str | None:
        wish = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        wish = re.sub(r"\W+", "_", wish.rpartition(".")[2]).strip("_") if len(wish) < 30 else ""
        wish = wish if wish.isidentifier() else "value"
        result = self.steps.expression(runs, texts)
        if not self.grows and self.steps.state != self.needed:
            self.steps.state = set(self.needed)
            return None
        if result is None:
            name = f"{wish}_{node.lineno}_{node.col_offset}"
            return f"step_found[{name!r}]" if self.steps.output(runs, name) else None
        return self._called(f"{wish}_{node.lineno}", *result)

    def _called(self, wish: str, pieces: list[Piece], arguments: dict[str, str]) -> str | None:
        """A call of the function that some pieces are, if it is one and there is code for it."""
        sources = self._sources(pieces[0])
        groups = {"params": "step_carry[0]", "state": "step_carry[1]"}
        one = isinstance(pieces[0].targets, jax.Array) and len(pieces[0].slices[0].labels) == 1
        if one and not pieces[0].slices[0].entries and not pieces[0].arguments:
            ((group, name),) = pieces[0].slices[0].labels
            return f"{groups[group]}[{name!r}]"
        try:
            codes = [as_function(p, self._sources(p), {}, p.block.before, unused=False)[0] for p in pieces]
            if len({re.sub(r" *#.*\n", "", code) for code in codes}) > 1:
                return None
            function = self._print(pieces[0], sources, {}, wish, None)
        except (Refused, ValueError, TypeError, LookupError, RuntimeError):  # as for an array that was deleted
            return None
        given = ", ".join(f"{group!r}: {groups[group]}" for group in sources)
        first = [f"{{{given}}}"] if sources else []
        return f"{function}({', '.join([*first, *(arguments[n] for n in self._names(pieces[0]))])})"

    # -- comparing

    def _run(self, programs: Sequence[Written]) -> list[dict[str, Any]]:
        """Runs programs in a process without tapejax and TensorFlow; of each its losses, and the error that ended it."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, f"{i}.py") for i in range(len(programs))]
            for file, program in zip(files, programs, strict=True):
                file.write_text(program.text)
                np.savez(file.with_suffix(".npz"), **program.data)
            Path(folder, "run.py").write_text(_RUN)
            # at the latest after a step more than the program's
            count = self.observer.stop_after or len(self.observer.losses) + 1
            given = [str(self.target), list(map(str, files)), count, list(self.arguments)]
            command = [sys.executable, f"{folder}/run.py", json.dumps(given)]
            done = subprocess.run(command, cwd=self.path.parent, capture_output=True, text=True)
            found = [file.with_suffix(".json") for file in files]
            lost = {"losses": [], "error": done.stderr[-2000:] or f"exit status {done.returncode}"}
            return [json.loads(file.read_text()) if file.exists() else lost for file in found]

    def _compare(self, what: str, result: dict[str, Any], expected: Sequence[Any]) -> int:
        """Prints the losses of both; 0 if they are the same up to rounding."""
        losses = result["losses"]
        print(f"\n{self.path.name} and the JAX program, {what}:")
        if result["error"]:
            print(textwrap.indent(result["error"], "  "))
            return 1
        rows, differences = [], [0.0]
        # what a loss is compared with: itself, or where it is next to nothing a thousandth of the largest
        least = 1e-3 * max((abs(x) for loss in expected for x in loss if abs(x) < float("inf")), default=1.0)
        for i, (ours, theirs) in enumerate(zip(expected, losses, strict=False)):
            differences.append(_difference(ours, theirs, least))
            columns = " ".join(f"{x:12.6g}" for x in ours), " ".join(f"{x:12.6g}" for x in theirs)
            rows.append(f"  {i:6d}  {'   '.join(columns)}   {differences[-1]:.1e}")
        shown = rows if len(rows) <= 16 else [*rows[:10], "     ...", *rows[-5:]]
        print("\n".join(["    step  program's loss   ported loss   difference", *shown]))
        print(f"  {len(losses)} of {len(expected)} steps; largest difference {max(differences):.1e}", end=" ")
        print(f"(tolerance {self.tolerance:.0e})")
        beyond = [i for i, x in enumerate(differences[1:]) if not x <= self.tolerance]
        if not beyond:
            return int(len(losses) != len(expected))
        # Rounding grows from step to step in training; what is wrong differs at once.
        i = beyond[0]
        grown = i >= STEPS and differences[i + 1] < GROWTH * max(differences[: i + 1])
        what = "rounding has grown to it, as between any two runs in float32" if grown else "this is no rounding"
        print(f"  beyond the tolerance from step {i} on: {what}")
        return int(not grown or len(losses) != len(expected))


def _difference(ours: Sequence[float], theirs: Sequence[float], least: float) -> float:
    """The largest difference of two steps' losses, relative to their size; infinite where only one is a number."""
    if len(ours) != len(theirs):
        return float("inf")
    pairs = [(x, y) for x, y in zip(ours, theirs, strict=True) if x != y and (x == x or y == y)]
    found = max((abs(x - y) / max(least, abs(x)) for x, y in pairs), default=0.0)
    return found if found == found else float("inf")


def _owner(definition: str) -> str:
    """The name that a definition is for: its own, or that of the function whose rule it is."""
    node: Any = ast.parse(definition).body[0]
    decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    rules = [text.partition(".")[0] for text in decorators if not text.startswith("jax.")]
    return rules[0] if rules else getattr(node, "name", None) or re.findall(r"\w+", ast.unparse(node))[0]


def _type(value: object) -> str:
    return type_of(value) if hasattr(value, "dtype") else type(value).__name__


def _tuple(names: Sequence[str]) -> str:
    text = f"({', '.join(map(repr, names))}{',' if len(names) == 1 else ''})"
    return text if len(text) < 100 else "\n".join(["(", *(f"    {name!r}," for name in names), ")"])


def _renamed(code: str, names: dict[str, str]) -> str:
    """Code with other names for variables, where they are not attributes."""
    changes = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.NAME and before != "." and names.get(token.string, token.string) != token.string:
            changes.append((token.start, token.end, names[token.string]))
        before = token.string
    lines = code.splitlines(keepends=True)
    for (row, start), (_, end), new in reversed(changes):
        lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
    return "".join(lines)


# ---- Keras's optimizers in Optax ------------------------------------------------------------------------------------


def _sgd(c: dict, rate: str, scheduled: bool) -> tuple[str, str]:
    if not c["momentum"]:
        return f"optax.sgd({rate})", ""
    if scheduled:  # Keras's velocity has the learning rate in it
        trace = f"optax.trace(decay={c['momentum']!r}, nesterov={c['nesterov']})"
        return f"optax.chain(optax.scale_by_learning_rate({rate}), {trace})", ""
    return f"optax.sgd({rate}, momentum={c['momentum']!r}, nesterov={c['nesterov']})", ""


def _adam(c: dict, rate: str, scheduled: bool, name: str = "adam", more: str = "") -> tuple[str, str]:
    b1, b2, eps = c["beta_1"], c["beta_2"], c["epsilon"]
    text = f"eps=lambda count: {eps!r} / jnp.sqrt(1 - {b2!r} ** (count + 1))"
    plain = f"optax.{name}({rate}, b1={b1!r}, b2={b2!r}, eps={eps!r}{more})"
    look = f"Keras adds epsilon before it corrects the bias; else this is {plain}"
    return f"optax.inject_hyperparams(optax.{name})(learning_rate={rate}, b1={b1!r}, b2={b2!r}, {text}{more})", look


def _adamw(c: dict, rate: str, scheduled: bool) -> tuple[str, str]:
    return _adam(c, rate, scheduled, "adamw", f", weight_decay={c['weight_decay']!r}")


def _rmsprop(c: dict, rate: str, scheduled: bool) -> tuple[str, str]:
    rest = f"centered={c['centered']}, momentum={c['momentum'] or None!r}"
    return f"optax.rmsprop({rate}, decay={c['rho']!r}, eps={c['epsilon']!r}, {rest})", ""


def _adagrad(c: dict, rate: str, scheduled: bool) -> tuple[str, str]:
    return (
        f"optax.adagrad({rate}, initial_accumulator_value={c['initial_accumulator_value']!r}, eps={c['epsilon']!r})",
        "",
    )


def _lion(c: dict, rate: str, scheduled: bool) -> tuple[str, str]:
    return f"optax.lion({rate}, b1={c['beta_1']!r}, b2={c['beta_2']!r}, weight_decay=0.0)", ""


OPTIMIZERS = {
    "SGD": _sgd, "Adam": _adam, "AdamW": _adamw, "RMSprop": _rmsprop, "Adagrad": _adagrad, "Lion": _lion,
}  # fmt: skip
# Settings that have no equal here unless they are this.
PLAIN = {"use_ema": False, "loss_scale_factor": None, "gradient_accumulation_steps": None, "amsgrad": False}
CLIPPING = {
    "global_clipnorm": "optax.clip_by_global_norm({0!r})",
    "clipvalue": "optax.clip({0!r})",
    "clipnorm": "optax.stateless(lambda g, _: jax.tree.map(lambda x: x * {0!r} / jnp.maximum(jnp.linalg.norm(x), {0!r}), g))",
}


def optax_text(optimizer: Optimizer, rate: str, scheduled: bool, at: str) -> tuple[str, str]:
    """Code for what Optax has for a Keras optimizer, and what the reader of it should know.

    Args:
      rate: code for its learning rate, a number or a function of the count of updates.
      scheduled: whether it is a function.
    """
    kind, config = type(optimizer).__name__, optimizer.get_config()
    write = OPTIMIZERS.get(kind)
    if write is None or type(optimizer).__module__.partition(".")[0] != "keras":
        known = ", ".join(OPTIMIZERS)
        raise Refused(
            at, f"the optimizer {kind} has no equal in Optax that is known here ({known})", "write it for Optax"
        )
    settings = PLAIN | ({} if kind == "AdamW" else {"weight_decay": None})
    for name, plain in settings.items():
        if config.get(name, plain) not in (plain, False if name == "use_ema" else plain):
            raise Refused(
                at, f"{kind}({name}={config[name]!r}) has no equal in Optax that is known here", "write it for Optax"
            )
    if any(getattr(v, "constraint", None) is not None for v in optimizer._trainable_variables):
        raise Refused(
            at, "a variable has a constraint, which the optimizer applies", "apply it in the step after the update"
        )
    if getattr(optimizer, "_exclude_from_weight_decay", None):
        raise Refused(at, "exclude_from_weight_decay", "pass a mask to optax.adamw")
    text, look = write(config, rate, scheduled)
    clips = [form.format(config[name]) for name, form in CLIPPING.items() if config.get(name) is not None]
    return (f"optax.chain({', '.join([*clips, text])})" if clips else text), look


# ---- what is written around -----------------------------------------------------------------------------------------

_HEAD_NAMES = (
    "NPZ", "step_found", "state_after", "params", "state", "optimizers", "step_carry", "step_losses", "jax", "jnp", "np", "optax",
    "Path", "BATCHES", "batch_of", "f",
    "sources", "found",
)  # fmt: skip

_X64 = """
# LOOK: the program has 64-bit numbers, as NumPy makes them; where 32 bits will do, convert the data and take this line out.
jax.config.update("jax_enable_x64", True)
"""

_HEAD = '''"""{docstring}

{program} in JAX, as `python -m tapejax port` wrote it. LOOK marks what a person should look at. The functions were printed from
a recording: they hold for the shapes and dtypes that they name, and for the way that Python took when it was recorded.
"""

from pathlib import Path

import jax
{extend}import jax.numpy as jnp
import numpy as np
{optax}{x64}
NPZ = np.load(Path(__file__).with_suffix(".npz"))


{body}


params = {{name: jnp.asarray(NPZ[f"params/{{name}}"]) for name in {params}}}
state = {{name: jnp.asarray(NPZ[f"state/{{name}}"]) for name in {state}}}
optimizers = {optimizers}
step_carry = params, state, optimizers
step_losses = []  # of each step so far
step_found = {{}}  # what the last step computed


# ---- the program ----
'''

_SUMMED = '''def f(function):
    """`function` with the sum of all that it returns in the place of a loss, as a tape takes it."""

    def total(*args):
        values, found = function(*args)
        return sum(jnp.sum(x) for x in jax.tree.leaves(values)), found

    return total
'''
_SUMMED_ALONE = '''def f(function):
    """`function` with the sum of all that it returns in the place of a loss, as a tape takes it."""
    return lambda *args: sum(jnp.sum(x) for x in jax.tree.leaves(function(*args)))
'''

_ASSIGN = '''def f(values):
    """Puts values in variables, by their names."""
    global step_carry
    new = [{name: values.get(name, x) for name, x in group.items()} for group in step_carry[:2]]
    step_carry = *new, step_carry[2]
'''

_BATCHES = '''class f:
    """The batches of a dataset, pass by pass as they came when the program was recorded.

    LOOK: other data may stand in its place: whatever gives batches of this form whenever it is iterated.
    """

    passes = {}

    def __init__(self, name, form):
        self.name, self.form = name, form

    def __iter__(self):
        number = self.passes[self.name] = self.passes.get(self.name, -1) + 1
        order, lengths = NPZ[f"{self.name}/order/{number}"], NPZ[f"{self.name}/lengths/{number}"]
        columns = [NPZ[f"{self.name}/{i}"] for i in range(lengths.shape[-1])]
        for each in lengths:
            rows, order = order[: abs(each).sum()], order[abs(each).sum() :]
            parts = np.split(rows, np.cumsum(abs(each))[:-1])
            yield self.form(*(jnp.asarray(x[part if n >= 0 else part[0]]) for x, part, n in zip(columns, parts, each)))
'''

_RECORDED = '''
# LOOK: the program's own data and loop could not be kept (below). These are the arguments of its first {count} steps; put data
# of your own in their place: `step_carry, loss, found = {first}(step_carry, *batch)` is a step.
BATCHES = np.load(Path(__file__).with_name("{batches}"))


def batch_of(step, names):
    """The arguments of a recorded step."""
    numbers = (f"{{step}}.{{name}}.number" for name in names)
    return [BATCHES[n].item() if n in BATCHES else jnp.asarray(BATCHES[n.removesuffix(".number")]) for n in numbers]


UPDATES, ARGUMENTS = {updates}, {arguments}
for step, kind in enumerate({plan}):
    step_carry, loss, found = UPDATES[kind](step_carry, *batch_of(step, ARGUMENTS[kind]))
    step_losses.append([float(x) for x in loss])
    print(f"step {{step}}", *(f"{{x:.6g}}" for x in step_losses[-1]))
'''

# Runs texts as OUT.py would run, without tapejax and TensorFlow, and writes their losses.
_RUN = """
import contextlib, io, json, sys, traceback
from pathlib import Path


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tapejax", "tensorflow", "keras"):
            raise ModuleNotFoundError(f"No module named {name!r}: not in a ported program", name=name)


class Enough(BaseException):
    pass


class Losses(list):
    def append(self, loss):
        super().append(loss)
        if len(self) == count:
            raise Enough


target, files, count, arguments = json.loads(sys.argv[1])
sys.path[0] = str(Path(target).parent)
sys.argv = [target, *arguments]
sys.meta_path.insert(0, Blocked())
for file in map(Path, files):
    text = file.read_text().replace("\\nstep_losses = []", "\\nstep_losses = Losses()", 1)
    text = text.replace('Path(__file__).with_suffix(".npz")', repr(str(file.with_suffix(".npz"))), 1)
    names, error = {"__name__": "__main__", "__file__": target, "Losses": Losses}, ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, target, "exec"), names)
    except (Enough, SystemExit):
        pass
    except Exception:
        error = traceback.format_exc()
    file.with_suffix(".json").write_text(json.dumps({"losses": names.get("step_losses", []), "error": error}))
"""
