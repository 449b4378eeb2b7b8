"""`print(tape.as_function(...))`: code that runs where it is pasted, with the same value and the same gradient."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_jax import a_third
from test_plain_jax import assert_same, expected_gradient, split, total

import tapejax as tf
from tests.tape.interpreted import interpreted

sys.path.append(str(Path(__file__).parents[2] / "tf" / "parity"))
from test_ops_parity import TABLES  # noqa: E402


def pasted(function):
    """The printed function, run in a namespace of its own."""
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


# What is a constant of the code: a Python function behind a callback or one that chooses what to keep, and solvers that get
# functions.
OBJECTS = {
    "conjugate_gradient",
    "custom_linear_solve",
    "custom_root",
    "checkpoint_names",
    "checkpoint_nothing",
    "checkpoint_policy",
    "pure_callback_beside_the_gradient",
}


@a_third(2)
def test_runs_as_it_is(case):
    sources, rebuild = split(case.arguments())
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    function = tape.as_function(outputs, sources)
    f = pasted(function)
    with interpreted():  # XLA takes longer to compile it than the test
        values, found = f(sources), jax.grad(lambda xs: total(f(xs)))(sources)
    assert_same(jax.tree.leaves(values), jax.tree.leaves(outputs), case.tolerance)
    assert_same(found, expected_gradient(case.name), case.tolerance)
    assert all(isinstance(x, jax.Array) for x in function.constants.values()) or case.name in OBJECTS


# Functions with TensorFlow's names, and how they look as jnp.
SPELLED = {
    "x * 2.0 + x": ["x * 2.0", "+ x"],
    "0.9 * tensor / 1.1": ["0.9 * x", "/ 1.1"],
    "tf.matmul(x, x)": ["x @ x"],
    "tf.reduce_sum(x, axis=1)": ["jnp.sum(x, axis=1)"],
    "tf.reduce_mean(x, 0, keepdims=True)": ["jnp.mean(x, axis=0, keepdims=True)"],
    "tf.nn.relu(x)": ["jax.nn.relu(x)"],
    "tf.transpose(x)": ["x.T"],
    "tf.concat([x, x], 0)": ["jnp.concatenate([x, x]"],
    "tf.reshape(x, [9])": ["x.ravel()"],
    "tf.stack([x, x])": ["jnp.stack([x, x]"],
    "tf.cast(x, tf.float16)": ["x.astype(jnp.float16)"],
    "tf.sigmoid(x)": ["jax.nn.sigmoid(x)"],
    "tf.exp(-x)": ["-x", "jnp.exp("],
    "tf.where(x > 1.0, x, 0.0)": ["x > 1.0", "jnp.where("],
    "tf.einsum('ij,jk->ik', x, x)": ["x @ x"],
    "jnp.einsum('ij,kj->ik', x, x)": ['jnp.einsum("ij,kj->ik", x, x)'],
    "x[1:]": ["x[1:]"],
    "jnp.cumsum(x, axis=1)": ["jnp.cumsum(x, axis=1)"],
    "jnp.maximum(x, 0.5)": ["jnp.maximum(x, 0.5)"],
    "tensor[0]": ["y = x[0]"],
    "tensor[:, 1]": ["y = x[:, 1]"],
    "tensor[-1, 0:2]": ["y = x[2, :2]"],
    "tensor[:, ::2]": ["y = x[:, ::2]"],
    "tensor[:, tf.newaxis]": ["y = x[:, None]"],
    "tf.expand_dims(x, -1)": ["y = x[:, :, None]"],
    "tf.matmul(x, x, transpose_b=True)": ["y = x @ x.T"],
    "jax.lax.dot_general(x, x, (((1,), (0,)), ((), ())))": ["y = x @ x"],
    "tf.square(x)": ["y = jnp.square(x)"],
    "x**2": ["y = x**2"],
    "x**0.5": ["y = x**0.5"],
    "1 / (x + 1.0)": ["y = 1 / (x + 1.0)"],
    "tf.sqrt(x + 1.0)": ["y = jnp.sqrt(x + 1.0)"],
    "tf.abs(x - 3.0)": ["y = jnp.abs(x - 3.0)"],
    "tf.maximum(x, 0.3)": ["y = jnp.maximum(x, 0.3)"],
    "tf.clip_by_value(x, 0.1, 0.9)": ["y = jnp.clip(x, 0.1, 0.9)"],
    "tf.nn.silu(x)": ["y = jax.nn.silu(x)"],
    "tf.nn.leaky_relu(x + 0.1)": ["jax.nn.leaky_relu(x + 0.1, 0.2)"],
    "tf.norm(x, axis=1)": ["y = jnp.linalg.norm(x, axis=1)"],
    "tf.nn.l2_normalize(x + 1.0, 1)": ["y = t0 / jnp.linalg.norm(t0, axis=1, keepdims=True)"],
    "tf.math.reduce_std(x, 0)": ["y = jnp.std(x, axis=0)"],
    "tf.tile(x, [2, 1])": ["y = jnp.tile(x, (2, 1))"],
    "tf.repeat(x, 2, axis=1)": ["y = jnp.repeat(x, 2, 1)"],
    "tf.roll(x, 1, 0)": ["y = jnp.roll(x, 1, 0)"],
    "tf.gather(x, [0, 2])": ["y = jnp.take(x, c, axis=0"],
    "tf.gather(x, [0, 2, 1], axis=1, batch_dims=1)": ["y = jnp.take_along_axis(x, c[:, None], axis=1)[:, 0]"],
    "tf.clip_by_global_norm([x, x + 1.0], 0.5)[0][1]": [
        "jnp.sqrt(sum(map(jnp.sum, map(jnp.square, [x, t0]))))",
        "0.5 / jnp.maximum(",
    ],
    "x / tf.constant(3.0) - tf.constant(0.5)": ["y = x / 3.0 - 0.5"],
    "jnp.where(jnp.bool_(False), 0, x * 2.0)": ["y = x * 2.0"],
    "jnp.copy(x * 2.0)": ["y = x * 2.0"],
    "tf.concat([x, jnp.zeros((3, 2))], 1)": ["y = jnp.concatenate([x, jnp.zeros((3, 2), jnp.float32)], 1)"],
    "tf.split(x, 3)[1]": ["_, y, _ = jnp.split(x, 3, 0)"],
    "tf.nn.bias_add(x, [1.0, 2.0, 3.0])": ["y = x + "],
    "tf.reduce_max(x, 1)": ["y = jnp.max(x, axis=1)"],
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=x)": [
        "-jnp.take_along_axis(jax.nn.log_softmax(x), c[..., None], axis=-1)[..., 0]"
    ],
    "tf.nn.softmax_cross_entropy_with_logits(labels=tf.eye(3), logits=x)": ["-jnp.sum(c * jax.nn.log_softmax(x)"],
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.eye(3), logits=x)": ["jax.nn.softplus(x) - x * c"],
    "tf.linalg.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(3))": ["y = jnp.linalg.cholesky(x @ x.T + "],
    "tf.linalg.logdet(tf.matmul(x, x, transpose_b=True) + tf.eye(3))": ["y = jnp.linalg.slogdet(x @ x.T + ", ")[1]"],
    "tf.linalg.triangular_solve(x + 1.0, x)": ["jax.scipy.linalg.solve_triangular(x + 1.0, x, lower=True)"],
    "tf.linalg.triangular_solve(x + 1.0, x, adjoint=True)": ["(x + 1.0, x, trans=1, lower=True)"],
    "tf.linalg.eigh(x + tf.transpose(x) + 2.0 * tf.linalg.diag([1.0, 2.0, 4.0]))[0]": ["jnp.linalg.eigh(jnp.tril("],
    "tf.linalg.band_part(x + 1.0, -1, 0)": ["y = jnp.tril(x + 1.0)"],
    "tf.linalg.band_part(x + 1.0, 1, -1)": ["y = jnp.triu(x + 1.0, -1)"],
    "tf.linalg.matvec(x, x[0])": ["y = x @ x[0]"],
    "tf.norm(x)": ["y = jnp.linalg.norm(x)"],
    "tf.norm(x + 1.0, ord=1, axis=0, keepdims=True)": ["jnp.linalg.norm(x + 1.0, ord=1, axis=0, keepdims=True)"],
    "tf.einsum('ii->i', x)": ['y = jnp.einsum("ii->i", x)'],
    "tf.clip_by_norm(x, 2.0)": ["y = x * 2.0 / jnp.maximum(jnp.linalg.norm(x), 2.0)"],
    "tf.scatter_nd([[3], [0], [0]], x, [4, 3])": ["y = jnp.zeros((4, 3)).at[c[:, 0]].add(x)"],
    "tf.scatter_nd([[3, 1], [0, 0]], x[0, :2], [4, 3])": [".at[tuple(jnp.moveaxis(c, -1, 0))].add(x[0, :2])"],
    "tf.nn.weighted_cross_entropy_with_logits(tf.eye(3), x + 0.1, 2.0)": ["* t0", "* jax.nn.softplus(-t0)"],
    "tf.nn.log_poisson_loss(tf.eye(3), x)": ["y = jnp.exp(x) - x * c"],
    "tf.nn.batch_normalization(x, x[0], x[1] + 1.0, x[2], x[1], 0.1)": ["(x - x[0]) / jnp.sqrt(x[1] + 1.0 + 0.1) * "],
    "tf.math.xlog1py(x + 1.0, x)": ["y = jax.scipy.special.xlog1py(x + 1.0, x)"],
    "x * tf.math.zero_fraction(x)": ["y = x * jnp.mean(x == 0)"],
    "tf.sort(x, direction='DESCENDING')": ["y = jnp.sort(x, axis=-1, descending=True)"],
    "tf.pad(x, [[1, 1], [0, 2]])": ["y = jnp.pad(x, ((1, 1), (0, 2)))"],
    "tf.pad(x, [[1, 1], [0, 2]], constant_values=4.0)": ["y = jnp.pad(x, ((1, 1), (0, 2)), constant_values="],
    "tf.split(x, [1, 2])[1]": ["_, y = jnp.split(x, [1], 0)"],
    "x * tf.cast(x > 0.5, tf.float32)": ["y = x * (x > 0.5).astype(jnp.float32)"],
    "tf.nn.max_pool2d(tf.reshape(x, [1, 3, 3, 1]), 2, 1, 'VALID')": [
        "jax.lax.reduce_window(",
        "(1, 2, 2, 1), (1, 1, 1, 1)",
    ],
    "tf.image.resize(tf.reshape(x, [1, 3, 3, 1]), [2, 2])": ["jax.image.resize("],
}


@pytest.mark.parametrize("text", SPELLED)
def test_spelling(text):
    x = jnp.arange(9.0).reshape(3, 3) / 5
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = eval(text, {"tf": tf, "jnp": jnp, "jax": jax, "x": x, "tensor": tf.Tensor(x)})
    function = tape.as_function(y, x)
    for part in SPELLED[text]:
        assert part in function.code, function.code
    np.testing.assert_allclose(pasted(function)(x), np.asarray(y), rtol=1e-6)


@pytest.mark.parametrize(
    "fn",
    [
        lambda c: tf.linalg.band_part(c, 0, -1),
        lambda c: tf.linalg.band_part(c, 1, 1),
        lambda c: tf.linalg.triangular_solve(c + tf.eye(3), tf.eye(3), lower=False),
        lambda c: tf.linalg.triangular_solve(c + tf.eye(3), tf.eye(3), adjoint=True),
        lambda c: tf.cumsum(c, exclusive=True),
        lambda c: tf.cumsum(c, reverse=True),
        lambda c: tf.norm(c, ord=1, axis=0),
        lambda c: tf.sort(c, axis=0),
        lambda c: tf.math.xlog1py(c, c + 2.0),
    ],
)
def test_what_is_the_same_at_zeros_alone_is_not_taken(fn):
    x, zeros, other = jnp.ones((3, 3)), jnp.zeros((3, 3)), jnp.arange(9.0).reshape(3, 3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * fn(zeros))
    function = tape.as_function(y, x, arguments={"c": zeros})
    np.testing.assert_allclose(pasted(function)(x, other), jnp.sum(x * jnp.asarray(fn(other))), rtol=1e-6)


# Where TensorFlow's function has another slope, or another way through a `where`, than jnp's of the same name.
DIFFERENT = {
    "tf.where(x > 0.0, tf.sqrt(x), 0.0)": 0.0,
    "tf.where(x > 0.0, tf.math.rsqrt(x), 0.0)": 0.0,
    "tf.abs(x)": 0.0,
    "tf.maximum(x, 0.5)": 0.5,
    "tf.clip_by_value(x, 0.5, 2.0)": 0.5,
}


@pytest.mark.parametrize("text", DIFFERENT)
def test_what_is_different_is_written_out(text):
    """The plain name is printed only where it does the same; here it would not."""
    x = jnp.array([DIFFERENT[text], 1.0, 1.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = eval(text, {"tf": tf, "x": x})
    function = tape.as_function(y, x)
    found = jax.grad(lambda v: pasted(function)(v).sum())(x)
    np.testing.assert_allclose(found, np.asarray(tape.gradient(y, x)), rtol=1e-6)
    assert function.code.count("def ") > 1, function.code


def ported(op, points):
    """Traces a row of the parity tests' tables of operations, prints it, pastes it, and compares."""
    args = [tf.constant(x) if isinstance(x, (np.ndarray, float, int, list)) else x for x in points]
    sources = [x for x in args if isinstance(x, tf.Tensor) and (x.dtype.is_floating or x.dtype.is_complex)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NaN and infinities are meant
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            result = op(tf, *args)
    targets = [y for y in jax.tree.leaves(result, is_leaf=lambda y: isinstance(y, tf.Tensor)) if hasattr(y, "dtype")]
    f = pasted(tape.as_function(targets, sources))
    arrays = [x.numpy() if x.dtype.name == "bfloat16" else jnp.asarray(x) for x in sources]
    for found, expected in zip(f(arrays), targets, strict=True):
        assert found.dtype == jnp.asarray(expected).dtype
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-5, atol=1e-6)
    smooth = [i for i, y in enumerate(targets) if y.dtype.is_floating]
    if smooth and not any(x.dtype.is_complex for x in sources):
        gradients = jax.grad(lambda xs: total([f(xs)[i].astype(jnp.float32) for i in smooth]))(arrays)
        expected = tape.gradient([targets[i] for i in smooth], sources, unconnected_gradients="zero")
        for found, wanted in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(
                np.asarray(found, np.float32), np.asarray(wanted, np.float32), rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("op, points", [pytest.param(*row.values[:2], id=row.id) for row in TABLES[::12]])
def test_operations_of_tensorflow(op, points):
    ported(op, points)


@pytest.mark.slow
@pytest.mark.parametrize("op, points", [pytest.param(*row.values[:2], id=row.id) for row in TABLES])
def test_all_operations_of_tensorflow(op, points):
    ported(op, points)


def test_a_spelling_is_that_of_the_shape():
    """Dropping an axis of size one is `x[:, 0]` of one shape and `x[0]` of another."""
    for shape, axis in ([(3, 1), 1], [(1, 3), 0], [(3, 1), 1]):
        x = jnp.arange(3.0).reshape(shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.squeeze(x, axis) * 2.0
        np.testing.assert_array_equal(pasted(tape.as_function(y, x))(x), y)


def test_a_model():
    images = tf.constant(np.linspace(0, 1, 8 * 40, dtype=np.float32).reshape(8, 40))
    labels = tf.constant([0, 1, 2, 0, 1, 2, 0, 1])
    model = {
        "w1": tf.Variable(np.linspace(-1, 1, 200, dtype=np.float32).reshape(40, 5)),
        "b1": tf.Variable(tf.zeros([5])),
    }
    out = [tf.Variable(np.linspace(1, -1, 15, dtype=np.float32).reshape(5, 3))]
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(images @ model["w1"] + model["b1"])
        logits = hidden @ out[0]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    sources = {"model": model, "out": out}
    function = tape.as_function(loss, sources)
    code = function.code
    assert 'hidden = jax.nn.relu(images @ params["model"]["w1"] + params["model"]["b1"])' in code
    assert 'logits = hidden @ params["out"][0]' in code
    assert "# images: float32[8,40], in .constants" in code and list(function.constants) == ["images"]
    assert "labels = jnp.array([0, 1, 2, 0, 1, 2, 0, 1], jnp.int32)" in code
    at = jax.tree.map(jnp.asarray, {"model": {k: v.numpy() for k, v in model.items()}, "out": [out[0].numpy()]})
    value, gradient = jax.value_and_grad(pasted(function))(at)
    expected = tape.gradient(loss, sources)
    np.testing.assert_allclose(value, loss.numpy(), rtol=1e-6)
    for found, wanted in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected)):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5, atol=1e-7)


