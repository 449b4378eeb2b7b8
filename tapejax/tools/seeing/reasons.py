"""The reasons for a missing gradient: `CASES` (reasons.txt), for each what happened, and the one change that fixes it."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

from ...places import SourceLine, line_of
from ...tape.recording import Entry
from .listing import name_of
from .tables import cases, cut, terminal_width

# How wide text is printed.
WIDTH = 96
# Before it stands so much.
INDENT = 8


class Reason(NamedTuple):
    """Why there is no gradient: a `kind` for programs, what happened, the one change that fixes it; where it is known, the
    operation and the line at which the path broke."""

    kind: str
    message: str
    remedy: str
    operation: str | None = None
    line: SourceLine | None = None

    def __str__(self) -> str:
        most = terminal_width() - INDENT
        width = min(WIDTH, most)
        where = [cut(f"  {self.line}  {self.line.text}", most)] if self.line else []
        remedy = textwrap.wrap(self.remedy, width, initial_indent="-> ", subsequent_indent="   ")
        return "\n".join([*textwrap.wrap(self.message, width), *where, *remedy])


class At(NamedTuple):
    """An operation and a line, either of which may be unknown."""

    operation: str | None = None
    line: SourceLine | None = None


def at(entry: Entry | None) -> At:
    """Where an entry ran."""
    return At() if entry is None else At(name_of(entry), line_of(entry.where))


def reason(case: str, at: At = At(), **values: Any) -> Reason:  # noqa: B008
    """The `Reason` of a case of `CASES`, with `values` filled in. What stands before a colon in the case is the kind."""
    message, remedy = (text.format(**{"operation": at.operation, **values}) for text in CASES[case])
    return Reason(case.partition(":")[0], message, remedy, *at)


def as_code(name: str) -> str:
    """A name as it would stand in code; a library's own name for its variable does not."""
    try:
        ast.parse(name, mode="eval")
    except SyntaxError:
        return "..."
    return "..." if "/" in name else name


CASES = cases(Path(__file__).with_name("reasons.txt"))
# Why an operation of that name passes nothing on, and what to do.
_FLAT = cases(Path(__file__).with_name("flat.txt"))
FLAT = {name: said for names, said in _FLAT.items() for name in names.split()}
NOT_FLAT = FLAT.pop("other")
