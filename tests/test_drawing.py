"""`tape.draw`: what is on the picture, how it is laid out, and that it can be shown."""

from __future__ import annotations

import xml.dom.minidom

import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax import drawing, listing

pytest.importorskip("matplotlib")


def recorded(count=1):
    x, c = tf.Variable(np.ones((4, 3), np.float32)), tf.constant(np.ones((3, 2), np.float32))
    with tf.GradientTape() as tape:
        h = tf.matmul(x, c)
        cut = tf.stop_gradient(h)
        for _ in range(count):
            h = tf.tanh(h) * 2.0
        y = tf.reduce_sum(h + cut)
    return tape, x, c, y


def texts(picture):
    return [text.get_text() for axes in picture.figure.axes for text in axes.texts]


def nodes_of(tape, targets, sources):
    recording = tape._recording
    names = listing.Names(recording, listing.namespaces())
    return drawing.graph(recording, names, targets, sources, [])


def test_what_is_on_it():
    tape, x, c, y = recorded()
    picture = tape.draw(y, x)
    said = texts(picture)
    for text in (
        "matmul",
        "tanh",
        "multiply 2.0",
        "stop_gradient",
        "reduce_sum",
        "x",
        "c",
        "y",
        "4×2",
        "4×3",
        "target",
    ):
        assert text in said, said
    assert "Drawing of a tape" in repr(picture)
    assert tape.gradient(y, x) is not None  # it was not used up


def test_colours_and_marks():
    tape, x, c, y = recorded()
    nodes = {node.label: node for node in nodes_of(tape, [y._array], [x._array])}
    assert [nodes[name].carries for name in ("matmul", "tanh", "stop_gradient", "add", "reduce_sum")] == [
        True, True, False, True, True,
    ]  # fmt: skip
    assert nodes["reduce_sum"].target and not nodes["add"].target
    assert [(nodes[n].kind) for n in ("x", "c")] == ["source", "constant"]
    (to_sum,) = nodes["add"].outs
    assert to_sum.carries and to_sum.label == "4×2"
    assert {edge.tail.label: edge.carries for edge in nodes["add"].ins} == {
        "multiply 2.0": True,
        "stop_gradient": False,
    }


def test_everything_is_drawn_without_a_target():
    tape, x, c, y = recorded()
    with_target, whole = texts(tape.draw(tf.stop_gradient(y), x)), texts(tape.draw())
    assert "reduce_sum" in whole and "reduce_sum" not in with_target


@pytest.mark.parametrize("count", [1, 5, 28])
def test_layout(count):
    tape, x, c, y = recorded(count)
    layers = drawing.arrange(nodes_of(tape, [y._array], [x._array]))
    across = drawing.is_across(layers)
    for depth, layer in enumerate(layers):
        for node in layer:
            assert node.layer == depth
            assert all(edge.head.layer == depth + 1 for edge in node.outs)
        ends = [(n.at, (n.height if across else n.width) / 2) for n in layer]
        for (at, half), (other, other_half) in zip(ends, ends[1:]):
            assert other - other_half > at + half  # nothing overlaps


def test_long_tapes_are_folded():
    tape, x, c, y = recorded(200)
    picture = tape.draw(y, x)
    said = texts(picture)
    assert sum("operations," in text for text in said) <= drawing.GROUPS
    assert picture.figure.get_size_inches()[1] < 40


def test_svg(tmp_path):
    tape, x, c, y = recorded()
    picture = tape.draw(y, x)
    svg = picture._repr_svg_()
    assert xml.dom.minidom.parseString(svg).documentElement.tagName == "svg"
    picture.savefig(tmp_path / "tape.png")
    assert (tmp_path / "tape.png").stat().st_size > 1000


def test_odd_tapes():
    with tf.GradientTape() as tape:
        pass
    assert len(texts(tape.draw())) == 4  # the legend
    x = jnp.ones(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert "x" in texts(tape.draw(x, x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        parts = jnp.split(x, 3)
        y = parts[0] * parts[1] + parts[2]
    assert texts(tape.draw(y, x))
    tape.gradient(y, x)
    with pytest.raises(RuntimeError):
        tape.draw()


def test_places_are_the_nearest_that_keep_their_distance():
    assert drawing._spread([0.0, 0.0, 10.0], [1.0, 1.0], [1.0, 1.0, 1.0]) == [-0.5, 0.5, 10.0]
    assert drawing._spread([0.0, 0.0], [1.0], [3.0, 1.0]) == [-0.25, 0.75]  # who pulls harder moves less
    assert drawing._spread([5.0], [], [1.0]) == [5.0]
