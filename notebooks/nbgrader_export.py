"""Marks the exercises of a notebook for nbgrader:

    python notebooks/nbgrader_export.py notebooks/1_first_tape.ipynb -o source/1/1_first_tape.ipynb

An exercise becomes two cells. In one the student writes: it holds the folded answer, between the marks from which
``nbgrader generate_assignment`` makes a gap. The other is the check, a test with points. The folded answer is left out.
Where the cells below use what is written, a third one defines it if nothing is.
"""

from __future__ import annotations

import argparse
import ast
import re
from pathlib import Path
from typing import Any

import nbformat

ANSWER = re.compile(
    r"<details><summary>Answer</summary>\n\n(?:(?!</details>).)*?```python\n(.*?)```.*?</details>\s*", re.DOTALL
)
POINTS = 1


def is_blank(statement: ast.stmt) -> bool:
    """Whether a statement is one to be replaced by an answer: it holds a ``...``."""
    return any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(statement))


def parts(source: str) -> tuple[str, str, str]:
    """What stands above the gap of an exercise, what is asked, and what stands below it."""
    lines, blanks = source.splitlines(), [s for s in ast.parse(source).body if is_blank(s)]
    first, last = blanks[0].lineno - 1, max(s.end_lineno or 0 for s in blanks)
    return "\n".join(lines[:first]), "\n".join(lines[first:last]), "\n".join(lines[last:])


def marked(cell: Any, grade_id: str, **flags: Any) -> Any:
    """The cell with nbgrader's metadata: one that is filled in, or a test."""
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "cell_type": "code",
        "task": False,
        "locked": False,
        "solution": False,
        "grade": False,
        **flags,
    }
    return cell


def exported(notebook: Any) -> Any:
    """The notebook with its exercises marked, without outputs."""
    cells: list[Any] = []
    answers = iter([*notebook.cells[1:], None])
    for cell, below in zip(notebook.cells, answers, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.cell_type != "code" or "style.check(" not in cell.source:
            cells.append(cell)
            continue
        above, asked, check = parts(cell.source)
        found = ANSWER.search(below.source) if below is not None else None
        if found is None:
            raise ValueError(f"The exercise {cell.id!r} has no folded answer in the cell below it.")
        below.source = below.source.replace(found[0], "")
        asked = "\n".join(f"# {line}".rstrip() for line in asked.split("\n"))  # the name, and what kind of answer
        gap = f"{asked}\n### BEGIN SOLUTION\n{found[1].rstrip()}\n### END SOLUTION"
        cell.source = f"{above}\n{gap}".lstrip("\n")
        check, ready, names = check.strip("\n").partition("\nstyle.ready(")
        check = check.replace("style.check(", "style.grade(")  # no answer is an error, too
        test = nbformat.v4.new_code_cell(check, id=f"{cell.id}-test")
        cells.append(marked(cell, cell.id, solution=True))
        cells.append(marked(test, test.id, grade=True, locked=True, points=POINTS))
        if ready:  # by itself: it runs after a test that fails, so that the exercises below do not
            given = nbformat.v4.new_code_cell(f"{ready}{names}".strip(), id=f"{cell.id}-ready")
            cells.append(marked(given, given.id, locked=True))
    notebook.cells = [cell for cell in cells if cell.source]
    return notebook


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(exported(nbformat.read(given.notebook, 4)), given.output)
    print(f"{given.output}: copy {given.notebook.parent}/*.py beside it, which it imports")


if __name__ == "__main__":
    main()
