"""How a value is shown: its type and its value as text, small matrices as heat maps in HTML."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from ...jaxprs.fence import ConcreteArray, Ref, Tracer
from ...jaxprs.types import Value
from ...tape.recording import is_deleted, type_of
from .types import Array, Number


def number_text(x: Number | np.ndarray | Array) -> str:
    """A Python number or a value of one element, in the fewest digits that identify it; "deleted" where it was donated since."""
    if is_deleted(x) or isinstance(x, Ref):  # what a Ref holds now is not what it held then
        return "Ref" if isinstance(x, Ref) else "deleted"
    array = np.asarray(x)
    if array.size != 1:
        return f"{array.dtype.name}{list(array.shape)}".replace(" ", "")
    item = array.reshape(()).item()
    if isinstance(item, float) and np.isfinite(item):
        return f"{item:.1f}" if item == int(item) and abs(item) < 1e6 else f"{item:.6g}"
    return str(item)


def is_elsewhere(x: Value) -> bool:
    """Whether a part of `x` is on another process's devices, so that this one does not know its numbers."""
    return type(x) is ConcreteArray and not (x.is_fully_addressable or x.is_fully_replicated)


def unreadable(x: Value) -> str:
    """Why the numbers of `x` are not known here; empty if they are."""
    if isinstance(x, Tracer):
        return "traced by JAX"
    return "a part of it is on other processes" if is_elsewhere(x) else ""


def value_text(x: Value, indent: int = 0) -> str:
    """The value of a small array, the range of a larger one."""
    if reason := unreadable(x):
        return reason
    array = np.asarray(x)
    if not array.size:
        return "no elements"
    if array.size <= SHOWN and array.ndim <= 2:
        array = array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.name == "bfloat16" else array
        text = np.array2string(array, precision=4, separator=", ", suppress_small=False)
        return text.replace("\n", "\n" + " " * indent)
    if array.dtype.kind in "c":
        return f"absolute values from {number_text(np.abs(array).min())} to {number_text(np.abs(array).max())}"
    return f"from {number_text(array.min())} to {number_text(array.max())}"


# Arrays with at most this number of elements are shown whole.
SHOWN = 16


DARK = 'body:is([data-jp-theme-light="false"],.vscode-dark,[data-md-color-scheme="slate"])'  # a page in a dark theme
_STYLE = (
    "<style>.tapejax table{border-collapse:collapse;margin:2px 0;font-size:inherit}.tapejax summary{cursor:pointer}"
    ".tapejax td,.tapejax th{padding:2px 12px 2px 4px;border-bottom:1px solid rgba(128,128,128,.25);vertical-align:top;"
    "white-space:nowrap}.tapejax th{border-bottom:1px solid rgba(128,128,128,.7)}.tapejax .in{white-space:normal}"
    ".tapejax{--green:#15803d;--red:#b91c1c;--orange:#c2410c}"
    f"{DARK} .tapejax{{--green:#4ade80;--red:#fca5a5;--orange:#fb923c}}</style>"
)
# relative to the text around it, which is larger on slides
_FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.86em;line-height:1.45"
GREEN, RED, ORANGE = "var(--green)", "var(--red)", "var(--orange)"  # in each theme as it can be read


def page(body: str) -> str:
    """HTML with the package's style."""
    return f'{_STYLE}<div class="tapejax" style="{_FONT}">{body}</div>'


def faint(text: object) -> str:
    """What is there to be looked up, as HTML."""
    return f"<span style=opacity:.75>{html.escape(str(text))}</span>" if text != "" else ""


def bold(text: str, colour: str = "inherit") -> str:
    """What is read first, as HTML."""
    return f"<b style=color:{colour}>{html.escape(text)}</b>" if text else ""


def table_html(
    rows: Iterable[Sequence[Any]], columns: Sequence[Callable[[Any], str]], titles: Sequence[str] = ()
) -> str:
    """A table; `columns` has for each column what makes HTML of its cells."""
    head = "".join(f"<th style=text-align:left>{title}</th>" for title in titles)
    body = ""
    for row in rows:
        cells = (shown(cell) for shown, cell in zip(columns, row, strict=True))
        body += "<tr>" + "".join(f"<td style=text-align:left>{cell}</td>" for cell in cells) + "</tr>"
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


# ---- values ---------------------------------------------------------------------------------------------------------

# A larger matrix is no longer taken in at a glance.
CELLS = 24


def value_html(array: Array, name: str, text: str) -> str:
    """What a notebook shows for a value called `name`: a small matrix as a heat map, anything else as `text`."""
    if not _is_small_matrix(array):
        return f"<pre>{html.escape(text)}</pre>"
    matrix = np.asarray(array)
    return page(f"<div><b>{html.escape(name)}</b> {faint(type_of(array))}</div>" + heat_map(matrix))


def small_html(x: Array) -> str:
    """The value of a small vector or matrix as a heat map, of anything else in words."""
    if _is_small_matrix(x) and x.size <= SHOWN and x.ndim:
        return heat_map(np.asarray(x))
    return f" = {html.escape(value_text(x))}"


def _is_small_matrix(array: Value) -> bool:
    if not isinstance(array, jax.Array) or unreadable(array):
        return False
    kinds = (np.number, np.bool_)
    numeric = any(jax.numpy.issubdtype(array.dtype, kind) for kind in kinds) and not jax.numpy.iscomplexobj(array)
    return numeric and array.ndim <= 2 and array.size > 0 and max(array.shape, default=1) <= CELLS


def heat_map(array: np.ndarray) -> str:
    """A vector or matrix as a table: blue below zero, red above, stronger with distance; NaN and infinities are hatched."""
    grid = np.atleast_2d(array)
    floats = grid.astype(np.float64)
    finite = np.abs(floats[np.isfinite(floats)])
    scale = float(finite.max()) if finite.size and finite.max() else 1.0
    rows = []
    for texts, numbers in zip(grid, floats, strict=True):
        cells = "".join(_cell(x, f, scale) for x, f in zip(texts, numbers, strict=True))
        rows.append(f'<tr style="background:transparent">{cells}</tr>')  # notebooks stripe tables
    return f'<table style="border-collapse:separate;border-spacing:1px">{"".join(rows)}</table>'


def _cell(x: Number, value: float, scale: float) -> str:
    if np.isfinite(value):
        colour = "220,50,32" if value > 0 else "0,90,181"
        fill = f"background:rgba({colour},{0.55 * abs(value) / scale:.2f})"
    else:
        fill = "background:repeating-linear-gradient(45deg,#888 0 3px,#bbb 3px 6px);color:#000;font-weight:700"
    text = str(x) if grid_is_whole(x) else f"{value:.3g}"
    return f'<td style="{fill};padding:3px 7px;text-align:right;border:0">{html.escape(text)}</td>'


def grid_is_whole(x: Number) -> bool:
    """Whether a number is shown as it is: integers and booleans."""
    return np.asarray(x).dtype.kind in "biu"
