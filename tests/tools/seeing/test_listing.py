"""The tape as a table: names, shapes, lines, in text and in HTML; and what it costs to be able to tell."""

from __future__ import annotations

import collections
import gc
import inspect
import io
import re
import subprocess
import sys
import time
import weakref
from html.parser import HTMLParser

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax import places
from tapejax.tape import active, dispatch
from tapejax.tools.seeing import listing


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


def recorded():
    x = jnp.ones((4, 3), jnp.float32)
    w = tf.Variable(np.ones((3, 2), np.float32))
    with tf.GradientTape(persistent=True) as tape:
        h = jnp.tanh(x @ w)
        y = jnp.mean((h - 1.0) ** 2)
    return tape, x, w, h, y


class Balanced(HTMLParser):
    """Fails where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.folded = [], 0, 0
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.rows += tag == "tr"
        self.folded += tag == "details"
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# ---- the table ------------------------------------------------------------------------------------------------------


def test_table():
    tape, x, w, h, y = recorded()
    lines = str(tape).splitlines()
    assert lines[0] == "persistent GradientTape: 5 operations; watching w"
    assert lines[1].split() == ["#", "value", "operation", "inputs", "line"]
    number = line_of(recorded, "jnp.tanh")
    assert lines[2].split("  ")[0] == "0 ∂"
    for part in ("matmul", "x: float32[4,3], w: float32[3,2]", f"test_listing.py:{number}", "h = jnp.tanh(x @ w)"):
        assert part in lines[2]
    assert "h: float32[4,2]" in lines[3] and "tanh" in lines[3]
    assert "h: float32[4,2], 1.0" in lines[4]
    assert "y: float32" in lines[6]
    assert repr(tape) == "<persistent GradientTape: 5 operations>"


def test_len_index_and_iteration():
    tape, *_ = recorded()
    assert len(tape) == 5 and bool(tape) and bool(tf.GradientTape())
    assert [entry.op.name for entry in tape][:2] == ["matmul", "tanh"]
    assert tape[-1].outputs[0].shape == ()
    assert [entry.op.name for entry in tape[:2]] == ["matmul", "tanh"]
    assert repr(tape[0]).startswith("matmul: float32[4,3], float32[3,2] -> float32[4,2]  (test_listing.py:")
    with pytest.raises(IndexError):
        tape[5]


def test_states_of_a_tape():
    x = tf.Variable(2.0)
    tape = tf.GradientTape()
    assert str(tape) == "GradientTape, nothing recorded yet" and len(tape) == 0 and list(tape) == []
    with tape:
        y = x * x
        assert "recording: 1 operation;" in str(tape)
    tape.gradient(y, x)
    number = line_of(test_states_of_a_tape, "tape.gradient(y, x)")
    assert str(tape) == f"GradientTape, used up by the gradient taken at test_listing.py:{number}"
    assert "used up" in tape._repr_html_() and len(tape) == 0


def test_looking_records_nothing_and_uses_nothing_up():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x)
        before = len(tape)
        str(tape), repr(tape), tape._repr_html_(), repr(x), x._repr_html_(), y._repr_html_()
        assert len(tape) == before
    tape.as_function(y, x), tape.jaxpr(y, x), list(tape.steps(y, x)), tape.explain(y, x)
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])


def test_names():
    params = {"w": tf.Variable([1.0, 2.0]), "layers": [jnp.ones(2, jnp.float32), jnp.ones(2, jnp.float32)]}
    named = tf.Variable(3.0, name="scale")

    class Model:
        def __init__(self):
            self.bias = tf.Variable([0.5, 0.5])

    model = Model()

    def inner(w, first, second, bias):
        return (w * first + second) * bias

    def also(v):
        return v * 2.0

    with tf.GradientTape() as tape:
        tape.watch(params["layers"])
        total = also(named) * inner(params["w"], *params["layers"], model.bias)
    del named
    text = str(tape)
    assert total.shape == (2,)
    for name in (
        "params['w']",
        "params['layers'][0]",
        "params['layers'][1]",
        "model.bias",
        "scale",
        "total: float32[2]",
    ):
        assert name in text, text


def test_fields_of_a_named_tuple_have_their_names():
    point = collections.namedtuple("Point", "first second")
    p = point(tf.Variable(2.0), tf.Variable(3.0))
    with tf.GradientTape() as tape:
        y = p.first * p.second
    assert "multiply   p.first: float32, p.second: float32" in str(tape) and y == 6.0


def test_rebound_names_belong_to_their_last_value():
    h = jnp.ones(2)
    with tf.GradientTape() as tape:
        for _ in range(3):
            h = jnp.sin(h)
    values = [row.split()[1] for row in str(tape).splitlines()[2:5]]
    assert values == ["t0:", "t1:", "h:"]


def test_names_that_are_gone():
    """Locals of a function that has returned, and what a name meant before it was bound anew."""
    layers = [tf.Variable(tf.ones([2, 2])) for _ in range(2)]

    def net(h):
        for layer in layers:
            h = tf.nn.relu(h @ layer)
        scale = h * 0.5
        (shifted := scale + 1.0)
        return shifted

    with tf.GradientTape() as tape:
        h = net(tf.constant([[1.0, 2.0]]))
        first = second = h * 2.0
        a, b = tf.split(first, 2, axis=1)
        h = tf.reduce_sum(h)
    values = [row.split(":")[0].split()[-1] for row in str(tape).splitlines()[2 : 2 + len(tape)]]
    assert values == ["t0", "h_1", "t2", "h_3", "scale", "shifted", "first", "a", "h"]
    assert "layers[0]: float32[2,2]" in str(tape) and "layers[1]" in str(tape) and second is first
    assert b.shape == (1, 1) and str(tape).startswith("GradientTape: 9 operations; watching layers[0], layers[1]")


def test_a_name_needs_to_be_sure():
    """Where one instruction runs several operations, and another's result than the last is used, no name is given."""

    def twice(v):
        return v

    def pair(x):
        y = sorted([x * 2.0, x * 3.0], key=float)[0]
        return y + 1.0

    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        out = twice(pair(x))
    assert float(out) == 3.0
    names = [row.split(":")[0].split()[-1] for row in str(tape).splitlines()[2 : 2 + len(tape)]]
    assert names == ["t0", "t1", "out"]


