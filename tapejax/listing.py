"""What a tape recorded, as a table: names, shapes, and the lines of the user's code, in text and in HTML.

Nothing here runs while a tape records. An entry holds the code object and the instruction that ran it; which line that
is, and what the user calls the values, is found when somebody looks.
"""

from __future__ import annotations

import html
import linecache
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import recorder
from .program import carrying, list_entries
from .recorder import Entry, Recording
from .structures import is_variable, leaf_of
from .values import Tensor, Variable

# Tables longer than this show their beginning and their end.
ROWS, FIRST, LAST = 60, 40, 15
# In HTML what is between is folded into groups, as many as a browser opens without a pause.
GROUP, GROUPS = 100, 10
# How far into containers and objects names are looked for, and how many objects in all.
DEPTH, OBJECTS = 4, 5000


# ---- lines ----------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of the user's code. Prints as ``file.py:12``."""

    file: str
    number: int
    text: str
    function: str

    def __str__(self) -> str:
        name = self.file if self.file.startswith("<") else os.path.basename(self.file)
        if "ipykernel_" in self.file or self.file.startswith("<ipython-input"):
            name = "cell"
        return f"{name}:{self.number}"


def line_of(where: Any) -> Line | None:
    """The line behind what `recorder.caller` captured; None where it found no code of the user's."""
    if not where:
        return None
    code, instruction = where
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            number = line
    return Line(code.co_filename, number, linecache.getline(code.co_filename, number).strip(), code.co_name)


# ---- names ----------------------------------------------------------------------------------------------------------


def places() -> list[Any]:
    """Where the user's running code is, as `recorder.caller` tells it: the innermost frame first."""
    found = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        if not recorder.serves(frame.f_code.co_filename):
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def namespaces() -> list[dict[str, Any]]:
    """The variables that the user's running code sees: of the innermost frame first, of ``__main__`` if there is none."""
    frame = sys._getframe(1)
    found: list[dict[str, Any]] = []
    outer: Any = frame
    while outer is not None:
        name = outer.f_code.co_filename
        if not recorder.serves(name):
            found.append(dict(outer.f_locals))
            if len(found) == 1 and outer.f_globals is not outer.f_locals:
                found.append(outer.f_globals)
        outer = outer.f_back
    return found or [vars(sys.modules["__main__"])]


