"""Printed code has the expressions of the user's source, where they trace to the operations that were recorded."""

import ast
import inspect
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from plain_blocks import BLOCKS, A, B, K, L, S, V, W, X

import tapejax as tf
from tapejax.tools.writing.spelled import round_length

NAMED = A, B, K, L, S, V, W, X  # the variables for which printed code has names
v = jnp.array([0.5, -1.0, 2.0], jnp.float32)
M = jnp.arange(12.0, dtype=jnp.float32).reshape(4, 3) / 7 + jnp.eye(4, 3)


def printed(function, *args, gradient=True):
    """The code for what a function did, and that it computes the same and has the same gradient."""
    moving = [x for x in args if jnp.issubdtype(x.dtype, jnp.inexact)]
    with tf.GradientTape() as tape:
        tape.watch(moving)
        y = function(*args)
    f = tape.as_function(y, moving)
    scope = {"jax": jax, "jnp": jnp, "np": np, **f.constants}
    exec(f.code, scope)
    np.testing.assert_allclose(scope["f"](moving), y, rtol=1e-5)
    for scale in (1.0, 1.1) if gradient else ():
        other = [x * jnp.asarray(scale, x.dtype) for x in moving]
        wanted, found = (jax.value_and_grad(lambda xs, g=g: jnp.sum(g(xs)))(other) for g in (f, scope["f"]))
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6, err_msg=f.code)
    return f.code


def statements(text):
    """The statements of a text, each as one line; a name for what is returned makes no difference."""
    nodes = [node for node in ast.walk(ast.parse(textwrap.dedent(text))) if isinstance(node, (ast.Assign, ast.Return))]
    lines = [ast.unparse(node) for node in nodes]
    return [line for line in lines] + [f"return {line.partition(' = ')[2]}" for line in lines if " = " in line]


def share(block, code):
    """The lines of a block that are printed as they stand, and the other ones."""
    body = [ast.unparse(node) for node in ast.parse(textwrap.dedent(inspect.getsource(block))).body[0].body]
    there = {*statements(code)}
    return [line for line in body if line in there], [line for line in body if line not in there]


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "jit"])
def test_lines_of_plain_jnp_come_out_as_they_stand(wrapped):
    kept, others = [], []
    for block, args in BLOCKS.items():
        code = printed(jax.jit(block) if wrapped else block, *args, gradient=False)
        assert "bind" not in code and "custom_jvp" not in code and "ж" not in code
        for lines, more in zip((kept, others), share(block, code), strict=True):
            lines += more
    assert len(kept) >= 0.95 * len(kept + others) and len(kept) > 85, others


def of_axes(x):
    return jnp.sum(x, axis=-1, keepdims=True).mean() + x.max(axis=(0, 1)) + jnp.linalg.norm(x, axis=0)[1]


def of_numbers(x):
    n, scale = x.shape[0], 0.25
    return jnp.sum(x.reshape(n, -1) * scale + jnp.ones((n, 1)) @ jnp.zeros((1, 3)))


def of_parts(x):
    q, r = jnp.linalg.qr(x)
    return jnp.abs(q).sum() + jnp.abs(r).sum() + jnp.linalg.svd(x, full_matrices=False)[1].sum()


def of_a_loop(x):
    total = 0.0
    for i in range(3):
        total += jnp.linalg.norm(x[:, i]) * total + 1.0
    return total


def of_two(x):
    first, second = x @ x.T, jnp.exp(-x)
    first, second = first * 2.0, first.sum() + second
    return first.sum() + second.mean()


def of_aliases(x):
    return lax.rsqrt(x**2 + 1.0).sum() + jax.vmap(jnp.dot)(x, x).sum()


def of_labels(x):
    labels = jnp.array([0, 2, 1, 0])
    picked = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], axis=1)
    return -picked.mean() + x[jnp.arange(4), labels].sum()


