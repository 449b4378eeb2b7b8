"""How the notebooks' figures look: ``import style; style.use()``, and `show` for each; and `check`, for their exercises.

The colours are Okabe and Ito's, which people with any kind of colour vision tell apart, but for a red that is called red.
Lines carry their names on the picture (`name`, `name_lines`), so that nobody has to match a legend.
"""

from __future__ import annotations

import base64
import contextlib
import dis
import functools
import html
import inspect
import io
import os
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#C7331F"
PURPLE, SKY, GREY, INK = "#B5478F", "#56B4E9", "#6E6E6E", "#222222"
CYCLE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY)
CONTRAST = 4.5  # that of text on white, at least

DIVERGING = "RdBu_r"  # red above zero, white at zero, blue below
SEQUENTIAL = "cividis"

# In dark themes a figure stays as it is, on a card: "white is zero" and "the black line" are said of what is seen.
DARK = (
    '<style>body:is([data-jp-theme-light="false"],.vscode-dark,[data-md-color-scheme="slate"]) img.figure'
    "{background:#fff;border-radius:8px;box-sizing:border-box;padding:8px}</style>"
)

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


def show(alt: str) -> None:
    """Shows the current figure; `alt` says in words what is to be seen, for readers who do not see it."""
    import matplotlib.pyplot as plt
    from IPython.display import display
    from PIL import Image

    figure, out = plt.gcf(), io.BytesIO()
    figure.savefig(out, dpi=2 * figure.dpi, bbox_inches="tight", metadata={"Software": None})
    with Image.open(out) as picture:
        width, height = picture.size
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)  # a third of the bytes
    few.save(out := io.BytesIO(), "png", optimize=True)
    plt.close(figure)
    shown, image = {"width": width // 2, "height": height // 2, "alt": alt}, base64.b64encode(out.getvalue()).decode()
    size = (
        f'width="{width // 2}" style="max-width:100%;min-width:{width * 3 // 10}px;height:auto"'  # a phone scrolls it
    )
    # Jupyter shows no other `alt`
    page = f'{DARK}<img class="figure" alt="{html.escape(alt)}" src="data:image/png;base64,{image}" {size}>'
    display({"text/html": page, "image/png": image, "text/plain": alt}, raw=True, metadata={"image/png": shown})


def readable(color: Any) -> tuple[float, ...]:
    """The colour, darkened until it is told from white by the ratio of WCAG 2."""
    rgb = np.array(mpl.colors.to_rgb(color))
    while (
        1.05 / (0.05 + np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722))
        < CONTRAST
    ):
        rgb *= 0.97
    return tuple(rgb.tolist())


def name(ax: Any, x: float, y: float, text: str, color: str = INK, **options: Any) -> Any:
    """Writes `text` at the point `(x, y)` of the data, six points to its right unless ``xytext`` says otherwise."""
    options = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 12, **options}
    return ax.annotate(text, (x, y), color=readable(color), **options)


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


Mistakes = dict[str, Any]  # what is said of a wrong answer: the number or array that it is known by

# What students meet often, by a part of the message of the exception.
ADVICE = {
    "bwd rule must produce": "The backward function has to return a tuple, with a cotangent for each argument: a single "
    "one as `(cotangent,)`, with the comma.",
    "must be tuples or lists": "`jax.jvp` takes the arguments and their tangents as tuples or lists, single ones too: "
    "`jax.jvp(f, (x,), (v,))`.",
    "'tuple' and": "A tuple came where a number or an array is needed. `jax.vjp` and `jax.jvp` return two things, and the "
    "function that `jax.vjp` returns gives a tuple, for a single argument too.",
    "'NoneType' and": "Something is None where a number is needed: a gradient with respect to what no tape watches?",
    "'NoneType' object": "Something is None where a value is needed: a gradient with respect to what no tape watches, or "
    "the result of a function that has no `return`, or of a method that changes a list in place, such as `reverse`?",
    "KeyError: ": "A dictionary was asked for a key that it does not have: `d.get(key, other)` gives `other` then.",
    "RecursionError: ": "Something calls itself without end. Often an operation works on your own objects, whose operators call "
    "it again, where it should work on the values in them.",
    "'float' object has no attribute": "A plain number came where one of your own objects is needed: an input may be a plain "
    "number, such as the 2.5 in `2.5 * a`, and so may a result.",
    "out of bounds for axis": "An index is too large for its axis. A row belongs to what comes out, a column to what goes in: "
    "are they in this order, and does each index run over its own axis?",
    "float division by zero": "A number was divided by zero. A product cannot be divided by a factor that is 0.",
    "'itertools.count'": "`TAGS` counts: the next tag is `next(TAGS)`.",
    "and 'Unknown'": "An Unknown is no number yet: `weighted_sum` writes a row for its product.",
    "required positional argument": "A function was called with too few arguments: `f(*xs)` passes the elements of a list one by "
    "one.",
    "holds None of type": "The target of an outer tape is None: the inner gradient was. Does each tape watch its source?",
    "no attribute 'assign": "A tensor cannot be changed. What is to be trained has to be a `tf.Variable`.",
}