class Names:
    """What the user calls the values of a recording, and what the tape calls those that have no name.

    A value is known by its identity. Results without a name are ``t3`` (of entry 3) or ``t3_1``, other arrays ``c0, c1...``.
    """

    def __init__(self, recording: Recording, spaces: Sequence[dict[str, Any]] = ()):
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # a name is bound to an id: its owner must not die
        self.variables: list[Any] = []  # of other libraries, found on the way
        self._seen: set[int] = set()
        self._given: dict[int, str] = {}
        # what is asked for first is named first: variables by a plain name, then everything else
        with recorder.outside():
            for space in spaces:
                for name, value in list(space.items()):
                    if not name.startswith("_") and leaf_of_quietly(value) is not None:
                        self._add(name, value, 0)
            for variable, arrays in recording.variables.values():
                known = self._names.get(id(variable._array)) or _own_name(variable)
                for array in (variable._array, *arrays.values()):
                    if known:
                        self._names.setdefault(id(array), known)
            for space in spaces:
                for name, value in list(space.items()):
                    if not name.startswith("_"):
                        self._add(name, value, 0)
        self._count = 0
        self._results: set[int] = set()
        for position, entry in enumerate(recording.entries):
            for j, x in enumerate(entry.outputs):
                self._results.add(id(x))
                self._given.setdefault(id(x), f"t{position}" if len(entry.outputs) == 1 else f"t{position}_{j}")

    def _add(self, name: str, value: Any, depth: int) -> None:
        if isinstance(value, (str, bytes, int, float, complex, type(None), type, np.ndarray, np.generic)):
            return
        leaf = leaf_of_quietly(value)
        if leaf is not None:
            if isinstance(leaf.array, jax.Array):
                self._names.setdefault(id(leaf.array), name)
                self._kept.append(leaf.array)
            if is_variable(value) and not isinstance(value, Variable):
                self.variables.append(value)
            return
        if depth >= DEPTH or len(self._seen) >= OBJECTS or id(value) in self._seen:
            return
        self._seen.add(id(value))
        for part, inner in _parts(value):
            self._add(part[1:] if part[0] == "=" else name + part, inner, depth + 1)

    def only(self, values: Sequence[Any]) -> dict[int, str]:
        """The names of these values, by id, as far as they have any."""
        known = {**self._given, **self._names}
        return {id(x): known[id(x)] for x in values if id(x) in known}

    def is_result(self, x: Any) -> bool:
        """Whether an entry made `x`."""
        return id(x) in self._results

    def name(self, x: Any) -> str | None:
        """What the user calls `x`, or None."""
        return self._names.get(id(x))

    def of(self, x: Any) -> str:
        """What `x` is called in the table; a number is called by its value."""
        if not isinstance(x, jax.Array) or (isinstance(x, np.ndarray) and x.size == 1):
            return number_text(x)
        key = id(x)
        found = self._names.get(key) or self._given.get(key)
        if found is None:
            if not isinstance(x, jax.core.Tracer) and x.ndim == 0 and jax.numpy.issubdtype(x.dtype, np.number):
                return number_text(np.asarray(x)[()])
            found = self._given[key] = f"c{self._count}"
            self._count += 1
        return found

    def typed(self, x: Any) -> str:
        """Its name with its dtype and shape: ``w: float32[3,4]``."""
        name = self.of(x)
        return f"{name}: {type_of(x)}" if hasattr(x, "dtype") and not name[:1].isdigit() else name


def leaf_of_quietly(value: Any) -> Any:
    """`leaf_of`, or None where a foreign object fails: names are looked for in whatever the user has lying about."""
    if isinstance(value, (Tensor, Variable, jax.Array)):
        return leaf_of(value)
    try:
        return leaf_of(value) if is_variable(value) else None
    except Exception:
        return None


def _own_name(variable: Any) -> str | None:
    name = getattr(variable, "path", None) or getattr(variable, "_name", None)
    return None if name in (None, "Variable") else str(name)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if type(value).__module__.split(".")[0] in _NOT_MODELS - {"builtins"}:
        return
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", inner) for key, inner in list(value.items())[:200])
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{field}", getattr(value, field)) for field in value._fields)
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{i}]", inner) for i, inner in enumerate(value[:200]))
    elif not callable(value) or not hasattr(
        value, "__name__"
    ):  # an object that may be a model, not a function or module
        if type(value).__module__.split(".")[0] in _NOT_MODELS:
            return
        if any(base.__module__.startswith("keras.") for base in type(value).__mro__):  # its variables have names
            yield from ((f"={getattr(v, 'path', i)}", v) for i, v in enumerate(getattr(value, "variables", None) or ()))
            return
        yield from (
            (f".{name}", inner) for name, inner in list(getattr(value, "__dict__", {}).items()) if name[:1] != "_"
        )


_NOT_MODELS = {
    "builtins",
    "jax",
    "jaxlib",
    "numpy",
    "tapejax",
    "IPython",
    "ipykernel",
    "matplotlib",
    "_pytest",
    "argparse",
}


def number_text(x: Any) -> str:
    """A Python number or a NumPy value of one element, as short as it can be told."""
    found = np.asarray(x)
    if found.size != 1:
        return f"{found.dtype.name}{list(found.shape)}".replace(" ", "")
    item = found.reshape(()).item()
    if isinstance(item, float) and np.isfinite(item):
        return f"{item:.1f}" if item == int(item) and abs(item) < 1e6 else f"{item:.6g}"
    return str(item)


