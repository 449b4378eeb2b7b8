"""keras_fence.py: what it assumes of Keras, each assumption a test; and nothing else imports what Keras does not promise."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import tapejax
from tapejax.tf.values import keras_fence as fence

PACKAGE = Path(tapejax.__file__).parent


@pytest.mark.parametrize("name", fence.MODULES)
def test_a_module_has_what_is_used(name):
    assert fence.unlike(name) == []


@pytest.mark.parametrize("name", fence.PARAMETERS)
def test_a_function_has_the_parameters(name):
    place, _, last = name.rpartition(".")
    assert place in fence.MODULES
    assert [*inspect.signature(getattr(fence.part(place), last)).parameters] == fence.PARAMETERS[name].split()


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(fence.MODULES, "utils.io_utils", "print_msg not_there")
    monkeypatch.setitem(fence.MODULES, "not_there", "")
    monkeypatch.setitem(fence.PARAMETERS, "utils.io_utils.print_msg", "other")
    assert fence.unlike("utils.io_utils") == ["utils.io_utils.not_there", "utils.io_utils.print_msg(other)"]
    assert fence.unlike("not_there") == ["not_there"]


@functools.cache
def objects():
    """An object of each class, used as in training."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    return {
        "Layer": model.layers[0],
        "Model": model,
        "Variable": model.layers[0].kernel,
        "optimizers.Optimizer": model.optimizer,
    }


@pytest.mark.parametrize("name", fence.CLASSES)
def test_a_class_has_what_is_read(name):
    one = objects()[name]
    place, _, last = f"keras.{name}".rpartition(".")
    assert isinstance(one, getattr(importlib.import_module(place), last))
    assert [each for each in fence.CLASSES[name].split() if not hasattr(one, each)] == []


def test_keras_is_found_by_its_names():
    assert fence.names_of_keras()[0] is keras


def test_nothing_else_imports_it():
    """Elsewhere "keras.src" occurs in texts, as what a module's name begins with."""
    code = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "keras_fence.py"}
    found = [
        (path.name, line)
        for path, text in code.items()
        for line in text.splitlines()
        if re.search(r"import.*keras\.src", line)
    ]
    assert found == []
    asked = {name for text in code.values() for name in re.findall(r'fence\.part\("([\w.]+)"\)', text)}
    assert asked and asked <= set(fence.MODULES)


SET = {"_created"}  # by the adapters


def private(node):
    """The private name that a piece of code reads, sets or has as a text; None where it has none, or an object its own."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
    elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") not in ("self", "cls"):
        name = node.attr
    else:
        return None
    return name if re.fullmatch(r"_[a-z]\w*", name) else None


def made_by(tree):
    """The names that a module's own classes give to their objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield getattr(node, "attr", None) or node.id


def test_private_attributes_are_read_here_or_listed():
    """Of what has a private name: the adapters use what is listed, and no other module any of it."""
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in PACKAGE.rglob("*.py") if p.name != "keras_fence.py"}
    of_keras = {name for each in objects().values() for name in dir(each)}
    adapters = {path for path in trees if path.parent.name == "libraries"}
    ours = {name for path, tree in trees.items() if path not in adapters for name in made_by(tree)}
    used = {path: set(filter(None, map(private, ast.walk(tree)))) & of_keras for path, tree in trees.items()}
    listed = {*" ".join(fence.CLASSES.values()).split()}
    assert listed <= of_keras
    assert {name: path.name for path in adapters for name in used[path] - listed - SET} == {}
    assert {name: path.name for path in trees.keys() - adapters for name in used[path] - ours} == {}


@pytest.mark.parametrize("name", fence.ON_ARRAYS)
def test_what_is_set_on_arrays_has_that_name(name):
    assert name in inspect.getsource(fence.part(fence.ON_ARRAYS[name]))


def test_what_an_object_holds_is_found():
    made = objects()
    layer, variable, optimizer = made["Layer"], made["Variable"], made["optimizers.Optimizer"]
    assert fence.held(variable) is not None and fence.held(layer) is None
    assert not fence.is_unset(variable) and not fence.is_unset(layer)
    with keras.StatelessScope():
        assert fence.is_unset(keras.Variable("zeros", shape=(2,)))
    parts = fence.parts_of(made["Model"])
    assert [x.path for x in fence.parts_of(layer)["trainable_variables"]] == [x.path for x in layer.trainable_variables]
    assert layer in parts["layers"] and not fence.parts_of(layer)["layers"]
    assert fence.trained_by(optimizer) == made["Model"].trainable_variables
    assert float(fence.rate_of(optimizer)) == pytest.approx(0.01) and not fence.excludes(optimizer)
    decaying = keras.optimizers.AdamW()
    decaying.exclude_from_weight_decay(var_names=["bias"])
    decaying.build(layer.trainable_variables)
    assert fence.excludes(decaying)
