"""The program of one example gives, under `jax.vmap`, the operations and the numbers of the batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.jaxprs.fence import jaxpr_as_fun
from tapejax.tools.seeing.spelling import normal_form
from tapejax.tools.writing.congruence import congruent
from tapejax.tools.writing.unbatching import Unbatched, Unclear, Unsure, unbatched

X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
W = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4)), jnp.float32)

FUNCTIONS = {
    "product": lambda w, x: x @ w,
    "product from the right": lambda w, x: w.T @ x,
    "two products": lambda w, x: (x @ w) @ (x @ w),
    "outer": lambda w, x: jnp.outer(x, x) @ w,
    "scalar": lambda w, x: x[0] * w[0] + x[1],
    "softmax": lambda w, x: jnp.exp(x - jnp.max(x)) / jnp.sum(jnp.exp(x - jnp.max(x))),
    "regrouped": lambda w, x: (x @ w).reshape(2, 2).T[None, :, ::-1].squeeze(0),
    "joined": lambda w, x: jnp.concatenate([x, w[:, 0], x * 2.0]),
    "chosen": lambda w, x: jnp.where(x > 0, x, w[:, 0]),
    "sums along": lambda w, x: jnp.cumsum(x) + jnp.argmax(x),
    "sorted": lambda w, x: jnp.sort(x @ w),
    "relu": lambda w, x: jax.nn.relu(x @ w),
    "decomposed": lambda w, x: jnp.linalg.cholesky(jnp.outer(x, x) + 9.0 * jnp.eye(3)),
    "slope": lambda w, x: jax.grad(lambda x: jnp.sum(jnp.tanh(x @ w) ** 2))(x),
    "independent": lambda w, x: jnp.sum(w),
    "stacked": lambda w, x: jnp.stack([*jnp.unstack(x[:, None] * w)[::-1], w[0]], axis=1),
    "picked": lambda w, x: w[jnp.argsort(x)[:2]] * x[w[:2, 0].astype(int)][:, None],
    "place": lambda w, x: x[jnp.argmax(x)] * w[jnp.argmin(x)],
    "place in a matrix": lambda w, x: jnp.outer(x, x)[1, jnp.argmax(x)] + w[jnp.argmin(x), 2],
    "loop": lambda w, x: jax.lax.scan(lambda h, row: (jnp.tanh(h + row), h[0]), x, w.T),
    "loop that starts alike": lambda w, x: jax.lax.scan(lambda h, v: (h + v * x, v), jnp.zeros(3), w[:, 0]),
    "counted loop": lambda w, x: jax.lax.fori_loop(0, 3, lambda i, h: jnp.tanh(h @ w @ w.T) + i, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_gives_the_batch_again(name):
    batch = jax.make_jaxpr(jax.vmap(FUNCTIONS[name], in_axes=(None, 0)))(W, X)
    one, outs = unbatched(batch, [Unbatched(W), Unbatched(X[0], 0)], range(len(batch.out_avals)))
    again = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(one), in_axes=(None, 0), out_axes=[out.axis for out in outs]))(W, X)
    assert congruent(normal_form(again), normal_form(batch))
    expected = jax.tree.leaves(FUNCTIONS[name](W, X[0]))
    for x, y in zip(jaxpr_as_fun(one)(W, X[0]), expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_an_input_that_is_the_batch_in_one_use_alone():
    batch = jax.make_jaxpr(jax.vmap(lambda x: X - x))(X)
    uses = iter([0, 1])
    row = Unsure([Unbatched(X), Unbatched(X[0], 0)], lambda: next(uses))
    shared = jax.make_jaxpr(lambda x: jaxpr_as_fun(jax.make_jaxpr(lambda a, b: a[None] - b[:, None])(x, x))(x, x))(X)
    one, _ = unbatched(shared, [row], [0])
    np.testing.assert_array_equal(jaxpr_as_fun(one)(X, X[0])[0], X - X[0])
    np.testing.assert_array_equal(jaxpr_as_fun(shared)(X)[0], jaxpr_as_fun(batch)(X)[0])


def test_what_mixes_examples_is_of_no_example():
    with pytest.raises(Unclear):
        unbatched(jax.make_jaxpr(lambda x: x - jnp.mean(x, axis=0))(X), [Unbatched(X[0], 0)])