def type_of(x: Any) -> str:
    """The dtype and shape of an array: ``float32[3,4]``; a scalar has its dtype only."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    shape = ",".join(map(str, x.shape))
    return f"{dtype}[{shape}]" if shape else str(dtype)


def value_text(x: Any, indent: int = 0) -> str:
    """The value of a small array, the range of a larger one."""
    if isinstance(x, jax.core.Tracer):
        return "traced by JAX"
    found = np.asarray(x)
    if found.size <= SHOWN and found.ndim <= 2:
        found = found.astype(np.float32) if found.dtype.kind == "V" or found.dtype.name == "bfloat16" else found
        text = np.array2string(found, precision=4, separator=", ", suppress_small=False)
        return text.replace("\n", "\n" + " " * indent)
    if found.dtype.kind in "c":
        return f"absolute values from {number_text(np.abs(found).min())} to {number_text(np.abs(found).max())}"
    return f"from {number_text(found.min())} to {number_text(found.max())}"


# Arrays of up to so many elements are shown whole.
SHOWN = 9


def ancestors(entries: Sequence[Entry], arrays: Sequence[Any]) -> tuple[list[int], dict[int, tuple[Any, int]]]:
    """What `arrays` were computed from, gradient or not: the positions of the entries, in order, and the arrays that no
    entry made, by id, each with the position of the last entry that uses it."""
    wanted = {id(x) for x in arrays}
    used: dict[int, tuple[Any, int]] = {id(x): (x, len(entries)) for x in arrays}
    found = []
    for position in reversed(range(len(entries))):
        entry = entries[position]
        if any(id(x) in wanted for x in entry.outputs):
            found.append(position)
            for x in entry.outputs:
                used.pop(id(x), None)
            for x in entry.inputs:
                if isinstance(x, jax.Array):
                    wanted.add(id(x))
                    used[id(x)] = (x, position)
    return found[::-1], used


def describe(entry: Entry) -> str:
    """An entry in one line, without names: ``tanh: float32[4] -> float32[4]  (train.py:12)``."""
    ins, outs = (", ".join(map(type_of, side)) for side in (entry.inputs, entry.outputs))
    line = line_of(entry.where)
    return f"{entry.op.name}: {ins} -> {outs}" + (f"  ({line})" if line else "")


# ---- the table ------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """An entry as the table shows it; `carries` says whether gradient can pass through it to what the tape watches."""

    number: int
    carries: bool
    value: str
    operation: str
    inputs: str
    line: Line | None


class Table:
    """The rows of a recording, each made when it is looked at."""

    def __init__(self, recording: Recording, names: Names):
        self.names = names
        self._entries = recording.entries
        self._carrying = carrying_positions(recording, names)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, position: int) -> Row:
        entry, names = self._entries[position], self.names
        outputs, inputs = (", ".join(map(names.typed, side)) for side in (entry.outputs, entry.inputs))
        return Row(
            position,
            position in self._carrying,
            outputs,
            entry.op.name.strip("_"),
            inputs,
            line_of(entry.where),
        )


def carrying_positions(recording: Recording, names: Names) -> set[int]:
    """The entries through which gradient reaches what the tape watches."""
    accessed = []
    if recording.watch_accessed:
        trainable = (v for v in names.variables if getattr(v, "trainable", True))
        accessed = [leaf.array for leaf in map(leaf_of_quietly, trainable) if leaf is not None]
    watched = [x for x, _ in recording.watched.values()] + accessed
    listing, _ = list_entries(recording, (), watched, accessed)
    with recorder.outside():
        return {link.position for link in carrying(listing, recording.entries)}


def heading(tape: Any, recording: Recording | None, names: Names | None = None) -> str:
    """What there is to say of a tape in one line."""
    kind = "persistent GradientTape" if tape._persistent else "GradientTape"
    if recording is None:
        line = line_of(tape._used)
        used = (
            "nothing recorded yet" if tape._used is None else f"used up by the gradient taken at {line or 'some line'}"
        )
        return f"{kind}, {used}"
    count = len(recording.entries)
    text = f"{kind}{', recording' if tape._trace is not None else ''}: {count} operation{'' if count == 1 else 's'}"
    if names is not None:
        watched = list(dict.fromkeys(names.of(x) for x, _ in recording.watched.values()))
        if watched:
            text += f"; watching {', '.join(watched[:8])}" + (
                f" and {len(watched) - 8} more" if len(watched) > 8 else ""
            )
    return text


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def text_table(tape: Any, recording: Recording | None, spaces: Sequence[dict[str, Any]]) -> str:
    """What ``print(tape)`` prints."""
    if recording is None:
        return heading(tape, None)
    names = Names(recording, spaces)
    table = Table(recording, names)
    shown: list[int | None] = list(range(len(table)))
    if len(table) > ROWS:
        shown = [*range(FIRST), None, *range(len(table) - LAST, len(table))]
    cells = [("#", "", "value", "operation", "inputs", "line")]
    for position in shown:
        if position is None:
            more = f"{len(table) - FIRST - LAST} more: tape[{FIRST}] to tape[{len(table) - LAST - 1}]"
            cells.append(("…", "", "…", "…", "…", more))
            continue
        row = table[position]
        line = f"{row.line}  {row.line.text}" if row.line else ""
        cells.append(
            (
                str(row.number),
                "∂" if row.carries else "",
                _cut(row.value, 44),
                row.operation,
                _cut(row.inputs, 60),
                _cut(line, 64),
            )
        )
    widths = [max(len(cell[i]) for cell in cells) for i in range(5)]
    lines = [heading(tape, recording, names)]
    for cell in cells:
        number, mark, *rest = cell
        columns = [number.rjust(widths[0]), mark.ljust(widths[1])]
        columns += [text.ljust(width) for text, width in zip(rest[:3], widths[2:], strict=True)]
        lines.append("  ".join((" ".join(columns[:2]), *columns[2:], rest[3])).rstrip())
    if any(cell[1] for cell in cells):
        lines.append("∂: carries gradient to what the tape watches")
    return "\n".join(lines)


_STYLE = (
    "<style>.tapejax{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px;line-height:1.45}"
    ".tapejax table{border-collapse:collapse;margin:2px 0;font-size:12px}.tapejax td,.tapejax th{text-align:left!important;"
    "padding:2px 12px 2px 4px;border-bottom:1px solid rgba(128,128,128,.25);vertical-align:top;white-space:nowrap}"
    ".tapejax th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.7)}"
    ".tapejax .n,.tapejax .t{opacity:.55}.tapejax .o{font-weight:600}.tapejax .d{color:#c2410c;font-weight:700}"
    ".tapejax details{margin:2px 0}.tapejax summary{cursor:pointer;opacity:.75}"
    ".tapejax .in{white-space:normal}.tapejax .h{font-weight:600;margin-bottom:2px}</style>"
)


def page(body: str) -> str:
    """HTML with the package's style."""
    return f'{_STYLE}<div class="tapejax">{body}</div>'


