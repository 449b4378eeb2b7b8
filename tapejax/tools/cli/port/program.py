"""The text of a JAX program: the functions of its steps, and the program's own data and loop, or the recorded arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ....jaxprs.types import Value
from . import kept
from .comparing import STEPS, Written
from .definitions import PARTS, Definitions, tuple_text
from .functions import Functions, names_of, sources_of, type_text
from .kept import Fitting
from .observing import Block, Computed, Observer
from .pieces import Piece, Refused, as_function
from .probes import Probes, Rows, numbered
from .steps import Steps


class Program:
    """A program on its way to a text: ``recorded`` on the recorded arguments; ``whole`` with its own data and loop, if
    ``notes`` do not say why not.

    Args:
      path: the program's; `target` the text's.
      state: ids of variables that are state in any case.
      apart: places of statements whose assignments are no part of a step.
      grows: whether more of either may be found.
    """

    def __init__(
        self,
        path: Path,
        target: Path,
        observer: Observer,
        probes: Probes,
        state: set[int],
        apart: set[int],
        grows: bool,
    ):
        self.path, self.target, self.grows = path, target, grows
        self.observer, self.probes = observer, probes
        self.source = path.read_text()
        if not observer.steps:
            tape = "no step" if "GradientTape" in self.source else "no step: no tape"
            raise Refused(path.name, "no step: Keras trains" if ".fit(" in self.source else tape)
        self.tree = numbered(ast.parse(self.source))
        self.nodes: dict[int, Any] = {node.place: node for node in ast.walk(self.tree)}  # type: ignore[attr-defined]
        self.expressions: dict[tuple, str | None] = {}  # place, and what may be arguments -> text
        self.steps = Steps(observer, self._used_after, state, apart)
        self.state = set(self.steps.state)
        self.definitions = Definitions(self.source)
        self.functions = Functions(path, self.source, self.steps, self.definitions)
        self.apart: set[int] = set()  # statements that assign to variables apart from the steps
        self.first = [step for step in observer.steps if step.number < STEPS]
        self._write()

    def _is_own(self, block: Block) -> bool:
        return Path(block.file).resolve() == self.path.resolve()

    def _used_after(self, block: Block) -> list[str]:
        return kept.used_after(self.tree, block.line) if self._is_own(block) else []

    def _write(self) -> None:
        names = [self.definitions.unique("update") for _ in self.steps.kinds]
        for kind in self.steps.kinds:
            kind.outputs = self.functions.outputs(kind)
        whole = self.notes = ""
        try:
            whole = self._whole(names)
        except kept.NotKept as reason:
            self.notes = str(reason)
        for kind, name in zip(self.steps.kinds, names, strict=True):
            self.functions.update(kind, name)
        recorded = PARTS["recorded"].format(
            batches=f"{self.target.stem}_batches.npz",
            plan=[self.steps.kind_of[step.number] for step in self.first],
            updates=f"({', '.join(names)},)",
            arguments=[list(kind.arguments) for kind in self.steps.kinds],
            count=len(self.first),
            first=names[0],
        )
        self.recorded = self._written(recorded)
        self.whole = self._written(whole) if whole else None

    def _written(self, text: str) -> Written:
        """A text of the program with what it needs of the functions above it."""
        steps, data = self.steps, self.definitions.data
        groups = {group: steps.members(group) for group in ("params", "state")}
        for group, members in groups.items():
            data |= {f"{group}/{name}": np.asarray(steps.initial[name]) for name in members}
        optimizers = []
        for optimizer, name in self.functions.optimizers.values():
            first = next(p for p in steps.changes() if p.subject[0].optimizer is optimizer)
            optimizers.append(f"{name!r}: {name}.init({self.functions.part('params', tuple(first.targets), 'params')})")
        body = self.definitions.needed(text + "".join(optimizers))
        data = {key: x for key, x in data.items() if not key.startswith("constants/") or f'"{key}"' in body}
        body = re.sub(r"\n\n\n(?=\w+ = )", "\n", body)
        arguments = [values[0] for kind in steps.kinds for values in kind.arguments.values()]
        wide = any(x.dtype.itemsize == 8 and x.dtype.kind in "fiu" or x.dtype.kind == "c" for x in data.values())
        wide = wide or bool(re.search(r"(float|int|uint)64", body))
        wide = wide or any("64" in type_text(x) for x in arguments if hasattr(x, "dtype"))
        head = PARTS["head"].format(
            docstring=(ast.get_docstring(self.tree) or self.path.stem).replace("\\", r"\\").replace('"""', "'" * 3),
            program=self.path.name,
            x64=PARTS["64 bits"] if wide else "",
            extend="import jax.extend\n" if "jax.extend" in body else "",
            optax="import optax\n" if optimizers else "",
            body=body,
            params=tuple_text(groups["params"]),
            state=tuple_text(groups["state"]),
            optimizers="{" + ", ".join(optimizers) + "}",
        )
        return Written(head + text, data)

    def batches(self) -> Iterator[tuple[str, Value]]:
        """The arguments of the first steps, under the names that the text on the recorded arguments reads."""
        for i, step in enumerate(self.first):
            kind = self.steps.kinds[self.steps.kind_of[step.number]]
            position = kind.steps.index(step)
            for name, values in kind.arguments.items():
                value = values[position]
                end = ".number" if isinstance(value, (bool, int, float)) else ""
                yield f"{i}.{name}{end}", np.asarray(value)

    def _whole(self, names: list[str]) -> str:
        """What follows the functions where the program's own data and loop are kept.

        Raises:
          NotKept: they cannot be.
        """
        sites: dict[int, kept.Site] = {}
        for kind, name in zip(self.steps.kinds, names, strict=True):
            block, at = kind.block, self.functions.at(kind.block)
            if not self._is_own(block):
                raise kept.NotKept(f"the tape is entered in {Path(block.file).name}")
            for n, expression in kind.expressions.items():
                if expression is None:
                    what = f"{n} ({type_text(kind.arguments[n][0])}) at {at}"
                    raise kept.NotKept(f"{what} differs from step to step; give it a name before that line")
            expressions: list[str | None] = list(kind.expressions.values())
            if block.line not in sites:
                types = [str(v[0].dtype) if hasattr(v[0], "dtype") else "" for v in kind.arguments.values()]
                own = self.definitions.unique("train")
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
        return kept.rewrite(self, sites)

    # -- texts for what TensorFlow evaluated (`kept`)

    def expression(self, node: ast.expr, reads: bool, fitting: Fitting) -> str | None:
        """What a variable holds, a result of a step, or a function's call."""
        place: int = node.place  # type: ignore[attr-defined]
        if place in self.probes.rows:
            return self._batched(node, self.probes.rows[place])
        runs = self.probes.computed.get(place, [])
        if not runs or runs[0].of_variable and not reads:
            return None
        return self._once(place, fitting, lambda texts: self._computed(node, runs, texts))

    def statement(self, node: ast.stmt, fitting: Fitting) -> str | None:
        """A call that assigns to variables what the statement did, outside of a step."""
        place: int = node.place  # type: ignore[attr-defined]
        runs = self.probes.computed.get(place, [])
        if not runs or not self.grows:
            return None

        def assigned(texts: dict[int, str]) -> str | None:
            result = self.steps.expression(runs, texts)
            call = result and self._called(f"assigned_{node.lineno}", *result)
            return call and f"{self.definitions.part('assign')}({call})"

        if text := self._once(place, fitting, assigned):
            self.apart.add(place)
        return text

    def _once(self, place: int, fitting: Fitting, make: Callable[[dict[int, str]], str | None]) -> str | None:
        texts = self._parts(place, fitting)
        key = place, *texts.values()
        if key not in self.expressions:
            self.expressions[key] = make(texts)
        return self.expressions[key]

    def _batched(self, node: ast.expr, rows: Rows) -> str | None:
        """A text for a dataset over which the program went: what gives the same batches."""
        name = f"data_{node.lineno}_{node.col_offset}"
        if (data := rows.data(name)) is None:
            return None
        self.definitions.data |= data
        return f"{self.definitions.part('Batches')}({name!r}, {rows.form})"

    def _parts(self, place: int, fitting: Fitting) -> dict[int, str]:
        """Texts of the parts of an expression or a statement that fit, names first."""
        known = self.probes.computed[place][0].parts  # what is NumPy's array comes from what no recording shows
        inner = [(p, isinstance(known.get(p), np.ndarray)) for p in self.probes.inner[place]]
        texts = {p: text for p, others in inner if (text := fitting(self.nodes[p], others))}
        return dict(sorted(texts.items(), key=lambda item: (not item[1].isidentifier(), len(item[1]))))

    def _computed(self, node: ast.expr, runs: list[Computed], texts: dict[int, str]) -> str | None:
        wish = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        wish = re.sub(r"\W+", "_", wish.rpartition(".")[2]).strip("_") if len(wish) < 30 else ""
        wish = wish if wish.isidentifier() else "value"
        result = self.steps.expression(runs, texts)
        if not self.grows and self.steps.state != self.state:
            self.steps.state = set(self.state)
            return None
        if result is None:
            name = f"{wish}_{node.lineno}_{node.col_offset}"
            return f"step_found[{name!r}]" if self.steps.output(runs, name) else None
        return self._called(f"{wish}_{node.lineno}", *result)

    def _called(self, wish: str, pieces: list[Piece], arguments: dict[str, str]) -> str | None:
        """A call of the function that some pieces are, if it is one and there is code for it."""
        piece, sources = pieces[0], sources_of(pieces[0])
        groups = {"params": "step_carry[0]", "state": "step_carry[1]"}
        one = isinstance(piece.targets, jax.Array) and len(piece.labels) == 1
        if one and not piece.entries and not piece.arguments:
            ((group, name),) = piece.labels
            return f"{groups[group]}[{name!r}]"
        try:
            codes = [as_function(p, sources_of(p), {}, p.block.before, whole=False)[0] for p in pieces]
            if len({re.sub(r" *#.*\n", "", code) for code in codes}) > 1:
                return None
            function = self.functions.printed(piece, sources, {}, wish)
        except (Refused, ValueError, TypeError, LookupError, RuntimeError):  # as for an array that was deleted
            return None
        first = ["{" + ", ".join(f"{group!r}: {groups[group]}" for group in sources) + "}"] if sources else []
        return f"{function}({', '.join([*first, *(arguments[n] for n in names_of(piece))])})"
