"""Jacobians, Hessians, forward mode, custom gradients and control flow, each against what JAX gives for the function."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from plain_jax import CASES, FLOAT, a_third

import tapejax as tf
from tapejax.execution import batches
from tapejax.execution import runner as running
from tapejax.jaxprs import cache
from tapejax.tape import active, derivative, rules
from tapejax.tape import jacobian as jacobians
from tests.compiling import compiles
from tests.tape.interpreted import interpreted


def draw(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), FLOAT)


def by_jax(function):
    """A reference, evaluated by Python: XLA takes longer to compile it than the test."""
    return interpreted()(jax.jit(function))


def recorded(function, *sources, persistent=True):
    """A tape on which `function(*sources)` ran, and its result."""
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(sources)
        result = function(*sources)
    return tape, result


def assert_close(found, expected, tolerance=1e-5):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


# ---- Jacobians and Hessians against jacrev, jacfwd, hessian ---------------------------------------------------------

FUNCTIONS = {
    "scalar": (lambda x: jnp.sin(x) * x, [()]),
    "scalar_of_a_vector": (lambda x: jnp.sum(x**3) * x[0], [(4,)]),
    "vector_of_a_scalar": (lambda x: jnp.sin(x * jnp.arange(50.0)), [()]),
    "square": (lambda x: jnp.tanh(draw(6, 6) @ x), [(6,)]),
    "tall": (lambda x: jnp.tanh(draw(30, 3) @ x), [(3,)]),
    "wide": (lambda x: jnp.tanh(draw(3, 30) @ x), [(30,)]),
    "layer": (lambda k, b: jax.nn.relu(draw(7, 5) @ k + b), [(5, 4), (4,)]),
    "high_ranks": (lambda x: jnp.einsum("ijk,kl->ijl", x, draw(2, 3)) ** 2, [(2, 3, 2)]),
    "softmax": (lambda x: jax.nn.softmax(x, axis=-1), [(3, 4)]),
    "inverse": (lambda x: jnp.linalg.inv(x + 4 * jnp.eye(3)), [(3, 3)]),
    "scan": (lambda x: jax.lax.scan(lambda c, y: (jnp.sin(c * y), c), 1.0, x)[1], [(5,)]),
    "cond": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), [(3,)]),
    "jitted": (jax.jit(lambda x: jnp.cumsum(x) / (1 + x**2)), [(4,)]),
    "gather": (lambda x: x[jnp.array([2, 0, 2])] * x[1], [(3,)]),
    "two_sources": (lambda x, y: jnp.outer(x, y) + y, [(2,), (3,)]),
    "nothing": (lambda x: x * 2.0, [(0, 3)]),
}
named = pytest.mark.parametrize("name", FUNCTIONS)


def program_of(name):
    function, shapes = FUNCTIONS[name]
    return function, tuple(draw(*shape, seed=i + 1) for i, shape in enumerate(shapes))


@functools.cache
def expected_jacobian(name):
    function, sources = program_of(name)
    return by_jax(jax.jacrev(function, argnums=tuple(range(len(sources)))))(*sources)


@named
@pytest.mark.parametrize("mode", [None, "reverse", "forward"])
def test_jacobian(name, mode, monkeypatch):
    """Of the function by hand and of the one that the tape hands out, by either mode of JAX's; the second is cached."""
    function, sources = program_of(name)
    monkeypatch.setattr(jacobians, "jacobian", functools.partial(jacobians.jacobian, mode=mode))
    for _ in range(2):
        tape, y = recorded(function, *sources)
        found = tape.jacobian(y, sources)
        assert_close(found, expected_jacobian(name))
    handed_out = tape.as_function(y, sources)
    assert_close(found, by_jax(jax.jacrev(handed_out))(sources))
    assert_close(found, by_jax(jax.jacfwd(handed_out))(sources))


