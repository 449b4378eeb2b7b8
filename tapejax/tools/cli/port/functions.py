"""The functions of a step, printed from its recording: losses, what becomes of gradients, and the update made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....tape.gradient_tape import GradientTape
from ....tape.recording import type_of
from ....tf.values.tensor import Tensor
from ....tf.values.types import Array, Nest
from ...seeing.tables import tables
from .definitions import PARTS, Definitions
from .observing import Applied, Block, Gradient, Optimizer
from .pieces import Kind, Piece, Refused, as_function
from .steps import Steps


class Functions:
    """Adds the functions of `steps` to `definitions`; `optimizers` are those of Keras by id, each with its name in the text."""

    def __init__(self, path: Path, source: str, steps: Steps, definitions: Definitions):
        self.path, self.lines = path, source.splitlines()
        self.steps, self.definitions = steps, definitions
        self.optimizers: dict[int, tuple[Optimizer, str]] = {}

    def at(self, part: Block | Gradient | Applied) -> str:
        return f"{self.path.name}:{part.line}"

    def _comment(self, part: Gradient | Applied) -> str:
        line = self.lines[part.line - 1].strip() if part.line <= len(self.lines) else ""
        return f"# {self.at(part)}: {line}"

    def update(self, kind: Kind, name: str) -> None:
        """Prints the functions of a kind of step, and the step made of them."""
        lines: list[str] = []
        before: list[str] = []  # what changes the state
        for i, piece in enumerate(kind.losses, 1):
            lines += self._loss(kind, piece, i)
            changed = [n for n in _aux(piece) if n in self.steps.variables]
            before += [self.part(f"found_{i}", changed, "state")] if changed else []
        carried = [n for n in kind.arguments if n in self.steps.variables]
        if carried:
            lines.insert(0, f"params = params | {{{', '.join(f'{n!r}: {n}' for n in carried)}}}")
        updated = "params"
        for piece in kind.of_role("change"):
            lines += self._applied(piece, updated)
            updated = "updated"
        for piece in kind.of_role("assign"):
            lines.append(f"assigned = {self._call(piece, 'assigned_values', updated)}")
            trained = [n for n in piece.targets if self.steps.group(self.steps.variables[n]) == "params"]
            rest = [n for n in piece.targets if n not in trained]
            if trained:
                lines.append(f"updated = {updated} | {self.part('assigned', trained, 'params')}")
                updated = "updated"
            before += [self.part("assigned", rest, "state")] if rest else []
        for piece in kind.of_role("value"):
            kind.outputs[piece.name] = self._call(piece, piece.name, updated)
        if before:
            lines.append(f"state_after = {' | '.join(['state', *before])}")
        found = "{" + ", ".join(f"{n!r}: {text}" for n, text in kind.outputs.items()) + "}"
        losses = "".join(f"loss_{i + 1}, " for i in range(len(kind.losses))).strip()
        types = ", ".join(f"{n}: {type_text(values[0])}" for n, values in kind.arguments.items())
        text = PARTS["update"].format(
            name=name,
            given=", ".join(["carry", *kind.arguments]),
            at=self.at(kind.block),
            types=types or "No arguments",
            lines="\n    ".join(lines),
            carry=f"({updated}, {'state_after' if before else 'state'}, optimizers)",
            losses=losses,
            found=found,
        )
        self.definitions.chunks.append(text.rstrip())

    def _loss(self, kind: Kind, piece: Piece, i: int) -> list[str]:
        gradient: Gradient = piece.subject[0]
        params, held = (sources_of(piece).get(group, {}) for group in ("params", "state"))
        if any(x.dtype.kind == "c" for x in params.values()):
            raise Refused(self.at(gradient), "complex")
        function = self.printed(piece, params, held, "loss_function", self.at(gradient))
        has_aux = isinstance(piece.targets, tuple)
        if not (len(gradient.targets) == 1 and np.ndim(gradient.targets[0]) == 0):
            function = f"{self.definitions.part('summed' if has_aux else 'summed alone')}({function})"
        given = ", ".join(["params", *(f"state[{n!r}]" for n in held), *names_of(piece)])
        result, option = (f"(loss_{i}, found_{i})", ", has_aux=True") if has_aux else (f"loss_{i}", "")
        line = f"{result}, {piece.name} = jax.value_and_grad({function}{option})({given})"
        alone = all(part.line != gradient.line for p in kind.of_role("change") for part in p.subject[:1])
        return [self._comment(gradient), line] if alone else [line]

    def outputs(self, kind: Kind) -> dict[str, str]:
        """The names that a step's block binds and the program reads afterwards, with code for each in the step."""
        outputs: dict[str, str] = {}
        for i, piece in enumerate(kind.losses, 1):
            block, targets = piece.subject[0].block, piece.subject[0].targets[:1]
            ends = [id(x) for x in targets if np.ndim(x) == 0]
            made = {n: f"loss_{i}" for n, x in block.after.items() if id(x) in ends}
            made |= {n: f"found_{i}[{n!r}]" for n in _aux(piece) if n not in self.steps.variables}
            wanted = self.steps.outputs(block)
            outputs |= {n: text for n, text in made.items() if n in wanted}
        return outputs

    def _applied(self, piece: Piece, updated: str) -> list[str]:
        applied: Applied = piece.subject[0]
        optimizer = self._optimizer(applied)
        names = tuple(piece.targets)
        labels = dict(zip(sorted(names), piece.key[1], strict=True))  # type: ignore[index]
        groups = {label[0] if isinstance(label, tuple) else label for label in labels.values()}
        plain = len(groups) == 1 and not piece.entries and all(n == label[1] for n, label in labels.items())
        part = self.part(next(iter(groups)), names, "params") if plain else None
        return [
            f"gradients = {part or self._call(piece, 'changed_gradients', updated)}",
            self._comment(applied),
            f"trained = {self.part(updated, names, 'params')}",
            f"changes, {optimizer}_state = {optimizer}.update(gradients, optimizers[{optimizer!r}], trained)",
            f"updated = {updated} | optax.apply_updates(trained, changes)",
            f"optimizers = optimizers | {{{optimizer!r}: {optimizer}_state}}",
        ]

    def part(self, values: str, names: Sequence[str], group: str) -> str:
        """Code for the part of a dict that has these names."""
        if set(names) == set(self.steps.members(group)):
            return values if values in ("params", "updated") else f"{{name: {values}[name] for name in {group}}}"
        return f"{{name: {values}[name] for name in {self.definitions.names(names, group.upper())}}}"

    def _call(self, piece: Piece, wish: str, updated: str) -> str:
        function = self.printed(piece, sources_of(piece), {}, wish)
        groups = ", ".join(f"{g!r}: {updated if g == 'updated' else g}" for g in sources_of(piece))
        return f"{function}({', '.join([f'{{{groups}}}', *names_of(piece)])})"

    def printed(self, piece: Piece, sources: Nest, state: dict[str, Array], wish: str, at: str = "") -> str:
        """The name of the function that a piece is; `at` is its line."""
        names, look = dict(piece.block.before), ""
        try:
            for (group, name), x in piece.labels.items():
                names[name if group in ("params", "state") else f"{name}_{group.partition('_')[0].rstrip('s')}"] = x
            try:
                code, constants = as_function(piece, sources, state, names, whole=True)
            except ValueError as error:
                if "may have looked" not in str(error):
                    raise
                # The tape only suspects it, and all steps are the same operations.
                look = f"# LOOK: {str(error).partition(';')[0]}\n"
                code, constants = as_function(piece, sources, state, names, whole=False)
            for name, x in constants.items():
                if getattr(getattr(x, "dtype", None), "kind", "V") == "V":
                    raise LookupError(f"there is no code for the operation {name}, outside of tapejax")
        except (ValueError, TypeError, LookupError) as error:
            raise Refused(at or self.path.name, "no code", error=error) from error
        if state or "params" not in code and piece.role == "loss":
            code = re.sub(r"\bsources\b", "params", code)
        if not sources:
            code = re.sub(r"^def f\(sources,? ?", "def f(", code, flags=re.MULTILINE)
        found = self.definitions.add(code, constants, wish)
        if look:
            self.definitions.chunks[-1] = look + self.definitions.chunks[-1]
        return found

    # -- optimizers

    def _optimizer(self, applied: Applied) -> str:
        optimizer, at = applied.optimizer, self.at(applied)
        if id(optimizer) in self.optimizers:
            return self.optimizers[id(optimizer)][1]
        mine = [each for p in self.steps.changes() for each in p.subject if each.optimizer is optimizer]
        if min(each.count for each in mine) > 0:
            raise Refused(at, "restored")
        if len({tuple(map(id, each.variables)) for each in mine}) > 1:
            raise Refused(at, "different variables")
        rates = dict.fromkeys(each.rate for each in mine)
        if callable(optimizer._learning_rate):
            rate = self._schedule(optimizer, at)
        elif len(rates) > 1:
            raise Refused(at, "rate", rates=", ".join(f"{r:.4g}" for r in rates))
        else:
            rate = repr(float(f"{applied.rate:.7g}"))
        text, look = optax_text(optimizer, rate, callable(optimizer._learning_rate), at)
        name = self.definitions.unique(re.sub(r"\W", "_", optimizer.name))
        self.optimizers[id(optimizer)] = optimizer, name
        self.definitions.chunks.append((f"# LOOK: {look}\n" if look else "") + f"{name} = {text}")
        return name

    def _schedule(self, optimizer: Optimizer, at: str) -> str:
        schedule = optimizer._learning_rate
        count = Tensor(jnp.asarray(3, jnp.int32))
        with GradientTape(persistent=True) as tape:
            tape._recording.watch(count._array)  # type: ignore[union-attr]  # `watch` takes no integers
            rate = schedule(count)
        function = tape.as_function(rate, count)
        for i in (0, 1, 7, 100, 12345):
            expected, found = (np.asarray(f(jnp.asarray(i, jnp.int32))) for f in (schedule, function))
            if not np.allclose(expected, found, rtol=1e-6, atol=0):
                raise Refused(at, "schedule")
        return self.definitions.add(function.code, function.constants, "learning_rate")


