"""A recording as a page that one steps through: forward, value by value; backward, cotangent by cotangent.

The graph is that of `drawing`, the sweep that of `steps`. Here they become data; `play.js` shows it and computes no number.
"""

from __future__ import annotations

import base64
import functools
import html
import itertools
import json
import linecache
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...places import SourceLine
from ...tape import active, sweep
from ...tape.pullback import PullbackOp
from ...tape.recording import Entry, is_deleted, type_of
from ...tape.slicing import Step
from ...tf.values.shown import CELLS, is_elsewhere, unreadable, value_text
from ...tf.values.types import Array
from ..writing.graph import ValueMap, ValueSet
from .drawing import Drawing, Edge, Layout, Node, arrange, graph, is_number, picture, place, shape_text
from .inside import Rounds, is_inexact, opened
from .listing import Names, name_of, options
from .local import Local, StepAtInput, local
from .split import listed
from .steps import Backward, wide
from .tables import cut

# In pixels, as play.css has them: a character of a label and of a value, what is left and right of them, a line of text.
LABEL, CHARACTER, PADDING, LINE = 9.1, 8.5, 26, 22
# The characters of a number in the graph, and of a name before it.
NUMBER, NAME = 9, 12
# The widest and highest that a matrix is in the graph, and its largest cell.
THUMB, CELL = (78, 54), 14
# Pixels in an inch, which is the unit of `drawing`.
INCH = 96
# The characters that are shown of an operation's inputs, and the values that are shown of a folded group.
INPUTS, LEAVING = 60, 6
# A larger matrix is shown in colours, as play.js has it; one with more than `CELLS` in so many blocks each way.
NUMBERS, BLOCKS = 8, 12
# So deep operations are opened.
DEPTH = 2

Json: TypeAlias = dict[str, Any]  # an object that the page reads
Part: TypeAlias = tuple[int, Value, Array, Json | None]  # of a cotangent: its slot, its array, what is added, and why


class Play:
    """A tape to step through: notebooks show it, ``save(file)`` writes it as a page that needs nothing else.

    ``data`` is what the page shows, as lists, dicts, strings and numbers; `still` the picture where no script runs.
    """

    def __init__(self, data: Json, still: Drawing | None):
        self.data = data
        self._still = still

    @functools.cached_property
    def _svg(self) -> str | None:
        return None if self._still is None else self._still.svg()

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the page. It opens in any browser, without a server or network."""
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        head += f'<meta name="color-scheme" content="light dark"><title>{html.escape(self._title())}</title>'
        body = f'<body style="margin:0">{self._html("page")}</body>'
        page = f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n{body}\n</html>\n'
        Path(file).write_text(page, encoding="utf-8")

    def _title(self) -> str:
        count = self.data["operations"]
        return f"The tape of {self.data['of']}: {count} operation{'' if count == 1 else 's'}, forward and backward"

    def _html(self, kind: str) -> str:
        title = html.escape(self._title())
        still = title
        if self._svg is not None:  # all that a notebook which is not trusted keeps; it would drop an <svg>
            svg = base64.b64encode(self._svg.encode()).decode()
            still = f'<img alt="{title}" src="data:image/svg+xml;base64,{svg}" style="max-width:100%">'
        data = json.dumps(self.data, separators=(",", ":"))
        for sign in "<>&":  # no text of the user's ends the script
            data = data.replace(sign, f"\\u{ord(sign):04x}")
        script, style = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("play.js", "play.css"))
        return (
            f'<div class="tapejax-play" data-kind="{kind}" data-lm-suppress-shortcuts="true" aria-label="{title}">{still}'
            f'<style media="not all">{style}</style><script type="application/json">{data}</script></div>'
            f"<script>{script}</script>"
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        svg = {} if self._svg is None else {"image/svg+xml": self._svg}
        return {"text/html": self._html("output"), **svg, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<{self._title()}; a notebook plays it, .save(file) writes the page>"


def play(walk: Backward, directions: Sequence[Array], split: bool = False) -> Play:
    """The page of a backward pass, of what it differentiates, and of the derivative in the `directions` of the sources;
    `split`: it begins with JAX's programs beside the tape."""
    with active.outside():
        page = _Page(walk, directions)
        try:
            still = picture(page.layers)
        except ImportError:  # without Matplotlib the page is the same
            still = None
        data = page.data()
    if split and data["split"] is None:
        raise ValueError(
            "split=True shows JAX's programs beside the tape, and JAX has none of this recording: one of the sources is computed "
            "from another or is an integer, or JAX cannot trace one of the operations. Leave `split` out to play the tape alone."
        )
    return Play({**data, "begin_split": split}, still)