@named
def test_hessian(name):
    """The Jacobian of a gradient, on nested tapes and on one tape over `as_function`'s gradient."""
    function, sources = program_of(name)

    def loss(*sources):
        return jnp.sum(function(*sources) ** 2) * (1 + jnp.sum(sources[0]))

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(sources)
        inner, y = recorded(loss, *sources)
        slopes = inner.gradient(y, sources)
    everything = tuple(range(len(sources)))
    expected = by_jax(jax.hessian(loss, argnums=everything))(*sources)
    found = tuple(outer.jacobian(slope, sources, unconnected_gradients="zero") for slope in slopes)
    assert_close(found, expected, 1e-4)
    assert_close(found, by_jax(jax.hessian(lambda s: inner.as_function(y, sources)(s)))(sources), 1e-4)


@named
def test_jacobian_of_a_jacobian(name):
    """The third derivative of nothing in particular: an axis for each level."""
    function, sources = program_of(name)
    x = sources[0]
    with tf.GradientTape() as outer:
        outer.watch(x)
        inner, y = recorded(lambda x: function(x, *sources[1:]) ** 2, x)
        rows = inner.jacobian(y, x)
    found = outer.jacobian(rows, x, unconnected_gradients="zero")
    third = jax.jacfwd(jax.jacrev(lambda x: function(x, *sources[1:]) ** 2))
    assert_close(found, by_jax(third)(x), 1e-4)


def test_batch_jacobian():
    function, x = (lambda x: jnp.tanh(x @ draw(4, 3)) * x[:, :1], draw(6, 4, seed=1))
    for _ in range(2):
        tape, y = recorded(function, x)
        found = tape.batch_jacobian(y, x)
    each = by_jax(jax.vmap(jax.jacrev(lambda row: function(row[None])[0])))(x)
    assert_close(found, each)
    assert_close(found, jnp.einsum("bxby->bxy", by_jax(jax.jacfwd(tape.as_function(y, x)))(x)))


def jacobian_by_tape(f):
    def jacobian(x):
        tape, y = recorded(f, x)
        return tape.jacobian(y, x)

    return jacobian


