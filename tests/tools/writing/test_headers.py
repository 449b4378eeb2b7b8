"""The headers of printed loops: from what differs between rounds, and from the user's own header."""

import ast
import itertools

import pytest

from tapejax.tools.writing import headers


def header(varying, loop, skipped=0, rounds=3):
    keys = (f"k{i}" for i in itertools.count())
    node = ast.parse(loop).body[0] if loop else None
    columns = {name: [ast.parse(text, mode="eval").body for text in texts] for name, texts in varying.items()}
    found = headers.header(columns, {}, rounds, node, skipped, lambda: next(keys))
    meanings = {name: ast.unparse(x) for name, x in found.meanings.items()}
    return ast.unparse(found.target), ast.unparse(found.rows), meanings


@pytest.mark.parametrize(
    ("varying", "loop", "rows", "meaning"),
    [
        (["0", "1", "2"], "for i in range(n):\n    x[i]", "range(3)", "k0 + 0"),
        (["4", "8", "12"], "for i in range(n):\n    x[:(i + 1) * 4]", "range(3)", "(k0 + 1) * 4"),
        (["1.0", "0.9", "0.81"], "for i in range(3):\n    y = 0.9 ** i * x", "range(3)", "0.9 ** k0"),
        (["0.1", "0.05", "0.03333333333333333"], "for i in range(n):\n    lr / (i + 1)", "range(3)", "0.1 / (k0 + 1)"),
        (["3.0", "2.0", "1.0"], "for i in range(3, 0, -1):\n    x * i", "range(3, 0, -1)", "float(k0)"),
        (["2", "1", "0"], "for t in reversed(range(n)):\n    x[t]", "reversed(range(3))", "k0 + 0"),
        (["3", "5", "7"], None, "range(3)", "2 * k0 + 3"),
    ],
)
def test_numbers_in_terms_of_the_round(varying, loop, rows, meaning):
    assert header({"v": varying}, loop) == ("k0", rows, {"v": meaning})


def test_rows():
    """What is no expression of the round is listed."""
    assert header({}, "for i in range(3):\n    x") == ("_", "range(3)", {})
    assert header({"a": ["p", "q", "r"]}, "for w in ws:\n    w") == ("a", "[p, q, r]", {})
    two = {"a": ["p", "q", "r"], "b": ["0.1", "0.5", "0.2"]}
    assert header(two, "for w, lr in pairs:\n    w") == ("(a, b)", "[(p, 0.1), (q, 0.5), (r, 0.2)]", {})
    counted = {"a": ["p", "q", "r"], "i": ["0", "1", "2"]}
    assert header(counted, "for i, w in enumerate(ws):\n    w") == ("(k0, a)", "enumerate([p, q, r])", {"i": "k0 + 0"})


def test_rounds_that_came_before():
    assert header({"v": ["1", "2", "3"]}, "for i in range(n):\n    x[i]", skipped=1)[1:] == (
        "range(1, 4)",
        {"v": "k0 + 0"},
    )


def test_a_slice_ends_where_the_source_says_so():
    """The last part of an array is printed without an end, which no progression may guess."""
    ends = {"v": ["4", "8", "None"]}
    assert header(ends, "for i in range(3):\n    x[i * 4 : (i + 1) * 4]")[2] == {"v": "(k0 + 1) * 4"}
    assert header(ends, "for i in range(3):\n    x[a:b], (i + 1) * 4")[2] == {}


def test_sums_of_zero_are_left_out():
    node = headers.Plain({"i"}).visit(ast.parse("x[i + 0], x[i + -1], x[i] + 0, y + 0"))
    assert ast.unparse(node) == "(x[i], x[i - 1], x[i] + 0, y + 0)"
