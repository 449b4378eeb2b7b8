"""A recording as a picture: values flow from the sources through the operations to the target.

The layout is Sugiyama's: layers by dependency, an order within each that crosses few edges, places as close to their
neighbours as the room allows. Matplotlib is imported here and nowhere else, when a picture is asked for.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, TypeAlias

import jax

from ...jaxprs.dependence import is_key
from ...jaxprs.fence import Tracer
from ...places import SourceLine
from ...tape import active
from ...tape.query import Query
from ...tape.recording import Recording
from ...tf.values.errors import extra_missing
from ...tf.values.shown import DARK, number_text
from ...tf.values.types import Array
from ..writing.graph import Graph, ValueMap, ValueSet
from .graph_evidence import given_at
from .listing import Names, Repetition, folded, name_of, options, shortened
from .tables import cut

# More operations than this are folded into groups.
OPERATIONS = 60
# The largest number of groups.
GROUPS = 30
# A picture of up to so many inches runs from left to right, as one reads; a longer one runs down the page.
ACROSS = 11.0
# What is between two layers, in inches: across, down the page, and down the page where there are many.
GAPS, MANY = (0.85, 0.5, 0.34), 14
# How strongly an operation keeps its place in the column of what it is computed from, against a value from outside.
PULL = 12.0
# Of pictures that are no SVG.
PNG_DPI = 144
# How many nodes the text in the place of a picture names, of each kind.
SAID = 12
# How many layers a value from outside may be away from its use; beyond, it is drawn again.
NEAR = 3

BLUE, PALE, GREY, SILVER, AMBER, GREEN = "#1d4ed8", "#dbeafe", "#6b7280", "#f3f4f6", "#fde68a", "#bbf7d0"
OUTLINE, EDGE, RED = "#9ca3af", "#b6bcc6", "#b91c1c"
# By the kind of an edge: its colour, its width, its place above others, the colour of its label.
_EDGES = {"carries": (BLUE, 1.5, 2, BLUE), "cut": (RED, 1.0, 1, RED), "plain": (EDGE, 1.0, 1, GREY)}
# In dark themes, of JupyterLab, of VS Code and of the site, the picture is dark: light and dark change places, hues stay.
INVERTED = f"<style>{DARK} img.tapejax{{filter:invert(.88) hue-rotate(180deg)}}</style>"
# Of Matplotlib, which is imported when something is drawn.
Figure: TypeAlias = Any
Axes: TypeAlias = Any
CENTRED = {"ha": "center", "va": "center"}


@dataclass(eq=False)
class Node:
    """An operation, a group of them, or a value that came from outside; `layer` and `at` are its place.

    `positions` are those of its entries, `arrays` what these compute, or what came from outside. `room` is the least width
    and height that it needs, in inches.
    """

    label: str
    note: str = ""
    kind: str = "operation"  # or "source", "constant", "turn" (where a long edge passes a layer)
    carries: bool = False
    target: bool = False
    source: bool = False  # also an operation whose result is one
    layer: int = 0
    at: float = 0.0
    positions: Sequence[int] = ()
    arrays: list[Array] = field(default_factory=list)
    room: tuple[float, float] = (0.5, 0.0)
    ins: list[Edge] = field(default_factory=list)
    outs: list[Edge] = field(default_factory=list)

    @property
    def width(self) -> float:
        """In inches."""
        if self.kind == "turn":
            return 0.05
        size = 0.074 if self.kind == "constant" else 0.089
        return max(self.room[0], 0.24 + max(size * len(self.label), 0.068 * len(self.note)))

    @property
    def from_outside(self) -> bool:
        # what an assignment put into a variable has its place
        return self.kind in ("source", "constant") and not self.ins

    @property
    def pull(self) -> float:
        """Its weight in the mean place of its neighbours, and how hard it is to move itself."""
        return 1.0 if self.from_outside else PULL if self.carries else PULL / 4

    @property
    def height(self) -> float:
        return 0.05 if self.kind == "turn" else max(self.room[1], 0.46 if self.note else 0.34)

    def size(self, across: bool) -> float:
        """From left to right, or down the page."""
        return self.width if across else self.height


@dataclass(eq=False)
class Edge:
    """A value on its way from one node to another."""

    tail: Node
    head: Node
    label: str
    kind: str  # "carries" gradient, "plain", or "cut" (an assignment: the value goes on, its gradient does not)

    def __post_init__(self) -> None:
        self.tail.outs.append(self)
        self.head.ins.append(self)


class Drawing:
    """A picture of a tape. Notebooks show it; ``figure`` is Matplotlib's, ``savefig(file)`` writes it.

    ``alt`` says in words what the picture shows, for readers who do not see it.
    """

    def __init__(self, figure: Figure, alt: str):
        self.figure, self.alt = figure, alt

    def savefig(self, file: str | os.PathLike[str] | IO, **options: Any) -> None:
        self.figure.savefig(file, **options)

    def svg(self) -> str:
        """The picture as SVG; its title is ``alt``."""
        return self._written("svg", Date=None, Title=self.alt).decode().replace("<svg ", '<svg role="img" ', 1)

    def png(self) -> bytes:
        """The picture as PNG, with few colours."""
        from PIL import Image  # Matplotlib needs it, too

        out = io.BytesIO()
        with Image.open(io.BytesIO(self._written("png", dpi=PNG_DPI, Software=None))) as picture:
            picture.convert("RGB").quantize(64).save(out, "png", optimize=True)  # a third of the bytes
        return out.getvalue()

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """HTML, since Jupyter puts a text in the place of a picture only there; PNG for what shows no HTML."""
        image = f"data:image/svg+xml;base64,{base64.b64encode(self.svg().encode()).decode()}"
        width, height = (int(inches * 96) for inches in self.figure.get_size_inches())
        least = min(width * 9 // 10, 800)  # on a narrow page it is scrolled, and its smallest text can be read
        style = f"max-width:100%;min-width:{least}px;height:auto"
        page = f'{INVERTED}<img class="tapejax" alt="{html.escape(self.alt)}" src="{image}" style="{style}">'
        data = {"text/html": page, "image/png": base64.b64encode(self.png()).decode(), "text/plain": repr(self)}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}

    def _written(self, kind: str, dpi: float | str = "figure", **metadata: Any) -> bytes:
        """The same picture gives the same bytes: a notebook under version control changes only where the tape did."""
        import matplotlib

        out = io.BytesIO()
        own: dict = {"svg.hashsalt": "tapejax", "savefig.bbox": None, "savefig.transparent": False}
        # writing a figure looks up its layout engine anew
        own |= {"figure.constrained_layout.use": False, "figure.autolayout": False}
        with matplotlib.rc_context(own):
            self.figure.savefig(out, format=kind, dpi=dpi, metadata=metadata)
        return out.getvalue()

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"<Drawing of a tape, {width:.1f} by {height:.1f} inches: a notebook shows it, .savefig(file) writes it>"


def draw(names: Names, query: Query) -> Drawing:
    """The picture of what leads to the query's targets (of all, where there are none); its sources are marked."""
    with active.outside():
        nodes = graph(names, query)
    return picture(arrange(nodes))


