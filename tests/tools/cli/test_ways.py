"""The four ways of notebook `tape_or_functional`: what each of them gives in each row of its table, PyTorch's included; and
`style.beside`, which prints ways below each other."""

from __future__ import annotations

import importlib
import sys

import numpy as np
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


@pytest.fixture
def beside(modules):
    return importlib.import_module("style").beside


def test_a_line_stands_for_each_way(beside, capsys):
    long = np.arange(1.0, 13.0).reshape(3, 4)
    beside(tape=[None, {"w": np.array([0.5, -2.0])}], by_hand=[0.0, {"w": np.array([0.5, -2.0])}])
    beside(tape=long, function=long)
    beside(tape=[long] * 4 + [None], function=[long] * 4 + [0.0])
    assert capsys.readouterr().out.splitlines() == [
        "tape:        None, [0.5, -2]",
        "by hand:     0, [0.5, -2]",
        "tape:        [1, 2, 3, ...] of shape (3, 4), norm 25.5",
        "function:    [1, 2, 3, ...] of shape (3, 4), norm 25.5",
        "tape:        4 arrays of norms 25.5, 25.5, 25.5, 25.5",
        "function:    5 arrays of norms 25.5, 25.5, 25.5, 25.5, 0",
    ]


@pytest.mark.parametrize("other", [1.1, None, np.nan, [1.0, 1.0]], ids=str)
def test_ways_of_other_numbers_are_refused(beside, other):
    with pytest.raises((AssertionError, ValueError)):
        beside(tape=1.0, function=other)
