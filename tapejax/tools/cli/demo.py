"""``python -m tapejax demo``: what a tape shows, in ten seconds of terminal."""

from __future__ import annotations

import linecache
import os
import sys
from pathlib import Path

from ..seeing.tables import sections

FILE = "<demo>"

# what is shown, and the code that shows it
PARTS = tuple(sections(Path(__file__).with_suffix(".txt")).items())


def main() -> int:
    """Runs the parts one after the other, each behind its code; returns the exit status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # where ∂ cannot be written
    linecache.cache[FILE] = (0, None, [line for _, text in PARTS for line in text.splitlines(keepends=True)], FILE)
    space: dict = {"__name__": "__demo__"}
    at = 0
    for title, text in PARTS:
        _heading(title)
        _code(text)
        # each part has the line numbers of the whole, so that the tape can show them
        exec(compile("\n" * at + text, FILE, "exec"), space)
        at += text.count("\n")
    _heading("More: tape.draw, tape.check_numerics, tape.jaxpr, and the notebooks")
    return 0


def _coloured(text: str, colour: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else f"\033[{colour}m{text}\033[0m"


def _heading(title: str) -> None:
    print(f"\n{_coloured(title, '1;34')}\n{'-' * len(title)}")


def _code(text: str) -> None:
    for line in text.splitlines():
        prompt = "... " if line.startswith(" ") else ">>> " if line else ""
        print(_coloured(f"{prompt}{line}", "36"))
    print()
