"""One question, asked in four ways: `beside` shows the code of each in a column, and what it gives under it.

The ways are a tape, PyTorch's `backward`, JAX's functions and `torch.func`. Where PyTorch is not installed its columns say so.
"""

from __future__ import annotations

import html
import inspect
import logging
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

try:
    import torch
except ImportError:
    torch = None

TITLES = ("a tape", "PyTorch, .backward()", "JAX", "torch.func")
KINDS = ("what ran is differentiated", "a function is differentiated")
MISSING = "PyTorch is not installed"
PYTORCH = (1, 3)

STYLE = """<style>
.ways { border-collapse: collapse; width: 100%; table-layout: fixed }
.ways :is(th, td) { border: 0 !important; padding: 4px 8px !important; text-align: left !important }
.ways :is(th, td) { vertical-align: top; background: none !important }
.ways .kind { border-bottom: 2px solid currentColor !important; font-weight: 600 }
.ways .title { font-weight: 600 }
.ways pre { background: none; border: 0; margin: 4px 0; overflow-x: auto; padding: 0; white-space: pre !important }
.ways pre { font-family: monospace; font-size: .82em; line-height: 1.35 }
.ways .gives { font-family: monospace; font-weight: 600; overflow-wrap: anywhere }
@media (max-width: 700px) {
  .ways thead { display: none }
  .ways :is(tbody, tr, td) { display: block; width: auto !important }
  .ways pre { min-height: 0 !important }
}
</style>"""


def outcome(way: Callable[[], Any]) -> str:
    """What a way gives: a number, an array, None, or the class of an exception."""
    logger = logging.getLogger("tapejax")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it says that an integer was watched; here the gradient says so
    try:
        return written(way())
    except Exception as error:
        return type(error).__name__
    finally:
        logger.setLevel(level)


def written(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return ", ".join(map(written, value))
    array = np.asarray(value.detach() if hasattr(value, "detach") else value)
    if not array.ndim:
        return str(np.round(array, 4))
    return np.array2string(array + 0, precision=4, floatmode="maxprec", separator=", ")


def outcomes(ways: Sequence[Callable[[], Any] | None]) -> list[str]:
    """What each of the four ways gives; a dash for None, where a way has no such thing."""
    return [
        "—" if way is None else MISSING if i in PYTORCH and torch is None else outcome(way)
        for i, way in enumerate(ways)
    ]


def beside(*ways: Callable[[], Any], agree: bool = True) -> None:
    """Shows four functions beside each other, each with what it gives; they have to `agree`."""
    from IPython.display import display

    found = outcomes(ways)
    said = {text for text in found if text != MISSING}
    assert not agree or len(said) == 1, f"they do not agree: {found}"
    codes = list(map(code_of, ways))
    high = max(code.count("\n") + 1 for code in codes)
    kinds = "".join(f'<th class="kind" colspan="2">{kind}</th>' for kind in KINDS)
    cells = "".join(
        f'<td><div class="title">{title}</div><pre style="min-height:{1.35 * high:.1f}em">{html.escape(code)}</pre>'
        f'<div class="gives">→ {html.escape(text)}</div></td>'
        for title, code, text in zip(TITLES, codes, found, strict=True)
    )
    page = f'{STYLE}<table class="ways"><thead><tr>{kinds}</tr></thead><tbody><tr>{cells}</tr></tbody></table>'
    plain = "\n\n".join(
        f"{title}:\n{textwrap.indent(code, '    ')}\n    -> {text}"
        for title, code, text in zip(TITLES, codes, found, strict=True)
    )
    display({"text/html": page, "text/plain": plain}, raw=True)


def code_of(way: Callable[[], Any]) -> str:
    """The lines inside a function."""
    head, _, body = inspect.getsource(way).partition(":\n")
    assert head.startswith("def "), head
    return textwrap.dedent(body).rstrip()


def table(rows: dict[str, Sequence[Callable[[], Any] | None]]) -> None:
    """Runs each row in each of the four ways, and shows what came out."""
    from IPython.display import display

    found = {question: outcomes(ways) for question, ways in rows.items()}
    left = 'style="text-align:left"'
    heads = "".join(f"<th {left}>{title}</th>" for title in ("", *TITLES))
    lines = [
        [html.escape(question), *map("<code>{}</code>".format, map(html.escape, texts))]
        for question, texts in found.items()
    ]
    body = "".join(f"<tr>{''.join(f'<td {left}>{text}</td>' for text in line)}</tr>" for line in lines)
    page = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    width = max(map(len, found)) + 2
    plain = "\n".join(
        "".join(
            f"{text:{size}}" for text, size in zip((question, *texts), (width, 24, 24, 24, 24), strict=True)
        ).rstrip()
        for question, texts in (("", TITLES), *found.items())
    )
    display({"text/html": page, "text/plain": plain}, raw=True)
