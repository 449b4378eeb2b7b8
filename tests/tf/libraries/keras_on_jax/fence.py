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


def trained():
    """A model with all that is looked for, after a step."""
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(1, kernel_regularizer="l2"), keras.layers.Dropout(0.1)]
    )
    model.compile(keras.optimizers.AdamW(0.01), "mse")
    model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0)
    return model


@functools.cache
def objects():
    """An object of each class, used as in training."""
    model = trained()
    return {
        "Layer": model.layers[0],
        "Model": model,
        "Variable": model.layers[0].kernel,
        "name_scope": keras.name_scope("a"),
        "optimizers.Optimizer": model.optimizer,
    }


@pytest.mark.parametrize("name", fence.CLASSES)
def test_a_class_has_what_is_read(name):
    one = objects()[name]
    place, _, last = f"keras.{name}".rpartition(".")
    assert isinstance(one, getattr(importlib.import_module(place), last))
    assert [each for each in fence.CLASSES[name] if not hasattr(one, each)] == []


CALLED = {
    "Layer": [fence.BUILD],
    "Model": [fence.ALL_LAYERS, fence.COMPUTE_LOSS, fence.ADD_OWN_LOSS, fence.BUILD_BY_BATCH, fence.STATE],
    "Variable": [fence.ASSIGN, fence.INITIALIZE, fence.FIRST_VALUE],
    "optimizers.Optimizer": [fence.FILTER, fence.UPDATE, fence.DECAYS],
}


def test_keras_calls_what_is_replaced(monkeypatch):
    """By its name, of the object: what is put in the place of a method is run."""
    called = []

    def note(kind, name):
        method = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *args, **kwargs: called.append(name) or method(*args, **kwargs))

    for name, methods in CALLED.items():
        for method in methods:
            note(type(objects()[name]), method)
    trained()
    with keras.StatelessScope():
        late = keras.Variable("zeros", shape=(2,))
    assert set(called) == set().union(*CALLED.values()) and not fence.is_unset(late)


def test_what_is_read_is_what_it_is_taken_for():
    model, layer, variable = (objects()[name] for name in ("Model", "Layer", "Variable"))
    assert getattr(variable, fence.VALUE) is variable.value
    assert getattr(model, fence.TAKES_TRAINING) and getattr(model, fence.LOSS_TRACKER) is model.metrics[0]
    assert {*model.layers, model} <= {*getattr(model, fence.ALL_LAYERS)()} and not getattr(layer, fence.LAYERS)
    assert getattr(model.optimizer, fence.DECAYS)(variable) and not getattr(layer, fence.METRICS)
    outer, inner = (keras.name_scope("a", caller=layer) for _ in range(2))
    with outer, inner:
        assert getattr(outer, fence.IS_OPEN) and not getattr(inner, fence.IS_OPEN)


def test_keras_is_found_by_its_names():
    own, *tensorflows = fence.names_of_keras()
    assert own is keras and {each.__name__ for each in tensorflows} <= {fence.TENSORFLOWS}
    assert fence.is_of(keras.tree.flatten, "tree") and not fence.is_of(keras.ops.relu, "tree")


CODE = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "keras_fence.py"}


def test_nothing_else_imports_it():
    assert [path.name for path, text in CODE.items() if "keras.src" in text.replace("``keras.src``", "")] == []


def asked(tree):
    """The parts of ``keras.src`` that a function asks for, and the names that it uses of each."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        held = {}
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts) if several else [(target, node.value)]
                held |= {ast.unparse(name): part for name, value in pairs if (part := part_in(value)) is not None}
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute):
                part = part_in(node.value) or held.get(ast.unparse(node.value))
                if part is not None:
                    yield part, node.attr


def part_in(node):
    asked = isinstance(node, ast.Call) and ast.unparse(node.func) == "fence.part"
    return node.args[0].value if asked and isinstance(node.args[0], ast.Constant) else None


def test_what_is_asked_of_a_module_is_listed():
    used = {pair for text in CODE.values() if "fence.part(" in text for pair in asked(ast.parse(text))}
    assert ("losses.loss", "reduce_values") in used and ("backend.jax.core", "jnp") in used
    assert {(part, name) for part, name in used if name not in fence.MODULES[part].split()} == set()


OWN = {"_created"}  # what the adapters set on Keras's objects


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


def test_private_names_stand_in_the_fence_alone():
    """No module has one of Keras's objects' private names, unless it is that of its own objects, too; an adapter none at all."""
    of_keras = {name for each in objects().values() for name in dir(each) if name.startswith("_")}
    trees = {p: ast.parse(text) for p, text in CODE.items() if of_keras & {*re.findall(r"\b_[a-z]\w*", text)}}
    adapters = {path for path in CODE if path.parent.name == "libraries"}
    ours = {name for path, tree in trees.items() if path not in adapters for name in made_by(tree)}
    used = {path: set(filter(None, map(private, ast.walk(tree)))) & of_keras for path, tree in trees.items()}
    listed = {name for names in fence.CLASSES.values() for name in names}
    assert listed <= of_keras and len(adapters) >= 6
    assert OWN <= set().union(*used.values())
    assert {name: path.name for path in trees for name in used[path] - ours - OWN} == {}
    listed |= {*fence.ON_ARRAYS, *[x for names in fence.MODULES.values() for x in names.split() if x[0] == "_"]}
    assert {name: p.name for p in adapters for name in listed if re.search(rf"\b{name}\b", CODE[p])} == {}


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
