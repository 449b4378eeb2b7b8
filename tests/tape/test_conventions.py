"""tape/structures.py: what a user hands to a tape, taken apart. (tests/tf/parity has a test_structures.)"""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y

from tapejax.tape import structures
from tapejax.tape.recording import Recording
from tapejax.tape.structures import Leaf


@pytest.fixture(autouse=True)
def plain():
    before = structures.current
    structures.use(structures.Conventions())
    yield
    structures.use(before)


def test_a_pytree_is_taken_apart_and_packed():
    structure = structures.targets_of({"a": X, "b": [Y]})
    assert [leaf.array for leaf in structure.leaves] == [X, Y]
    assert structure.pack([1.0, None]) == {"a": 1.0, "b": [None]}
    assert structure.parts_of({"a": 1, "b": [2]}) == [1, 2]


def test_what_is_no_array_is_refused_by_name():
    with pytest.raises(TypeError, match="Argument `sources` should be a Tensor, jax.Array or Variable"):
        structures.sources_of([X, "a"])
    with pytest.raises(TypeError, match="Argument `target` should be one Tensor"):
        structures.one_target([X])
    assert "Passed in object 'a' of type 'str'" in str(structures.cannot_watch("a"))
    assert "Make it a tensor" in str(structures.cannot_watch(1.0))


def test_cotangents_are_ones_or_as_given():
    structure = structures.targets_of([X])
    np.testing.assert_array_equal(structures.cotangents_of(structure.leaves, [X], None)[0], [1.0, 1.0])
    assert structures.cotangents_of(structure.leaves, [X], [Y])[0] is Y


@pytest.mark.parametrize("given, text", [([jnp.ones(3)], "has shape"), ([Y, Y], "got 2 for 1"), ([None], "is None")])
def test_a_wrong_cotangent_is_refused(given, text):
    with pytest.raises(ValueError, match=text):
        structures.cotangents_of(structures.targets_of([X]).leaves, [X], given)


def test_a_leaf_is_a_source():
    (leaf,) = structures.sources_of(X).leaves
    assert leaf.source(Recording()).array is X and leaf.holder is None


def test_complex_cotangents_are_conjugated():
    np.testing.assert_array_equal(structures.conjugate(jnp.array(1 + 2j)), 1 - 2j)
    assert structures.conjugate(X) is X and structures.conjugate(None) is None


def test_a_target_of_integers_has_no_cotangent_of_its_own():
    whole = jnp.array([1, 2])
    leaves = structures.targets_of([whole, X]).leaves
    none, ones = structures.cotangents_of(leaves, [whole, X], None)
    assert none is None and ones.dtype == X.dtype


def test_other_conventions_know_other_leaves():
    class Boxes(structures.Conventions):
        def leaf(self, value):
            return Leaf(value, value[0], lambda x: (x,), holder=value, watched=True) if value == "box" else None

        def cure(self, value, argument):
            return f" Box the {argument}."

    class Box(str):
        def __getitem__(self, position):
            return X

    structures.use(Boxes())
    structure = structures.sources_of({"a": Box("box")})
    (leaf,) = structure.leaves
    assert leaf.source(Recording()).watched and not leaf.source(Recording(watch_accessed=False)).watched
    assert structure.pack([1.0]) == {"a": (1.0,)} and structure.pack_raw([1.0]) == {"a": 1.0}
    with pytest.raises(TypeError, match="Box the target."):
        structures.targets_of(X)