def hessian_by_tape(f):
    def hessian(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            tape, y = recorded(f, x)
            slope = tape.gradient(y, x)
        return outer.jacobian(slope, x)

    return hessian


def test_inside_transformations():
    """A function that takes a Jacobian by a tape is a function like another to JAX."""
    x = draw(4)
    f, loss = (lambda x: jnp.sin(x) * jnp.sum(x)), (lambda x: jnp.sum(jnp.sin(x) * jnp.sum(x)))
    assert_close(jax.jit(jacobian_by_tape(f))(x), by_jax(jax.jacrev(f))(x))
    assert_close(jax.vmap(jacobian_by_tape(f))(draw(3, 4)), by_jax(jax.vmap(jax.jacrev(f)))(draw(3, 4)))
    assert_close(jax.jacfwd(jacobian_by_tape(f))(x), by_jax(jax.jacfwd(jax.jacrev(f)))(x))
    assert_close(*(jax.grad(lambda x, j=j: jnp.sum(j(f)(x) ** 2))(x) for j in (jacobian_by_tape, jax.jacrev)))
    assert_close(
        jax.jit(jax.vmap(hessian_by_tape(loss)))(draw(3, 4)), by_jax(jax.vmap(jax.hessian(loss)))(draw(3, 4)), 1e-4
    )
    assert_close(jacobian_by_tape(jax.grad(loss))(x), by_jax(jax.hessian(loss))(x), 1e-4)
    assert_close(jacobian_by_tape(jax.checkpoint(f))(x), by_jax(jax.jacrev(f))(x))


# ---- how a Jacobian is computed -------------------------------------------------------------------------------------


@pytest.fixture
def modes(monkeypatch):
    """The ways in which Jacobians were computed since: their Ops and the arrays that they ran on."""
    seen = []
    run = running._WAYS[derivative.SweepsOp]
    modes = {jacobians._reverse_rows: ("reverse",), jacobians._forward_columns: ("forward",)}

    def spy(op, values):
        seen.append(((op.name, *modes.get(op.take, ())), op.whole(), tuple(values)))
        return run(op, values)

    monkeypatch.setitem(running._WAYS, derivative.SweepsOp, spy)
    return seen


@pytest.mark.parametrize(
    "shapes, mode",
    [
        (((201,), ()), "forward"),  # one column under a curve
        (((5, 4), (3,)), "forward"),
        (((3,), (3,)), "reverse"),
        (((), (7,)), "reverse"),
        (((2,), (50, 2)), "reverse"),
    ],
)
def test_the_mode_with_fewer_passes(shapes, mode, modes):
    (of, by), x = shapes, draw(*shapes[1])
    tape, y = recorded(lambda x: jnp.sin(jnp.sum(x) * draw(*of)), x)
    assert tape.jacobian(y, x).shape == of + by
    assert [name for name, *_ in modes] == [("jacobian", mode)]


def test_the_passes_are_counted():
    """A scalar under a vector of 201 is one pushforward, a vector of 201 over a scalar one pullback."""
    forward, backward = [], []

    @tf.custom_gradient
    def traced(x):
        return x * 2.0, lambda dy: backward.append(1) or dy * 2.0

    @jax.custom_jvp
    def pushed(x):
        return x * 2.0

    @pushed.defjvp
    def rule(primals, tangents):
        forward.append(tangents[0].shape)
        return primals[0] * 2.0, tangents[0] * 2.0

    x, s = draw(201), tf.Variable(2.0, dtype=FLOAT)
    with tf.GradientTape(persistent=True) as tape:
        column = traced(s * x)
        row = tf.reduce_sum(traced(s * x))
        alone = pushed(s * x)
    np.testing.assert_allclose(tape.jacobian(column, s), 2 * x, rtol=1e-5)
    np.testing.assert_allclose(tape.jacobian(row, s), 2 * x.sum(), rtol=1e-4)
    np.testing.assert_allclose(tape.jacobian(alone, s), 2 * x, rtol=1e-5)
    assert len(backward) == 2
    assert set(forward) == {(201,)}


def test_what_goes_one_way_only(modes):
    """A while_loop of unknown length goes forward only, a custom_vjp backward only: the Jacobian finds the way."""

    def loop(x):
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, x))[1]

    @jax.custom_vjp
    def wrong(x):
        return x * 1.0

    wrong.defvjp(lambda x: (wrong(x), None), lambda _, g: (g * 3.0,))
    x = draw(3)
    tape, y = recorded(jax.jit(loop), x)
    assert_close(tape.jacobian(y, x), jnp.diag(4 * x**3), 1e-4)
    s = draw()
    tape, y = recorded(lambda s: wrong(s * jnp.arange(5.0)), s)
    assert_close(tape.jacobian(y, s), 3.0 * jnp.arange(5.0))


@pytest.mark.parametrize("step", [jnp.square, jnp.conj, jnp.abs, lambda z: 1j * z, lambda z: jnp.real(z) * z])
def test_forward_mode_gives_what_reverse_mode_gives(step):
    """Of complex numbers, of which an operation that goes forward only has a Jacobian, too; and in the dtype of the source."""
    z = draw(3) + 1j * draw(3, seed=1)

    @jax.jit
    def once(z):
        return jax.lax.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, step(s[1]) + 0j), (0, z))[1]

    for narrow in (lambda z: z, jnp.real):
        (tape, y), (loop, same) = (recorded(lambda z, f=f, narrow=narrow: narrow(f(z)), z) for f in (step, once))
        assert_close(loop.jacobian(same, z), tape.jacobian(y, z))
    half = draw().astype(jnp.bfloat16)
    tape, y = recorded(lambda x: jnp.arange(3.0) * x.astype(jnp.float32), half)
    assert tape.jacobian(y, half).dtype == tape.gradient(y, half).dtype == jnp.bfloat16


def test_the_first_error_is_raised():
    """Where neither mode works, the error names the operation."""
    x = draw(3)
    tape, y = recorded(lambda x: jax.pure_callback(np.sin, x, x), x)
    with pytest.raises(LookupError, match="pure_callback"):
        tape.jacobian(y, x)