def test_structures():
    a, b = jnp.array([1.0, 2.0]), jnp.array(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        s, p = a + b, a * b
    function = tape.as_function({"sum": s, "product": (p, [s])}, (a, b))
    assert "a, b = sources" in function.code
    assert 'return {"sum": s, "product": (p, [s])}' in function.code
    found = pasted(function)((a, b))
    np.testing.assert_array_equal(found["product"][0], p)


def test_numbers_and_constants():
    x = jnp.array([1.0, 2.0])
    few, nan, big = jnp.array([0.1, -jnp.inf]), jnp.array(jnp.nan), jnp.arange(200.0) * 0.3
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = (x * few).sum() + nan + (x[0] * big).sum() + x.astype(jnp.bfloat16)[0] * jnp.bfloat16(0.1)
    function = tape.as_function(y, x)
    assert "few = jnp.array([0.1, -jnp.inf], jnp.float32)" in function.code
    assert list(function.constants) == ["big"]
    gradient = jax.grad(lambda v: pasted(function)(v).astype(jnp.float32))(x)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-2)


def test_sources_that_depend_on_each_other_are_refused():
    x, v = jnp.array([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        h = jnp.sin(x)
        y = h * x
        z = v * 3.0
        v.assign_add([1.0, 1.0])
        z *= v
    for target, sources in ((y, [x, h]), (z, v)):
        with pytest.raises(ValueError, match="sources: one of them was computed from another, or is a variable"):
            tape.as_function(target, sources)
    np.testing.assert_array_equal(tape.as_function(y, [h])([x]), x * x)


def test_custom_derivatives_are_printed():
    @jax.custom_vjp
    def clip(v):
        return v

    clip.defvjp(lambda v: (v, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))

    @tf.custom_gradient
    def double(v):
        return v, lambda dy: dy * 2.0

    x = jnp.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(clip(x) * 3.0)
    function = tape.as_function(y, x)
    assert not function.constants and "defvjp" in function.code
    gradient = jax.grad(lambda s: pasted(function)(s).sum())(x)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-6)


def damped(x, k):
    return tf.tanh(x * k)


@tf.custom_gradient
def relaxed(x, k):
    for _ in range(3):
        x = damped(x, k)
    return x, lambda dy: (dy * damped(x, k) * x, tf.reduce_sum(dy * x))


def test_a_gradient_of_the_users_is_printed_with_its_loops_and_the_functions_that_it_calls():
    """Its second derivative, too, goes by the operations of the function where the gradient has a value of it."""
    x, k = jnp.array([0.3, -0.2, 0.5]), jnp.asarray(0.7)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, k])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(relaxed(x, k) ** 2)
        z = tf.reduce_sum(inner.gradient(y, x) ** 2)
    for target in (y, z):
        function = tape.as_function(target, [x, k])
        assert function.code.count("    for _ in range(3):\n        x = damped(x, k)\n") == 2, function.code
        found = jax.grad(pasted(function))([x, k])
        for ours, expected in zip(found, tape.gradient(target, [x, k]), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-5)