def picture(layers: Sequence[Sequence[Node]]) -> Drawing:
    """The picture of nodes in their places."""
    try:
        import matplotlib
    except ImportError as error:
        raise extra_missing("tape.draw", "Matplotlib", "draw") from error
    # the places are made for this font, whatever the user's rcParams say
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "text.usetex": False}):
        return Drawing(_paint(layers), _described(list(itertools.chain.from_iterable(layers))))


def _described(nodes: Sequence[Node]) -> str:
    """The picture in words."""

    def said(chosen: Iterable[Node]) -> str:
        labels = [*dict.fromkeys(f"{n.label} ({n.note})" if n.note else n.label for n in chosen if n.kind != "turn")]
        return (", ".join(labels[:SAID]) or "nothing") + " and more" * (len(labels) > SAID)

    passed, others = ([n for n in nodes if n.kind == "operation" and n.carries is carries] for carries in (True, False))
    gradient = f"Gradient passes {said(passed)}" if passed else "No gradient passes"
    blocked = f", and not {said(others)}" if passed and others else ""
    ends = f"from {said(n for n in nodes if n.from_outside)} to {said(n for n in nodes if n.target or not n.outs)}"
    return f"A tape drawn as a graph, {ends}. {gradient}{blocked}."


# ---- the graph ------------------------------------------------------------------------------------------------------