@pytest.mark.parametrize("budget", [1, 100, 1000])
def test_chunks(budget, monkeypatch):
    """Row by row, or in chunks of which the last is not full: the same."""
    wide, tall, x, ten, three = draw(7, 10), draw(11, 3), draw(4, 5), draw(10, seed=1), draw(3, seed=1)
    monkeypatch.setattr(batches, "CHUNK_BYTES", budget)
    derivative._ops.clear()
    tape, y = recorded(lambda x: jnp.tanh(wide @ x), ten)
    assert_close(tape.jacobian(y, ten), by_jax(jax.jacrev(lambda x: jnp.tanh(wide @ x)))(ten))
    tape, y = recorded(lambda x: jnp.tanh(tall @ x), three)
    assert_close(tape.jacobian(y, three), by_jax(jax.jacrev(lambda x: jnp.tanh(tall @ x)))(three))
    tape, y = recorded(lambda x: jnp.cumsum(x, axis=1) ** 2, x)
    assert_close(tape.batch_jacobian(y, x), by_jax(jax.vmap(jax.jacrev(lambda r: jnp.cumsum(r) ** 2)))(x))
    assert_close(
        hessian_by_tape(lambda x: jnp.sum(x**3) * x[0, 0])(x),
        by_jax(jax.hessian(lambda x: jnp.sum(x**3) * x[0, 0]))(x),
    )
    derivative._ops.clear()


@pytest.mark.parametrize("budget", [1, 40])
def test_chunks_are_differentiable(budget, monkeypatch):
    """An outer tape goes through the loop over chunks, either way."""
    monkeypatch.setattr(batches, "CHUNK_BYTES", budget)
    derivative._ops.clear()
    for shape in [(4, 6), (6, 4)]:
        w = draw(*shape)

        def penalty(x, jacobian, w=w):
            return jnp.sum(jacobian(lambda x: jnp.tanh(w @ x))(x) ** 2)

        x = draw(shape[1])
        tape, y = recorded(lambda x, penalty=penalty: penalty(x, jacobian_by_tape), x)
        assert_close(tape.gradient(y, x), jax.grad(lambda x, penalty=penalty: penalty(x, jax.jacrev))(x), 1e-4)
    derivative._ops.clear()


@pytest.mark.parametrize(
    "function, shape",
    [
        (lambda x: jnp.tanh(draw(2000, 2000) @ x), (2000,)),
        (lambda x: jnp.tanh(draw(500, 2000) @ jnp.tanh(draw(2000, 2000) @ x)), (2000,)),
        (lambda x: jnp.tanh(draw(4000, 1000) @ jnp.tanh(draw(1000, 2000) @ x)), (2000,)),
        (lambda k: jnp.tanh(draw(100, 20) @ k), (20, 100)),
    ],
    ids=["square", "wide", "tall", "layer"],
)
def test_the_memory_of_2000_columns(function, shape, modes):
    """What the compiled Jacobian needs beside its result is no more than that again, or a few megabytes."""
    x = draw(*shape)
    tape, y = recorded(function, x)
    found = tape.jacobian(y, x)
    ((_, op, values),) = modes
    memory = jax.jit(op.fn).lower(*values).compile().memory_analysis()
    assert memory.output_size_in_bytes == found.nbytes
    assert memory.temp_size_in_bytes <= max(found.nbytes, batches.CHUNK_BYTES)


def test_a_jacobian_seen_before_compiles_nothing():
    def step(x):
        tape, y = recorded(lambda x: jnp.tanh(draw(3, 4) @ x), x)
        return tape.jacobian(y, x)

    step(draw(4))
    step(draw(4, seed=1))
    with compiles() as compiled:
        step(draw(4, seed=2))
    assert not compiled


# ---- custom gradients -----------------------------------------------------------------------------------------------


def tenfold(kind=tf.custom_gradient):
    """sin, with ten times its gradient."""

    @kind
    def function(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x) * 10.0

    return function


def by_hand(x):
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, dy: (dy * jnp.cos(x) * 10.0,))
    return f(x)