@tf.custom_gradient
def gathered(x):
    def backward(dy):
        sums = [tf.zeros_like(x), tf.ones_like(x)]
        for _ in range(4):
            sums = [damped(s + dy, 0.5) for s in sums]
        return sums[0] * sums[1]

    return x * 1.0, backward


def test_a_gradient_of_the_users_that_gathers_in_a_loop():
    x = jnp.array([0.3, -0.2, 0.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(gathered(x) ** 2)
    found = jax.grad(pasted(function := tape.as_function(y, x)))(x)
    assert "defvjp" in function.code
    np.testing.assert_allclose(found, tape.gradient(y, x), rtol=1e-5)


def taken_by_numpy(v):
    return tf.constant(np.maximum(v.numpy(), 0.0)), lambda dy: dy


def taken_by_its_gradient(v):
    return v * v, lambda dy: tf.constant(dy.numpy() * 2.0)


def taken_by_a_numpy_function(v):
    return v * v, lambda dy: tf.numpy_function(lambda dy, v: dy * 2 * v, [dy, v], tf.float32)


@pytest.mark.parametrize("rule", [taken_by_numpy, taken_by_its_gradient, taken_by_a_numpy_function])
def test_what_a_custom_gradient_takes_as_numbers_has_no_code(rule):
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        y = tf.custom_gradient(rule)(x * 2.0)
    function = tape.as_function(y, x)
    np.testing.assert_array_equal(function(x), y)  # on values it runs
    said = rf"{rule.__name__} \(test_source.py:\d+\), a function with a gradient of its own, looks at .* jax.pure_callback\("
    for do in (lambda: function.code, lambda: jax.grad(lambda x: function(x).sum())(jnp.ones(2))):
        with pytest.raises(tf.errors.NoValueError, match=said):
            do()


def test_what_the_advice_on_numbers_says_is_code():
    @tf.custom_gradient
    def halved(v):
        like = jax.ShapeDtypeStruct(v.shape, v.dtype)
        return v, lambda dy: jax.pure_callback(lambda dy: np.asarray(dy) / 2, like, dy)

    x = jnp.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = halved(x * x)
    function = tape.as_function(y, x)
    gradient = jax.grad(lambda s: pasted(function)(s).sum())(x)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-6)


def doubled(v):
    return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(v.shape, v.dtype), v)


