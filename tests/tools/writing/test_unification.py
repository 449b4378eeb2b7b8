"""Functions of which all are cases of one."""

import ast
import itertools

import pytest

from tapejax.tools.writing.unification import Different, Unifier, is_number


def unified(*texts, variables="xyzuvw"):
    names = (f"n{i}" for i in itertools.count())
    unifier = Unifier(lambda name: name in variables, lambda: next(names))
    one = unifier.one([ast.parse(text, mode="eval").body for text in texts])
    return unifier, ast.unparse(one)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("x + y", "u + v"), "n0 + n1"),
        (("x + y", "u + u"), "n0 + n1"),
        (("x + x", "u + u"), "n0 + n0"),
        (("x * 2", "u * 2"), "n0 * 2"),
        (("x * 2", "u * -3", "w * v"), "n0 * n1"),
        (("x + y", "u + jnp.zeros(3)"), "n0 + n1"),
        (("x[:2, 0]", "u[:3, 0]"), "n0[:n1, 0]"),
        (("jnp.sum(x, axis=-1)", "jnp.sum(u, axis=-1)"), "jnp.sum(n0, axis=-1)"),
        (("jax.grad(lambda x: x * y)(z)", "jax.grad(lambda u: u * v)(w)"), "jax.grad(lambda n0: n0 * n1)(n2)"),
    ],
)
def test_what_differs_has_a_name(texts, expected):
    assert unified(*texts)[1] == expected


@pytest.mark.parametrize(
    "texts",
    [
        ("x + y", "x - y"),
        ("jnp.sin(x)", "jnp.cos(x)"),
        ("f(x)", "f(x, y)"),
        ("f(x, axis=None)", "f(x, axis=1)"),
        ("f(x, 'a')", "f(x, 'b')"),
        ("f(x, True)", "f(x, 1)"),
        ("f(x)", "g(x)"),
        ("x + y", "u + jnp.sin(v)"),
        ("x + jnp.ones(3)", "u + jnp.zeros(3)"),
    ],
)
def test_what_is_not_the_same(texts):
    with pytest.raises(Different):
        unified(*texts)


def test_parameters_are_what_is_local_in_none():
    unifier, _ = unified("x + y * 2", "u + v * 3")
    assert [ast.unparse(x) for name in unifier.parameters([{"y"}, {"v"}]) for x in unifier.atoms[name]] == [
        "x",
        "u",
        "2",
        "3",
    ]
    with pytest.raises(Different):
        unifier.parameters([{"y"}, {"w"}])


def test_numbers():
    kinds = {"1": True, "-2.5": True, "2j": True, "True": False, "None": False, "x": False, "'a'": False, "-x": False}
    assert {text: is_number(ast.parse(text, mode="eval").body) for text in kinds} == kinds