TRANSFORMATIONS = {
    "grad": lambda f: jax.grad(lambda x: f(x).sum()),
    "jit_of_grad": lambda f: jax.jit(jax.grad(lambda x: f(x).sum())),
    "grad_of_jit": lambda f: jax.grad(jax.jit(lambda x: f(x).sum())),
    "vmap_of_grad": lambda f: jax.vmap(jax.grad(f)),
    "grad_of_vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
    "jacrev": jax.jacrev,
    "second": lambda f: jax.grad(lambda x: jax.grad(lambda x: f(x).sum())(x).sum()),
    "hessian_by_reverse": lambda f: jax.jacrev(jax.grad(lambda x: f(x).sum())),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(lambda x: f(x).sum())),
    "scan": lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, y: (f(c * y), c), 1.0, x)[0]),
    "cond": lambda f: jax.grad(lambda x: jax.lax.cond(x[0] > 0, f, f, x).sum()),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_custom_gradient_under_transformations(name):
    """JAX takes it for the `jax.custom_vjp` that it is."""
    x, f = draw(3), tenfold()
    transform = TRANSFORMATIONS[name]
    assert_close(transform(lambda x: f(x)._array)(x), transform(by_hand)(x), 1e-4)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_tape_around_a_custom_gradient_in_transformations(name):
    """And so does a tape outside."""
    x, f = draw(3), tenfold()
    transform = TRANSFORMATIONS[name]
    tape, y = recorded(transform(lambda x: f(x)._array), x)
    assert_close(tape.gradient(y, x), jax.grad(lambda x: transform(by_hand)(x).sum())(x), 1e-4)


def test_a_tape_and_a_custom_gradient_inside_jit():
    f = tenfold()

    @jax.jit
    def step(x):
        tape, y = recorded(lambda x: f(x) * x, x)
        return tape.gradient(y, x), tape.jacobian(y, x)

    x = draw(3)
    expected = 10 * jnp.cos(x) * x + jnp.sin(x)
    assert_close(step(x), (expected, jnp.diag(expected)))


def test_the_gradient_function_sees_values():
    """When the tape is eager it gets concrete arrays, also inside an outer tape; under jit it is traced."""
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            seen.append(isinstance(dy._array if isinstance(dy, tf.Tensor) else dy, jax.core.Tracer))
            return dy * 3.0

        return x * 1.0, grad

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x) * f(x)
        slope = inner.gradient(y, x)
    outer.gradient(slope, x)
    assert seen and not any(seen)
    seen.clear()
    jax.jit(jax.grad(lambda x: tf.reduce_sum(f(x))._array))(draw(3))
    assert seen and all(seen)


def test_a_custom_gradient_with_variables_inside_jit():
    """Its backward function closes over traced values."""

    @jax.jit
    def step(x, scale):
        @tf.custom_gradient
        def f(x):
            return x * scale, lambda dy: dy * scale * 10.0

        tape, y = recorded(lambda x: f(x) ** 2, x)
        return tape.gradient(y, x)

    x = draw(3)
    assert_close(step(x, FLOAT(3.0)), 2 * 3.0 * x * 30.0)


def test_a_gradient_of_another_shape():
    """It is refused, with names."""

    @tf.custom_gradient
    def misshapen(x):
        return x * 2.0, lambda dy: tf.constant([1.0, 2.0, 3.0])

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = misshapen(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"misshapen returned shape \(3,\) for argument 0"):
        tape.gradient(y, x)


def test_a_custom_gradient_that_gives_none_in_a_jacobian():
    @tf.custom_gradient
    def product(x, y):
        return x * y, lambda dy: (dy * y, None)

    x, y = tf.Variable([1.0, 2.0], dtype=FLOAT), tf.Variable([3.0, 4.0], dtype=FLOAT)
    with tf.GradientTape() as tape:
        z = product(x, y)
    by_x, by_y = tape.jacobian(z, [x, y])
    assert_close(by_x._array, jnp.diag(jnp.array([3.0, 4.0])))
    assert by_y is None