def html_table(tape: Any, recording: Recording | None, spaces: Sequence[dict[str, Any]]) -> str:
    """What a notebook shows for a tape: a table, folded where it is long."""
    if recording is None:
        return page(html.escape(heading(tape, None)))
    names = Names(recording, spaces)
    table = Table(recording, names)
    body = f'<div class="h">{html.escape(heading(tape, recording, names))}</div>'
    if len(table) <= ROWS:
        return page(body + _html_rows(table, range(len(table)), head=True) + _LEGEND)
    body += _html_rows(table, range(FIRST), head=True)
    stop = len(table) - LAST
    for i, start in enumerate(range(FIRST, stop, GROUP)):
        if i == GROUPS:
            body += f'<div class="t">… {stop - start} more: tape[{start}] to tape[{stop - 1}]</div>'
            break
        part = range(start, min(start + GROUP, stop))
        body += f"<details><summary>operations {part[0]} to {part[-1]}</summary>{_html_rows(table, part)}</details>"
    return page(body + _html_rows(table, range(stop, len(table))) + _LEGEND)


_LEGEND = '<div class="t"><span class="d">∂</span> carries gradient to what the tape watches</div>'


def _html_rows(table: Table, positions: Sequence[int], head: bool = False) -> str:
    rows = []
    if head:
        titles = ("#", "", "value", "operation", "inputs", "line", "")
        rows.append("<tr>" + "".join(f"<th>{title}</th>" for title in titles) + "</tr>")
    for position in positions:
        row = table[position]
        where, text = (str(row.line), row.line.text) if row.line else ("", "")
        cells = (
            f'<td class="n">{row.number}</td><td class="d">{"∂" if row.carries else ""}</td>'
            f'<td>{_typed_html(row.value)}</td><td class="o">{html.escape(row.operation)}</td>'
            f'<td class="in">{_typed_html(row.inputs)}</td><td class="n">{html.escape(where)}</td>'
            f"<td>{html.escape(_cut(text, 80))}</td>"
        )
        rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _typed_html(text: str) -> str:
    """Names as they are, their types in grey."""
    parts = []
    for item in text.split(", "):
        name, colon, kind = item.partition(": ")
        kind = f' <span class="t">{html.escape(kind)}</span>' if colon else ""
        parts.append(f'<span style="white-space:nowrap">{html.escape(name)}{kind}</span>')
    return ", ".join(parts)


