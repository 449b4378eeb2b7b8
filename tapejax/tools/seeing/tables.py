"""Tables in text, bars in them, and files of texts."""

from __future__ import annotations

import configparser
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...places import SourceLine

BAR = 24  # the length of the longest bar of text
LEAST = 12  # the characters that a column keeps whose texts may be cut
LINE = 24  # those that the last one keeps: a file, the number of a line


Item = TypeVar("Item")


class Rows(Sequence[Item]):
    """A sequence of `rows`, for tables that are more than that."""

    def __init__(self, rows: Iterable[Item]):
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]


def line_text(line: SourceLine | None) -> str:
    """A line of the user's code with its place: ``train.py:3  y = x * x``; empty where there is none."""
    return f"{line}  {line.text}" if line else ""


def cut(text: str, width: int) -> str:
    """A text by its beginning."""
    return text if len(text) <= width else text[: width - 1] + "…"


def terminal_width() -> int:
    """The characters in a line of the terminal to which is printed; where it is none, as many as one likes."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def in_columns(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Lines with the cells of each row under each other, none wider than the terminal.

    `sides` has a sign for each column: where its texts stand, ``<`` or ``>``, or ``~``, to the left, for texts that may be cut:
    the widest first.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    most = terminal_width()
    while sum(widths) + 2 * (len(widths) - 1) > most:
        least = {i: LINE if i == len(sides) - 1 else LEAST for i, side in enumerate(sides) if side == "~"}
        wide = [(widths[i], i) for i, n in least.items() if widths[i] > n]
        if not wide:
            break
        widths[max(wide)[1]] -= 1
    columns = list(zip(sides.replace("~", "<"), widths, strict=True))
    lines = ["  ".join(f"{cut(x, n):{side}{n}}" for x, (side, n) in zip(row, columns, strict=True)) for row in rows]
    return [cut(line.rstrip(), most) for line in lines]


def bar_text(share: float) -> str:
    return f"{'█' * round(BAR * share):{BAR}}"


def bar_html(share: float, style: str) -> str:
    return f'<div style="height:.8em;width:{160 * share:.0f}px;background:{style}"></div>'


def sections(path: Path) -> dict[str, str]:
    """The parts of a file, by the line ``==== name`` above each."""
    return dict(re.findall(r"^==== ([^\n]+)\n(.*?)(?=^==== |\Z)", path.read_text(encoding="utf-8"), re.M | re.S))


def cases(path: Path) -> dict[str, tuple[str, str]]:
    """By each line of a file that is not indented what stands under it: what happened and, behind an arrow, what to do."""
    matches = re.findall(r"^(\w.*)\n((?: +.*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    parts = ((case, said.partition("->")) for case, said in matches)
    return {case: (" ".join(what.split()), " ".join(cure.split())) for case, (what, _, cure) in parts}


def tables(path: Path) -> dict[str, dict[str, str]]:
    """The tables of a file: below ``[name]`` rows ``key: value``, where the lines of a value may be indented."""
    texts = configparser.RawConfigParser(delimiters=":")
    texts.optionxform = str  # type: ignore[assignment,method-assign]  # keys as they are written
    texts.read(path, encoding="utf-8")
    return {name: {key: value.strip() for key, value in texts[name].items()} for name in texts.sections()}