def test_recompute_grad_is_a_checkpoint():
    """Under jit nothing of the inside is kept: the pullback computes it again."""

    def layers(x):
        for _ in range(3):
            x = tf.sin(x)
        return x._array

    x = draw(3)
    text = str(jax.make_jaxpr(jax.grad(lambda x: tf.recompute_grad(layers)(x).sum()))(x))
    assert "remat" in text or "checkpoint" in text
    assert_close(jax.grad(lambda x: tf.recompute_grad(layers)(x).sum())(x), jax.grad(lambda x: layers(x).sum())(x))


def test_recompute_grad_of_a_custom_rule_inside_vmap():
    """`vmap` has the rule traced while the call of it is under way; the near twin 4508 of seed 0 raised StoreException."""
    rule = jax.custom_vjp(jnp.sin)
    rule.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * x * 2.0,))

    def function(x, wrap):
        return jax.vmap(lambda row: wrap(lambda row: rule(row))(row))(jnp.stack([x, x * 0.5]))[1]

    x = draw(3)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(function(x, lambda f: lambda row: jnp.asarray(tf.recompute_grad(f)(row))))
        first = tape.gradient(y, x)
        z = jnp.sum(first * first)
    gradient = jax.grad(lambda x: jnp.sum(function(x, jax.checkpoint)))
    assert_close(first, gradient(x))
    assert_close(outer.gradient(z, x), jax.grad(lambda x: jnp.sum(gradient(x) ** 2))(x))


# ---- operations without a gradient ----------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(rules, "_rules", dict(rules._rules))
    yield
    cache.clear()


def opaque_cube(x):
    return jax.pure_callback(lambda a: np.asarray(a) ** 3, x, x, vmap_method="sequential")


def test_a_gradient_for_a_jitted_function(registry):
    """By the name under which the tape has it; caches that knew it without are forgotten; at any order, also in jit."""

    @jax.jit
    def cube_of_elsewhere(x):
        return opaque_cube(x)

    def slope(x):
        tape, y = recorded(cube_of_elsewhere, x)
        return tape.gradient(y, x)

    x = jnp.arange(1.0, 4.0)
    for _ in range(2):
        with pytest.raises(LookupError, match="cube_of_elsewhere"):
            slope(x)

    @tf.RegisterGradient("cube_of_elsewhere")
    def gradient(op, dy):
        assert op.type == op.name == "cube_of_elsewhere" and len(op.outputs) == 1
        return dy * 3.0 * op.inputs[0] ** 2

    assert_close(slope(x), 3 * x**2)
    assert_close(jax.jit(slope)(x), 3 * x**2)
    tape, y = recorded(cube_of_elsewhere, x)
    assert_close(tape.jacobian(y, x), jnp.diag(3 * x**2))
    tape, y = recorded(slope, x)
    assert_close(tape.gradient(y, x), 6 * x)
    with tf.autodiff.ForwardAccumulator(x, jnp.ones(3)) as acc:
        y = cube_of_elsewhere(x)
    assert_close(acc.jvp(y), 3 * x**2)


def test_no_gradient(registry):
    """What is declared to have none is not connected."""

    @jax.jit
    def one_of_no_gradient(x):
        return x * 3.0

    x = draw(3)
    tape, y = recorded(one_of_no_gradient, x)
    assert tape.gradient(y, x) is not None
    tf.no_gradient("one_of_no_gradient")
    tape, y = recorded(one_of_no_gradient, x)
    assert tape.gradient(y, x) is None


def test_the_number_of_registered_gradients(registry):
    @jax.jit
    def product_of_elsewhere(x, y):
        return x * y

    tf.RegisterGradient("product_of_elsewhere")(lambda op, dy: (dy,))
    x = draw(3)
    tape, y = recorded(product_of_elsewhere, x, x * 1.0)
    with pytest.raises(ValueError, match="product_of_elsewhere returned 1 gradients for 2 inputs"):
        tape.gradient(y, x)


