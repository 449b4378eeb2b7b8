"""tape/structures.py: what a user hands to a tape, taken apart. (tests/tf/parity has a test_structures.)"""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y

import tapejax as tf
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
    assert structure.pack([1.0, None]) == structure.pack_raw([1.0, None]) == {"a": 1.0, "b": [None]}


def test_one_array_is_one_leaf():
    assert structures.current.one(X, "target").array is X
    assert [leaf.array for leaf in structures.current.take_apart([X, Y], "target").leaves] == [X, Y]
    with pytest.raises((TypeError, ValueError), match="target|shape"):  # the words are those of the conventions in use
        structures.current.one([X, Y], "target")


def test_a_leaf_is_a_source():
    (leaf,) = structures.sources_of(X).leaves
    assert leaf.source(Recording()).array is X and leaf.holder is None


def test_complex_cotangents_are_conjugated():
    np.testing.assert_array_equal(structures.conjugate(jnp.array(1 + 2j)), 1 - 2j)
    assert structures.conjugate(X) is X and structures.conjugate(None) is None


def test_a_tape_and_an_accumulator_take_plain_pytrees():
    with tf.GradientTape(persistent=True) as tape, tf.autodiff.ForwardAccumulator([X], [Y]) as accumulator:
        tape.watch(X)
        y = {"y": jnp.sin(X)}
    for given, factor in ((None, 1.0), ({"y": Y}, Y)):
        np.testing.assert_allclose(tape.gradient(y, [X], given)[0], factor * jnp.cos(X), rtol=1e-6)
    np.testing.assert_allclose(tape.batch_jacobian(y["y"][:, None], X[:, None]), jnp.zeros([2, 1, 1]))
    np.testing.assert_allclose(accumulator.jvp(y)["y"], Y * jnp.cos(X), rtol=1e-6)


def test_an_attribute_that_is_not_there():
    with pytest.raises(AttributeError, match="'GradientTape' object has no attribute 'nothing'"):
        tf.GradientTape().nothing  # noqa: B018


def test_other_conventions_know_other_leaves():
    class Structure(structures.Structure):
        def __init__(self, boxes):
            super().__init__([x for (x,) in boxes.values()], "sources")
            self.leaves = [Leaf((x.array,), x.array, lambda y: (y,), "box", True) for x in self.leaves]

    class Boxes(structures.Conventions):
        def take_apart(self, structure, argument):
            return Structure(structure)

    structures.use(Boxes())
    structure = structures.sources_of({"a": (X,)})
    (leaf,) = structure.leaves
    assert leaf.source(Recording()).watched and not leaf.source(Recording(watch_accessed=False)).watched
    assert leaf.source(Recording()).holder == "box" and structure.pack([1.0]) == [(1.0,)]