class _Page:
    """What the page shows, as it is gathered. Arrays and values are numbered; each is written once."""

    def __init__(self, walk: Backward, directions: Sequence[Array], depth: int = 0, rounds: Rounds | None = None):
        self.walk, self.directions, self.depth, self.rounds = walk, directions, depth, rounds or Rounds()
        self.entries, nodes = walk.recording.entries, graph(walk.names, walk.query)
        self.layers = arrange(nodes)
        try:
            self.tangents = walk.tangents(directions)
        except (LookupError, TypeError):  # JAX has no forward mode for an operation: the page has none
            self.tangents = ValueMap()
        self.operations = [node for node in nodes if node.kind == "operation"]
        # a value from outside may have several nodes
        outside = [node for layer in self.layers for node in layer if node.kind in ("source", "constant")]
        self.nodes = [*outside, *self.operations]
        self.number = {node: i for i, node in enumerate(self.nodes)}
        self.node_at = {position: i for i, node in enumerate(self.nodes) for position in node.positions}
        self.since = {node: i for i, node in enumerate(self.operations, 1)}  # the frame that computes its values
        self.inner = self._fold()
        self.code, self.rows = _code([entry.line for node in self.operations for entry in self._entries(node)])
        self.arrays: list[Json] = []
        self.scale = 0.0  # the largest finite absolute value on the page
        self.values: list[Json] = []
        self._numbers = ValueMap[int]()  # of arrays
        self._written: dict[str, int] = {}  # the numbers of values
        self.came: dict[int, dict[int, Array]] = {}  # the cotangents of an entry's outputs, by its position and theirs
        self.locals: dict[tuple[int, int], Local] = {}  # by the position of an entry, and of one of its inputs

    def _entries(self, node: Node) -> list[Entry]:
        return [self.entries[position] for position in node.positions]

    def _fold(self) -> ValueSet:
        """Leaves to each folded group the arrays that are used after it; gives the others."""
        inner, targets, uses = ValueSet(), ValueSet(self.walk.query.targets), self.walk.names.graph.uses
        for node in self.operations:
            if len(node.positions) > 1:
                end = node.positions[-1]
                used = [x for x in node.arrays if x in targets or any(i > end and i in self.node_at for i in uses(x))]
                inner |= ValueSet(node.arrays) - ValueSet(used)
                node.arrays = used
        return inner

    def data(self) -> Json:
        start = {"kind": "start", "sources": list(map(self.array, self.walk.query.arrays))}
        backward = self.backward()
        frames = [start, *map(self.forward, self.operations), *backward]
        nodes = list(map(self.node, self.nodes))
        runs = [_pieces(edge) for node in self.nodes for edge in node.outs]
        return {
            "of": self.walk.of,
            "operations": sum(len(node.positions) for node in self.operations),
            "nodes": nodes,
            "edges": [[self.number[run[0].tail], self.number[run[-1].head], run[0].kind] for run in runs],
            "layouts": {"across": self.layout(runs, True), "down": self.layout(runs, False)},
            "code": self.code,
            "frames": frames,
            "forward_mode": self.forward_mode(),
            "split": None if self.depth else self.split(),
            "scale": self.scale,
            "arrays": self.arrays,
            "values": self.values,
        }

    def array(self, x: Array) -> int:
        """The number of an array of the recording; the page gets its name and value."""
        if x not in self._numbers:
            self._numbers[x] = len(self.arrays)
            self.arrays.append({"name": self.walk.names.of(x), "value": self.value(x)})
        return self._numbers[x]

    def value(self, x: Array | None) -> int | None:
        """The number of a value. All have one scale of colours."""
        if x is None:
            return None
        self.scale = max(self.scale, _largest(x))
        shown = _shown(x)
        key = json.dumps(shown)
        if key not in self._written:
            self._written[key] = len(self.values)
            self.values.append(shown)
        return self._written[key]

    # ---- the frames ----

    def forward(self, node: Node) -> Json:
        own = self.inner | ValueSet(node.arrays)
        inputs = [x for entry in self._entries(node) for x in entry.inputs if isinstance(x, jax.Array)]
        arguments = ValueSet(x for x in inputs if x not in own and not is_number(x, self.walk.names))
        ins, outs = (list(map(self.array, list(side)[:LEAVING])) for side in (arguments, node.arrays))
        about = {"node": self.number[node], "said": self.said(node), "ins": ins, "outs": outs}
        return {"kind": "forward", **about, "pushed": self.pushed(node) if len(node.positions) == 1 else []}

    def pushed(self, node: Node) -> list[Json]:
        """How the tangents of an operation's inputs become that of its result."""
        (position,), (entry,) = node.positions, self._entries(node)
        rules = []
        for i, x in enumerate(entry.inputs):
            if (derivative := self.locals.get((position, i))) is not None and x in self.tangents:
                rules.append(self.factor(derivative, derivative.forward, self.tangents[x], entry.outputs[0].shape))
        if rules and any(x is source for x in entry.outputs for source in self.walk.query.arrays):
            rules.append({"rule": "its own direction", "value": None, "shapes": ""})
        return rules

    def said(self, node: Node) -> str:
        """An operation as an equation, a group by its label."""
        if len(node.positions) > 1:
            return node.label
        (entry,), name = self._entries(node), self.walk.names.of
        inputs = ", ".join([*map(name, entry.inputs), *options(entry)])
        return f"{cut(', '.join(map(name, entry.outputs)), INPUTS)} = {name_of(entry)}({cut(inputs, INPUTS)})"

    def backward(self) -> list[Json]:
        """What the seeds and each node add to which cotangents, and what the sources have in the end."""
        walk, ct = self.walk, dict[int, Array]()
        totals: dict[int, Array] = {}  # the cotangents by slot, as of the last frame
        seeds = zip(walk.program.targets, walk.query.targets, walk.seeds, strict=True)
        first = [(slot, x, seed, None) for slot, x, seed in seeds if slot is not None]
        frames: list[Json] = [{"kind": "seed", "sums": self.sums(first, totals)}]
        for number, steps in itertools.groupby(walk.sweep(ct), lambda step: self.node_at[step[0]]):
            node, ins, parts = self.nodes[number], list[list[int | None]](), list[Part]()
            whole = len(node.positions) == 1
            for position, entry, step, back in steps:
                self.came[position] = {j: ct[step.outs[j]] for j in step.active_outs if step.outs[j] in ct}
                came = [(entry.outputs[j], x) for j, x in self.came[position].items()]
                ins += [[self.array(x), self.value(cotangent)] for x, cotangent in came if x not in self.inner]
                for i, part in zip(step.active_ins, back, strict=True):
                    if part is not None:
                        why = self.why(position, step, i, part) if whole else None
                        parts.append((step.ins[i], entry.inputs[i], part, why))
            about = {"kind": "backward", "node": number, "said": self.said(node)}
            frames.append({**about, "ins": ins, "sums": self.sums(parts, totals, whole)})
        self.gradients = walk.gathered(ct)
        leaves = zip(walk.structure.leaves, self.gradients, strict=True)
        gradients = [{"name": walk.names.of(leaf.array), "value": self.value(x)} for leaf, x in leaves]
        return [*frames, {"kind": "end", "gradients": gradients}]

    def sums(self, parts: Sequence[Part], totals: dict[int, Array], whole: bool = True) -> list[Json]:
        """What is added to which cotangents, which are brought up to date; unless it is told `whole`, the parts are counted."""
        by_slot: dict[int, list[Part]] = {}
        for one in parts:
            by_slot.setdefault(one[0], []).append(one)
        rows = []
        for slot, added in by_slot.items():
            x, before, shown = added[0][1], totals.get(slot), added if whole else []
            for _, _, part, _ in added:
                sweep.add(totals, slot, part)
            if x not in self.inner:
                facts = {"array": self.array(x), "before": self.value(before), "after": self.value(totals[slot])}
                values, whys = [self.value(part) for _, _, part, _ in shown], [why for *_, why in shown]
                rows.append({**facts, "parts": values, "whys": whys, "count": len(added)})
        return rows

    def why(self, position: int, step: Step, i: int, part: Array) -> Json:
        """How a cotangent becomes what is added at an input."""
        entry, cotangents = self.entries[position], self.came[position]
        derivative = local(StepAtInput(entry, step, i, cotangents, part, self.walk.names, self.walk.of))
        self.locals[position, i] = derivative
        return self.factor(derivative, derivative.back, next(iter(cotangents.values())), part.shape)

    def factor(self, derivative: Local, rule: str, by: Array, shape: tuple[int, ...]) -> Json:
        """How a cotangent or tangent, `by`, becomes another of a `shape`: with which factor, or else by which rule."""
        value = derivative.value
        said = {"rule": derivative.rule or rule, "value": self.value(value), "shapes": derivative.shapes}
        summed = value is not None and not derivative.matrix and value.shape != shape
        return said if value is None else {**said, "by": self.value(by), "matrix": derivative.matrix, "sum": summed}

    def split(self) -> list[Json] | None:
        """JAX's programs beside the tape; the rows of an equation have the node of the operation that it belongs to."""
        programs = listed(self.walk)
        for program in programs or ():
            program["rows"] = [[text, whole, self.node_at.get(at)] for text, whole, at in program["rows"]]
        return programs

    def forward_mode(self) -> Json:
        """The tangents of the arrays, and the derivative of the target once more, from the gradient."""
        walk = self.walk
        tangents = [(i, self.tangents.get(x)) for x, i in self._numbers.items()]
        page: Json = {"tangents": [[i, self.value(t)] for i, t in tangents if t is not None], "product": None}
        page["targets"] = [self.array(x) for x in walk.query.targets if x in self.tangents]
        seeds = [seed for seed in walk.seeds if seed is not None]
        if len(seeds) == 1 and seeds[0].size == 1 and not isinstance(seeds[0], Tracer) and (seeds[0] == 1).all():
            pairs = [(x, v) for x, v in zip(self.gradients, self.directions, strict=True) if x is not None]
            if pairs and not any(jax.numpy.iscomplexobj(v) for _, v in pairs):
                page["product"] = self.value(_along(pairs))
        return page

    def inside(self, node: Node) -> Json | None:
        """The page of what an operation is made of, with the cotangents and tangents that it has here."""
        (position,), (entry,) = node.positions, self._entries(node)
        cotangents = self.came.get(position, {})
        values = (*entry.inputs, *cotangents.values())
        plain = not any(isinstance(x, Tracer) or is_deleted(x) or jax.numpy.iscomplexobj(x) for x in values)
        if self.depth == DEPTH or not cotangents or not plain or isinstance(entry.op, PullbackOp):
            return None
        if (inner_tape := opened(entry, self.walk.recording)) is None:
            return None
        tape, outputs, rounds = inner_tape
        names, tangents = self.walk.names, self.tangents
        sources = list(ValueSet(entry.inputs[i] for at, i in self.locals if at == position))
        arrays = [(x, x) for x in entry.inputs if isinstance(x, jax.Array) and not is_number(x, names)]
        ends = [outputs[j] for j in cotangents]
        arrays += [(entry.outputs[j], outputs[j]) for j in cotangents]
        called = {names.name(x) or names.stored(x) or f"arg{i}": here for i, (x, here) in enumerate(arrays)}
        walk = Backward(tape, ends, sources, list(cotangents.values()), Names(tape._usable().folded(), [called]))
        walk.of = self.walk.of
        directions = [tangents[x] if x in tangents else jax.numpy.zeros_like(x) for x in sources]
        inner = _Page(walk, directions, self.depth + 1, rounds)
        page = inner.data()
        self.scale = max(self.scale, inner.scale)
        return page

    def round(self, node: Node) -> str:
        """In which rounds of a loop an operation, or a group of them, ran."""
        rounds = [self.rounds[x] for entry in self._entries(node) for x in entry.outputs if x in self.rounds]
        if not rounds:
            return ""
        (first, count), (last, _) = min(rounds), max(rounds)
        return f"round {first} of {count}" if first == last else f"rounds {first} … {last} of {count}"

    # ---- the graph ----

    def node(self, node: Node) -> Json:
        arrays = list(map(self.array, node.arrays[:LEAVING]))
        name, value = "", {}
        if len(arrays) == 1:
            name, value = self.arrays[arrays[0]]["name"], self.values[self.arrays[arrays[0]]["value"]]
        cells = value.get("cells", [[]])
        matrix = len(cells) * len(cells[0]) > 1
        note = node.note
        if note and len(node.positions) == 1:  # the name of a number is written before the number
            note = name if matrix else ""
        # what a node needs for all that is written in it
        width, height = max(LABEL * len(node.label), CHARACTER * len(note)), LINE * (1.0 + bool(note))
        if matrix:
            cell = min(CELL, THUMB[0] / len(cells[0]), THUMB[1] / len(cells))
            width, height = max(width, (cell * len(cells[0]) + 20) * (1 + node.carries)), height + cell * len(cells) + 6
        else:
            named = min(len(name), NAME) + 3 if node.kind == "operation" else 0
            width = max(width, CHARACTER * (named + max(NUMBER, len(value.get("shape", "")))))
            height += LINE * (bool(arrays) + node.carries)
        node.room = (width + PADDING) / INCH, (height + 14) / INCH
        before = [self.since.get(edge.tail, 0) for edge in node.ins]  # an assignment
        lines = [entry.line for entry in self._entries(node) if entry.line is not None]
        return {
            "label": node.label,
            "note": note,
            "round": self.round(node),
            "kind": node.kind,
            "carries": node.carries,
            "target": node.target,
            "count": len(node.positions),
            "arrays": arrays,
            "since": self.since.get(node, max(before, default=0)),
            "inside": self.inside(node) if len(node.positions) == 1 else None,
            "rows": sorted({self.rows[line.file, line.number] for line in lines}),
        }

    def layout(self, runs: Sequence[Sequence[Edge]], across: bool) -> Json:
        """The places of the nodes and the paths of the edges, in pixels."""
        place(self.layers, across)
        layout = Layout(self.layers, across)
        return {
            "size": _pixels(layout.width, layout.height),
            "places": [_pixels(*layout.spot(node), node.width, node.height) for node in self.nodes],
            "paths": [_path([layout.curve(edge) for edge in run]) for run in runs],
        }