def test_numpy_function_with_a_registered_gradient(registry):
    tf.RegisterGradient("PyFunc")(lambda op, dy: dy * tf.cosh(op.inputs[0]))
    x = tf.Variable([1.0, 2.0], dtype=FLOAT)
    with tf.GradientTape() as tape:
        y = tf.numpy_function(np.sinh, [x], FLOAT)
    assert_close(tape.gradient(y, x)._array, jnp.cosh(x.value._array))


# ---- forward mode ---------------------------------------------------------------------------------------------------

# Programs that JAX itself refuses to push forward, or whose outputs are not arrays of floats.
NOT_FORWARD = {
    name
    for name, case in CASES.items()
    if any(word in name for word in ("vjp", "bwd", "pure_callback", "io_callback", "fwd_and_bwd"))
}


@a_third(2, lambda case: case.name not in NOT_FORWARD)
def test_forward_mode(case):
    """For every construct of plain JAX the accumulator's product is `jax.jvp`'s."""
    leaves, tree = jax.tree.flatten(case.arguments())
    where = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def function(*xs):
        full = list(leaves)
        for i, x in zip(where, xs, strict=True):
            full[i] = x
        outputs = jax.tree.leaves(case.function(*jax.tree.unflatten(tree, full)))
        return [x for x in outputs if jnp.issubdtype(x.dtype, jnp.inexact)]

    primals = [leaves[i] for i in where]
    tangents = [jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape) for x in primals]
    try:
        pushed = functools.partial(jax.jvp, function)
        expected = (by_jax(pushed) if case.staged else pushed)(primals, tangents)[1]
    except TypeError as error:
        pytest.skip(f"JAX does not push it forward: {error}")
    with tf.autodiff.ForwardAccumulator(primals, tangents) as acc:
        outputs = function(*primals)
    found = acc.jvp(outputs, unconnected_gradients="zero")
    assert_close(found, expected, max(case.tolerance, 1e-5))