def test_numpy_arrays_are_shown_by_their_type():
    with tf.GradientTape() as tape:
        jnp.ones(3) * np.zeros(3, np.float32)
    assert ", float32[3]  " in str(tape) and "float32[3]: float32[3]" not in str(tape)


def test_arguments_that_are_no_arrays():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    a = jnp.ones((2, 2), jnp.float32)
    with tf.GradientTape() as tape:
        x**2, tf.reduce_sum(x, axis=1), tf.reduce_mean(x, 0, keepdims=True), tf.einsum("ij->ji", x)
        a**3, jnp.sum(a, axis=0), jnp.concatenate([a, a], 1), jnp.cumsum(a, 1)
    inputs = [line.split("float32[2,2], ")[-1].split("  ")[0] for line in str(tape).splitlines()[2 : 2 + len(tape)]]
    assert inputs == ["2", "axis=1", "axis=0, keepdims=True", "'ij->ji'", "3", "axis=0", "axis=1", "axis=1"]
    assert repr(tape[1:3]).count("reduce_") == 2


def test_long_names_are_cut_where_they_begin():
    assert listing.shortened("sequential/batch_normalization/moving_variance") == "…/moving_variance"
    assert listing.shortened("a_name_without_any_path_that_is_long_all_the_same") == (
        "a_name_without_any_path_that_is_long_all_the_same"
    )
    assert listing.shortened("dense/kernel") == "dense/kernel"