def by_numpy(v):
    return tf.numpy_function(np.sin, [v], tf.float32)


def sine_by_numpy(v):
    return by_numpy(v), lambda dy: dy * tf.cos(v)


def two_by_numpy(v):
    a, b = tf.numpy_function(lambda v: (np.sin(v), np.float32(2.0)), [v], [tf.float32, tf.float32])
    return (a, b), lambda da, db: da * tf.cos(v)


CALLING_PYTHON = {
    "in both": lambda x: tf.custom_gradient(lambda v: (doubled(v), doubled))(x) * x,
    "forward": lambda x: tf.custom_gradient(lambda v: (doubled(v), lambda dy: dy * 2))(x * x),
    "by NumPy": lambda x: tf.custom_gradient(sine_by_numpy)(x * 2.0) * x,
    "by NumPy, of a variable": lambda x: tf.custom_gradient(sine_by_numpy)(x),
    "several": lambda x: tf.multiply(*tf.custom_gradient(two_by_numpy)(x * x)),
    "computed again": lambda x: tf.recompute_grad(lambda v: by_numpy(v * 2.0) * v)(x),
}


@pytest.mark.parametrize("name", CALLING_PYTHON)
def test_a_gradient_of_the_users_beside_python_is_code(name):
    compute, x = CALLING_PYTHON[name], tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        y = compute(x)
    function, here, other = tape.as_function(y, x), jnp.asarray(x), jnp.array([0.5, 3.0], jnp.float32)
    assert "bind" not in function.code and "c0" not in function.code
    assert ("@jax.custom_vjp" in function.code) == (name != "computed again")
    np.testing.assert_allclose(pasted(function)(here), y, rtol=1e-6)
    np.testing.assert_allclose(pasted(function)(other), compute(tf.Variable(other)), rtol=1e-6)
    gradient = jax.grad(lambda s: pasted(function)(s).sum())(here)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-6)


