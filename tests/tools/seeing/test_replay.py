"""tools/seeing/tape.py: what classes of tapes are given; a recorded program run forward from other values."""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, program_of

import tapejax as tf
from tapejax.tools.seeing.steps import replay


def test_it_is_replayed_from_other_values():
    program, values = program_of(lambda x: jnp.sin(x) * x * Y, X)
    np.testing.assert_allclose(replay(program, values, [Y])[0], jnp.sin(Y) * Y * Y, rtol=1e-5)


def test_an_error_names_the_class_that_a_user_knows():
    for method in ("explain", "memory", "as_function", "__getitem__"):
        with pytest.raises(TypeError, match=rf"GradientTape\.{method}\(\) missing"):
            getattr(tf.GradientTape(), method)()
