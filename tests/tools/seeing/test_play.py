"""`tape.play`: what is on the page is what was recorded and what the sweep computes, and the page needs nothing else."""

from __future__ import annotations

import base64
import html.parser
import json
import linecache
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_jax import a_third
from test_plain_jax import split

import tapejax as tf
from tapejax.execution import schedule
from tapejax.tools.seeing import drawing, play

pytest.importorskip("matplotlib")


def numbers(data, index, dtype=np.float32):
    """A value of the page, as an array of at least two axes."""
    return np.asarray(data["values"][index]["cells"]).astype(dtype)


def named(data, name):
    """The values of the page's arrays of that name."""
    return [numbers(data, x["value"]) for x in data["arrays"] if x["name"] == name]


def sums(data):
    """For each backward step what it adds: ``(said, [(name, before, parts, after)])``."""
    scalar = lambda index: None if index is None else float(numbers(data, index).item())  # noqa: E731
    return [
        (
            frame.get("said", "seed"),
            [
                (
                    data["arrays"][s["array"]]["name"],
                    scalar(s["before"]),
                    [*map(scalar, s["parts"])],
                    scalar(s["after"]),
                )
                for s in frame["sums"]
            ],
        )
        for frame in data["frames"]
        if "sums" in frame
    ]


def source_of(page):
    return page._repr_mimebundle_()["text/html"]


class Scripts(html.parser.HTMLParser):
    """The scripts of a page, and the attributes of all its tags."""

    def __init__(self, page):
        super().__init__()
        self.scripts, self.tags, self._inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append("")

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self._inside = False


# ---- what is on it --------------------------------------------------------------------------------------------------