class NotRight(AssertionError):
    """What is said to a wrong answer: Jupyter shows the sentence, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def check(answer: Any, right: Any, expected: str = "", mistakes: Mistakes | None = None) -> None:
    """Checks what a student wrote in the place of ``...``; says so where nothing has been written.

    `right` is the answer, up to rounding, or a function that asserts what has to hold of it. `expected` says what kind of
    answer is asked for: it is told to those who gave another kind. `mistakes` is as for `same`.
    """
    if blank(answer):
        print("Not answered yet.")
        return
    try:
        if callable(right) and not isinstance(right, type):
            right(answer)
        else:
            _compare(answer, right, expected, mistakes)
    except AssertionError as error:
        raise NotRight(str(error).strip() or "Not right. Try again, or open the answer.") from None
    except Exception as error:  # whatever the student's values or functions raise
        asked = f"Asked for: {expected}. " if expected else ""
        raised = f"This is {kind_of(answer)}, and raised {type(error).__name__}: {error}"
        message = f"{type(error).__name__}: {error}"
        advice = next((advice for text, advice in ADVICE.items() if text in message), raised)
        raise NotRight(asked + advice) from error
    print("Right.")


def grade(answer: Any, right: Any, expected: str = "", mistakes: Mistakes | None = None) -> None:
    """`check`, to which no answer is an error: for the tests of `nbgrader_export.py`."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        check(answer, right, expected, mistakes)
    if "Not answered yet." in said.getvalue():
        raise NotRight("Not answered yet.")
    print(said.getvalue(), end="")


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (list, tuple, set, dict)):
        kinds = {type(x).__name__ for x in value if not isinstance(x, (bool, int, float, complex))}
        inside = (
            ", with None in it" if any(x is None for x in value) else f", of {kinds.pop()}" if len(kinds) == 1 else ""
        )
        return f"a {type(value).__name__} of length {len(value)}{inside}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = getattr(value.dtype, "name", value.dtype)
        return f"an array of shape {tuple(value.shape)} and dtype {dtype} ({type(value).__name__})"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{value!r} ({type(value).__name__})"
    return "a function" if hasattr(value, "__code__") else f"an object of class {type(value).__name__}"


def demand(fits: bool, expected: str, value: Any) -> None:
    """Says what was expected, and what came instead."""
    if not fits:
        raise NotRight(f"Asked for: {expected}. This is {kind_of(value)}.")


def _compare(answer: Any, right: Any, expected: str, mistakes: Mistakes | None) -> None:
    for kind, words in ((set, "a set, such as {'a', 'b'}"), (type, "a class")):
        if isinstance(right, kind):
            demand(isinstance(answer, kind), expected or words, answer)
            if kind is set:
                counts = f"{len(answer - right)} too many, {len(right - answer)} missing"
                assert answer == right, f"Not right: {counts}. Try again, or open the answer."
            assert answer == right
            return
    if right is None or answer is None:
        assert answer is right, "Not right: this is None." if answer is None else ""
        return
    same(answer, right, expected=expected, mistakes=mistakes)