def graph(names: Names, query: Query) -> list[Node]:
    """The nodes, joined by their edges, in the order in which they ran."""
    recording, targets, sources = query.recording, query.targets, query.arrays
    entries = recording.entries
    assigned = _assigned(recording)
    shown = Graph(entries, assigned).before(targets) if targets else list(range(len(entries)))
    if len(shown) > OPERATIONS:  # groups take the order out of reads and assignments
        assigned = ValueMap()
        shown = names.graph.before(targets) if targets else shown
    # the entries that gradient passes, and the inputs by which it does
    passing: Mapping[int, Any] = query.relevant()[0] if targets else {link.position: link for link in query.active()}
    active = {position: link.active_ins for position, link in passing.items()}
    starts, ends = ValueSet(sources), ValueSet(targets)
    passed = ValueSet(entries[position].inputs[i] for position, active_ins in active.items() for i in active_ins)
    nodes: list[Node] = []
    maker = ValueMap[Node]()

    def maker_of(x: Array) -> Node:
        if x not in maker:  # it came from outside
            source, target, label = x in starts, x in ends, shortened(names.of(x), 26)
            kind = "source" if source else "constant"
            node = Node(label, kind=kind, carries=source and (target or x in passed), target=target, arrays=[x])
            maker[x] = node
            for origin in assigned.get(x, ()):
                if (tail := maker.get(origin)) is not None:
                    node.note = "after assign"  # another node may have the variable's name: what it held before
                    Edge(tail, node, "assign", "cut")
            nodes.append(node)
        return maker[x]

    for x in itertools.chain.from_iterable(assigned.values()):
        if x in starts and x not in assigned and not names.is_result(x):  # the assignment may be its first use
            maker_of(x)
    for group in _groups(recording, shown):
        node = _operation(recording, names, group, any(i in active for i in group))
        node.positions, node.arrays = group, [x for position in group for x in entries[position].outputs]
        joined = ValueSet(node.arrays)  # what needs no edge, or no other one
        for position in group:
            for i, x in enumerate(entries[position].inputs):
                if not isinstance(x, jax.Array) or x in joined or is_number(x, names):
                    continue
                joined.add(x)
                Edge(maker_of(x), node, shape_text(x), "carries" if i in active.get(position, ()) else "plain")
        maker.update((x, node) for x in node.arrays)
        node.target, node.source = (not ValueSet(node.arrays).isdisjoint(side) for side in (ends, starts))
        nodes.append(node)
    for x in (*sources, *targets):  # also those that nothing leads from or to
        maker_of(x)
    return nodes


def _assigned(recording: Recording) -> ValueMap[list[Array]]:
    """For new contents of variables the values that assignments computed them from."""
    given = (given_at(mark) for mark in recording.marks if mark.kind == "state")
    return ValueMap((into, [x for x in values if x is not None]) for into, *values in given if into is not None)