def test_rows_fit_the_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    first_weights_of_the_network = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        activations_of_the_first_layer = tf.tanh(tf.constant([[0.0, 1.0]]) @ first_weights_of_the_network)
        loss = tf.reduce_mean(activations_of_the_first_layer * activations_of_the_first_layer)
    flat = tf.Variable(2.0)
    with tf.GradientTape() as other:
        none = tf.round(flat) * 2.0 + activations_of_the_first_layer

    def shown():
        path = tape.explain(loss, first_weights_of_the_network)
        return list(map(str, (tape, path, other.explain(none, flat), tape.memory(loss, first_weights_of_the_network))))

    wide = shown()
    summary = str(tape.summary(loss, first_weights_of_the_network))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    for before, text in zip(wide, shown(), strict=True):
        assert max(map(len, text.splitlines())) <= 80 < max(map(len, before.splitlines())), text
        places = [part for part in before.split() if part.startswith("test_listing.py:")]
        assert places == [part for part in text.split() if part.startswith("test_listing.py:")]
    narrow = str(tape.summary(loss, first_weights_of_the_network))
    assert max(map(len, narrow.splitlines())) <= 80 and "█" * 24 in summary and narrow.splitlines()[-1].endswith("0%")
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, str(tape).splitlines()[1:-1])) == 30


def test_marks_what_carries_gradient():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        tf.stop_gradient(x * 2.0) + x
    marks = ["∂" in row for row in str(tape).splitlines()[2 : 2 + len(tape)]]
    names = [entry.op.name for entry in tape]
    assert dict(zip(names, marks)) == {"multiply": True, "stop_gradient": False, "add": True}


