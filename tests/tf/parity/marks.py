"""The deliberate differences that the parity tests assert, as the table DIFFERENCES.md.

    python -m tests.tf.parity.marks        writes it

They are read from the text of the tests: ``@parity(differs=...)``, ``differs=`` of a row of a table, ``differs(...)`` of the
sweep of names. So the table needs no TensorFlow, and `tests/test_docs.py` says when it is stale.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("DIFFERENCES.md")
HEAD = """# Differences that a test asserts

A parity test is marked `differs="..."` with what differs from TensorFlow, and fails once the difference is gone.
`python -m tests.tf.parity.marks` writes this table. The page for readers is
[docs/differences.md](../../../docs/differences.md).

"""
NO_TESTS = {"harness.py", "test_harness.py", "keras_processes.py", "marks.py"}  # they say what `differs` is


def marks(file: Path) -> Iterator[tuple[str, str]]:
    """The reason and the test of each difference in a file; a reason is a literal, or a constant of the module."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assigned = (node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant))
    constants = {ast.unparse(node.targets[0]): node.value.value for node in assigned}

    def text(node: ast.expr) -> str:
        return constants[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)

    names = {
        decorator: node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for keyword in call.keywords:
            forwarded = isinstance(keyword.value, ast.Name) and keyword.value.id not in constants
            if keyword.arg == "differs" and not forwarded:
                yield text(keyword.value), names.get(call) or text(call.args[0])
        if isinstance(call.func, ast.Name) and call.func.id == "differs":
            yield text(call.args[0]), text(call.args[1]).partition(",")[0]


def plain(text: str) -> str:
    """`text` with its signs as they are: to Markdown ``x**0`` begins something bold."""
    return re.sub(r"([*_|<])", r"\\\1", text)


def table() -> str:
    """A row for each reason, with the tests that assert it."""
    found: dict[str, list[str]] = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        for reason, name in marks(file) if file.name not in NO_TESTS else ():
            found.setdefault(reason, []).append(f"[`{name}`]({file.name})")
    rows = (f"| {plain(reason)} | {', '.join(tests)} |" for reason, tests in found.items())
    return "\n".join(["| difference | asserted by |", "| --- | --- |", *rows]) + "\n"


def written() -> str:
    """The page as the tests have it now."""
    return HEAD + table()


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
