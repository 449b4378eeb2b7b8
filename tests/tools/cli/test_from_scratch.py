"""Notebooks 0, 0b and 8: a student's answers are used by the cells below, and the files beside them hold the same answers.

Without answers the cells below go on with those of the file: so the notebooks run in `test_notebooks.py`.
"""

from __future__ import annotations

import ast
import functools
import math
import sys
import types

import exercises
import exercises_written
import numpy as np
import pytest
from test_notebooks import FOLDER, nbformat

X64 = 'jax.config.update("jax_enable_x64", True)'
each_notebook = pytest.mark.parametrize("stem", exercises_written.FILES)


@functools.cache
def cells_of(stem):
    return nbformat.read(FOLDER / f"{stem}.ipynb", 4).cells


@functools.cache
def answers_of(stem):
    cells = cells_of(stem)
    return {i: exercises.answer_of(cells, i) for i, cell in enumerate(cells) if exercises.is_exercise(cell)}


@pytest.fixture
def run(monkeypatch):
    """run(stem, answers) runs a notebook's program, without its figures, with `answers` in the cells of these numbers."""
    for package in ("matplotlib", "matplotlib_inline"):
        pytest.importorskip(package)
    jax = pytest.importorskip("jax")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setitem(sys.modules, "__notebook__", module := types.ModuleType("__notebook__"))

    def run(stem, answers):
        sources = [cell.source for cell in cells_of(stem)]
        with np.printoptions(), jax.enable_x64(any(X64 in source for source in sources)):  # notebooks set both
            for i, cell in enumerate(cells_of(stem)):
                if cell.cell_type == "code" and "drawing" not in cell.metadata.get("tags", []):
                    source = exercises.filled_in(cell.source, answers[i]) if i in answers else cell.source
                    source = source.replace("style.use()", "").replace(X64, "")
                    exec(compile(source, cell.id, "exec"), vars(module))
        return vars(module)

    return run


@each_notebook
def test_the_answers_of_a_student_are_used(run, capsys, stem):
    names = run(stem, answers_of(stem))
    assert capsys.readouterr().out.count("Right.") == len(answers_of(stem)) >= 10
    ids = {cells_of(stem)[i].id for i in answers_of(stem)}
    written = [name for name in exercises_written.parts_of(exercises_written.FILES[stem]) if name in names]
    files = {names[name].__code__.co_filename for name in written if hasattr(names[name], "__code__")}
    assert ids & files and "<string>" not in files  # what `ready` runs is in no cell
    if "0_a" in stem:  # the tape of a student trains the network as tapejax does
        assert names["their_weights"] == names["weights"] and names["their_losses"] == names["losses"]
        assert names["losses"][-48:] < names["losses"][:48]


def test_a_students_function_is_not_replaced(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    pytest.importorskip("matplotlib")
    import from_scratch
    import style

    mine = {"record": lambda rule, *inputs: 3.0}
    style.ready(mine, from_scratch, "record")
    assert mine["record"](None) == 3.0


def test_what_counts_as_not_answered(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    jax = pytest.importorskip("jax")
    pytest.importorskip("matplotlib")
    import style

    names = {}
    exec("def f():\n    return ...\nclass C:\n    def f(self):\n        return lambda: ...\ndef g(): return 1", names)
    indices = (
        "x[..., 0]",
        "x[...]",
        "x[..., None] @ x",
        "[y[..., 0] for y in x]",
        "x.at[..., i:].set(0)",
        "(lambda: x[..., i])()",
    )
    for index in indices:
        exec(f"def h(x, i): return {index}", names)
        assert not style.blank(names["h"]), index
    for left in ("(..., x)", "x + ...", "f(..., x[0, i])", "x if x[..., 0] else ..."):
        exec(f"def h(x, i): return {left}", names)
        assert style.blank(names["h"]), left
    for answer in (
        ...,
        [1, ...],
        {"a": ...},
        names["f"],
        functools.cache(names["f"]),
        [names["g"], names["f"]],
        names["C"],
    ):
        assert style.blank(answer)
    for answer in (None, [], "...", names["g"], math.sin, jax.Array, jax.numpy.cos):  # jax.Array has its own `...`
        assert not style.blank(answer)


@each_notebook
def test_the_file_has_the_answers(stem):
    kinds = (ast.FunctionDef, ast.ClassDef)
    written = {
        part.name: part
        for answer in answers_of(stem).values()
        for part in ast.parse(answer).body
        if isinstance(part, kinds)
    }
    parts = exercises_written.parts_of(exercises_written.FILES[stem])
    assert len(written) >= 10
    for name, part in written.items():
        assert ast.unparse(part) == ast.unparse(ast.parse(parts[name])), name