def test_long_tapes_are_folded(no_shadow):
    x = jnp.ones(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        for i in np.random.default_rng(0).integers(4, size=10_000):  # in no order: no loop
            if i == 0:
                x = x * 1.0
            elif i == 1:
                x = x - 1.0
            elif i == 2:
                x = -x
            else:
                x = x + 1.0
    start = time.process_time()
    text, html = str(tape), tape._repr_html_()
    assert time.process_time() - start < 10.0  # a quarter of a second, unless it grows with the square of the length
    assert len(text.splitlines()) < 70 and "9945 more: tape[40] to tape[9984]" in text
    page = Balanced(html)
    assert page.folded == listing.GROUPS and page.rows < 1200 and len(html) < 500_000
    assert "9345 more: tape[640] to tape[9984]" in html


def test_a_loop_is_shown_by_one_round():
    w, b, layers = tf.Variable(1.01), tf.constant(0.5), [tf.Variable(1.0, name=f"v{i}") for i in range(9)]
    with tf.GradientTape() as tape:
        h = tf.constant(1.0)
        for _ in range(60):
            h = h * w
            h = tf.tanh(h + b)
        y = h * 2.0
    rows = str(tape).splitlines()
    assert len(rows) == 8 and [row.split()[0] for row in rows[2:-1]] == ["0", "1", "2", "×60", "180"]
    assert rows[5].endswith("60 rounds like tape[0] to tape[2], up to tape[179]")
    page = Balanced(html := tape._repr_html_())
    assert (
        page.folded == 1 and "×60 60 rounds like" in html and ">179<" in html and ">178<" in html and ">90<" not in html
    )

    with tf.GradientTape() as tape:  # loops in a loop, and what is short
        for _ in range(10):
            for _ in range(3):
                y = y * w
            y = y + b
        for v in layers:
            y = y + v
    rows = str(tape).splitlines()
    assert len(tape) == 49 and [row.split()[0] for row in rows[2:-1]][:5] == ["0", "1", "2", "3", "×10"]
    assert sum("add" in row for row in rows) == 10

    with tf.GradientTape() as tape:
        for _ in range(10):
            y = y * w
            y = y + b
    assert len(str(tape).splitlines()) == 23  # it can be taken in as it is


def test_a_loop_that_changes_is_told_from_one_that_does_not():
    """Another shape, or the gradient that begins or ends on the way: another row."""
    x = jnp.ones(3)
    with tf.GradientTape() as tape:
        for i in range(40):
            if i == 20:
                tape.watch(x)
            x = x * 1.0
        for _ in range(40):
            x = jnp.append(x, 1.0)
    rows = str(tape).splitlines()
    assert [row.split()[0] for row in rows[2:6]] == ["0", "×20", "20", "×20"]
    assert "∂" not in rows[2] and "∂" in rows[4] and sum("×" in row for row in rows) == 2


def test_names_agree():
    """In `print`, `as_function`, `explain` and `steps`: whatever is asked first."""
    w = tf.Variable([3.0, 4.0])

    def block():
        x, one, other = (tf.constant([i, 2.0]) for i in (1.0, 3.0, 5.0))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            x = x / 255
            y = tf.reduce_sum(w * x * one * other)
        return tape, y, x

    def names(order):
        tape, y, x = block()
        looks = {
            "print": lambda: str(tape).splitlines()[0].split("watching ")[1],
            "explain": lambda: ", ".join(report.name for report in tape.explain(y, [tape[0].inputs[0], w, x])),
            "as_function": lambda: str(tape.as_function(y, [tape[0].inputs[0], w])),
            "steps": lambda: str(tape.steps(y, [tape[0].inputs[0], w])),
        }
        return {look: looks[look]() for look in order}

    found = names(["print", "explain", "as_function", "steps"])
    assert found["print"] == "x_watched, w" and found["explain"] == "x_watched, w, x"
    assert "    x_watched, w = sources" in found["as_function"] and "∂y/∂x_watched" in found["steps"]
    assert "w * x * one * other" in found["as_function"]
    assert found == names(["steps", "as_function", "explain", "print"])


def test_what_is_watched_has_a_name():
    """That of the argument of `watch`, where it is a name that means nothing else; never a number."""

    def watched(tape, value):
        tape.watch(value)
        return value * 2.0

    with tf.GradientTape() as tape:
        y = watched(tape, tf.constant(5.0))
        tape.watch(tf.constant(7.0) + y)
        tape.watch(tf.constant(3.0))
    assert str(tape).splitlines()[0].endswith("watching value, t1, c0")


def test_html_is_escaped():
    x = jnp.ones(3)
    with tf.GradientTape() as tape:
        y = x < 2.0  # <script>alert("&")</script>
    html = tape._repr_html_()
    Balanced(html)
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert y.shape == (3,)


# ---- lines ----------------------------------------------------------------------------------------------------------


def test_lines_are_the_users():
    x = tf.Variable([[1.0, 2.0]])
    with tf.GradientTape() as tape:
        tf.nn.softmax(x)
        jax.nn.relu(jnp.ones(3))
        jax.jit(lambda v: v * 2)(x)
        x + 1.0
        jax.vmap(lambda v: v + 1)(jnp.ones(3))
        _ = [v * 2 for v in (x, x)]
        jax.tree.map(jnp.sin, {"a": jnp.ones(2)})
    assert {entry.line.file for entry in tape} == {__file__}
    first = line_of(test_lines_are_the_users, "tf.nn.softmax")
    assert {entry.line.number for entry in tape} == set(range(first, first + 7))


def test_lines_in_keras_and_flax():
    nnx = pytest.importorskip("flax.nnx")
    layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    with tf.GradientTape() as tape:
        layer(jnp.ones((1, 3)))
    number = line_of(test_lines_in_keras_and_flax, "layer(jnp.ones")
    assert {entry.line.number for entry in tape} == {number}


def test_lines_of_code_without_a_file():
    space = {"tf": tf, "jnp": jnp}
    exec(compile("with tf.GradientTape() as tape:\n    y = jnp.sin(1.0)\n", "<cell>", "exec"), space)
    assert str(space["tape"][0].line) == "<cell>:2"


def test_lines_in_a_notebook():
    """``In [3]:2``, as the notebook counts its cells."""
    pytest.importorskip("IPython")
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import tapejax as tf; x = tf.Variable(2.0)", store_history=True)
shell.run_cell("def square(v):\\n    return v * v", store_history=True)
shell.run_cell("with tf.GradientTape() as tape:\\n    y = square(x)\\n    z = tf.sin(y)", store_history=True)
tape = shell.user_ns["tape"]
print(tape[0].line, tape[1].line, tape[1].line.text, sep="|")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "In [2]:2|In [3]:3|z = tf.sin(y)", done.stdout + done.stderr


def test_the_frames_that_are_passed_over_are_ours():
    """`note` passes over three frames: by whichever entrance an operation was recorded, none of these is the user's."""
    x, v = jnp.ones(3), tf.Variable([1.0, 2.0, 3.0])
    found, calls = [], places.call_stack

    def checked(skip, block):
        found.append((calls(skip + 1, block)[0], places.caller(2)))
        return calls(skip + 1, block)

    @tf.custom_gradient
    def double(u):
        return u * 2.0, lambda dy: dy * 2.0

    step = tf.function(lambda u: u * 2.0)
    active.call_stack = dispatch.call_stack = checked
    try:
        with tf.GradientTape(persistent=True) as tape:
            x + x, jnp.sin(x), jax.jit(jnp.cos)(x), jax.nn.relu(x), jax.vmap(jnp.sum)(x[None]), x.at[0].set(1.0)
            v + v, v * 2, tf.reduce_sum(v), tf.nn.softmax(v), v[0], double(v), step(v), -v, abs(v), v == v
            y = tf.while_loop(lambda i: i < 2.0, lambda i: i + 1.0, [tf.constant(0.0)]), tf.map_fn(tf.sin, v)
            tape.gradient(tf.reduce_sum(v * v), v)
    finally:
        active.call_stack = dispatch.call_stack = calls
    assert len(found) > 25 and y is not None
    for skipped, whole in found:
        assert skipped == whole and skipped[0].co_filename == __file__


def test_frames_are_not_kept_alive():
    class Big:
        pass

    def user():
        big = Big()
        jnp.sin(x)
        return weakref.ref(big)

    x = jnp.ones(2)
    with tf.GradientTape() as tape:
        big = user()
        gc.collect()
        assert big() is None
    assert len(tape) == 1


def test_the_line_is_that_of_the_innermost_frame():
    """What noting it costs is measured by `python -m benchmarks`."""

    def deep(n):
        return places.caller() if n == 0 else deep(n - 1)

    assert deep(3)[0].co_filename == __file__ and deep(3)[0].co_name == "deep"


def test_nothing_is_imported_before_it_is_asked_for():
    code = (
        "import sys, tapejax as tf\nx = tf.Variable(2.0)\nwith tf.GradientTape() as tape:\n    y = x * x\n"
        "tape.gradient(y, x)\n"
        "ours = [m for m in sys.modules if m.startswith(('tapejax.tools.seeing.', 'tapejax.tools.cli.demo'))]\n"
        "print(ours, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "['tapejax.tools.seeing.tape'] False", done.stderr  # the methods, which load the rest


# ---- values ---------------------------------------------------------------------------------------------------------


def test_small_matrices_are_heat_maps():
    html = tf.constant([[1.0, -2.0], [np.nan, 0.5]])._repr_html_()
    page = Balanced(html)
    assert page.rows == 2 and "rgba(220,50,32,0.28)" in html and "rgba(0,90,181,0.55)" in html and "nan" in html
    assert "tf.Tensor" in html and "float32[2,2]" in html
    html = tf.Variable([1, 2, 3], name="v")._repr_html_()
    assert Balanced(html).rows == 1 and "&#x27;v:0&#x27;" in html and re.findall(r">(\d)</td>", html) == ["1", "2", "3"]
    for shape in ((), (1,), (2, 3)):
        Balanced(tf.zeros(shape)._repr_html_())
    for dtype in (jnp.bfloat16, jnp.bool_, jnp.int8):
        Balanced(tf.Tensor(jnp.ones((2, 2), dtype))._repr_html_())


def test_other_values_are_text():
    for value in (tf.zeros([100, 2]), tf.zeros([2, 2, 2]), tf.zeros([0]), tf.Tensor(jnp.ones(2, jnp.complex64))):
        assert value._repr_html_().startswith("<pre>&lt;tf.Tensor")
    jax.jit(lambda v: tf.Tensor(v)._repr_html_() and v)(jnp.ones(2))
