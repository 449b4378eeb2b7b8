"""tape/structures.py: what a user hands to a tape, taken apart. (tests/tf/parity has a test_structures.)"""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y

from tapejax.tape import structures
from tapejax.tape.recording import Recording


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