TEXTS = {
    of_axes: ("jnp.sum(x, axis=-1, keepdims=True).mean()", "x.max(axis=(0, 1))", "jnp.linalg.norm(x, axis=0)[1]"),
    of_numbers: ("x.reshape(4, -1) * 0.25", "jnp.ones((4, 1)) @ jnp.zeros((1, 3))"),
    of_parts: ("q, r = jnp.linalg.qr(x)", "jnp.linalg.svd(x, full_matrices=False)[1].sum()"),
    of_a_loop: ("total = total + (jnp.linalg.norm(x[:, i]) * total + 1.0)",),
    of_two: ("first, second = x @ x.T, jnp.exp(-x)", "first, second = first * 2.0, first.sum() + second"),
    of_aliases: ("jax.lax.rsqrt(x**2 + 1.0)", "jax.vmap(jnp.dot)(x, x)"),
    of_labels: ("labels = jnp.array([0, 2, 1, 0]", "labels[:, None], axis=1)", "x[jnp.arange(4), labels]"),
}


@pytest.mark.parametrize("function", TEXTS)
def test_an_expression_is_written_as_in_the_source(function):
    code = printed(function, M).replace("M", "x")
    for text in TEXTS[function]:
        assert text in code, code


def activated(c):
    return jax.nn.gelu(c) * jax.nn.logsumexp(c), None


INSIDE = {
    "scan": lambda x: lax.scan(lambda c, _: activated(c), x, None, length=2)[0].sum(),
    "jit": lambda x: jax.jit(lambda c: activated(c)[0])(x).sum(),
    "cond": lambda x: lax.cond(x[0] > 0, lambda c: activated(c)[0], lambda c: c, x).sum(),
    "checkpoint": lambda x: jax.checkpoint(lambda c: activated(c)[0])(x).sum(),
}


@pytest.mark.parametrize("around", INSIDE)
def test_functions_are_named_inside_of_others(around):
    code = printed(INSIDE[around], v)
    assert "jax.nn.gelu(" in code and "jax.nn.logsumexp(" in code and "jnp.log(" not in code, code


def test_an_index_of_a_loop_is_an_index():
    code = printed(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x[i], 1.0), v)
    assert "lambda i, c: c * v[i]" in code, code


def later(x):
    total = 0.0
    for _ in range(2):
        x = jnp.sin(x)
        total += jnp.sum(x)
    return total


def test_what_varies_is_no_number_where_an_instruction_runs_again():
    """The sum of the first round is an operand of the second, at the same instruction."""
    assert "total = total + jnp.sum(" in printed(later, v)


def test_a_constant_that_a_tape_took_of_a_source_before_it_was_watched_stays_one():
    x = jnp.array([1.0, -2.0])
    with tf.GradientTape() as tape:
        mask = jnp.where(x > 0, 1.0, 0.5)
        tape.watch(x)
        y = jnp.sum(mask * x)
    f = tape.as_function(y, x)
    scope = {"jax": jax, "jnp": jnp, "np": np, **f.constants}
    exec(f.code, scope)
    assert float(scope["f"](-x)) == float(f(-x)) == -1.0 + 0.5 * 2.0


def test_nothing_with_effects_runs_while_candidates_are_tried(capsys):
    drawn = []

    def noise():
        drawn.append(1)
        return np.float32(np.random.normal())

    with tf.GradientTape() as tape:
        tape.watch(v)
        y = jnp.sum(v * noise() + float(print("once") or 1.0))
    state = np.random.get_state()[1].copy()
    assert "f(v)" in tape.as_function(y, v).code
    assert drawn == [1] and capsys.readouterr().out == "once\n"
    assert (np.random.get_state()[1] == state).all()


def test_data_that_the_program_names_are_not_written_out():
    names = jnp.arange(12, dtype=jnp.int32) % 3
    with tf.GradientTape() as tape:
        tape.watch(M)
        y = jnp.sum(jax.nn.log_softmax(M @ jnp.ones((3, 12)))[0, names])
    f = tape.as_function(y, M)
    assert [*f.constants] == ["names"] and "[0, names]" in f.code


def test_rounds_are_known_by_their_repetition():
    assert (
        round_length("aaaa") == 1 and round_length("abab") == 2 and round_length("abca") == 4 and round_length("") == 0
    )


def test_what_does_nothing_is_not_written():
    """A library moves an axis to where it is."""
    code = tf.code(lambda x: jnp.moveaxis(jnp.sin(x), 0, 0) * 2.0, jnp.ones((2, 3))).code
    assert "moveaxis" not in code and "jnp.sin(x) * 2.0" in code
