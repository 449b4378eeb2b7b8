"""``python -m benchmarks lines``: how many lines of code there are, by file, by folder and in all.

A line of code is one that is neither blank, comment nor docstring.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path
from typing import Any

_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def count(source: str) -> int:
    """The lines of code in Python source. One that has code beside a comment or a docstring counts."""
    text = source.split("\n")
    docstrings = [_span(node.body[0], text) for node in ast.walk(ast.parse(source)) if _has_docstring(node)]
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT and not any(start <= token.start < end for start, end in docstrings):
            lines.update(range(token.start[0], token.end[0] + 1))
    return sum(bool(text[line - 1].strip()) for line in lines)  # a string over several lines may have blank ones


def _has_docstring(node: Any) -> bool:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def _span(node: Any, text: list[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a statement starts and ends, as tokens say it: `ast` counts columns in bytes, `tokenize` in characters."""

    def position(line: int, offset: int) -> tuple[int, int]:
        return line, len(text[line - 1].encode()[:offset].decode())

    return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)


def count_tree(folder: Path) -> dict[str, int]:
    """The lines of code of each Python file below `folder`, by its path from there."""
    return {
        path.relative_to(folder).as_posix(): count(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }


def report(files: dict[str, int]) -> str:
    """The counts as text: folder by folder, the files of each with the longest first."""
    rooms: dict[str, dict[str, int]] = {}
    for path, lines in files.items():
        rooms.setdefault(path.rpartition("/")[0], {})[path] = lines
    rows: list[str] = []
    for room, inside in sorted(rooms.items()):
        rows += [f"{lines:7,}  {path}" for path, lines in sorted(inside.items(), key=lambda item: (-item[1], item[0]))]
        rows += [f"{sum(inside.values()):7,}  in {room or '.'}, {len(inside)} files", ""]
    return "\n".join([*rows, f"{sum(files.values()):7,}  in all, {len(files)} files"])