def sources_of(piece: Piece) -> dict[str, dict[str, Array]]:
    """The variables and gradients that a piece reads, by group and name."""
    found: dict[str, dict[str, Array]] = {}
    for (group, name), x in piece.labels.items():
        found.setdefault(group, {})[name] = x
    return found


def names_of(piece: Piece) -> list[str]:
    """Its arguments."""
    return list(dict.fromkeys(piece.arguments.values()))


def _aux(piece: Piece) -> dict[str, Any]:
    """What a loss returns beside the loss."""
    return piece.targets[1] if isinstance(piece.targets, tuple) else {}


def type_text(value: object) -> str:
    return type_of(value) if hasattr(value, "dtype") else type(value).__name__


# ---- Keras's optimizers in Optax ------------------------------------------------------------------------------------

_TABLES = tables(Path(__file__).with_name("optimizers.ini"))
# Settings that have no equal here unless they are this.
PLAIN = {"use_ema": False, "loss_scale_factor": None, "gradient_accumulation_steps": None, "amsgrad": False}


def optax_text(optimizer: Optimizer, rate: str, scheduled: bool, at: str) -> tuple[str, str]:
    """Code for what Optax has for a Keras optimizer, and what the reader of it should know.

    Args:
      rate: code for its learning rate, a number or a function of the count of updates.
      scheduled: whether it is a function.
    """
    kind, config = type(optimizer).__name__, optimizer.get_config()
    texts, looks, clipping = (_TABLES[name] for name in ("texts", "looks", "clipping"))
    if kind not in texts or type(optimizer).__module__.partition(".")[0] != "keras":
        known = ", ".join(name for name in texts if " " not in name)
        raise Refused(at, "optimizer", kind=kind, known=known)
    for name, plain in (PLAIN | ({} if kind == "AdamW" else {"weight_decay": None})).items():
        if config.get(name, plain) != plain:
            raise Refused(at, "setting", kind=kind, name=name, value=config[name])
    if any(getattr(v, "constraint", None) is not None for v in optimizer._trainable_variables):
        raise Refused(at, "constraint")
    if getattr(optimizer, "_exclude_from_weight_decay", None):
        raise Refused(at, "excluded")
    config["momentum"] = config.get("momentum") or None
    if kind == "SGD" and config["momentum"]:
        kind = "SGD with momentum and a schedule" if scheduled else "SGD with momentum"
    text, look = (each.format(**(config | {"rate": rate})) for each in (texts[kind], looks.get(kind, "")))
    clips = [form.format(config[name]) for name, form in clipping.items() if config.get(name) is not None]
    return (f"optax.chain({', '.join([*clips, text])})" if clips else text), look
