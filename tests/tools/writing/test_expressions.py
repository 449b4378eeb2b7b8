"""Expressions with holes."""

import ast

import pytest

from tapejax.tools.writing.expressions import Operand, candidates, closed_ranges, is_closed, is_within, range_of
from tapejax.tools.writing.files import MODULES


def parsed(text):
    return ast.parse(text, mode="eval").body


def texts(text, operands, values=()):
    return [candidate for candidate, _ in candidates(parsed(text), operands, MODULES, values)]


def where(text, part):
    start = text.index(part)
    return frozenset({(1, 1, start, start + len(part))})


def test_operands_are_known_by_where_they_were_computed():
    text = "jnp.where(jnp.abs(v) > 0.5, v**2, 0.0)"
    operands = [Operand(where(text, "jnp.abs(v) > 0.5")), Operand(where(text, "v**2"))]
    assert texts(text, operands) == ["jnp.where({0}, {1}, 0.0)"]


def test_operands_are_known_by_their_names_or_tried():
    assert texts("x @ w", [Operand(name="w"), Operand()]) == ["{1} @ {0}"]
    assert texts("x @ w", [Operand(), Operand()]) == ["{0} @ {1}", "{1} @ {0}"]
    assert list(candidates(parsed("x * x"), [Operand()], MODULES, ())) == [("{0} * {0}", {0: "x"})]


def test_what_is_no_operand_has_a_value():
    assert texts("x.reshape(n, -1)", [Operand()], ["4", "3"])[:2] == ["{0}.reshape(4, -1)", "{0}.reshape(3, -1)"]
    assert texts("x * scale", [Operand(name="x"), Operand(text="-0.5")]) == ["{0} * (-0.5)"]


@pytest.mark.parametrize(
    "text",
    [
        *("np.random.normal(x)", "jnp.save(x, y)", "print(x)", "open(x)", "x.sum(*y)", "jnp.sum(**x)", "net(x)"),
        *("jnp.sum(lambda: x)", "jax.debug.print(x)", "jnp.stack([f(y) for y in x])", "x", "np.save(x)"),
    ],
)
def test_what_may_have_effects_is_no_candidate(text):
    assert texts(text, [Operand(name="x")]) == []


def test_an_index_is_an_operation_or_takes_a_result_apart():
    text = "jnp.linalg.svd(a)[0] ** 3"
    assert texts(text, [Operand(where(text, "jnp.linalg.svd(a)"))])[0] == "{0}[0] ** 3"
    assert texts(text, [Operand(where(text, "jnp.linalg.svd(a)"))])[-1] == "{0} ** 3"
    assert texts("x.at[i].set(v)", [Operand(name="x"), Operand(name="i"), Operand(name="v")]) == [
        "{0}.at[{1}].set({2})"
    ]


def test_modules_are_called_as_in_printed_code():
    assert texts("lax.rsqrt(x)", [Operand(name="x")]) == ["jax.lax.rsqrt({0})"]
    assert [*candidates(parsed("softmax(x)"), [Operand(name="x")], {"softmax": "jax.nn.softmax"}, ())] == [
        ("jax.nn.softmax({0})", {0: "x"})
    ]


def test_what_takes_nothing_but_numbers():
    text = "logp[jnp.arange(16), labels]"
    assert closed_ranges(parsed(text), MODULES) == [(1, 1, 5, 19)]
    assert is_closed(parsed("jnp.ones((2, 3), bool)"), MODULES) and not is_closed(parsed("jnp.ones(n)"), MODULES)
    inner, outer = range_of(parsed("jnp.eye(3)")), range_of(parsed("jnp.eye(3) * 2"))
    assert is_within(inner, outer) and not is_within(outer, inner) and not is_within((None,) * 4, outer)
