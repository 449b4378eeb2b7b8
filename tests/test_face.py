"""What ``dir``, and so completion without a type checker, says of the face and of the namespaces that are files."""

import sys

import pytest

import tapejax

MODULES = {"": tapejax, **{name: getattr(tapejax, name) for name in ("errors", "nest")}}
LATER = {"data": "grain", "train": "orbax.checkpoint", "saved_model": "jax"}


def module(name):
    if name in LATER:
        pytest.importorskip(LATER[name])
    return MODULES[name] if name in MODULES else getattr(tapejax, name)


@pytest.mark.parametrize("name", [*MODULES, *LATER])
def test_dir_has_the_public_names_and_nothing_else(name):
    where = module(name)
    assert dir(where) == sorted(where.__all__)
    assert not [each for each in dir(where) if each.startswith("_")]


@pytest.mark.parametrize(
    ("name", "some"),
    {
        "": "GradientTape Variable IndexedSlices device print nn data train saved_model errors nest",
        "data": "AUTOTUNE Dataset Iterator Options experimental",
        "train": "Checkpoint CheckpointManager latest_checkpoint",
        "saved_model": "SaveOptions load save",
        "errors": "InvalidArgumentError OpError OK NonFiniteError",
        "nest": "flatten map_structure",
    }.items(),
)
def test_what_users_look_for_is_there(name, some):
    found = dir(module(name))
    assert set(some.split()) <= set(found)
    assert not {"Any", "annotations", "functools", "jaxprs", "tools", "Sequence", "extra_missing"} & set(found)


@pytest.mark.parametrize("name", [*MODULES, *LATER])
def test_what_is_in_dir_is_there(name):
    where = module(name)
    if "keras" in sys.modules and sys.modules["keras"].backend.backend() != "jax":
        pytest.skip("Keras is loaded with another backend")
    assert not [each for each in dir(where) if not hasattr(where, each)]