def _groups(recording: Recording, shown: Sequence[int]) -> list[list[int]]:
    """Single operations; where they are too many, runs of one line, and runs of these."""
    if len(shown) <= OPERATIONS:
        return [[i] for i in shown]
    groups = [list(run) for _, run in itertools.groupby(shown, lambda i: recording.entries[i].line)]
    lines: list[Hashable] = [recording.entries[group[0]].line for group in groups]
    if len(groups) < 4:  # all on a few lines: by number
        groups, lines = [[i] for i in shown], [recording.entries[i].op for i in shown]
    loops = [part for part in folded(lines) if isinstance(part, Repetition)]
    loop = max(loops, key=lambda loop: loop.stop - loop.first, default=Repetition(0, 1, 0))
    size = -(-len(groups) // (GROUPS * loop.period)) * loop.period  # whole rounds of a loop
    cuts = [*range(loop.first % size, len(groups), size), len(groups)]
    return [sum(groups[a:b], []) for a, b in itertools.pairwise(dict.fromkeys([0, *cuts]))]


def _operation(recording: Recording, names: Names, group: Sequence[int], carries: bool) -> Node:
    entry, last = recording.entries[group[0]], recording.entries[group[-1]]
    name, line = name_of(entry), entry.line
    if len(group) > 1:
        lines = {row for i in group if (row := recording.entries[i].line) is not None}
        label, where = f"{name} … {name_of(last)}", str(line)
        if len(lines) == 1 and line is not None and line.text:
            label = cut(line.text, 34)
        elif len({x.file for x in lines}) == 1 and line is not None:
            where = f"{SourceLine(line.file, min(x.number for x in lines), '', '')}–{max(x.number for x in lines)}"
        return Node(label, f"{len(group)} operations, {where}", carries=carries)
    numbers = [number_text(x) for x in entry.inputs if not isinstance(x, jax.Array) or is_number(x, names)]
    said = [names.name(x) or names.stored(x) for x in entry.outputs]
    label = " ".join([cut(name, 30), *[*numbers, *options(entry)][:2]])
    return Node(label, ", ".join(n for n in said if n)[:28], carries=carries)


def is_number(x: Array, names: Names) -> bool:
    """A scalar without a name: it is written into the operation that uses it."""
    return not (isinstance(x, Tracer) or x.ndim or names.name(x) or is_key(x) or names.is_result(x))


def shape_text(x: Array) -> str:
    return "×".join(map(str, x.shape)) if x.ndim else "scalar"


# ---- the layout -----------------------------------------------------------------------------------------------------


def arrange(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes in layers, with the turns of long edges between them, each at its place."""
    for node in nodes:  # they are in the order of execution
        node.layer = max((edge.tail.layer + 1 for edge in node.ins), default=0)
    for node in reversed(nodes):  # constants are computed when they are needed, as far as the picture goes
        if not node.carries and node.kind == "operation" and node.outs:
            node.layer = min(edge.head.layer for edge in node.outs) - 1
    nodes = [near for node in nodes for near in (_by_their_uses(node) if node.from_outside else [node])]
    numbers = [node.layer for node in nodes] or [0]
    first = min(numbers)
    layers: list[list[Node]] = [[] for _ in range(max(numbers) - first + 1)]
    for node in nodes:
        node.layer -= first
        layers[node.layer].append(node)
    for node in nodes:
        for edge in list(node.outs):
            _turn(edge, layers)
    layers = _order(layers)
    place(layers, is_across(layers))
    return layers


def _by_their_uses(node: Node) -> list[Node]:
    """A constant or source is placed close to its use, and once more beside every use that is far from the last one."""
    copies = [node]
    edges, node.outs = sorted(node.outs, key=lambda edge: edge.head.layer), []
    for edge in edges:
        if copies[-1].outs and edge.head.layer - copies[-1].outs[0].head.layer > NEAR:
            copies.append(replace(node, ins=[], outs=[]))
        edge.tail = copies[-1]
        edge.tail.outs.append(edge)
    for near in copies:
        if near.outs:
            near.layer = near.outs[0].head.layer - 1
    return copies


def _turn(edge: Edge, layers: list[list[Node]]) -> None:
    """Cuts an edge that passes layers into pieces with a turn in each."""
    passed, head = range(edge.tail.layer + 1, edge.head.layer), edge.head
    turns = [Node("", kind="turn", carries=edge.kind == "carries", layer=layer) for layer in passed]
    if turns:
        head.ins.remove(edge)
        edge.head = turns[0]
        turns[0].ins.append(edge)
    for turn, after in itertools.pairwise([*turns, head]):
        layers[turn.layer].append(turn)
        Edge(turn, after, "", edge.kind)


def _order(layers: list[list[Node]]) -> list[list[Node]]:
    """Puts each node at the mean place of its neighbours, layer after layer, down and up; gives the best order seen."""
    orders = [[list(layer) for layer in layers]]
    for sweep in range(12):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {n: i for row in layers for i, n in enumerate(row)}
            near = {n: [place[m] for m in _neighbours(n, down)] or [place[n]] for n in layer}
            layer.sort(key=lambda n, near=near: sum(near[n]) / len(near[n]))  # type: ignore[misc]
        orders.append([list(layer) for layer in layers])
    return min(orders, key=_crossings)


def _neighbours(node: Node, up: bool) -> list[Node]:
    return [edge.tail for edge in node.ins] if up else [edge.head for edge in node.outs]


def _crossings(layers: Sequence[Sequence[Node]]) -> int:
    total = 0
    for layer, below in itertools.pairwise(layers):
        place = {n: i for i, n in enumerate(below)}
        ends = [(i, place[edge.head]) for i, node in enumerate(layer) for edge in node.outs]
        total += sum(a < c and b > d for (a, b), (c, d) in itertools.combinations(ends, 2))
    return total


def is_across(layers: Sequence[Sequence[Node]]) -> bool:
    """Whether the picture runs from left to right."""
    return Layout(layers, True).width <= ACROSS


def place(layers: Sequence[Sequence[Node]], across: bool) -> None:
    """Moves the nodes towards their neighbours, keeping their order and distances."""
    gap = 0.3 if across else 0.35
    rows = []
    for layer in layers:
        for i, node in enumerate(layer):
            node.at = float(i)
        around = [[*_neighbours(n, True), *_neighbours(n, False)] for n in layer]
        # what is alone stands beside the last
        around = [near or [layer[max(i - 1, 0)]] for i, near in enumerate(around)]
        steps = [(a.size(not across) + b.size(not across)) / 2 + gap for a, b in itertools.pairwise(layer)]
        rows.append((layer, around, [0.0, *itertools.accumulate(steps)][: len(layer)]))
    for sweep in range(60):
        for layer, around, offsets in rows if sweep % 2 == 0 else reversed(rows):
            ideals = [sum(m.at * m.pull for m in near) / sum(m.pull for m in near) for near in around]
            for node, at in zip(layer, _spread(ideals, offsets, [n.pull for n in layer]), strict=True):
                node.at = at


def _spread(ideals: Sequence[float], offsets: Sequence[float], pulls: Sequence[float]) -> list[float]:
    """The places nearest to `ideals`, in least squares weighted by `pulls`, that are at least as far apart as `offsets`.

    Isotonic regression by pooling adjacent violators; SciPy has it, in a module that takes a second to import.
    """
    # places that touch: their mean without offsets, its weight, their number
    pools: list[tuple[float, float, int]] = []
    for ideal, offset, pull in zip(ideals, offsets, pulls, strict=True):
        mean, weight, count = ideal - offset, pull, 1
        while pools and pools[-1][0] > mean:
            other, own, more = pools.pop()
            mean, weight, count = (mean * weight + other * own) / (weight + own), weight + own, count + more
        pools.append((mean, weight, count))
    means = itertools.chain.from_iterable([mean] * count for mean, _, count in pools)
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


class Layout:
    """Where nodes that `place` has placed lie, in inches, and how the edges run between them."""

    def __init__(self, layers: Sequence[Sequence[Node]], across: bool):
        self.across, self.gap = across, GAPS[0 if across else 1 if len(layers) <= MANY else 2]
        self.left = self.top = 0.0  # where the nodes begin
        self._sizes = [max((node.size(across) for node in layer), default=0.5) for layer in layers]
        starts = [0.0, *itertools.accumulate(size + self.gap for size in self._sizes)]
        self._depths = [start + size / 2 for start, size in zip(starts, self._sizes, strict=False)]
        sides = [(n.at, n.size(not across) / 2) for layer in layers for n in layer] or [(0.0, 0.0)]
        self._low = min(at - half for at, half in sides)
        length, breadth = starts[-2] + self._sizes[-1], max(at + half for at, half in sides) - self._low
        self.width, self.height = (length, breadth) if across else (breadth, length)

    def spot(self, node: Node, along: float = 0.0) -> tuple[float, float]:
        """The middle of a node, or a place `along` the flow from it."""
        depth, side = self._depths[node.layer] + along, node.at - self._low
        x, y = (depth, side) if self.across else (side, depth)
        return self.left + x, self.top + y

    def curve(self, edge: Edge) -> list[tuple[float, float]]:
        """A cubic curve by its four points; before them, where the edge comes from a turn, the start of a straight line."""
        across, tail, head = self.across, edge.tail, edge.head
        size = self._sizes[tail.layer]
        out, into = (self._sizes[n.layer] if n.kind == "turn" else n.size(across) for n in (tail, head))
        start, end = self.spot(tail, out / 2), self.spot(head, -into / 2)
        turn = self.spot(tail, size / 2 + self.gap / 2)
        bends = [(turn[0], start[1]), (turn[0], end[1])] if across else [(start[0], turn[1]), (end[0], turn[1])]
        return [self.spot(tail, -out / 2)] * (tail.kind == "turn") + [start, *bends, end]


# ---- the paint ------------------------------------------------------------------------------------------------------


def _paint(layers: Sequence[Sequence[Node]]) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    layout = Layout(layers, is_across(layers))
    nodes = [node for layer in layers for node in layer]
    margin, legend = 0.35, 0.45
    narrow, height = layout.width + 2 * margin, layout.height + 2 * margin + legend
    engine: Any = "none"  # whatever the user's rcParams say
    figure = Figure(figsize=(narrow, height), dpi=100, layout=engine)
    FigureCanvasAgg(figure)
    looks = {_look(node): _outline(node) for node in nodes if node.kind != "turn"}
    order = (AMBER, PALE, SILVER, "white", GREEN)
    shown = sorted(looks, key=lambda look: order.index(look[1]))
    kinds = [Patch(label=look[0], facecolor=look[1], edgecolor=looks[look]) for look in shown]
    style: dict[str, Any] = {"frameon": False, "fontsize": 7.5, "labelcolor": GREY, "borderpad": 0, "borderaxespad": 2}
    explained = figure.legend(handles=kinds, loc="lower left", ncols=max(len(kinds), 1), **style)
    width = max(narrow, explained.get_window_extent().width / figure.dpi + 2 * margin, 5.2)
    figure.set_figwidth(width)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    layout.left, layout.top = margin + (width - narrow) / 2, margin
    labelled: set[tuple[int, str]] = set()
    for edge in (edge for node in nodes for edge in node.outs):
        _paint_edge(axes, edge, layout.curve(edge), labelled)
    for node in nodes:
        if node.kind != "turn":
            _paint_node(axes, node, *layout.spot(node))
    return figure


def _paint_edge(axes: Axes, edge: Edge, points: Sequence[tuple[float, float]], labelled: set) -> None:
    from matplotlib.bezier import BezierSegment
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    tail, head = edge.tail, edge.head
    codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    if len(points) > 4:  # straight through the layer that it passes
        codes[:1] = [Path.MOVETO, Path.LINETO]
    colour, width, order, ink = _EDGES[edge.kind]
    style = "-|>,head_length=4,head_width=2" if head.kind != "turn" else "-"
    arrow = FancyArrowPatch(path=Path(points, codes), arrowstyle=style, shrinkA=0, shrinkB=0)
    arrow.set(color=colour, linewidth=width, zorder=order, linestyle=":" if edge.kind == "cut" else "-")
    axes.add_patch(arrow)
    if edge.label and (tail, edge.label) not in labelled:
        labelled.add((tail, edge.label))
        part = 0.42 if len(head.ins) <= 3 else 0.24  # where many edges meet, there is room further away only
        x, y = BezierSegment(points[-4:])(part)
        box = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}
        axes.text(x, y, edge.label, fontsize=7.5, color=ink, bbox=box, zorder=4, **CENTRED)


def _paint_node(axes: Axes, node: Node, x: float, y: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    constant, operation = node.kind == "constant", node.kind == "operation"
    corner = (x - node.width / 2, y - node.height / 2)
    shape = f"round,pad=0,rounding_size={0.06 if operation else node.height / 2}"
    box = FancyBboxPatch(corner, node.width, node.height, boxstyle=shape, zorder=5)
    box.set(facecolor=_look(node)[1], edgecolor=_outline(node))
    box.set(linewidth=2.2 if node.target else 1.2, linestyle="--" if constant else "-")
    axes.add_patch(box)
    weight, shift = "normal" if constant else "bold", 0.085 if node.note else 0
    axes.text(x, y - shift, node.label, fontsize=9, zorder=6, weight=weight, color="#111827", **CENTRED)
    if node.note:
        axes.text(x, y + 0.11, node.note, fontsize=7.5, zorder=6, color=GREY, **CENTRED)


def _look(node: Node) -> tuple[str, str]:
    """What the legend calls a node, and its colour."""
    if node.target:
        return "target", GREEN
    if node.source or node.kind == "source":
        return "source" if node.source or node.carries else "source, not reached", AMBER
    if node.kind == "constant":
        return "constant", "white"
    return ("carries gradient", PALE) if node.carries else ("does not", SILVER)


def _outline(node: Node) -> str:
    return BLUE if node.carries else OUTLINE
