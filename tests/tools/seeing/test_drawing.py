"""`tape.draw`: what is on the picture, how it is laid out, and that it can be shown."""

from __future__ import annotations

import base64
import html
import re
import xml.dom.minidom

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tape.query import Query
from tapejax.tools.seeing import drawing, listing

matplotlib = pytest.importorskip("matplotlib")


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
    return [text.get_text() for text in (*picture.figure.axes[0].texts, *picture.figure.legends[0].get_texts())]


def nodes_of(tape, targets, sources):
    recording = tape._recording
    names = listing.Names(recording)
    return drawing.graph(names, Query(recording, targets, sources))


def test_a_source_that_is_an_intermediate_is_marked():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        h = w * w
        y = tf.sin(h) + w
    for sources, marked in (([w, h], ["w", "multiply"]), ([w], ["w"]), ([h], ["multiply"]), ([y], ["add"])):
        picture = tape.draw(y, sources)
        boxes = [p for p in picture.figure.axes[0].patches if "FancyBbox" in type(p).__name__]
        labels = [t.get_text() for t in picture.figure.axes[0].texts if t.get_fontsize() == 9]
        amber = matplotlib.colors.to_rgba(drawing.AMBER)
        found = [label for label, box in zip(labels, boxes, strict=True) if box.get_facecolor() == amber]
        assert found == [label for label in marked if label != "add"]  # a target is green in any case
        assert ("source" in texts(picture)) == bool(found)


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
    assert to_sum.kind == "carries" and to_sum.label == "4×2"
    assert {edge.tail.label: edge.kind == "carries" for edge in nodes["add"].ins} == {
        "multiply 2.0": True,
        "stop_gradient": False,
    }


def test_what_an_assignment_cuts():
    x, average = tf.Variable(2.0, name="x"), tf.Variable(0.0, name="average")
    with tf.GradientTape() as tape:
        before = average._array
        average.assign(0.9 * average + 0.1 * x)
        y = average**2
    nodes = nodes_of(tape, [y._array], [x._array, before, average._array])
    add, after, power = (
        next(n for n in nodes if n.label == s or n.note == s) for s in ("add", "after assign", "pow 2")
    )
    (cut,) = after.ins
    assert (cut.tail, cut.label, cut.kind) == (add, "assign", "cut")
    assert not add.carries and power.carries and after.label == "average"
    assert [n.note for n in nodes if n.label in ("before", "average")] == ["", "after assign"]
    said = texts(tape.draw(y, [x, average]))
    assert "after assign" in said and "assign" in said and "multiply 0.1" in said
    with tf.GradientTape() as tape:
        average.assign(x)  # nothing else uses x
        for _ in range(3):
            average.assign_add(average * x)
        y = average**2
    said = texts(tape.draw(y, x))
    assert said.count("multiply") == 3 and said.count("after assign") == 4
    with tf.GradientTape() as tape:
        for _ in range(drawing.OPERATIONS + 1):
            average.assign(average * x)
        y = average**2
    assert "assign" not in texts(tape.draw(y, x))


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


def test_rounds_of_a_loop_are_folded_whole():
    w = tf.Variable(tf.ones([2, 2]))
    with tf.GradientTape() as tape:
        h = tf.ones([1, 2]) * 2.0
        for _ in range(40):
            z = tf.sigmoid(h @ w)
            r = tf.tanh(z) * h
            h = r + z
        loss = tf.reduce_sum(h)
    folded = [node for node in nodes_of(tape, [loss._array], [w._array]) if "operations" in node.note]
    assert len({(node.label, node.note) for node in folded}) <= 3  # whole rounds look all the same
    assert len(folded) <= drawing.GROUPS + 2
    assert sum(node.note.startswith("10 operations") for node in folded) == 20  # two rounds of five in each


def test_wide_pictures_run_down_the_page():
    tape, x, c, y = recorded(2)
    width, height = tape.draw(y, x).figure.get_size_inches()
    assert width < drawing.ACROSS + 1
    tape, x, c, y = recorded(20)
    width, height = tape.draw(y, x).figure.get_size_inches()
    assert height > 2 * width


def test_a_chain_is_drawn_straight():
    """Weights stand beside it and do not push it aside."""
    ws = [tf.Variable(tf.ones([2, 2])) for _ in range(12)]
    with tf.GradientTape() as tape:
        h = tf.ones([1, 2])
        for w in ws:
            h = tf.nn.relu(h @ w)
    layers = drawing.arrange(nodes_of(tape, [h._array], [w._array for w in ws]))
    places = [node.at for layer in layers for node in layer if node.kind == "operation"]
    assert max(places) - min(places) < 1.5


def test_the_legend_tells_what_is_there():
    tape, x, c, y = recorded()
    assert "target" in texts(tape.draw(y, x)) and "target" not in texts(tape.draw(sources=x))
    with tf.GradientTape() as tape:
        y = x * 2.0
    said = texts(tape.draw(y, x))
    assert "does not" not in said and "constant" not in said and "carries gradient" not in said  # it is the target


def test_the_users_style_does_not_spoil_it():
    import matplotlib

    tape, x, c, y = recorded()
    with matplotlib.rc_context(
        {"figure.constrained_layout.use": True, "font.family": "serif", "savefig.bbox": "tight"}
    ):
        styled = tape.draw(y, x)
        assert styled.svg() == tape.draw(y, x).svg()
    assert styled.svg() == tape.draw(y, x).svg()


