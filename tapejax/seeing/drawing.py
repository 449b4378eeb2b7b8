"""A recording as a picture: values flow from the sources through the operations to the target.

The layout is Sugiyama's: layers by dependency, an order within each that crosses few edges, places as close to their
neighbours as the room allows. Matplotlib is imported here and nowhere else, when a picture is asked for.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from ..core import recorder
from ..core._jax import Tracer
from ..core.query import Query
from ..core.recording import Recording
from ..core.where import Line, line_of
from ..values.shown import number_text
from .listing import Names, ancestors, options, shortened

# More operations than this are folded into groups,
OPERATIONS = 60
# of which there are so many at most.
GROUPS = 30
# A picture of up to so many inches runs from left to right, as one reads; a longer one runs down the page.
ACROSS = 11.0
# What is between two layers, in inches: across, down the page, and down the page where there are many.
GAPS, MANY = (0.85, 0.5, 0.34), 14
# How strongly an operation keeps its place in the column of what it is computed from, against a value from outside.
PULL = 12.0
# Of pictures that are no SVG.
PNG_DPI = 144
# How many layers a value from outside may be away from its use; beyond, it is drawn again.
NEAR = 3

BLUE, PALE, GREY, SILVER, AMBER, GREEN = "#1d4ed8", "#dbeafe", "#6b7280", "#f3f4f6", "#fde68a", "#bbf7d0"


@dataclass(eq=False)
class Node:
    """An operation, a group of them, or a value that came from outside; `layer` and `at` are its place."""

    label: str
    note: str = ""
    kind: str = "operation"  # or "source", "constant", "turn" (where a long edge passes a layer)
    carries: bool = False
    target: bool = False
    layer: int = 0
    at: float = 0.0
    ins: list[Edge] = field(default_factory=list)
    outs: list[Edge] = field(default_factory=list)

    @property
    def width(self) -> float:
        """In inches."""
        if self.kind == "turn":
            return 0.05
        size = 0.074 if self.kind == "constant" else 0.089
        return max(0.5, 0.24 + max(size * len(self.label), 0.068 * len(self.note)))

    @property
    def pull(self) -> float:
        """Its weight in the mean place of its neighbours, and how hard it is to move itself."""
        return 1.0 if self.kind in ("source", "constant") else PULL if self.carries else PULL / 4

    @property
    def height(self) -> float:
        return 0.05 if self.kind == "turn" else 0.46 if self.note else 0.34


@dataclass(eq=False)
class Edge:
    """A value on its way from one node to another."""

    tail: Node
    head: Node
    label: str
    carries: bool


class Drawing:
    """A picture of a tape. Notebooks show it; ``figure`` is Matplotlib's, ``savefig(file)`` writes it."""

    def __init__(self, figure: Any):
        self.figure = figure

    def savefig(self, file: Any, **options: Any) -> None:
        self.figure.savefig(file, **options)

    def _repr_svg_(self) -> str:
        # no wider than the page
        return self._written("svg", Date=None).decode().replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """For a notebook that its reader has not run: Jupyter trusts no SVG in it."""
        from PIL import Image  # Matplotlib needs it, too

        out = io.BytesIO()
        with Image.open(io.BytesIO(self._written("png", dpi=PNG_DPI, Software=None))) as picture:
            picture.convert("RGB").quantize(64).save(out, "png", optimize=True)  # a third of the bytes
        return out.getvalue(), {"width": int(self.figure.get_size_inches()[0] * 96)}

    def _written(self, kind: str, dpi: float | str = "figure", **metadata: Any) -> bytes:
        """The same picture gives the same bytes: a notebook under version control changes only where the tape did."""
        import matplotlib

        out = io.BytesIO()
        own: dict[Any, Any] = {"svg.hashsalt": "tapejax", "savefig.bbox": None, "savefig.transparent": False}
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
    with recorder.outside():
        nodes = graph(names, query)
    layers = arrange(nodes)
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("draw() needs Matplotlib: pip install matplotlib") from error
    # the places are made for this font, whatever the user's rcParams say
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "text.usetex": False}):
        return Drawing(_paint(layers))


# ---- the graph ------------------------------------------------------------------------------------------------------