def test_forward_over_reverse_and_back():
    def f(x):
        return jnp.sum(jnp.sin(x) ** 3) * x[0]

    x, v = draw(4), draw(4, seed=1)
    expected = jax.jvp(jax.grad(f), (x,), (v,))[1]
    with tf.autodiff.ForwardAccumulator(x, v) as acc:
        tape, y = recorded(f, x)
        slope = tape.gradient(y, x)
    assert_close(acc.jvp(slope), expected, 1e-4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = f(x)
        along = acc.jvp(y)
    assert_close(tape.gradient(along, x), expected, 1e-4)


def test_an_accumulator_inside_transformations():
    def product(x, v):
        x, v = jnp.asarray(x), jnp.asarray(v)
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = jnp.sin(x) * x
        return acc.jvp(y)

    x, v = draw(3), draw(3, seed=1)
    expected = jax.jvp(lambda x: jnp.sin(x) * x, (x,), (v,))[1]
    assert_close(jax.jit(product)(x, v), expected)
    assert_close(jax.vmap(product)(x, v), expected)
    check_grads(product, (x, v), 2, modes=["rev"], atol=1e-2, rtol=1e-2)


def test_an_exception_leaves_no_accumulator_behind():
    x = draw(3)
    with pytest.raises(KeyError):
        with tf.autodiff.ForwardAccumulator(x, x):
            raise KeyError
    assert not active.active_recordings()


# ---- control flow under jit -----------------------------------------------------------------------------------------


def halves(x):
    """Until it is small: a loop whose length depends on the values."""
    return tf.while_loop(lambda a: tf.reduce_max(a) > 0.1, lambda a: [a * 0.5 * tf.cos(a)], [x])[0]


CONTROL_FLOW = {
    "cond": lambda x: tf.cond(x[0] > 0.0, lambda: tf.sin(x), lambda: tf.cos(x)),
    "cond_of_structures": lambda x: tf.cond(
        x[0] > x[1], lambda: {"a": x, "b": [x]}, lambda: {"a": x * 2.0, "b": [x * x]}
    )["b"][0],
    "case": lambda x: tf.case([(x[0] > 5.0, lambda: x), (x[1] > -5.0, lambda: x * x)], default=lambda: x * 3.0),
    "case_without_default": lambda x: tf.case([(x[0] > 5.0, lambda: x), (x[1] > -5.0, lambda: x * x)]),
    "switch_case": lambda x: tf.switch_case(
        tf.cast(x[0] * 0.0 + 1.0, tf.int32), [lambda: x, lambda: x * x, lambda: -x]
    ),
    "switch_case_default": lambda x: tf.switch_case(
        tf.cast(x[0] * 0.0 - 3.0, tf.int32), [lambda: x], default=lambda: x**3
    ),
    "switch_case_last": lambda x: tf.switch_case(tf.cast(x[0] * 0.0 + 7.0, tf.int32), [lambda: x, lambda: x * x]),
    "while_bounded": lambda x: tf.while_loop(
        lambda i, a: i < 5, lambda i, a: (i + 1, tf.sin(a) * x), (tf.constant(0), x), maximum_iterations=3
    )[1],
    "map_fn": lambda x: tf.map_fn(lambda a: tf.sin(a) * a, x),
    "map_fn_of_structures": lambda x: tf.map_fn(
        lambda p: (p["a"] * p["b"], tf.cast(p["a"], tf.int32)),
        {"a": x, "b": x * 2.0},
        fn_output_signature=(FLOAT, tf.int32),
    )[0],
    "vectorized_map": lambda x: tf.vectorized_map(lambda a: tf.sin(a) * a, x),
    "scan": lambda x: tf.scan(lambda a, b: a * b + b, x),
    "scan_reverse": lambda x: tf.scan(lambda a, b: a * b + b, x, reverse=True),
    "scan_from": lambda x: tf.scan(
        lambda a, b: (a[0] * b, a[1] + 1), x, initializer=(tf.constant(2.0, FLOAT), tf.constant(0))
    )[0],
    "scan_from_reverse": lambda x: tf.scan(lambda a, b: a * b, x, initializer=x[0], reverse=True),
    "foldl": lambda x: tf.foldl(lambda a, b: a * b - a, x),
    "foldr": lambda x: tf.foldr(lambda a, b: a * b - a, x, initializer=x[1]),
}


@pytest.mark.parametrize("name", CONTROL_FLOW)
def test_control_flow_under_jit(name):
    """Traced over `lax`, it has the values and gradients that Python has on values."""
    function = CONTROL_FLOW[name]

    def step(x):
        tape, y = recorded(lambda x: tf.convert_to_tensor(function(tf.convert_to_tensor(x))), x)
        return y._array, tape.gradient(y, x)

    x = jnp.abs(draw(3)) + 0.5
    expected = step(x)
    assert_close(jax.jit(step)(x), expected)
    tape, y = recorded(jax.jit(lambda x: function(tf.convert_to_tensor(x))._array), x)
    assert_close((y, tape.gradient(y, x)), expected)
    assert_close(jax.jit(jax.grad(lambda x: function(tf.convert_to_tensor(x))._array.sum()))(x), expected[1])


def test_a_while_loop_under_jit():
    """Without a bound its values are right, it goes forward, and backward it says what to do."""
    x = jnp.abs(draw(3)) + 0.5
    eager = halves(tf.constant(x))._array
    assert_close(jax.jit(lambda x: halves(tf.convert_to_tensor(x))._array)(x), eager)
    loop = jax.jit(lambda x: halves(tf.convert_to_tensor(x))._array)
    with tf.autodiff.ForwardAccumulator(x, jnp.ones(3)) as acc:
        y = loop(x)
    assert_close(acc.jvp(y), jax.jvp(loop, (x,), (jnp.ones(3),))[1])
    tape, y = recorded(loop, x)
    with pytest.raises(LookupError, match="halves|while|lambda"):
        tape.gradient(y, x)


def test_traced_branches_agree():
    """What one branch returns the other has to return."""
    x = draw(3)

    def unequal(x):
        x = tf.convert_to_tensor(x)
        return tf.cond(x[0] > 0.0, lambda: [x], lambda: [x, x])

    with pytest.raises((TypeError, ValueError)):
        jax.jit(unequal)(x)
