"""tape/jacobian.py: a sweep under `jax.vmap`, in the mode that takes fewer passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, program_of

from tapejax.tape.jacobian import batch_jacobian, jacobian


@pytest.mark.parametrize("mode", [None, "reverse", "forward"])
def test_every_element_with_respect_to_every_other(mode):
    def fn(x):
        return jnp.outer(x, x * Y)

    found = jacobian(*program_of(fn, X), mode)[0]
    np.testing.assert_allclose(found, jax.jacrev(fn)(X), rtol=1e-6)


def test_a_mode_that_cannot_go_there_gives_way_to_the_other():
    def loop(x):
        return jax.lax.while_loop(lambda x: x[0] < 3, lambda x: x * 2, x)

    np.testing.assert_allclose(jacobian(*program_of(loop, X), "reverse")[0], jax.jacfwd(loop)(X))


def test_each_example_of_a_batch():
    batch = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = batch_jacobian(*program_of(lambda x: x**2, batch))[0]
    np.testing.assert_allclose(found, jax.vmap(jax.jacrev(lambda x: x**2))(batch))


def test_none_where_nothing_is_connected():
    assert jacobian(*program_of(lambda x: jnp.floor(x), X)) == [None]