def same(
    answer: Any, right: Any, name: str = "", expected: str = "", rtol: float = 1e-3, mistakes: Mistakes | None = None
) -> None:
    """Asserts that `answer` is the number or array `right`, up to rounding; `name` says of what it is the answer.

    `mistakes` has what wrong answers are known by: {what is said of one: the number or array that it gives}. A wrong answer that
    is none of these is compared with the right one, which is told if there is a `name`: what a student's function should give
    for an example does not give the function away.
    """
    shape, where = tuple(np.shape(right)), f" for {name}" if name else ""
    words = f"{shape[0]} numbers" if len(shape) == 1 else f"numbers of shape {shape}" if shape else "a number"
    words = (expected or words) + where
    try:
        found = np.asarray(answer)
    except (TypeError, ValueError):  # lists of unequal lengths
        found = np.array(None)
    numbers, right = found.dtype.kind in "iufc", np.asarray(right)

    def equal(given: Any) -> bool:
        return np.shape(given) == found.shape and np.allclose(found, given, rtol=rtol, atol=1e-5)

    if numbers and equal(right):
        return
    if numbers:
        cause = next(
            (said for said, given in (mistakes or {}).items() if given is not None and equal(given)), ""
        ) or _likeness(right, equal)
        assert not cause, f"Not right{where}: {cause}."
    if isinstance(answer, (list, tuple)) and len(answer) == 1 and np.shape(answer[0]) == shape:
        raise NotRight(f"Asked for: {words}. This is {kind_of(answer)}: take what is in it.")
    demand(numbers and found.shape == shape, words, answer)
    raise AssertionError(f"Not right{where}." + _difference(found, right, rtol, told=bool(name)))


def _likeness(right: Any, equal: Callable[[Any], bool]) -> str:
    """What went wrong, where a wrong answer looks like the right one."""
    alike = {"the sign is wrong": -right}
    if right.ndim == 1:
        alike["the order is reversed"] = right[::-1]
    if right.ndim == 2:
        alike["this is the transpose"] = right.T
    if right.size > 1:
        factors = (2.0, 0.5, right.size, 1 / right.size, len(right), 1 / len(right))
        alike |= {f"each number is {factor:.4g} times as large as it should be": factor * right for factor in factors}
        alike["all numbers are zero"] = np.zeros_like(right)
    return next((said for said, given in alike.items() if equal(given)), "")


def _difference(found: Any, right: Any, rtol: float, told: bool) -> str:
    """Where an array is not the right one. What the right one is, is told on request."""
    wrong = np.argwhere(~np.isclose(found, right, rtol=rtol, atol=1e-5))
    finite = "" if np.all(np.isfinite(found)) or not np.all(np.isfinite(right)) else " Not all of it is finite."
    if right.size > 6 or not told:
        first = tuple(wrong[0])
        place = f" The first wrong number is at {[*map(int, first)]}" if right.shape else ""
        place += f": {found[first]:.6g}, and it should be {right[first]:.6g}." if told else "." if place else ""
        return f"{finite}{place} Try again, or open the answer."
    yours, expected = (
        np.array2string(x, precision=6, floatmode="maxprec", separator=", ").rstrip(".") for x in (found, right)
    )
    return f"{finite} Yours: {yours}. It should be {expected}."


def counted(f: Callable) -> Any:
    """`f`, which keeps in ``calls`` the arguments of each call: a check can tell whether, and how, an answer used it."""

    @functools.wraps(f)
    def counting(*args: Any, **options: Any) -> Any:
        counting.calls.append(args)
        return f(*args, **options)

    counting.calls = []
    return counting


def loop_mistakes(descent: Callable, **begin: float) -> Mistakes:
    """What loops with a fault give, where `descent` gives the losses of a right one that begins with `begin`."""
    with np.errstate(all="ignore"):  # some of them grow without end
        return _loop_mistakes(descent, begin)


def _loop_mistakes(descent: Callable, begin: dict[str, float]) -> Mistakes:
    rates = {"rate": 0.2, "rate_of_start": begin.get("rate_of_start", 0.0)}
    right = descent(**begin)
    found = {
        "the loss stays what it was: nothing has moved. An assignment to a name changes no variable": [right[0]] * 20,
        "the loop goes uphill: subtract the gradient": descent(**begin | {k: -v for k, v in rates.items()}),
        "the errors are added up. The loss is their mean": descent(**begin, reduce=np.sum),
        "each step is half as long as it should be": descent(**begin | {k: v / 2 for k, v in rates.items()}),
        "each step is twice as long as it should be": descent(**begin | {k: 2 * v for k, v in rates.items()}),
        "each loss is noted after its step. Note it before": [*right[1:], descent(**begin)[-1]],
    }
    if rates["rate_of_start"]:
        found["only the speed has moved, the start has to move, too"] = descent(**begin | {"rate_of_start": 0.0})
        found["only the start has moved, the speed has to move, too"] = descent(**begin, rate=0.0)
    others = ({"speed": speed} for speed in (0.0, 0.5, -1.0, 1.0))
    others = [*others, {"speed": 0.0, "start": 1.0, "rate_of_start": 0.2}]
    for other in others:
        if other != begin:
            said = f"this loop begins elsewhere, with {', '.join(f'{k} {v:g}' for k, v in other.items() if k != 'rate_of_start')}"
            found[said] = descent(**other)
    return found


