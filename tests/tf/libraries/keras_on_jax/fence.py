"""keras_fence.py: what it assumes of Keras, each assumption a test; and nothing else imports what Keras does not promise."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import tapejax
from tapejax.tf.libraries import keras_fence as fence

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


def test_private_attributes_are_listed():
    """Every attribute with a leading underscore that the adapters read of an object of Keras's is in the lists."""
    listed = " ".join([*fence.MODULES.values(), *fence.CLASSES.values()]).split()
    files = [path for path in (PACKAGE / "tf" / "libraries").glob("keras*.py") if path.name != "keras_fence.py"]
    of_keras = r"\b(?:kind|layer|model|optimizer|trainer|utils|variable)\.(_[a-z]\w*)"
    read = {name for path in files for name in re.findall(of_keras, path.read_text(encoding="utf-8"))}
    assert read - set(listed) - OURS == set()


# What tapejax itself sets there, or reads of its own variables and functions.
OURS = {"_tapejax_unchecked"}