def graph(names: Names, query: Query) -> list[Node]:
    """The nodes, joined by their edges, in the order in which they ran."""
    recording, targets, sources = query.recording, query.targets, query.arrays
    entries = recording.entries
    shown = ancestors(entries, targets)[0] if targets else list(range(len(entries)))
    # the entries that gradient passes, and the inputs by which it does
    if targets:
        active = {position: active_ins for position, active_ins, _ in query.relevant()[0]}
    else:
        active = {link.position: link.active_ins for link in query.active()}
    source_ids, target_ids = {id(x) for x in sources}, {id(x) for x in targets}
    nodes: list[Node] = []
    maker: dict[int, Node] = {}
    joined: set[tuple[int, int, int]] = set()

    def leaf(x: Any) -> Node:
        if id(x) not in maker:
            kind = "source" if id(x) in source_ids else "constant"
            maker[id(x)] = node = Node(
                shortened(names.of(x), 26), kind=kind, carries=kind == "source", target=id(x) in target_ids
            )
            nodes.append(node)
        return maker[id(x)]

    for group in _groups(recording, shown):
        node = _operation(recording, names, group, any(i in active for i in group))
        inside = {id(x) for position in group for x in entries[position].outputs}
        for position in group:
            for i, x in enumerate(entries[position].inputs):
                if not isinstance(x, jax.Array) or id(x) in inside or _is_number(x, names):
                    continue
                tail, carries = leaf(x), i in active.get(position, ())
                if (id(tail), id(node), id(x)) not in joined:
                    joined.add((id(tail), id(node), id(x)))
                    edge = Edge(tail, node, _shape(x), carries)
                    tail.outs.append(edge)
                    node.ins.append(edge)
        for position in group:
            for x in entries[position].outputs:
                maker[id(x)] = node
                node.target = node.target or id(x) in target_ids
        nodes.append(node)
    for x in (*sources, *targets):  # also those that nothing leads from or to
        if id(x) not in maker:
            leaf(x)
    return nodes