def agree(found: Any, right: Any, name: str, rtol: float = 1e-6, mistakes: Mistakes | None = None) -> None:
    """As `same`, to more digits."""
    same(found, right, name, rtol=rtol, mistakes=mistakes)


def beside(*, rtol: float = 1e-3, atol: float = 1e-5, **ways: Any) -> None:
    """Prints what each way gives, in a line each: `beside(tape=..., function=...)`. They have to agree; None agrees with zero."""
    import jax

    for name, value in ways.items():
        line = f"{name.replace('_', ' ') + ':':12} {brief(value)}"
        print(textwrap.fill(line, 100, subsequent_indent=" " * 13))
    leaves = [jax.tree.leaves(value, is_leaf=lambda x: x is None) for value in ways.values()]
    for first, *others in zip(*leaves, strict=True):
        for other in others:
            numbers = (0.0 if x is None else x for x in (first, other))
            np.testing.assert_allclose(*map(np.asarray, numbers), rtol=rtol, atol=atol)


LONG = 8  # numbers; of more, the first are shown


def brief(value: Any) -> str:
    """Numbers, arrays, and whatever they are in, to four digits; of a long array its first numbers, of many their norms."""
    import jax

    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(each)}" for name, each in value.items())
    leaves = jax.tree.leaves(value, is_leaf=lambda x: x is None or hasattr(x, "shape"))
    if len(leaves) > 3 and any(np.size(leaf) > LONG for leaf in leaves):
        norms = [_digits(np.linalg.norm(np.ravel(leaf))) for leaf in leaves if leaf is not None]
        return f"{len(norms)} arrays of norms {', '.join(norms)}"
    return ", ".join("None" if leaf is None else _digits(leaf) for leaf in leaves)


def _digits(values: Any) -> str:
    array = np.asarray(values)
    rounding = max(1e-7, 1e-6 * np.abs(array).max(initial=0.0))

    def text(part: Any) -> str:
        return f"[{', '.join(map(text, part))}]" if np.ndim(part) else f"{0.0 if abs(part) < rounding else part:.4g}"

    if array.size <= LONG or array.ndim == 0:
        return text(array)
    return f"{text(array.ravel()[:3])[:-1]}, ...] of shape {array.shape}, norm {np.linalg.norm(array.ravel()):.4g}"


def blank(answer: Any) -> bool:
    """Whether a ``...`` is left: in the place of an answer, or inside the code of a function or of a class."""
    if isinstance(answer, dict):
        return blank(list(answer.values()))
    if isinstance(answer, (list, tuple)):
        return any(map(blank, answer))
    if isinstance(answer, type):
        return blank([*vars(answer).values()])
    code = getattr(inspect.unwrap(answer) if callable(answer) else answer, "__code__", answer)
    in_a_cell = isinstance(code, types.CodeType) and not os.path.exists(
        code.co_filename
    )  # a library may have its own ``...``
    if not in_a_cell:
        return code is ...
    return any(isinstance(x, types.CodeType) and blank(x) for x in code.co_consts) or _is_left(code)


_SUBSCRIPTS = {"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"}


def _is_left(code: types.CodeType) -> bool:
    """Whether a ``...`` in `code` is something else than an index, as in ``x[..., None]``."""
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if "CONST" not in step.opname or not (
            step.argval is ... or isinstance(step.argval, tuple) and ... in step.argval
        ):
            continue
        if step.opname == "RETURN_CONST":  # of Python 3.12
            return True
        depth = 1  # how many values lie on the stack from this one on
        for later in steps[at + 1 :]:
            if later.opname == "BUILD_TUPLE" and depth <= later.arg:
                depth = 1  # now the tuple
                continue
            if depth == 1 and (later.opname in _SUBSCRIPTS or later.argrepr == "[]"):
                break
            depth += dis.stack_effect(later.opcode, later.arg, jump=False)
            if depth < 1:
                return True
    return False


def ready(namespace: dict[str, Any], module: types.ModuleType, *names: str) -> None:
    """Where nothing has been written, runs what `module` has under that name in the notebook: the cells below need one."""
    for each in names:
        if blank(namespace.get(each, ...)):
            exec(inspect.getsource(getattr(module, each)), namespace)
