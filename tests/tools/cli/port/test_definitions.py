"""Definitions of a program that is being written, names in a syntax tree, and equality of values."""

import ast

import jax.numpy as jnp
import numpy as np

from tapejax.tools.cli.port import kept
from tapejax.tools.cli.port.alike import argument_name, equal, same
from tapejax.tools.cli.port.definitions import PARTS, Definitions, _renamed, tuple_text


def test_each_definition_has_a_name_of_its_own_and_is_written_once():
    definitions = Definitions("loss = 1\n")
    helper = "def g(x):\n    return x + c\n\n\ndef f(x):\n    return g(x).g\n"
    assert definitions.add(helper, {"c": jnp.ones(2)}, "loss") == "loss_2"
    assert definitions.add(helper, {"c": jnp.ones(2)}, "loss") == "loss_3"
    assert definitions.chunks == [
        'c = jnp.asarray(NPZ["constants/c"])',
        "def g(x):\n    return x + c",
        "def loss_2(x):\n    return g(x).g",
        "def loss_3(x):\n    return g(x).g",
    ]
    assert definitions.needed("y = loss_3(1)").count("def ") == 2 and definitions.needed("y = 1") == ""


def test_variables_get_other_names_and_nothing_else_does():
    code = "def f(x, jk):\n    return x.x + xx + jnp.einsum('ij,jk->ik', x, jk)[\"x\"]"
    assert _renamed(code, {"x": "y", "jk": "z"}) == (
        "def f(y, z):\n    return y.x + xx + jnp.einsum('ij,jk->ik', y, z)[\"x\"]"
    )
    assert _renamed(code, {}) == code and _renamed("f(f'{x}')", {"f": "g"}) == "g(f'{x}')"


def test_parts_and_tuples_of_names_are_defined_once():
    definitions = Definitions("")
    assert definitions.part("summed alone") == definitions.part("summed alone") == "summed"
    assert definitions.part("Batches") == "Batches"
    assert definitions.names(("w", "b"), "PARAMS") == definitions.names(("w", "b"), "PARAMS")
    assert len(definitions.chunks) == 3
    assert tuple_text(["w"]) == "('w',)" and tuple_text([f"name_{i}" for i in range(20)]).count("\n") == 21


def test_parts_are_python():
    for name in ("summed", "summed alone", "assign", "Batches"):
        ast.parse(PARTS[name])


def test_names_in_a_syntax_tree():
    tree = ast.parse("def f(a, *b):\n    x.y = [z for z in a]\nlosses.append(f(1))")
    assert list(kept.stored(tree)) == ["f", ".y", "z"] and kept.bound_inside(tree) == {"z"}
    assert [a.arg for a in kept.parameters_of(tree.body[0].args)] == ["a", "b"]
    assert list(kept.added_to(tree)) == ["losses"]
    assert kept.is_gradient(ast.parse("tape.gradient(y, x)").body[0].value)


def test_values_are_the_same_by_type_and_bits():
    assert same(1, 1) and not same(1, 1.0) and not same(jnp.zeros(1), -jnp.zeros(1))
    assert same(np.ones(2, "float32"), jnp.ones(2)) and not same(np.ones(2), np.ones(3))
    assert equal(np.ones(2, "float64"), jnp.ones(2)) and not equal(1, jnp.asarray(1.0))
    assert argument_name("x['w']", set()) == "x_w" and argument_name("params", {"value"}) == "value_1"