def _pieces(edge: Edge) -> list[Edge]:
    """An edge with all the pieces that it was cut into."""
    pieces = [edge]
    while pieces[-1].head.kind == "turn":
        pieces += pieces[-1].head.outs
    return pieces


def _pixels(*inches: float) -> list[float]:
    return [round(x * INCH, 1) for x in inches]


def _path(curves: Sequence[Sequence[tuple[float, float]]]) -> str:
    """Curves as an SVG path; a curve of five points begins with a straight line."""
    path = ""
    for curve in curves:
        texts = [" ".join(map(str, _pixels(*point))) for point in curve]
        path += f"{'L' if path else 'M'}{texts[0]}{''.join(f'L{x}' for x in texts[1:-3])}C{' '.join(texts[-3:])}"
    return path


@jax.jit  # one program to compile, where each product would be one
def _along(pairs: Sequence[tuple[Array, Array]]) -> Array:
    """The derivative in a direction, from gradients and the parts of the direction."""
    return sum(jax.numpy.vdot(x, v) for x, v in pairs)


# ---- values and lines -----------------------------------------------------------------------------------------------


def _shown(x: Array) -> Json:
    """A value: all of a small one, each number as text that gives it back exactly; of a larger one its range."""
    said: Json = {"type": type_of(x), "shape": shape_text(x)}
    if isinstance(x, Tracer):
        return {**said, "text": value_text(x)}
    if is_deleted(x) or not (jax.numpy.issubdtype(x.dtype, np.number) or x.dtype == np.bool_):
        return {**said, "text": "deleted" if is_deleted(x) else ""}
    if not x.size or is_elsewhere(x):
        return {**said, "text": value_text(x) if x.size else "empty"}
    shape = [size for size in x.shape if size > 1] if x.ndim > 2 else x.shape  # one image of a batch is a matrix
    shape = (int(np.prod(shape[:-1])), shape[-1]) if len(shape) > 2 else shape
    grid = np.atleast_2d(np.asarray(x).reshape(shape))
    grid = grid.astype(np.float32) if grid.dtype.kind == "V" else grid  # bfloat16 and its like
    if max(grid.shape) <= CELLS:
        text = {"text": value_text(x)} if max(grid.shape) > NUMBERS else {}
        return {**said, **text, "cells": [list(map(str, row)) for row in grid]}
    reduced = _largest_of_blocks(grid)
    return {**said, "text": value_text(x), "cells": [[f"{x:.2g}" for x in row] for row in reduced], "reduced": True}