def test_svg(tmp_path):
    tape, x, c, y = recorded()
    picture = tape.draw(y, x)
    svg = picture.svg()
    assert xml.dom.minidom.parseString(svg).documentElement.tagName == "svg"
    picture.savefig(tmp_path / "tape.png")
    assert (tmp_path / "tape.png").stat().st_size > 1000


def test_what_a_notebook_gets():
    tape, x, c, y = recorded()
    with matplotlib.rc_context({"figure.constrained_layout.use": True}):  # a notebook takes both pictures
        picture = tape.draw(y, x)
        data, metadata = picture._repr_mimebundle_()
        assert (data, metadata) == picture._repr_mimebundle_()
    image = re.fullmatch(
        r'<style>[^<]*img.tapejax[^<]*</style><img class="tapejax" alt="([^"]*)" '
        r'src="data:image/svg\+xml;base64,([^"]*)" style="[^"]*">',
        data["text/html"],
    )
    assert html.unescape(image[1]) == picture.alt
    assert base64.b64decode(image[2]).decode() == picture.svg()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    size = metadata["image/png"]["width"], metadata["image/png"]["height"]
    assert size == pytest.approx(96 * picture.figure.get_size_inches(), abs=1)
    least = int(re.search(r"min-width:(\d+)px", data["text/html"])[1])
    assert least >= min(0.89 * size[0], 800)  # the smallest text, 7.5 points, has nine pixels on a phone


def test_a_text_in_the_place_of_the_picture():
    x, c = tf.Variable(2.0, name="x"), tf.constant([1.0, 2.0], name="c")
    with tf.GradientTape() as tape:
        kept = tf.sin(x)
        lost = tf.round(kept)
        y = tf.reduce_sum(kept * lost * c)
    picture = tape.draw(y, x)
    assert picture.alt == (
        "A tape drawn as a graph, from x, c to reduce_sum (y). Gradient passes sin (kept), multiply, reduce_sum (y),"
        " and not round (lost)."
    )
    assert tape.draw(lost, x).alt.endswith(" No gradient passes.")
    document = xml.dom.minidom.parseString(picture.svg()).documentElement
    assert document.getAttribute("role") == "img"
    assert document.getElementsByTagName("title")[0].firstChild.data == picture.alt


def test_the_text_of_a_large_picture_is_short():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x
        for i in range(40):
            y = y + float(i)
    assert " and more." in tape.draw(y, x).alt and len(tape.draw(y, x).alt) < 500


def test_odd_tapes():
    with tf.GradientTape() as tape:
        pass
    assert texts(tape.draw()) == []
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
    _key = jax.random.key(0)  # which is no number, though it is a scalar without a name
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * jax.random.normal(_key, (3,))
    assert {"c0", "normal", "multiply"} <= set(texts(tape.draw(y, x)))


def test_places_are_the_nearest_that_keep_their_distance():
    assert drawing._spread([0.0, 0.0, 10.0], [0.0, 1.0, 2.0], [1.0, 1.0, 1.0]) == [-0.5, 0.5, 10.0]
    assert drawing._spread([0.0, 0.0], [0.0, 1.0], [3.0, 1.0]) == [-0.25, 0.75]  # who pulls harder moves less
    assert drawing._spread([5.0], [0.0], [1.0]) == [5.0]


def test_places_are_those_of_isotonic_regression():
    regression = pytest.importorskip("scipy.optimize").isotonic_regression
    rng = np.random.default_rng(0)
    for size in (2, 5, 40):
        ideals, pulls = rng.normal(size=size), rng.uniform(0.1, 5.0, size)
        offsets = np.cumsum(rng.uniform(0.0, 0.5, size))
        expected = regression(ideals - offsets, weights=pulls).x + offsets
        np.testing.assert_allclose(drawing._spread(ideals, offsets, pulls), expected, rtol=1e-12, atol=1e-12)


def test_a_source_that_no_gradient_reaches_has_no_blue_frame():
    watched, forgotten, unused = jnp.asarray(2.0), jnp.asarray(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = watched * forgotten
    picture = tape.draw(y, [watched, forgotten, unused])
    edges = {
        text: patch.get_edgecolor()
        for patch in picture.figure.axes[0].patches
        for text in ("watched", "forgotten", "unused")
        if hasattr(patch, "get_boxstyle") and inside(picture, patch, text)
    }
    blue, grey = matplotlib.colors.to_rgba(drawing.BLUE), matplotlib.colors.to_rgba(drawing.OUTLINE)
    assert edges == {"watched": blue, "forgotten": grey, "unused": grey}
    assert "source, not reached" in texts(picture)


def inside(picture, patch, text):
    """Whether a text of that name lies in a box of a picture."""
    (found,) = [x for x in picture.figure.axes[0].texts if x.get_text() == text]
    x, y = found.get_position()
    return (
        patch.get_x() <= x <= patch.get_x() + patch.get_width()
        and abs(y - patch.get_y() - patch.get_height() / 2) < 0.2
    )


def test_the_legend_stays_inside_the_edge():
    x, unused = tf.Variable(2.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * tf.constant([1.0, 2.0]) * tf.stop_gradient(tf.sin(x))
        z = tf.reduce_sum(y)
    picture = tape.draw(z, [x, unused])
    figure = picture.figure
    shown = [text for text in figure.legends[0].get_texts() if text.get_text() in ("constant", "target", "does not")]
    assert len(shown) == 3
    for text in shown:
        box = text.get_window_extent(figure.canvas.get_renderer())
        assert box.x1 < figure.bbox.x1 - 10, text.get_text()
