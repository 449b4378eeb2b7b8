"""The four ways of notebook `tape_or_functional`: what each of them gives in each row of its table, PyTorch's included."""

from __future__ import annotations

import importlib
import sys

import pytest
from test_notebooks import FOLDER, nbformat

NONE, TYPE, RUNTIME, NO = "None", "TypeError", "RuntimeError", "—"
EXPECTED = {  # a tape, .backward(), JAX, torch.func
    "1": (NONE, NONE, "0.0", "0.0"),
    "2": (NONE, RUNTIME, "0.0", "0.0"),
    "3": (NONE, "0.0", "0.0", "0.0"),
    "4": ("[2., 4.]", RUNTIME, TYPE, RUNTIME),
    "5": (NONE, RUNTIME, TYPE, RUNTIME),
    "6": (NONE, RUNTIME, TYPE, "[0., 0.]"),
    "7": ("(0.6+0.8j)", "(0.6+0.8j)", "(0.6-0.8j)", "(0.6+0.8j)"),
    "8": ("4.0", RUNTIME, "4.0", "20.0"),
    "9": (NO, "20.0", NO, "20.0"),
    "10": ("2.0, 3.0",) * 4,
    "11": (NO, NO, "2.0, 2.0", NO),
    "12": (RUNTIME, RUNTIME, "4.0, 4.0", "4.0, 4.0"),
    "13": ("4.0, 4.0", "4.0, 8.0", "4.0, 4.0", "4.0, 4.0"),
}


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("ways"), importlib.import_module("differences")
    sys.path.remove(str(FOLDER))


def number(question):
    return question.partition(".")[0]


def test_each_row_is_what_each_way_gives(modules):
    ways, differences = modules
    assert [number(question) for question in differences.ROWS] == list(EXPECTED)
    for question, row in differences.ROWS.items():
        expected = EXPECTED[number(question)]
        if ways.torch is None:
            expected = [ways.MISSING if i in ways.PYTORCH and text != NO else text for i, text in enumerate(expected)]
        assert ways.outcomes(row) == list(expected), question


def test_without_pytorch_its_columns_say_so(modules, monkeypatch):
    ways, differences = modules
    monkeypatch.setattr(ways, "torch", None)
    for question, row in differences.ROWS.items():
        found = ways.outcomes(row)
        assert [found[0], found[2]] == [EXPECTED[number(question)][i] for i in (0, 2)]
        assert {found[i] for i in ways.PYTORCH} <= {ways.MISSING, NO}


def test_the_notebook_was_saved_with_pytorch():
    """All that PyTorch's columns show was run: the saved tables are those of a run with it."""
    saved = {cell.id: cell for cell in nbformat.read(FOLDER / "tape_or_functional.ipynb", 4).cells}
    outputs = [output for cell in saved.values() for output in cell.get("outputs", [])]
    if not outputs:
        pytest.skip("the source archive has notebooks without outputs")
    shown = ["".join(output.get("data", {}).get("text/plain", "")) for output in outputs]
    assert not any("PyTorch is not installed" in text for text in shown)
    lines = [line for text in shown for line in text.splitlines()]
    for row, expected in EXPECTED.items():
        (line,) = [line for line in lines if line.startswith(f"{row}. ")]
        found, rest = [], line
        for text in expected:
            assert text in rest, (line, expected)
            found, rest = [*found, text], rest.partition(text)[2]
        assert not rest.strip()


def test_ways_that_do_not_agree_are_told(modules):
    ways, _ = modules
    with pytest.raises(AssertionError, match="do not agree"):
        ways.beside(lambda: 1.0, lambda: 1.0, lambda: 2.0, lambda: 1.0)
