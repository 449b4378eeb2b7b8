"""What opens in `tape.play`: jitted functions, scans, conds, inner gradients. The cotangents are those of the page around."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_play import assert_adds_up, numbers

import tapejax as tf
from tapejax.tools.seeing import inside, play

X, W = jnp.asarray([1.0, 2.0]), jnp.asarray([[0.5, -0.2], [0.3, 0.4]])


@jax.jit
def layer(w, x):
    z = w @ x
    h = jnp.tanh(z)
    return h * h + x


def rounds(reverse):
    def loop(w, x):
        def body(c, t):
            c = jnp.sin(w @ c) * t
            return c, c * c

        last, each = jax.lax.scan(body, x, jnp.asarray([1.0, 2.0, 3.0]), reverse=reverse)
        return last + each[0] * each[2]

    return loop


def chosen(w, x):
    return jax.lax.cond(x[0] > 0, lambda x: jnp.exp(w @ x) * x, lambda x: x, x)


def inner(w, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(jnp.sin(w @ x) * x)
    return tape.gradient(y, x)


PROGRAMS = {"jit": layer, "scan": rounds(False), "scan backward": rounds(True), "cond": chosen, "gradient": inner}
MARKS = {"jit": "layer", "scan": "scan", "scan backward": "scan", "cond": "cond", "gradient": "gradient"}


def opened(data):
    """The operations of a page that open, at any depth: the page, the node's number, what is inside."""
    for i, node in enumerate(data["nodes"]):
        if node["inside"]:
            yield data, i, node["inside"]
            yield from opened(node["inside"])


@pytest.mark.parametrize("kind", PROGRAMS)
def test_it_adds_what_the_operation_adds(kind):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([W, X])
        y = jnp.sum(PROGRAMS[kind](W, X))
    direction = [W + 1.0, X - 3.0]
    data = tape.play(y, [W, X], tangents=direction).data
    found = list(opened(data))
    assert any(data["nodes"][i]["label"].startswith(MARKS[kind]) for around, i, _ in found if around is data)
    for around, i, within in found:
        assert within["of"] == "y"
        assert_adds_up(within)
        (back,) = [frame for frame in around["frames"] if frame["kind"] == "backward" and frame["node"] == i]
        added = {
            around["arrays"][s["array"]]["name"]: sum(numbers(around, part) for part in s["parts"])
            for s in back["sums"]
        }
        given = [numbers(within, g["value"]) for g in within["frames"][-1]["gradients"]]
        for name, found_there in zip(added, given, strict=True):
            np.testing.assert_allclose(found_there, added[name], rtol=1e-4, atol=1e-4, err_msg=name)
        told, ends = dict(around["forward_mode"]["tangents"]), within["forward_mode"]
        (forward,) = [frame for frame in around["frames"] if frame["kind"] == "forward" and frame["node"] == i]
        pushed = [numbers(around, told[j]) for j in forward["outs"] if j in told]
        inner_tangents = [numbers(within, dict(ends["tangents"])[j]) for j in ends["targets"]]
        for a, b in zip(inner_tangents, pushed, strict=False):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_the_lines_and_names_are_those_of_the_function():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(layer(W, X))
    ((_, _, within),) = opened(tape.play(y, X).data)
    assert [row["text"].strip() for row in within["code"] if "text" in row][-3:] == [
        "z = w @ x",
        "h = jnp.tanh(z)",
        "return h * h + x",
    ]
    assert {"z", "h", "X", "W"} <= {x["name"] for x in within["arrays"]}


def test_a_loop_is_shown_round_by_round():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(rounds(False)(W, X))
    within = next(inside for _, _, inside in opened(tape.play(y, X).data))
    assert [node["label"] for node in within["nodes"]].count("sin") == 3


def doubled(x):
    def body(c, _):
        return jnp.sqrt(c) * 2.0, None

    return jax.lax.scan(body, x, None, length=2)[0]


def twice_the_root(x):
    def body(c, _):
        root = jnp.sqrt(c)
        return root * 2.0, None

    return jax.lax.scan(body, x, None, length=2)[0]


def test_each_of_two_loops_that_do_the_same_has_its_own_lines():
    for loop, line in ((doubled, "return jnp.sqrt(c) * 2.0, None"), (twice_the_root, "root = jnp.sqrt(c)")):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = jnp.sum(loop(X))
        within = next(inside for _, _, inside in opened(tape.play(y, X).data))
        assert line in {row["text"].strip() for row in within["code"] if "text" in row}


def test_what_does_not_open():
    @jax.custom_vjp
    def own(x):
        return jnp.sin(x) * x

    own.defvjp(lambda x: (own(x), x), lambda x, ct: (3.0 * ct,))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        a = jnp.sum(own(X))  # its derivative is not that of what is inside
        b = jnp.sum(jax.jit(jnp.tanh)(X))  # one operation
        c = jnp.sum(jax.lax.scan(lambda c, _: (jnp.sin(c) * c, None), X, None, length=inside.OPERATIONS)[0])
        d = tf.reduce_sum(tf.nn.softmax(X))  # an operation of TensorFlow's
    assert not list(opened(tape.play([a, b, c, d], X).data))


def test_only_so_deep():
    @jax.jit
    def first(x):
        return jnp.sin(x) * x

    second = jax.jit(lambda x: first(x) + first(x) * x)
    third = jax.jit(lambda x: second(x) * second(x + 1.0))
    fourth = jax.jit(lambda x: third(x) + third(x * x))
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(fourth(X))
    data = tape.play(y, X).data

    def depth(data):
        return max((1 + depth(node["inside"]) for node in data["nodes"] if node["inside"]), default=0)

    assert depth(data) == play.DEPTH


def test_no_tape_records_what_is_run_again():
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = jnp.sum(layer(W, X))
        before = len(outer)
        tape.play(y, X)
        assert len(outer) == before