def test_by_hand():
    """y = h² + h with h = 2x at x = 3: h has two contributions by the product and one by the sum."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * 2.0
        y = h * h + h
    data = tape.play(y, x).data
    assert data["of"] == "y" and data["operations"] == 3
    assert [named(data, name) for name in ("x", "h", "t1", "y")] == [[3.0], [6.0], [36.0], [42.0]]
    forward = [
        (f["said"], [data["arrays"][i]["name"] for i in f["outs"]]) for f in data["frames"] if f["kind"] == "forward"
    ]
    assert forward == [("h = multiply(x, 2.0)", ["h"]), ("t1 = multiply(h, h)", ["t1"]), ("y = add(t1, h)", ["y"])]
    assert sums(data) == [
        ("seed", [("y", None, [1.0], 1.0)]),
        ("y = add(t1, h)", [("t1", None, [1.0], 1.0), ("h", None, [1.0], 1.0)]),
        ("t1 = multiply(h, h)", [("h", 1.0, [6.0, 6.0], 13.0)]),
        ("h = multiply(x, 2.0)", [("x", None, [26.0], 26.0)]),
    ]
    (gradient,) = data["frames"][-1]["gradients"]
    assert gradient["name"] == "x" and numbers(data, gradient["value"]) == 26.0
    (lit,) = data["nodes"][-1]["rows"]
    assert data["code"][lit]["text"].strip() == "y = h * h + h"
    assert data["code"][0]["file"] == "test_play.py"
    assert tape.gradient(y, x).numpy() == 26.0  # it was not used up


@a_third(0)
def test_the_numbers_are_those_of_the_recording_and_the_gradient(case, monkeypatch):
    monkeypatch.setattr(schedule, "COMPILE_AT_MOST", 0)  # so that the two run the very same compiled pieces
    monkeypatch.setattr(play, "picture", lambda layers: None)
    sources, rebuild = split(case.arguments())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    data = tape.play(outputs, sources).data
    json.dumps(data, allow_nan=False)
    assert_adds_up(data)
    for found, expected in zip(data["frames"][-1]["gradients"], tape.gradient(outputs, sources), strict=True):
        assert (found["value"] is None) == (expected is None)
        if expected is not None:
            assert_shows(data["values"][found["value"]], expected)
    recorded = {json.dumps(play._shown(x)) for entry in tape for x in (*entry.inputs, *entry.outputs) if is_array(x)}
    recorded |= {json.dumps(play._shown(x)) for x in jax.tree.leaves((outputs, sources))}
    assert {json.dumps(data["values"][x["value"]]) for x in data["arrays"]} <= recorded


def assert_adds_up(data):
    """What was there and what is added give what is there then; and a cotangent that went in is added to no more."""
    there, complete = {}, set()
    for frame in data["frames"]:
        for array, value in frame.get("ins", ()) if frame["kind"] == "backward" else ():
            assert there[array] == value
            complete.add(array)
        for known in frame.get("sums", ()):
            assert known["array"] not in complete and known["before"] == there.get(known["array"])
            there[known["array"]] = known["after"]
            terms = [i for i in (known["before"], *known["parts"]) if i is not None]
            if len(terms) == known["count"] + (known["before"] is not None):  # no folded group
                if all("cells" in data["values"][i] and "reduced" not in data["values"][i] for i in terms):
                    total = sum(numbers(data, i, complex) for i in terms)
                    np.testing.assert_allclose(numbers(data, known["after"], complex), total, rtol=1e-5, atol=1e-6)


def is_array(x):
    return isinstance(x, jax.Array)


def assert_shows(value, x):
    if "cells" in value and "reduced" not in value:
        np.testing.assert_array_equal(np.asarray(value["cells"]).astype(x.dtype).ravel(), np.asarray(x).ravel())
    else:
        assert (x.size > 16 or not x.size) and value["type"].startswith(str(x.dtype))


def test_each_number_comes_back_exactly():
    grid = np.random.default_rng(0).normal(size=(5, 4)) * 10.0 ** (np.arange(20).reshape(5, 4) / 4 - 2)
    for dtype in (np.float32, np.float16, jnp.bfloat16):
        x = jnp.asarray(grid, dtype)
        cells = np.asarray(play._shown(x)["cells"]).astype(np.float64)
        np.testing.assert_array_equal(cells.astype(dtype), np.asarray(x))
    assert play._shown(jnp.asarray([[2**31 - 1, -3]]))["cells"] == [["2147483647", "-3"]]
    assert play._shown(jnp.asarray([jnp.nan, -jnp.inf]))["cells"] == [["nan", "-inf"]]
    assert play._shown(jnp.asarray(True))["cells"] == [["True"]]
    assert complex(play._shown(jnp.asarray(0.1 + 2j))["cells"][0][0]) == pytest.approx(0.1 + 2j)


def test_what_is_not_shown_whole():
    assert play._shown(jnp.arange(24.0).reshape(3, 8)).keys() == {"type", "shape", "cells"}
    wide = play._shown(jnp.arange(60.0).reshape(3, 20))
    assert wide.keys() == {"type", "shape", "cells", "text"} and wide["text"] == "from 0.0 to 59.0"
    assert play._shown(jnp.ones((2, 2, 5)))["cells"] == [["1.0"] * 5] * 4
    assert play._shown(jnp.ones((1, 2, 3, 1)))["cells"] == [["1.0"] * 3] * 2
    assert play._shown(jnp.zeros((0, 3, 2)))["text"] == "empty"
    assert play._shown(jax.random.key(0))["text"] == ""
    gone = jnp.ones(3)
    gone.delete()
    assert play._shown(gone)["text"] == "deleted"
    assert jax.jit(lambda x: play._shown(x)["text"] == "traced by JAX" and x)(jnp.ones(3)).shape == (3,)


def test_what_a_gradient_does_not_reach():
    student, teacher = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 1.0])
    with tf.GradientTape() as tape:
        held = tf.stop_gradient(tf.tanh(teacher))
        loss = tf.reduce_sum((tf.tanh(student) - held) ** 2)
    data = tape.play(loss, {"student": student, "teacher": teacher}).data
    assert [(g["name"], g["value"] is None) for g in data["frames"][-1]["gradients"]] == [
        ("student", False),
        ("teacher", True),
    ]
    back = {data["nodes"][f["node"]]["label"] for f in data["frames"] if f["kind"] == "backward"}
    assert back == {"reduce_sum", "pow 2", "subtract", "tanh"}
    carries = {node["label"]: node["carries"] for node in data["nodes"]}
    assert carries["stop_gradient"] is False and carries["subtract"] is True
    with tf.GradientTape() as tape:
        best = tf.argmax(student)
    data = tape.play(best, student).data
    assert [f["kind"] for f in data["frames"]] == ["start", "forward", "seed", "end"]
    assert data["frames"][-1]["gradients"][0]["value"] is None


def test_an_assignment():
    x, average = tf.Variable(2.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        average.assign(0.9 * average + 0.1 * x)
        y = average**2
    data = tape.play(y, [x, average]).data
    (edge,) = [edge for edge in data["edges"] if edge[2] == "cut"]
    tail, head = (data["nodes"][i] for i in edge[:2])
    assert (tail["label"], head["label"], head["note"]) == ("add", "average", "after assign")
    assert head["since"] == tail["since"] > 0


def test_a_source_on_the_way():
    radius = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        area = 3.0 * radius**2
        price = 4.0 * tf.sqrt(area) + 2.0 * area
    data = tape.play(price, area).data
    assert [data["arrays"][i]["name"] for i in data["frames"][0]["sources"]] == ["area"]
    (gradient,) = data["frames"][-1]["gradients"]
    assert gradient["name"] == "area" and numbers(data, gradient["value"]) == tape.gradient(price, area).numpy()


def test_several_targets_and_cotangents_of_ones_own():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = y * 2.0
    data = tape.play([y, z, y], x, output_gradients=[tf.constant(1.0), tf.constant(10.0), tf.constant(5.0)]).data
    assert sums(data)[0] == ("seed", [("y", None, [1.0, 5.0], 6.0), ("z", None, [10.0], 10.0)])
    assert sums(data)[1] == ("z = multiply(y, 2.0)", [("y", 6.0, [20.0], 26.0)])
    assert sums(data)[2] == ("y = multiply(x, x)", [("x", None, [78.0, 78.0], 156.0)])


def long_tape(rounds):
    """A tape of 4 operations a round and one more, its target and its source."""
    w, h = tf.Variable([[0.2, 1.0], [-1.0, 0.3]]), tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        for _ in range(rounds):
            h = tf.tanh(h @ w)
            h = h + 0.1 * h
        y = tf.reduce_sum(h)
    return tape, y, w


@pytest.mark.parametrize("rounds", [1, 19, 650])
def test_a_long_tape_is_folded(rounds):
    tape, y, w = long_tape(rounds)
    page = tape.play(y, w)
    data = page.data
    count = 4 * rounds + 1
    assert data["operations"] == len(tape) == count
    operations = [node for node in data["nodes"] if node["kind"] == "operation"]
    assert len(operations) <= drawing.OPERATIONS and sum(node["count"] for node in operations) == count
    assert len(data["frames"]) == 2 * len(operations) + 3
    np.testing.assert_allclose(
        numbers(data, data["frames"][-1]["gradients"][0]["value"]), tape.gradient(y, w), rtol=1e-4
    )
    added = [
        s["count"]
        for frame in data["frames"]
        for s in frame.get("sums", ())
        if data["arrays"][s["array"]]["name"] == "w"
    ]
    assert sum(added) == rounds
    assert len(source_of(page)) < 400_000


def test_every_layout_places_every_node():
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(x @ tf.constant([[1.0], [2.0]])) * 3.0 + x)
    data = tape.play(y, x).data
    for name, layout in data["layouts"].items():
        assert len(layout["places"]) == len(data["nodes"]) and len(layout["paths"]) == len(data["edges"])
        width, height = layout["size"]
        for x, y, w, h in layout["places"]:
            assert -0.2 <= x - w / 2 and x + w / 2 <= width + 0.2 and -0.2 <= y - h / 2 and y + h / 2 <= height + 0.2, (
                name
            )
        boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in layout["places"]]
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], "two nodes overlap"


@pytest.mark.parametrize("shape", [(60,), (100, 30), (2, 700), (4, 3, 28, 28)])
def test_a_large_matrix_is_shown_by_the_largest_of_each_block(shape):
    grid = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    shown = play._shown(jnp.asarray(grid))
    assert shown["reduced"] and shown["text"] == f"from {grid.min():.6g} to {grid.max():.6g}"
    cells, whole = np.array(shown["cells"], float), grid.reshape(-1, grid.shape[-1])
    assert cells.shape == tuple(min(size, play.BLOCKS) for size in whole.shape)
    blocks = [np.array_split(rows, cells.shape[1], 1) for rows in np.array_split(whole, cells.shape[0])]
    for found, block in zip(cells.ravel(), (block for row in blocks for block in row), strict=True):
        assert found == pytest.approx(block.flat[np.abs(block).argmax()], rel=0.06)
    grid.flat[7] = np.nan
    assert "nan" in np.array(play._shown(jnp.asarray(grid))["cells"])


def test_all_numbers_have_one_scale():
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * 1e-3) * 50.0
    data = tape.play(y, x, tangents=tf.constant([[3.0, 4.0]])).data
    assert data["scale"] == 50.0  # the cotangent of the sum: larger than any value or tangent
    labels = tf.constant([7_000, 3])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(tf.constant([1.0] * 8), labels % 8) * x[0])
    assert tape.play(y, x).data["scale"] == 3.0  # integers may be labels or seeds


def test_the_rounds_of_a_loop_are_numbered():
    w = jnp.asarray(0.5)
    with tf.GradientTape() as tape:
        tape.watch(w)
        h, _ = jax.lax.scan(lambda h, _: (jnp.sin(h * w), None), jnp.asarray(1.0), None, length=12)
    data = tape.play(h, w).data
    (inside,) = [node["inside"] for node in data["nodes"] if node.get("inside")]
    found = [(node["label"].split()[0], node["round"]) for node in inside["nodes"] if node["kind"] == "operation"]
    assert found == [(name, f"round {i} of 12") for i in range(1, 13) for name in ("mul", "sin")]
    assert all(node["round"] == "" for node in data["nodes"])
    with tf.GradientTape() as tape:
        tape.watch(w)
        h, _ = jax.lax.scan(lambda h, _: (jnp.sin(h * w), None), jnp.asarray(1.0), None, length=100)
    (inside,) = [node["inside"] for node in tape.play(h, w).data["nodes"] if node.get("inside")]
    groups = [node["round"] for node in inside["nodes"] if node["count"] > 1]
    assert groups[0].startswith("rounds 1 … ") and groups[-1].endswith(" … 100 of 100")


# ---- the page -------------------------------------------------------------------------------------------------------

HOSTILE = """</script><script>alert("1")</script><!-- & &amp; <b> ' \\u2028 ∂"""