def _largest_of_blocks(grid: np.ndarray) -> np.ndarray:
    """A large matrix as a small one: of each block the element that is furthest from zero, or one that is not finite."""
    grid = wide(grid)
    for axis in (0, 1):
        blocks = np.array_split(grid, min(grid.shape[axis], BLOCKS), axis)
        furthest = [np.abs(block).argmax(axis, keepdims=True) for block in blocks]
        largest = [np.take_along_axis(block, at, axis) for block, at in zip(blocks, furthest, strict=True)]
        grid = np.concatenate(largest, axis)
    return grid


def _largest(x: Array) -> float:
    """The largest finite absolute value; 0 of integers, which may be labels or seeds."""
    if unreadable(x) or is_deleted(x) or not is_inexact(x):
        return 0.0
    sizes = np.abs(wide(x))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _code(lines: Iterable[SourceLine | None]) -> tuple[list[Json], dict[tuple[str, int], int]]:
    """The lines of the user's code and what is around them, by file; and the row of each line in that."""
    files: dict[str, set[int]] = {}
    for line in lines:
        if line is not None:
            files.setdefault(line.file, set()).add(line.number)
    rows: list[Json] = []
    row_at = {}
    for file, own in files.items():
        rows.append({"file": str(SourceLine(file, 0, "", "")).rpartition(":")[0]})
        near = range(max(min(own) - 1, 1), max(own) + 1)  # also the line above, and no gap of less than three lines
        numbers = [n for n in near if own & {n, n + 1} or own >= {n - 1, n + 2}]
        texts = [linecache.getline(file, n).rstrip() for n in numbers]
        indent = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
        for before, number, text in zip([numbers[0] - 1, *numbers], numbers, texts, strict=False):
            if number != before + 1:
                rows.append({"gap": True})
            if number in own:
                row_at[file, number] = len(rows)
            rows.append({"number": number, "text": text[indent:]})
    return rows, row_at