def _groups(recording: Recording, shown: Sequence[int]) -> list[list[int]]:
    """Single operations; where they are too many, runs of one line, and runs of these."""
    if len(shown) <= OPERATIONS:
        return [[i] for i in shown]
    groups: list[list[int]] = []
    lines: list[Any] = []
    for i in shown:
        where = recording.entries[i].where
        line = (where[0], line_of(where).number) if where else None  # type: ignore[union-attr]
        if groups and line == lines[-1]:
            groups[-1].append(i)
        else:
            groups.append([i])
            lines.append(line)
    if len(groups) < 4:  # all on a few lines: by number
        groups, lines = [[i] for i in shown], [recording.entries[i].op for i in shown]
    start, period = _loop(lines)
    size = -(-len(groups) // GROUPS)
    size = -(-size // period) * period  # whole rounds of a loop
    cuts = [0, *range(start, len(groups), size)] if start else range(0, len(groups), size)
    return [sum(groups[a:b], []) for a, b in zip(cuts, [*cuts[1:], len(groups)], strict=True)]


def _loop(lines: Sequence[Any]) -> tuple[int, int]:
    """Where a loop begins in a sequence, and how long a round of it is; (0, 1) where there is none."""
    for period in range(1, len(lines) // 3):
        same = [a == b for a, b in zip(lines, lines[period:], strict=False)]
        if sum(same) >= 0.8 * len(same):
            return same.index(True), period
    return 0, 1


def _operation(recording: Recording, names: Names, group: Sequence[int], carries: bool) -> Node:
    entry = recording.entries[group[0]]
    name = entry.op.name.strip("_")
    if len(group) > 1:
        line = line_of(entry.where)
        lines = {found for i in group if (found := line_of(recording.entries[i].where)) is not None}
        label, where = f"{name} … {recording.entries[group[-1]].op.name.strip('_')}", str(line)
        if len(lines) == 1 and line is not None and line.text:
            label = line.text if len(line.text) <= 34 else f"{line.text[:33]}…"
        elif len({x.file for x in lines}) == 1 and line is not None:
            where = f"{Line(line.file, min(x.number for x in lines), '', '')}–{max(x.number for x in lines)}"
        return Node(label, f"{len(group)} operations, {where}", carries=carries)
    numbers = [number_text(x) for x in entry.inputs if not isinstance(x, jax.Array) or _is_number(x, names)]
    said = [names.name(x) or names.stored(x) for x in entry.outputs]
    return Node(
        " ".join([name if len(name) <= 30 else f"{name[:29]}…", *[*numbers, *options(entry)][:2]]),
        ", ".join(n for n in said if n)[:28],
        carries=carries,
    )


def _is_number(x: Any, names: Names) -> bool:
    """A scalar without a name: it is written into the operation that uses it."""
    if isinstance(x, Tracer) or x.ndim or names.name(x):
        return False
    return not names.is_result(x)


def _shape(x: Any) -> str:
    return "×".join(map(str, x.shape)) if x.ndim else "scalar"


# ---- the layout -----------------------------------------------------------------------------------------------------


def arrange(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes in layers, with the turns of long edges between them, each at its place."""
    for node in nodes:  # they are in the order of execution
        node.layer = max((edge.tail.layer + 1 for edge in node.ins), default=0)
    for node in reversed(nodes):  # constants are computed when they are needed, as far as the picture goes
        if not node.carries and node.kind == "operation" and node.outs:
            node.layer = min(edge.head.layer for edge in node.outs) - 1
    nodes = [
        near for node in nodes for near in (_by_their_uses(node) if node.kind in ("source", "constant") else [node])
    ]
    first = min((node.layer for node in nodes), default=0)
    layers: list[list[Node]] = [[] for _ in range(max((n.layer for n in nodes), default=0) - first + 1)]
    for node in nodes:
        node.layer -= first
        layers[node.layer].append(node)
    for node in nodes:
        for edge in list(node.outs):
            _turn(edge, layers)
    _order(layers)
    _place(layers)
    return layers


def _by_their_uses(node: Node) -> list[Node]:
    """A constant or source is placed close to its use, and once more beside every use that is far from the last one."""
    found = [node]
    edges, node.outs = sorted(node.outs, key=lambda edge: edge.head.layer), []
    for edge in edges:
        if found[-1].outs and edge.head.layer - found[-1].outs[0].head.layer > NEAR:
            found.append(Node(node.label, kind=node.kind, carries=node.carries, target=node.target))
        edge.tail = found[-1]
        edge.tail.outs.append(edge)
    for near in found:
        if near.outs:
            near.layer = near.outs[0].head.layer - 1
    return found


def _turn(edge: Edge, layers: list[list[Node]]) -> None:
    """Cuts an edge that passes layers into pieces with a turn in each."""
    tail, head = edge.tail, edge.head
    if head.layer - tail.layer <= 1:
        return
    head.ins.remove(edge)
    for layer in range(tail.layer + 1, head.layer):
        turn = Node("", kind="turn", carries=edge.carries, layer=layer)
        edge.head = turn
        turn.ins.append(edge)
        edge = Edge(turn, head, "", edge.carries)
        turn.outs.append(edge)
        layers[layer].append(turn)
    head.ins.append(edge)


def _order(layers: list[list[Node]]) -> None:
    """Puts each node at the mean place of its neighbours, layer after layer, down and up; keeps the best order seen."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(12):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {id(n): i for row in layers for i, n in enumerate(row)}
            layer.sort(key=lambda n: _mean(_neighbours(n, down), place, place[id(n)]))
        if (found := _crossings(layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], found
    layers[:] = best


def _neighbours(node: Node, up: bool) -> list[Node]:
    return [edge.tail for edge in node.ins] if up else [edge.head for edge in node.outs]


def _mean(nodes: Sequence[Node], place: dict[int, Any], default: float) -> float:
    return sum(place[id(n)] for n in nodes) / len(nodes) if nodes else default


def _crossings(layers: Sequence[Sequence[Node]]) -> int:
    total = 0
    for layer, below in zip(layers, layers[1:], strict=False):
        place = {id(n): i for i, n in enumerate(below)}
        ends = [sorted(place[id(e.head)] for e in node.outs) for node in layer]
        seen: list[int] = []
        for row in ends:
            total += sum(1 for end in row for other in seen if other > end)
            seen += row
    return total


def is_across(layers: Sequence[Sequence[Node]]) -> bool:
    """Whether the picture runs from left to right."""
    return _depths(layers, True)[0][-1][1] <= ACROSS if layers else True


def _place(layers: Sequence[Sequence[Node]]) -> None:
    """Moves the nodes towards their neighbours, keeping their order and distances."""
    across = is_across(layers)
    for layer in layers:
        for i, node in enumerate(layer):
            node.at = float(i)
    for sweep in range(60):
        for layer in layers if sweep % 2 == 0 else list(layers)[::-1]:
            around = [[*_neighbours(n, True), *_neighbours(n, False)] for n in layer]
            wishes = [
                sum(m.at * m.pull for m in near) / sum(m.pull for m in near) if near else n.at
                for n, near in zip(layer, around, strict=True)
            ]
            sizes = [n.height if across else n.width for n in layer]
            gap = 0.3 if across else 0.35
            steps = [(a + b) / 2 + gap for a, b in zip(sizes, sizes[1:], strict=False)]
            for node, at in zip(layer, _spread(wishes, steps, [n.pull for n in layer]), strict=True):
                node.at = at


def _spread(wishes: Sequence[float], steps: Sequence[float], pulls: Sequence[float]) -> list[float]:
    """The places nearest to `wishes`, in least squares weighted by `pulls`, that are `steps` apart (pool adjacent violators)."""
    offsets = [0.0][: len(wishes)]
    for step in steps:
        offsets.append(offsets[-1] + step)
    pools: list[tuple[float, float, int]] = []  # the weighted sum of the wishes, the weight, how many
    for wish, offset, pull in zip(wishes, offsets, pulls, strict=True):
        total, weight, count = (wish - offset) * pull, pull, 1
        while pools and pools[-1][0] / pools[-1][1] > total / weight:
            more, heavier, n = pools.pop()
            total, weight, count = total + more, weight + heavier, count + n
        pools.append((total, weight, count))
    flat = [total / weight for total, weight, count in pools for _ in range(count)]
    return [x + offset for x, offset in zip(flat, offsets, strict=True)]


# ---- the paint ------------------------------------------------------------------------------------------------------


def _paint(layers: Sequence[Sequence[Node]]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = is_across(layers)
    depths, low, high = _depths(layers, across)
    margin, legend = 0.35, 0.45
    length, breadth = depths[-1][1] + margin, high - low + 2 * margin
    width, height = (length + margin, breadth + legend) if across else (breadth, length + margin + legend)
    narrow, width = width, max(width, 5.2)  # the legend needs room
    layout: Any = "none"  # whatever the user's rcParams say
    figure = Figure(figsize=(width, height), dpi=100, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))

    def spot(node: Node, along: float = 0.0) -> tuple[float, float]:
        depth, side = depths[node.layer][0] + margin + along, node.at - low + margin
        x, y = (depth, side) if across else (side, depth)
        return x + (width - narrow) / 2, y

    size = [max((n.width if across else n.height for n in layer), default=0.5) for layer in layers]
    labelled: dict[int, set[str]] = defaultdict(set)
    for node in (n for layer in layers for n in layer):
        for edge in node.outs:
            _paint_edge(axes, edge, spot, across, size, _gap(layers, across), labelled)
    for node in (n for layer in layers for n in layer):
        if node.kind != "turn":
            _paint_node(axes, node, *spot(node))
    _paint_legend(axes, height, [n for layer in layers for n in layer])
    return figure


def _depths(layers: Sequence[Sequence[Node]], across: bool) -> tuple[list[tuple[float, float]], float, float]:
    """The middle and the end of each layer along the flow, and how far the nodes reach across it."""
    found, at = [], 0.0
    for layer in layers:
        size = max((n.width if across else n.height for n in layer), default=0.5)
        found.append((at + size / 2, at + size))
        at += size + _gap(layers, across)
    sides = [(n.at, (n.height if across else n.width) / 2) for layer in layers for n in layer] or [(0.0, 0.0)]
    return found, min(at - half for at, half in sides), max(at + half for at, half in sides)


def _gap(layers: Sequence[Any], across: bool) -> float:
    return GAPS[0 if across else 1 if len(layers) <= MANY else 2]


def _paint_edge(
    axes: Any, edge: Edge, spot: Any, across: bool, size: Sequence[float], gap: float, labelled: Any
) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    tail, head = edge.tail, edge.head
    out = (size[tail.layer] if tail.kind == "turn" else tail.width if across else tail.height) / 2
    into = (size[head.layer] if head.kind == "turn" else head.width if across else head.height) / 2
    start, end = spot(tail, out), spot(head, -into)
    middle = size[tail.layer] / 2 + gap / 2
    if across:
        turn = spot(tail, middle)[0]
        control = [(turn, start[1]), (turn, end[1])]
    else:
        turn = spot(tail, middle)[1]
        control = [(start[0], turn), (end[0], turn)]
    points, codes = [start, *control, end], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    if tail.kind == "turn":  # straight through the layer that it passes
        points, codes = [spot(tail, -out), *points], [Path.MOVETO, Path.LINETO, *codes[1:]]
    colour = BLUE if edge.carries else "#b6bcc6"
    style = "-|>,head_length=4,head_width=2" if head.kind != "turn" else "-"
    axes.add_patch(
        FancyArrowPatch(
            path=Path(points, codes),
            arrowstyle=style,
            color=colour,
            linewidth=1.5 if edge.carries else 1.0,
            shrinkA=0,
            shrinkB=0,
            zorder=2 if edge.carries else 1,
        )
    )
    if edge.label and edge.label not in labelled[id(tail)]:
        labelled[id(tail)].add(edge.label)
        t = 0.42 if len(head.ins) <= 3 else 0.24  # where many edges meet, there is room further away only
        weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
        x, y = (sum(w * p[i] for w, p in zip(weights, [start, *control, end], strict=True)) for i in (0, 1))
        box = {"boxstyle": "square,pad=0.08", "facecolor": "white", "edgecolor": "none"}
        axes.text(
            x,
            y,
            edge.label,
            fontsize=7.5,
            color=colour if edge.carries else GREY,
            ha="center",
            va="center",
            bbox=box,
            zorder=4,
        )


_FILLS = {"source": AMBER, "constant": "white"}


def _paint_node(axes: Any, node: Node, x: float, y: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    fill = _FILLS.get(node.kind) or (PALE if node.carries else SILVER)
    fill = GREEN if node.target else fill
    edge = BLUE if node.carries else "#9ca3af"
    rounding = node.height / 2 if node.kind != "operation" else 0.06
    box = FancyBboxPatch(
        (x - node.width / 2, y - node.height / 2),
        node.width,
        node.height,
        boxstyle=f"round,pad=0,rounding_size={rounding}",
        facecolor=fill,
        edgecolor=edge,
        zorder=5,
        linewidth=2.2 if node.target else 1.2,
        linestyle="--" if node.kind == "constant" else "-",
    )
    axes.add_patch(box)
    shift = 0.085 if node.note else 0
    weight = "bold" if node.kind != "constant" else "normal"
    axes.text(x, y - shift, node.label, fontsize=9, ha="center", va="center", zorder=6, weight=weight, color="#111827")
    if node.note:
        axes.text(x, y + 0.11, node.note, fontsize=7.5, ha="center", va="center", zorder=6, color=GREY)


def _paint_legend(axes: Any, height: float, nodes: Sequence[Node]) -> None:
    from matplotlib.patches import Rectangle

    x, y = 0.35, height - 0.22
    plain = [node for node in nodes if node.kind == "operation" and not node.target]
    items = [
        ("source", AMBER, BLUE, any(node.kind == "source" for node in nodes)),
        ("carries gradient", PALE, BLUE, any(node.carries for node in plain)),
        ("does not", SILVER, "#9ca3af", any(not node.carries for node in plain)),
        ("constant", "white", "#9ca3af", any(node.kind == "constant" for node in nodes)),
        ("target", GREEN, BLUE, any(node.target for node in nodes)),
    ]
    for text, fill, edge, shown in items:
        if not shown:
            continue
        axes.add_patch(Rectangle((x, y - 0.06), 0.18, 0.12, facecolor=fill, edgecolor=edge, linewidth=1))
        axes.text(x + 0.25, y, text, fontsize=7.5, va="center", color=GREY)
        x += 0.45 + 0.065 * len(text)
