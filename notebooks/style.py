"""How the notebooks' figures look: ``import style; style.use()``; and `check`, for their exercises.

The colours are Okabe and Ito's, which people with any kind of colour vision tell apart. Lines carry their names on the
picture (`name`, `name_lines`), so that nobody has to match a legend.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY, INK = "#B5478F", "#56B4E9", "#7A7A7A", "#222222"
CYCLE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)

DIVERGING = "RdBu_r"  # red above zero, white at zero, blue below
SEQUENTIAL = "cividis"

RC = {
    "figure.figsize": (7.0, 4.0),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.prop_cycle": cycler(color=CYCLE),
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "text.color": INK,
    "xtick.minor.size": 0,  # no forest of ticks on logarithmic axes
    "ytick.minor.size": 0,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "grid.color": "#E6E6E6",
    "legend.frameon": False,
    "legend.fontsize": 11,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
    "image.cmap": SEQUENTIAL,
    "svg.hashsalt": "tapejax",  # the same picture gives the same file
}


def use() -> None:
    """Switches to this style; pictures come out as sharp PNGs."""
    mpl.rcParams.update(RC)
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina", metadata={"Software": None})
    # the first plot sets the inline backend up, and its defaults with it: let that happen before, not after
    mpl.rcParams.update(RC)


def name(ax: Any, x: float, y: float, text: str, color: str = INK, **options: Any) -> Any:
    """Writes `text` at the point `(x, y)` of the data, six points to its right unless ``xytext`` says otherwise."""
    options = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 12, **options}
    return ax.annotate(text, (x, y), color=color, **options)


def name_lines(ax: Any, lines: Iterable[Any] | None = None, gap: float = 14, **options: Any) -> None:
    """Writes the label of each line at its right end, in its colour, `gap` points apart at least."""
    lines = [line for line in (ax.get_lines() if lines is None else lines) if not line.get_label().startswith("_")]
    ax.figure.canvas.draw()
    ends = [line.get_xydata()[np.isfinite(line.get_ydata().astype(float))][-1] for line in lines]
    heights = [ax.transData.transform(end)[1] * 72 / ax.figure.dpi for end in ends]  # in points
    order = np.argsort(heights)
    placed: list[float] = []
    for i in order:  # from below, each at least a gap above the last
        placed.append(max(heights[i], placed[-1] + gap) if placed else heights[i])
    shift = float(np.mean([heights[i] - y for i, y in zip(order, placed, strict=True)])) if lines else 0.0
    for i, y in zip(order, placed, strict=True):
        offset = y - heights[i] + (shift if len(lines) > 1 else 0.0)
        name(ax, *ends[i], lines[i].get_label(), lines[i].get_color(), xytext=(8, offset), **options)


def heat(ax: Any, matrix: Any, limit: float | None = None, bar: bool = True, **options: Any) -> Any:
    """A matrix as a heat map: white is zero, red above, blue below, `limit` the strongest colour."""
    matrix = np.asarray(matrix)
    limit = float(np.abs(matrix).max()) or 1.0 if limit is None else limit
    image = ax.imshow(matrix, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest", **options)
    for spine in ax.spines.values():
        spine.set(visible=True, color="#BBBBBB")
    ax.tick_params(length=0)
    if bar:
        colorbar = ax.figure.colorbar(image, cax=ax.inset_axes((1.04, 0, 0.045, 1)))  # as high as the picture
        colorbar.outline.set_visible(False)
        colorbar.ax.tick_params(length=0, labelsize=11)
    return image


def check(answer: Any, right: Any) -> None:
    """Checks what a student wrote in the place of ``...``; says so where nothing has been written.

    `right` is the answer, up to rounding, or a function that asserts what has to hold of it.
    """
    blanks = answer.values() if isinstance(answer, dict) else [answer]
    if any(blank is ... for blank in blanks):
        print("Not answered yet.")
        return
    if right is None or isinstance(right, (set, type)):
        assert answer == right, "Not right. Try again, or open the answer."
    elif callable(right):
        right(answer)
    else:
        fits = answer is not None and np.shape(answer) == np.shape(right)
        assert fits and np.allclose(answer, right, rtol=1e-3, atol=1e-5), "Not right. Try again, or open the answer."
    print("Right.")
