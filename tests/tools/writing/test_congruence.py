"""Programs that compute the same by the same operations."""

import jax
import jax.numpy as jnp
import pytest

from tapejax.tools.seeing.spelling import normal_form
from tapejax.tools.writing.congruence import congruent

X = jnp.ones(3)


def form(function, *args):
    return normal_form(jax.make_jaxpr(function)(*args))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (lambda x, y: jnp.sin(x) * jnp.cos(y), lambda x, y: jnp.cos(y) * jnp.sin(x), True),
        (lambda x, y: jnp.sin(x) + jnp.sin(x), lambda x, y: (lambda s: s + s)(jnp.sin(x)), True),
        (lambda x, y: (x + y) + y, lambda x, y: x + (y + y), False),
        (lambda x, y: x - y, lambda x, y: y - x, False),
        (lambda x, y: x * 2.0, lambda x, y: x * 3.0, False),
        (lambda x, y: jnp.sum(x, axis=0), lambda x, y: jnp.max(x, axis=0), False),
    ],
)
def test_the_same_operations_in_another_order(one, other, same):
    assert congruent(form(one, X, X), form(other, X, X)) is same
