"""``python -m tapejax demo``: what a tape shows, in ten seconds of terminal."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..seeing.tables import sections

FILE = "<demo>"

# what is shown, and the code that shows it
PARTS = tuple(sections(Path(__file__).with_suffix(".txt")).items())


def main() -> int:
    """Runs the parts one after the other, each behind its code; returns the exit status."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # where ∂ cannot be written
    heading, code = _writers()
    linecache.cache[FILE] = (0, None, [line for _, text in PARTS for line in text.splitlines(keepends=True)], FILE)
    space: dict = {"__name__": "__demo__"}
    at = 0
    for title, text in PARTS:
        heading(title)
        code(text)
        # each part has the line numbers of the whole, so that the tape can show them
        exec(compile("\n" * at + text, FILE, "exec"), space)
        at += text.count("\n")
    heading("More: tape.draw, tape.check_numerics, tape.jaxpr, and the notebooks")
    return 0


def _writers() -> tuple[Callable[[str], None], Callable[[str], None]]:
    """How headings and code are written: in colours where the terminal has them, by Rich if it is installed."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return (lambda title: print(f"\n{title}\n{'-' * len(title)}")), _prompted
    try:
        from rich.console import Console
        from rich.syntax import Syntax
    except ImportError:
        coloured = functools.partial(_prompted, start="\033[36m", end="\033[0m")
        return (lambda title: print(f"\n\033[1;34m{title}\033[0m")), coloured
    console = Console()

    def heading(title: str) -> None:
        console.print()
        console.rule(f"[bold]{title}", align="left")

    return heading, lambda text: console.print(Syntax(text.rstrip(), "python", background_color="default"))


def _prompted(text: str, start: str = "", end: str = "") -> None:
    for line in text.splitlines():
        prompt = "... " if line.startswith(" ") else ">>> " if line else ""
        print(f"{start}{prompt}{line}{end}".rstrip())
    print()