def hostile():
    """A tape of which the user's lines and names are such text."""
    text = f"x = params[{HOSTILE!r}]\ny = x * x  # {HOSTILE}\n"
    linecache.cache["<hostile & co>"] = (len(text), None, text.splitlines(keepends=True), "<hostile & co>")
    params = {HOSTILE: tf.Variable(3.0)}
    with tf.GradientTape() as tape:
        exec(compile(text, "<hostile & co>", "exec"), space := {"params": params})
    return tape.play(space["y"], params)


def test_the_users_text_stays_text():
    page = hostile()
    parsed = Scripts(source_of(page))
    data, script = parsed.scripts
    assert json.loads(data) == page.data == json.loads(json.dumps(page.data))
    assert not set("<>&") & set(data) and "alert" not in script
    assert [tag for tag, _ in parsed.tags] == ["div", "img", "style", "script", "script"]
    assert any(HOSTILE in row.get("text", "") for row in page.data["code"])
    assert page.data["code"][0]["file"] == "<hostile & co>"
    assert f"params[{HOSTILE!r}]" == page.data["arrays"][0]["name"]
    for static in ("play.js", "play.css"):
        text = play.Path(play.__file__).with_name(static).read_text()
        assert "</" not in text.replace("</script>", ""), static
        assert "innerHTML" not in text and "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_saved_page_needs_nothing_else(tmp_path):
    page = hostile()
    page.save(tmp_path / "tape.html")
    text = (tmp_path / "tape.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and '<meta charset="utf-8">' in text
    assert set(re.findall(r"https?://[^\s\"'<>;]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|iframe|object|embed)\b|@import|url\(|fetch\(|XMLHttpRequest|\bimport\b", text)
    tags = Scripts(text).tags
    assert [attrs["src"][:26] for tag, attrs in tags if "src" in attrs] == ["data:image/svg+xml;base64,"]
    assert "href" not in {name for _, attrs in tags for name in attrs}
    again = tmp_path / "again.html"
    page.save(str(again))
    assert again.read_text(encoding="utf-8") == text  # the same tape gives the same bytes


def test_what_a_notebook_gets():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    page = tape.play(y, x)
    bundle = page._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["image/svg+xml"] == tape.draw(y, x).svg()
    assert bundle["text/plain"] == repr(page) and "1 operation, forward" in repr(page)
    # without scripts and styles the still picture is what is left
    image = re.search(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)"', bundle["text/html"])
    assert image[1] == "The tape of y: 1 operation, forward and backward"
    assert base64.b64decode(image[2]).decode() == bundle["image/svg+xml"]
    # a style sheet in the page's own tree must not reach the notebook
    assert '<style media="not all">' in bundle["text/html"]


def test_without_matplotlib_there_is_no_still_picture(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    bundle = tape.play(y, x)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert [tag for tag, _ in Scripts(bundle["text/html"]).tags] == ["div", "style", "script", "script"]


def test_errors_are_those_of_steps():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    for sources in ([1.0], "x"):
        with pytest.raises(TypeError) as steps:
            tape.steps(y, sources)
        with pytest.raises(TypeError) as found:
            tape.play(y, sources)
        assert str(found.value) == str(steps.value)
    a = jnp.asarray(3.0)
    with tf.GradientTape() as other:
        other.watch(a)
        z = jax.lax.while_loop(lambda h: h < 50.0, lambda h: h * h, a)
    with pytest.raises(Exception, match="while") as steps:
        list(other.steps(z, a))
    with pytest.raises(steps.type) as found:
        other.play(z, a)
    assert str(found.value) == str(steps.value)
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.play(y, x)


def test_no_tape_records_it():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(x * x)
        before = len(outer)
        tape.play(y, x)
        assert len(outer) == before
    assert len(tape) == 2


def test_64_bits_stay_64_bits():
    with jax.enable_x64(True):
        x = jnp.asarray([1.0, 2.0]) / 3.0
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = jnp.sum(jnp.exp(x) * x)
        expected = np.asarray(tape.gradient(y, x))
    data = tape.play(y, x).data
    assert expected.dtype == np.float64
    np.testing.assert_array_equal(numbers(data, data["frames"][-1]["gradients"][0]["value"], np.float64), [expected])


def test_what_was_donated_since_is_called_deleted():
    """A number in the place of its name: one that Keras's compiled step donates, say."""
    step = jax.jit(lambda state, x: (state + jnp.sum(x), jnp.sum(x**2)), donate_argnums=0)
    x, first, second = jnp.ones((1, 3)), jnp.zeros(()), jnp.ones(())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        _, z = step(first, x)
        z = z * jnp.sum(step(second, x)[1])
    del first, second
    gradient = tape.gradient(z, x)
    for shown in (
        str(tape),
        tape._repr_html_(),
        tape.draw(z, x),
        tape.play(z, x),
        str(tape.explain(z, x)),
    ):
        assert shown is not None
    assert "deleted" in str(tape)
    np.testing.assert_allclose(gradient, tape.gradient(z, x))
