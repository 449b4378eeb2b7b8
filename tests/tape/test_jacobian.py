"""tape/jacobian.py: a sweep under `jax.vmap`, in the mode that takes fewer passes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, program_of, recorded

import tapejax as tf
from tapejax.tape import dispatch, runner
from tapejax.tape.jacobian import batch_jacobian, jacobian
from tapejax.tape.pullback import PullbackOp
from tapejax.tape.query import Query
from tapejax.tape.runner import Runner

MODES = "reverse", "forward"


@pytest.mark.parametrize("mode", [None, *MODES])
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
    assert batch_jacobian(*program_of(lambda x: jnp.floor(x), jnp.ones((3, 2)))) == [None]


@pytest.mark.parametrize(
    "fn, passes", [(lambda x: jnp.outer(x, x), 2), (jnp.prod, 1), (lambda x: jnp.outer(x, x) + 0j, 4)]
)
def test_the_mode_with_fewer_passes_is_taken_reverse_for_complex_values(fn, passes, monkeypatch):
    class Counting(Runner):
        def run(self, op, inputs):
            if op.name == "batch":
                counts.append(op.count)
            return super().run(op, inputs)

    counts = []
    monkeypatch.setattr(runner, "current", Counting())
    jacobian(*program_of(fn, X))
    assert counts == [passes]


def test_forward_mode_takes_two_passes_for_a_complex_source():
    z = X + 1j * Y
    reverse, forward = (jacobian(*program_of(lambda z: jnp.outer(z, z.conj()), z), mode) for mode in MODES)
    np.testing.assert_allclose(forward[0], reverse[0], rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_where_both_modes_fail_the_error_is_of_the_one_that_was_chosen(mode):
    class Neither(PullbackOp):
        def pull_back(self, step, inputs, cotangents):
            raise LookupError("no reverse mode")

        def push_forward(self, step, inputs, tangents):
            raise LookupError("no forward mode")

    op = Neither("neither", lambda x: [x * 1], None)
    recording, (y,) = recorded(lambda x: dispatch.run(op, (x,)), X)
    with pytest.raises(LookupError, match=f"no {mode} mode"):
        jacobian(*Query(recording, [y], [X]).program(), mode)


@pytest.mark.parametrize(
    "transformed", [lambda f: f, jax.jit, lambda f: lambda x: jax.vmap(f)(x[None])[0]], ids=["", "jit", "vmap"]
)
def test_at_a_pole_it_is_reverse_modes(transformed):
    x = jnp.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])

    def distances(x):
        return jnp.sqrt(jnp.sum((x[:, None] - x) ** 2, -1))

    def by_tape(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = distances(x)
        return tape.jacobian(y, x)

    np.testing.assert_allclose(transformed(by_tape)(x), jax.jacrev(distances)(x), rtol=1e-6)
