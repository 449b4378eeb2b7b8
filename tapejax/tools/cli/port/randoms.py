"""The program's generators of random numbers: their states are noted while it runs, and restored in the text."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from .probes import BEFORE, SIMPLE, numbered


class Randoms:
    """The states of the program's generators of random numbers when it first came to each of its loops."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, Any]] = {}

    def prepare(self, tree: ast.Module) -> ast.Module:
        """The program, `numbered`, with a probe before each statement of the module and its functions, and before each loop."""
        for node in ast.walk(numbered(tree)):
            whole = isinstance(node, (ast.Module, ast.FunctionDef))
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [part for s in statements for part in self._probed(s, whole)])
        return ast.fix_missing_locations(tree)

    def _probed(self, statement: ast.stmt, whole: bool) -> Iterator[ast.stmt]:
        first = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)  # a docstring
        if isinstance(statement, (ast.For, ast.While)) or whole and isinstance(statement, SIMPLE) and not first:
            probe = ast.parse(f"{BEFORE}({statement.lineno}, globals(), locals())").body[0]
            for part in ast.walk(probe):
                ast.copy_location(part, statement)
            yield probe
        yield statement

    def note(self, line: int, *spaces: dict[str, Any]) -> None:
        if line not in self.states:
            names = {name: x for space in spaces for name, x in space.items()}
            found = {n: x.bit_generator.state for n, x in names.items() if isinstance(x, np.random.Generator)}
            legacy = {n: x.get_state() for n, x in names.items() if isinstance(x, np.random.RandomState)}
            whole = {"np.random": np.random.get_state(), "random": random.getstate()}
            self.states[line] = {"generators": found, "legacy": legacy, "whole": whole}

    @property
    def generators(self) -> set[str]:
        return {name for states in self.states.values() for part in ("generators", "legacy") for name in states[part]}

    def same(self, first: int, second: int) -> bool:
        """Whether no generator drew a number between two lines."""
        return first in self.states and repr(self.states[first]) == repr(self.states.get(second))

    def restoring(self, line: int, source: str, gone: set[str], data: dict[str, Any]) -> Iterator[str]:
        """Statements that put the generators where they were before the loop at a line."""
        states = self.states.get(line, {"generators": {}, "legacy": {}, "whole": {}})
        for name, state in states["generators"].items():
            if name not in gone and all(isinstance(x, (int, str)) for part in state.values() for x in _values(part)):
                yield f"{name}.bit_generator.state = {state!r}"
        legacy = {f"{n}": x for n, x in states["legacy"].items() if n not in gone}
        if "np.random." in source.replace("np.random.default_rng", "") and states["whole"]:
            legacy["np.random"] = states["whole"]["np.random"]
        for name, (kind, keys, *rest) in legacy.items():
            key = f"random/{name}/{line}"
            data[key] = np.asarray(keys)
            yield f"{name}.set_state(({kind!r}, NPZ[{key!r}], *{tuple(rest)!r}))"
        if "import random" in source and states["whole"]:
            version, numbers, rest = states["whole"]["random"]
            key = f"random/python/{line}"
            data[key] = np.asarray(numbers)
            yield f"random.setstate(({version}, tuple(NPZ[{key!r}].tolist()), {rest!r}))"


def _values(part: Any) -> Any:
    return part.values() if isinstance(part, dict) else (part,)
