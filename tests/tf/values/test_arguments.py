"""tf/values/structures.py: what is said of a wrong argument."""

import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.tape import structures
from tapejax.tape.structures import sources_of, targets_of
from tapejax.tf.values.errors import InvalidArgumentError
from tapejax.tf.values.structures import refusal

X, Y = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0])


def test_what_is_no_array_is_refused_by_name():
    with pytest.raises(TypeError, match="Argument `sources` should be a Tensor, jax.Array or Variable"):
        sources_of([X, "a"])
    with pytest.raises(TypeError, match="Argument `target` should be a Tensor.*holds 'a' of type 'str'"):
        targets_of({"x": "a"})
    with pytest.raises(TypeError, match="Argument `target` should be one Tensor"):
        structures.current.one([X], "target")


def test_what_cannot_be_watched():
    assert "Passed in object 'a' of type 'str'" in str(refusal("a", "tensor"))
    for number in (1.0, np.ones(2)):
        assert "Make it a tensor" in str(refusal(number, "tensor"))
    assert ".trainable_variables" in str(refusal(type("Model", (), {"trainable_variables": ()})(), "tensor"))


def test_cotangents_are_as_given():
    assert structures.current.cotangents(targets_of([X]), [Y])[0] is Y
    assert structures.current.cotangents(targets_of(X), [Y])[0] is Y  # a list of one stands for that one


@pytest.mark.parametrize("given, text", [([jnp.ones(3)], "has shape"), ([Y, Y], "got 2 for 1"), ([None], "is None")])
def test_a_wrong_cotangent_is_refused(given, text):
    with pytest.raises((ValueError, InvalidArgumentError), match=text):
        structures.current.cotangents(targets_of([X]), given)


@pytest.mark.parametrize("given", [[Y, Y], (Y, None)])
def test_output_gradients_of_more_targets_than_there_are_are_counted(given):
    """They are no tensor of shape (2, 2)."""
    with pytest.raises(ValueError, match="got 2 for 1"):
        structures.current.cotangents(targets_of(X), given)
    parts = [jnp.array(3.0), jnp.array(5.0)]  # these are one
    np.testing.assert_array_equal(structures.current.cotangents(targets_of(X), parts)[0], Y)


def test_a_wrong_tangent_is_refused():
    assert structures.current.tangents(sources_of([X]), [Y])[0] is Y
    for given, text in (([jnp.ones(3)], r"tangents\[0\] has shape"), ([jnp.array([1, 2])], "dtype int")):
        with pytest.raises(ValueError, match=text):
            structures.current.tangents(sources_of([X]), given)
    with pytest.raises(ValueError, match=r"primals\[1\] was specified as a primal before"):
        structures.current.tangents(sources_of([X, X]), [Y, Y])
