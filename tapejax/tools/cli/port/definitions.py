"""The definitions of a program that is being written: functions, and the arrays that they read, each under a name of its own."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....tf.values.types import Array
from ...seeing.listing import unused
from ...seeing.tables import sections

# What is written around the functions of a program, by a name; where `f` is defined, under the first word of that.
PARTS = sections(Path(__file__).with_name("parts.txt"))
_TAKEN = """
    NPZ BATCHES Path jax jnp np optax batch_of f sources found
    params state optimizers step_carry step_losses step_found state_after
""".split()


class Definitions:
    """The `chunks` of text that define something, and the `data` that they read from the ``.npz``."""

    def __init__(self, source: str):
        self.taken = {*re.findall(r"[^\W\d]\w*", source), *_TAKEN, *keyword.kwlist}
        self.chunks: list[str] = []
        self.data: dict[str, Any] = {}
        self.known: dict[Hashable, str] = {}  # text of a definition, or an array's dtype, shape and bytes -> its name

    def unique(self, wish: str) -> str:
        """A name that nothing else has."""
        name = unused(wish, self.taken)
        self.taken.add(name)
        return name

    def part(self, name: str) -> str:
        """The name of what one of the `PARTS` defines."""
        if name not in self.known:
            self.known[name] = self.add(PARTS[name], {}, name.split()[0])
        return self.known[name]

    def names(self, names: Sequence[str], wish: str) -> str:
        """The name of a tuple of names."""
        text = tuple_text(names)
        if text not in self.known:
            self.known[text] = self.unique(f"{wish}_{len(self.known)}")
            self.chunks.append(f"{self.known[text]} = {text}")
        return self.known[text]

    def add(self, code: str, constants: Mapping[str, Array], wish: str) -> str:
        """Adds the definitions in `code`, under names of their own; returns that of its function ``f``."""
        renamed: dict[str, str] = {}
        chunks = []
        definitions = ast.parse(code).body
        for node in definitions:  # arrays that are not read go to the data
            if isinstance(node, ast.Assign) and node.end_lineno - node.lineno > 8:  # type: ignore[operator]
                value = eval(ast.unparse(node.value), {"jnp": jnp, "np": np, "jax": jax})
                constants = {**constants, ast.unparse(node.targets[0]): value}
        for name, value in constants.items():
            array = np.asarray(value)
            key = array.dtype, array.shape, array.tobytes()
            if key not in self.known:
                self.known[key] = self.unique(name)
                self.data[f"constants/{self.known[key]}"] = array
                chunks.append(f'{self.known[key]} = jnp.asarray(NPZ["constants/{self.known[key]}"])')
            renamed[name] = self.known[key]
        for node in definitions:
            text = _renamed("\n".join(code.splitlines()[first_line(node) - 1 : node.end_lineno]), renamed)
            own: Any = getattr(node, "name", None) or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]))
            if not own:
                chunks.append(text)
            elif own in constants:
                continue
            elif text in self.known and own != "f":
                renamed[own] = self.known[text]
            else:
                renamed[own] = self.known[text] = self.unique(wish if own == "f" else own)
                chunks.append(_renamed(text, {own: renamed[own]}))
        self.chunks += chunks
        return renamed["f"]

    def needed(self, text: str) -> str:
        """Those of the definitions that a text uses, and what they use."""
        owners = [_owner(chunk) for chunk in self.chunks]
        found: set[int] = set()
        while new := {i for i, name in enumerate(owners) if i not in found and re.search(rf"\b{name}\b", text)}:
            found |= new
            text = "\n".join(self.chunks[i] for i in new)
        return "\n\n\n".join(self.chunks[i] for i in sorted(found))


def first_line(node: ast.stmt) -> int:
    """The line at which a statement begins, with its decorators."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def tuple_text(names: Sequence[str]) -> str:
    text = f"({', '.join(map(repr, names))}{',' if len(names) == 1 else ''})"
    return text if len(text) < 100 else "\n".join(["(", *(f"    {name!r}," for name in names), ")"])


def _owner(definition: str) -> str:
    """The name that a definition is for: its own, or that of the function whose rule it is."""
    node: Any = ast.parse(definition).body[0]
    decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
    rules = [text.partition(".")[0] for text in decorators if not text.startswith("jax.")]
    return rules[0] if rules else getattr(node, "name", None) or re.findall(r"\w+", ast.unparse(node))[0]


def _renamed(code: str, names: dict[str, str]) -> str:
    """Code with other names for variables, where they are no attributes and in no string."""
    found = "|".join(map(re.escape, names)) or "(?!)"
    pattern = rf"""'[^'\n]*'|"[^"\n]*"|(?<![\w.])({found})\b(?!['"])"""
    return re.sub(pattern, lambda match: names[match[1]] if match[1] else match[0], code)
