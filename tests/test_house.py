"""The sizes of the rooms, in lines of code: neither blank, nor comment, nor docstring."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

import tapejax

PACKAGE = Path(tapejax.__file__).parent
# The lines of a room, and of its largest file. They are there to ask "does this belong here?": a room may grow past its limit by
# a twentieth before a test fails, so that one honest line never does.
LIMITS = {
    "jaxprs": (1_400, 220),
    "tape": (1_850, 250),
    "execution": (2_500, 640),
    "tf": (14_800, 750),
    "tools": (8_000, 620),
}
GRACE = 1.05
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of(text):
    tree = ast.parse(text)
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node) is not None
        ):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def test_lines_are_counted():
    assert lines_of('"""A module.\n\nMore."""\n\n# why\ndef f(\n    x,\n):\n    "What."\n    return x  # so\n') == 4


@pytest.mark.parametrize("room", LIMITS)
def test_a_room_and_its_files_stay_small(room):
    counts = {str(path): lines_of(path.read_text(encoding="utf-8")) for path in (PACKAGE / room).rglob("*.py")}
    most, largest = LIMITS[room]
    assert sum(counts.values()) <= GRACE * most
    assert max(counts.values()) <= GRACE * largest, max(counts, key=counts.get)