@pytest.mark.parametrize("x, text", [(2.0, "y = x * 3.0"), (np.inf, "@jax.custom_jvp")])
def test_a_rule_that_has_a_rule_without_end(x, text):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.multiply_no_nan(x, 0.0 if np.isinf(x) else 3.0)
    function = tape.as_function(y, x)
    assert text in function.code
    np.testing.assert_array_equal(pasted(function)(x), y)


def test_a_rule_that_raises_is_a_constant():
    """What gives no derivative gives none where it is pasted, either."""

    @jax.custom_vjp
    def refused(v):
        return v * 2.0

    def forward(v):
        raise LookupError("by design")

    refused.defvjp(forward, lambda _, g: (g,))
    x = jnp.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.jit(refused)(x)
    function = tape.as_function(y, x)
    np.testing.assert_array_equal(pasted(function)(x), y)
    with pytest.raises(LookupError, match="by design"):
        jax.grad(lambda v: pasted(function)(v).sum())(x)


def test_references():
    """What uses a `jax.Ref` is no expression: the call is a constant of the code."""

    def cube(x):
        ref = jax.new_ref(jnp.zeros(3))
        ref[...] = x * x
        return ref[...] * x

    x = jnp.arange(1.0, 4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jax.jit(cube)(jnp.sin(x))
        z = jax.checkpoint(cube)(x)
    function = tape.as_function(y, x)
    assert "jnp.sin(x)" in function.code and len(function.constants) == 1
    np.testing.assert_allclose(pasted(function)(x), y, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: pasted(function)(x).sum())(x), tape.gradient(y, x), rtol=1e-6)
    np.testing.assert_allclose(pasted(tape.as_function(z, x))(x), z, rtol=1e-6)