# ---- values ---------------------------------------------------------------------------------------------------------

# A larger matrix is no longer taken in at a glance.
CELLS = 24


def value_html(value: Any) -> str:
    """What a notebook shows for a `Tensor` or `Variable`: a small matrix as a heat map, anything else as text."""
    array = value._array
    name = html.escape(f"tf.Variable {value.name!r}" if isinstance(value, Variable) else "tf.Tensor")
    if isinstance(array, jax.core.Tracer) or not isinstance(array, jax.Array) or not _is_small_matrix(array):
        return f"<pre>{html.escape(repr(value))}</pre>"
    found = np.asarray(array)
    caption = f'<div class="h">{name} <span class="t">{html.escape(type_of(array))}</span></div>'
    return page(caption + heat_map(found))


def _is_small_matrix(array: Any) -> bool:
    kinds = (np.number, np.bool_)
    numeric = any(jax.numpy.issubdtype(array.dtype, kind) for kind in kinds) and not jax.numpy.iscomplexobj(array)
    return numeric and array.ndim <= 2 and array.size > 0 and max(array.shape, default=1) <= CELLS


def heat_map(found: np.ndarray) -> str:
    """A vector or matrix as a table: blue below zero, red above, the stronger the further; grey hatching is no number."""
    grid = np.atleast_2d(found)
    floats = grid.astype(np.float64)
    finite = np.abs(floats[np.isfinite(floats)])
    scale = float(finite.max()) if finite.size and finite.max() else 1.0
    rows = []
    for texts, numbers in zip(grid, floats, strict=True):
        cells = "".join(_cell(x, f, scale) for x, f in zip(texts, numbers, strict=True))
        rows.append(f"<tr>{cells}</tr>")
    return f'<table style="border-collapse:separate;border-spacing:1px">{"".join(rows)}</table>'


def _cell(x: Any, value: float, scale: float) -> str:
    if np.isfinite(value):
        colour = "220,50,32" if value > 0 else "0,90,181"
        fill = f"background:rgba({colour},{0.55 * abs(value) / scale:.2f})"
    else:
        fill = "background:repeating-linear-gradient(45deg,#888 0 3px,#bbb 3px 6px);color:#000;font-weight:700"
    text = str(x) if grid_is_whole(x) else f"{value:.3g}"
    return f'<td style="{fill};padding:3px 7px;text-align:right!important;border:0">{html.escape(text)}</td>'


def grid_is_whole(x: Any) -> bool:
    """Whether a number is shown as it is: integers and booleans."""
    return np.asarray(x).dtype.kind in "biu"