def test_what_it_is():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x**3
    f = tape.as_function(y, x)
    assert str(f) == repr(f) == f.code == "def f(x):\n    y = x**3\n    return y\n"
    shown = f._repr_html_()
    assert (
        "y = x**3</pre>" in shown.partition("recorded")[2].partition("as a function")[2]
    )  # both what ran and the code
    assert shown.count("y = x**3") == 2
    assert float(jax.jit(f)(jnp.array(3.0))) == 27.0 and float(jax.grad(f)(jnp.array(3.0))) == 27.0
    assert float(jax.vmap(f)(jnp.array([1.0, 2.0]))[1]) == 8.0
    jaxpr = tape.jaxpr(y, x)
    assert len(jaxpr.jaxpr.invars) == 1 and jaxpr.out_avals[0].shape == ()
    assert len(tape) == 1


def test_names_inside_functions():
    """What a function called its values, the code calls them, too."""
    ws = [tf.Variable(tf.ones([3, 3])) for _ in range(2)]

    def net(inputs):
        hidden = inputs
        for w in ws:
            hidden = tf.nn.relu(hidden @ w)
        logits = hidden[0] * 2.0
        return tf.reduce_sum(logits)

    with tf.GradientTape() as tape:
        loss = net(tf.constant(np.ones((2, 3), np.float32)))
    code = tape.as_function(loss, ws).code
    for text in (
        "for w in params:\n        hidden = jax.nn.relu(hidden @ w)",
        "logits = ",
        "loss = ",
    ):
        assert text in code, code


def test_long_lines_are_broken():
    variables = [tf.Variable([1.0, 2.0], name=f"a_rather_long_name_{i}") for i in range(6)]
    table = tf.constant(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
    with tf.GradientTape() as tape:
        y = tf.add_n([tf.reduce_sum(v) for v in variables]) * tf.reduce_sum(table * variables[0][0])
    del variables[1:]
    named = list(tape.watched_variables())
    function = tape.as_function(y, named)
    assert max(map(len, function.code.splitlines())) <= 110
    found = jax.grad(pasted(function))([jnp.asarray(v) for v in named])
    for f, e in zip(found, tape.gradient(y, named)):
        np.testing.assert_allclose(f, np.asarray(e), rtol=1e-5)
