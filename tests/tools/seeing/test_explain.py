"""`tape.explain`: every reason for a missing gradient, alone and mixed, with the line at which the path broke."""

from __future__ import annotations

import inspect
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def marked(function):
    """The line numbers of `function` that end in ``# here`` (or ``# here: name``), by name."""
    lines, first = inspect.getsourcelines(function)
    return {line.split("# here")[1].strip(" :\n"): first + i for i, line in enumerate(lines) if "# here" in line}


def assert_says(report, function, *kinds, operation=None, mark=""):
    """`report` gives exactly these kinds; the first with the operation, at the marked line of `function`."""
    assert not report.connected
    assert report.kinds == kinds, str(report)
    first = report.reasons[0]
    if operation is not None:
        assert first.operation == operation
    lines = marked(function)
    if lines:
        assert first.line is not None and first.line.number == lines[mark], str(report)
    assert first.remedy and first.message and str(report)


# ---- connected ------------------------------------------------------------------------------------------------------


def test_connected():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x  # here: square
        unrelated = tf.sin(x)
        y = tf.exp(h) + unrelated * 0.0  # here: sum
    (report,) = tape.explain(y, x)
    lines = marked(test_connected)
    assert report.connected and report.name == "x" and not report.reasons
    assert [step.operation for step in report.path] == ["sin", "multiply", "add"] or report.path[0].line is not None
    assert report.path[-1].line.number == lines["sum"] and "y" in report.path[-1].value
    assert float(tape.gradient(y, x)) == pytest.approx(6 * np.exp(9.0))  # it was not used up


def test_a_long_path_shows_one_round_of_a_loop():
    x = state = tf.Variable(1.0, name="x")
    with tf.GradientTape(persistent=True) as tape:
        for _ in range(60):
            state = tf.sin(state) * 0.9
        y = state**2
    text = str(tape.explain(y, x))
    assert "× 60 rounds of these 2 operations, the last gives state: .path has them" in text
    assert [line.split()[1] for line in text.splitlines() if "->" in line] == ["sin", "multiply", "pow"]
    assert "× 60 rounds" in tape.explain(y, x)._repr_html_() and len(tape.explain(y, x)[0].path) == 121


def test_a_long_path_without_a_loop_shows_its_ends():
    x = y = tf.Variable(1.0, name="x")
    functions = [tf.sin, tf.cos, tf.tanh, tf.sigmoid]
    with tf.GradientTape(persistent=True) as tape:
        for number in range(30):
            y = functions[number.bit_count() % 4](y)
    text = str(tape.explain(y, x))
    assert "… 10 more: .path has them" in text and text.count("->") == 20


def test_the_source_itself():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    (report,) = tape.explain(x, x)
    assert report.connected == (tape.gradient(x, x) is not None)
    assert str(report)


def test_used_partly_before_the_watch():
    x = jnp.array(3.0)
    with tf.GradientTape() as tape:
        early = x * 2.0  # here
        tape.watch(x)
        y = early * x
    (report,) = tape.explain(y, x)
    assert report.connected and report.kinds == ("watched late",)
    assert report.reasons[0].line.number == marked(test_used_partly_before_the_watch)[""]
    assert "note" in str(report)


def test_a_use_that_the_tape_kept_for_another_input():
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        kept = x * w
        tape.watch(x)
        y = kept * x
    (report,) = tape.explain(y, x)
    assert report.connected and not report.reasons
    assert float(tape.gradient(y, x)) == 12.0


# ---- one reason -----------------------------------------------------------------------------------------------------


def test_never_watched():
    c = tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = c * 2.0  # here
    (report,) = tape.explain(y, c)
    assert_says(report, test_never_watched, "never watched", operation="multiply")
    assert "tape.watch(c)" in report.reasons[0].remedy


def test_an_intermediate_of_nothing_watched():
    c = tf.constant(3.0)
    with tf.GradientTape() as tape:
        h = c * 2.0  # here
        y = h * h
    (report,) = tape.explain(y, h)
    assert_says(report, test_an_intermediate_of_nothing_watched, "never watched", operation="multiply")


def test_watched_after_it_was_used():
    x = jnp.array(3.0)
    with tf.GradientTape() as tape:
        y = x * x  # here
        tape.watch(x)
    (report,) = tape.explain(y, x)
    assert_says(report, test_watched_after_it_was_used, "watched late", operation="multiply")


def test_not_trainable():
    v = tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        y = v * v  # here
    assert_says(tape.explain(y, v)[0], test_not_trainable, "not trainable", operation="multiply")


def test_not_watching():
    v = tf.Variable(3.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v  # here
    assert_says(tape.explain(y, v)[0], test_not_watching, "not watching", operation="multiply")


def test_replaced_by_a_tensor():
    x = tf.Variable(2.0)
    for epoch in range(2):
        with tf.GradientTape() as tape:
            y = x + 1.0
        report = tape.explain(y, x)[0]
        assert report.connected == (epoch == 0)
        x = x + 1.0  # here
    assert_says(report, test_replaced_by_a_tensor, "replaced")
    assert "assign_add" in report.reasons[0].remedy


def test_a_library_variable_that_was_changed_since():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    with tf.GradientTape() as tape:
        y = jnp.mean(model(jnp.ones((1, 3))) ** 2)  # here
        model.kernel[...] = jnp.ones((3, 2))
    found = tape.explain(y, [model.kernel, model.bias])
    assert_says(found[0], test_a_library_variable_that_was_changed_since, "replaced", operation="dot_general")
    assert found[1].connected and [g is None for g in tape.gradient(y, [model.kernel, model.bias])] == [True, False]


def test_computed_before():
    x = tf.Variable(3.0)
    y = x * x  # here
    with tf.GradientTape() as tape:
        _ = x + 1.0
    assert_says(tape.explain(y, x)[0], test_computed_before, "before")


def test_computed_after():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    z = y * 2.0  # here
    assert_says(tape.explain(z, x)[0], test_computed_after, "after")


def test_computed_elsewhere():
    x = tf.Variable(3.0)

    def square(v):
        return v * v

    with tf.GradientTape() as tape:
        _ = x + 1.0
    (report,) = tape.explain(square(x), x)
    assert report.kinds == ("outside",)


def test_computed_while_stopped():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = x * x  # here
    assert_says(tape.explain(y, x)[0], test_computed_while_stopped, "stopped")


def test_factor_computed_while_stopped():
    x = tf.Variable(3.0)
    other = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        h = x * x
        with tape.stop_recording():
            factor = h + 1.0  # here
        y = factor * other
    found = tape.explain(y, [x, other])
    assert_says(found[0], test_factor_computed_while_stopped, "stopped")
    assert found[1].connected


def test_target_before_reset():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.reset()  # here
        _ = x + 1.0
    assert_says(tape.explain(y, x)[0], test_target_before_reset, "reset", operation="reset")


def test_part_of_the_target_before_reset():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        tape.reset()
        y = h * 2.0  # here
        _ = x + 1.0
    assert_says(tape.explain(y, x)[0], test_part_of_the_target_before_reset, "reset", operation="multiply")


def test_watched_before_reset():
    x = jnp.array(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        tape.reset()  # here
        y = x * x
    assert_says(tape.explain(y, x)[0], test_watched_before_reset, "reset", operation="reset")


def test_stop_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        s = tf.stop_gradient(h)  # here
        y = s * 2.0
    assert_says(tape.explain(y, x)[0], test_stop_gradient, "stop_gradient", operation="stop_gradient")


def test_stop_gradient_of_jax():
    x = jnp.array(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jax.lax.stop_gradient(x * x) * 2.0  # here
    assert_says(tape.explain(y, x)[0], test_stop_gradient_of_jax, "stop_gradient", operation="stop_gradient")


def test_through_an_integer():
    x = tf.Variable(3.5)
    with tf.GradientTape() as tape:
        i = tf.cast(x, tf.int32)  # here
        y = tf.cast(i, tf.float32) * 2.0
    assert_says(tape.explain(y, x)[0], test_through_an_integer, "integer", operation="cast")


def test_through_a_comparison():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.where(x > 1.5, 1.0, 0.0)  # here
    assert_says(tape.explain(y, x)[0], test_through_a_comparison, "integer", operation="greater")


def test_an_integer_target():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.argmax(x)  # here
    assert_says(tape.explain(y, x)[0], test_an_integer_target, "integer", operation="argmax")


def test_an_integer_source():
    x = tf.constant(3)
    with tf.GradientTape() as tape:
        y = tf.cast(x, tf.float32) * 2.0  # here
    (report,) = tape.explain(y, x)
    assert_says(report, test_an_integer_source, "integer", operation="cast")
    assert "float" in report.reasons[0].remedy


def test_an_operation_without_derivative():
    x = tf.Variable(3.5)
    with tf.GradientTape() as tape:
        y = tf.floor(x) * 2.0  # here
    assert_says(tape.explain(y, x)[0], test_an_operation_without_derivative, "no derivative", operation="floor")


def test_operations_that_cannot_be_differentiated():
    """`gradient` raises an error there: it is not connected, and the operation is named, also behind one that can."""
    x, image = jnp.array(3.5), tf.Variable(tf.ones([2, 2, 3]))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        contrast = tf.image.adjust_contrast(image, 2.0)  # here: contrast
        loop = jax.lax.while_loop(lambda v: v < 100.0, lambda v: v * 2.0, x)  # here: loop
        y = jnp.sin(loop)
    for target, source, operation, mark in ((contrast, image, "AdjustContrastv2", "contrast"), (y, x, "while", "loop")):
        with pytest.raises(LookupError, match=operation):
            tape.gradient(target, source)
        (report,) = tape.explain(target, source)
        function = test_operations_that_cannot_be_differentiated
        assert_says(report, function, "not differentiable", operation=operation, mark=mark)
        assert "gradient() raises LookupError" in report.reasons[0].message and "gradient" in report.reasons[0].remedy
        assert f"{report.name}: an error" in str(report) and "an error" in tape.explain(target, source)._repr_html_()
    assert tape.explain([y, x * 2.0], x)[0].kinds == ("not differentiable",)


def test_numpy():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        h = x**2
        m = np.mean(h)  # here
        y = tf.reduce_mean(m) * 2.0
    assert_says(tape.explain(y, x)[0], test_numpy, "python")


def test_numpy_under_one_name():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        x2 = x**2
        y = np.mean(x2, axis=0)  # here
        y = tf.reduce_mean(y, axis=0)
    assert_says(tape.explain(y, x)[0], test_numpy_under_one_name, "python")


def test_python_number():
    x = jnp.array(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        factor = float(x) * 2  # here
        y = factor * jnp.array(1.0)
    assert_says(tape.explain(y, x)[0], test_python_number, "python")


def test_numpy_without_source_text():
    """Where the text cannot be read, the conversion of a Tensor is remembered."""
    space = {"tf": tf, "np": np}
    code = (
        "x = tf.Variable(3.0)\nwith tf.GradientTape() as tape:\n    n = (x * x).numpy()\n    y = tf.constant(2.0) * n\n"
    )
    exec(compile(code + "found = tape.explain(y, x)", "<nowhere>", "exec"), space)
    (report,) = space["found"]
    assert report.kinds == ("python",) and report.reasons[0].line.number == 3


def test_stopped_without_source_text():
    space = {"tf": tf}
    code = (
        "x = tf.Variable(3.0)\nwith tf.GradientTape() as tape:\n    with tape.stop_recording():\n        h = x * x\n"
        "    y = tf.sin(h)\n    del h\n"
    )
    exec(compile(code + "found = tape.explain(y, x)", "<nowhere>", "exec"), space)
    (report,) = space["found"]
    assert report.kinds == ("stopped",) and report.reasons[0].line.number == 3


def test_state():
    x0, x1 = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        x1.assign_add(x0)  # here
        y = x1**2
    (report, own) = tape.explain(y, [x0, x1])
    assert_says(report, test_state, "state", operation="assign")
    assert own.connected


def test_assigned_value():
    a, b = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        h = a * a
        b.assign(h)  # here
        y = b * b
    assert_says(tape.explain(y, a)[0], test_assigned_value, "state", operation="assign")


def test_a_variable_made_on_the_tape():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        v = tf.Variable(x * x)  # here
        y = v * 2.0
    assert_says(tape.explain(y, x)[0], test_a_variable_made_on_the_tape, "state")


def test_thread():
    x = tf.Variable(3.0)
    found = []
    with tf.GradientTape() as tape:
        thread = threading.Thread(target=lambda: found.append(x * x))  # here
        thread.start()
        thread.join()
        y = found[0] * 2.0
    assert_says(tape.explain(y, x)[0], test_thread, "thread")


def test_thread_pool():
    x = tf.Variable(3.0)
    with ThreadPoolExecutor() as pool, tf.GradientTape() as tape:
        y = pool.submit(lambda: x * x).result()  # here
    assert_says(tape.explain(y, x)[0], test_thread_pool, "thread")


def test_used_up():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)  # here
    assert_says(tape.explain(y, x)[0], test_used_up, "used up")
    with pytest.raises(RuntimeError):
        tape.gradient(y, x)


def test_never_entered():
    x = tf.Variable(3.0)
    assert tf.GradientTape().explain(x * x, x)[0].kinds == ("not recorded",)


def test_unrelated():
    a, b = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        _ = b * b
        y = a * a  # here
    assert_says(tape.explain(y, b)[0], test_unrelated, "unrelated", operation="multiply")


def test_not_read():
    a, b = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = a * a
    (report,) = tape.explain(y, b)
    assert report.kinds == ("unrelated",) and "not read" in report.reasons[0].message


# ---- several at once: every kind found must be fixed, and the list must be complete ------------------------------------
# Each program ends with `tape`, `y`, `x`; the kinds are those of x's reasons, in order.

MIXED = {
    "never watched, through an integer": (
        """
        x = tf.constant(2.5)
        with tf.GradientTape() as tape:
            y = tf.cast(tf.cast(x, tf.int32), tf.float32)
        """,
        ("never watched", "integer"),
        3,
    ),
    "never watched, stop_gradient": (
        """
        x = jnp.array(2.5)
        with tf.GradientTape() as tape:
            h = x * x
            y = jax.lax.stop_gradient(h) * 2.0
        """,
        ("never watched", "stop_gradient"),
        3,
    ),
    "watched late, floor": (
        """
        x = jnp.array(2.5)
        with tf.GradientTape() as tape:
            h = jnp.floor(x)
            tape.watch(x)
            y = h * 2.0
        """,
        ("watched late", "no derivative"),
        3,
    ),
    "not trainable, numpy": (
        """
        x = tf.Variable(2.5, trainable=False)
        with tf.GradientTape() as tape:
            h = x * x
            n = np.sin(h)
            y = tf.constant(1.0) * n
        """,
        ("not trainable", "python"),
        None,
    ),
    "not watching, after the block": (
        """
        x = tf.Variable(2.5)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            h = x * x
        y = h * 2.0
        """,
        ("not watching", "after"),
        None,
    ),
    "stop_gradient, after the block": (
        """
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            h = tf.stop_gradient(x * x)
        y = h * 2.0
        """,
        ("after", "stop_gradient"),
        4,
    ),
    "numpy, then stop_gradient": (
        """
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            h = x * x
            n = tf.constant(np.sin(h))
            y = tf.stop_gradient(n * 2.0)
        """,
        ("python", "stop_gradient"),
        4,
    ),
    "integer, then state": (
        """
        x, v = tf.Variable(2.5), tf.Variable(0.0)
        with tf.GradientTape() as tape:
            h = tf.cast(tf.cast(x, tf.int32), tf.float32)
            v.assign(h)
            y = v * v
        """,
        ("state", "integer"),
        4,
    ),
    "state, then floor": (
        """
        x, v = tf.Variable(2.5), tf.Variable(0.0)
        with tf.GradientTape() as tape:
            v.assign(x * 2.0)
            y = tf.floor(v) * 2.0
        """,
        ("state", "no derivative"),
        3,
    ),
    "stopped, then after": (
        """
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            h = x * x
            with tape.stop_recording():
                k = h * 2.0
            m = k * 3.0
        y = m + 1.0
        """,
        ("stopped", "after"),
        5,
    ),
    "reset forgets both the watch and a part": (
        """
        x = jnp.array(2.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = x * x
            tape.reset()
            y = h * 2.0
        """,
        ("reset", "reset"),
        5,
    ),
    "two paths, both cut": (
        """
        x = tf.Variable([1.5, 2.5])
        with tf.GradientTape() as tape:
            a = tf.floor(x)
            b = tf.stop_gradient(x)
            y = a + b
        """,
        ("no derivative", "stop_gradient"),
        3,
    ),
    "never watched and unrelated": (
        """
        x, other = tf.constant(2.5), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = other * 2.0
        """,
        ("never watched", "unrelated"),
        None,
    ),
    "a choice by argmax": (
        """
        x = tf.Variable([1.0, 3.0, 2.0])
        table = tf.constant([10.0, 20.0, 30.0])
        with tf.GradientTape() as tape:
            best = tf.argmax(x)
            y = table[best] * 2.0
        """,
        ("integer",),
        4,
    ),
    "an integer target of what was never watched": (
        """
        x = tf.constant([1.0, 3.0])
        with tf.GradientTape() as tape:
            y = tf.argmax(x)
        """,
        ("integer", "never watched"),
        3,
    ),
    "a function hides the break": (
        """
        def f(v):
            return tf.stop_gradient(v * v)
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            y = f(x) + 1.0
        """,
        ("stop_gradient",),
        2,
    ),
    "python decides, the value does not enter": (
        """
        x, w = tf.Variable(2.5), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            if x > 0:
                y = w * 2.0
            else:
                y = w * 3.0
        """,
        ("unrelated",),
        4,
    ),
    "one of two sources through a list": (
        """
        x = tf.Variable(2.5)
        parts = []
        with tf.GradientTape() as tape:
            parts.append(float(x * x))
            y = tf.constant(parts) * 2.0
        """,
        ("python",),
        4,
    ),
    "a loop that keeps numbers": (
        """
        x = tf.Variable(2.5)
        total = 0.0
        with tf.GradientTape() as tape:
            for i in range(3):
                total = total + float(x)
            y = tf.constant(1.0) * total
        """,
        ("python",),
        5,
    ),
    "a thread after a cast": (
        """
        x, found = tf.Variable(2.5), []
        with tf.GradientTape() as tape:
            i = tf.cast(tf.cast(x, tf.int32), tf.float32)
            thread = threading.Thread(target=lambda: found.append(i * 2.0))
            thread.start(); thread.join()
            y = found[0] + 1.0
        """,
        ("thread", "integer"),
        4,
    ),
    "before the block, and replaced": (
        """
        x = tf.Variable(2.5)
        x = x - 0.1
        y = x * x
        with tf.GradientTape() as tape:
            pass
        """,
        ("replaced", "before"),
        2,
    ),
    "not trainable, its assigned value": (
        """
        x, v = tf.Variable(2.5, trainable=False), tf.Variable(0.0)
        with tf.GradientTape() as tape:
            v.assign_add(x * 2.0)
            y = v * v
        """,
        ("not trainable", "state"),
        None,
    ),
    "jnp values, numpy in between": (
        """
        x = jnp.arange(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = jnp.sin(x)
            n = np.cumsum(np.asarray(h))
            y = jnp.sum(jnp.asarray(n))
        """,
        ("python",),
        5,
    ),
    "scan hides a stop_gradient": (
        """
        x = jnp.array(2.5)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax.lax.scan(lambda c, _: (jax.lax.stop_gradient(c) * 2.0, None), x, None, length=3)[0]
        """,
        ("stop_gradient",),
        4,
    ),
    "a function of JAX's hides a floor": (
        """
        x = jnp.array(2.5)
        f = jax.jit(lambda v: jnp.floor(v) * 2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = f(x)
            y = jax.lax.stop_gradient(h)
        """,
        ("no derivative",),
        5,
    ),
    "a tf.function hides a stop_gradient": (
        """
        @tf.function
        def f(v):
            return tf.stop_gradient(v * 2.0) * 3.0
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            y = f(x) + 1.0
        """,
        ("stop_gradient",),
        6,
    ),
    "a tf.function hides a cast": (
        """
        @tf.function
        def f(v):
            return tf.cast(tf.cast(v, tf.int32), tf.float32)
        x = tf.Variable(2.5, trainable=False)
        with tf.GradientTape() as tape:
            y = f(x)
        """,
        ("not trainable", "integer"),
        6,
    ),
    "a custom gradient that returns None": (
        """
        @tf.custom_gradient
        def f(v):
            return v * 2.0, lambda dy: None
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            h = f(x)
            y = h + 1.0
        """,
        ("custom gradient",),
        6,
    ),
    "one of two paths through such a gradient": (
        """
        @tf.custom_gradient
        def f(v):
            return v * 2.0, lambda dy: None
        x = tf.Variable(2.5)
        with tf.GradientTape() as tape:
            y = f(x) + tf.stop_gradient(x)
        """,
        ("custom gradient",),
        6,
    ),
    "a gradient taken after the outer block": (
        """
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                z = x * x
        g = inner.gradient(z, x)
        y = g * 2.0
        """,
        ("after",),
        5,
    ),
    "a second derivative that is zero": (
        """
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                z = x * 3.0
            y = inner.gradient(z, x)
        """,
        ("no derivative",),
        5,
    ),
    "an inner tape where the outer one is stopped": (
        """
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            with tape.stop_recording():
                with tf.GradientTape() as inner:
                    z = x * x * x
                g = inner.gradient(z, x)
            y = tf.floor(g * 2.0)
        """,
        ("stopped", "no derivative"),
        6,
    ),
    "a tape entered twice, the middle outside": (
        """
        x = tf.Variable(2.0)
        tape = tf.GradientTape()
        with tape:
            a = x * 2.0
        b = a * 3.0
        with tape:
            y = b * 4.0
        """,
        ("after",),
        5,
    ),
    "the wrong one of two tapes": (
        """
        x = tf.Variable(2.0)
        with tf.GradientTape() as first:
            h = x * x
        with tf.GradientTape() as tape:
            y = h * 3.0
        """,
        ("before",),
        3,
    ),
    "a loop over what was computed before it": (
        """
        x = tf.Variable(2.0)
        h = x * 1.0
        with tf.GradientTape() as tape:
            for i in range(4):
                h = h * x if i > 5 else tf.stop_gradient(h) * 2.0
            y = h
        """,
        ("before", "stop_gradient"),
        2,
    ),
    "rounded, then an index": (
        """
        x, table = tf.Variable(1.7), tf.constant([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            r = tf.round(x)
            y = table[tf.cast(r, tf.int32)]
        """,
        ("no derivative", "integer"),
        3,
    ),
    "an integer Variable's state": (
        """
        x, v = tf.Variable(2.0), tf.Variable(0)
        with tf.GradientTape() as tape:
            v.assign(tf.cast(x, tf.int32))
            y = tf.cast(v, tf.float32) * 2.0
        """,
        ("state", "integer"),
        3,
    ),
    "a Variable's state, read after the block": (
        """
        x, v = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape() as tape:
            v.assign(x * x)
        y = v * 2.0
        """,
        ("state", "after"),
        3,
    ),
    "assigned in a function": (
        """
        x, v = tf.Variable(2.0), tf.Variable(1.0)
        def update(h):
            v.assign_add(h)
        with tf.GradientTape() as tape:
            update(tf.floor(x))
            y = v * v
        """,
        ("state", "no derivative"),
        3,
    ),
    "a Variable watched by hand, late": (
        """
        x = tf.Variable(2.0)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            h = x * x
            tape.watch(x)
            y = tf.stop_gradient(h * 2.0)
        """,
        ("watched late", "stop_gradient"),
        3,
    ),
    "watched outside the block": (
        """
        x, tape = tf.constant(1.5), tf.GradientTape()
        with tape:
            pass
        tape.watch(x)
        with tape:
            y = tf.floor(x * 2.0)
        """,
        ("never watched", "no derivative"),
        4,
    ),
    "a helper that makes a Python number": (
        """
        x = tf.Variable(2.0)
        def helper(v):
            return float(v) * 2
        with tf.GradientTape() as tape:
            h = x * x
            y = helper(h) * tf.constant(3.0)
        """,
        ("python",),
        3,
    ),
    "a method that goes through NumPy": (
        """
        class Net:
            def __init__(self):
                self.w = tf.Variable([1.0, 2.0])
            def __call__(self, v):
                h = v * self.w
                h = np.tanh(h)
                return tf.convert_to_tensor(h)
        net = Net()
        x = net.w
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(net(tf.constant([1.0, 1.0])))
        """,
        ("python",),
        6,
    ),
    "the tape is in a function, and so is the break": (
        """
        x = tf.Variable(2.0)
        def run():
            with tf.GradientTape() as t:
                h = x * x
                n = np.square(h)
                out = tf.constant(1.0) * n
            return t, out
        tape, y = run()
        """,
        ("python",),
        5,
    ),
    "a conversion for the log is not the break": (
        """
        x = tf.Variable(1.5)
        def log(v):
            return float(v)
        with tf.GradientTape() as tape:
            h = x * 2.0
            log(h)
            k = np.square(h)
            y = tf.constant(k) + 1.0
        """,
        ("python",),
        7,
    ),
    "nor is it where the path is cut elsewhere": (
        """
        x = tf.Variable(1.5)
        with tf.GradientTape() as tape:
            h = x * 2.0
            h.numpy()
            y = tf.stop_gradient(h)
        """,
        ("stop_gradient",),
        5,
    ),
    "numbers gathered in a list": (
        """
        x, history = tf.Variable(1.5), []
        with tf.GradientTape() as tape:
            for i in range(3):
                v = (x * float(i)).numpy()
                history.append(v)
            y = tf.reduce_sum(tf.stack(history))
        """,
        ("python",),
        4,
    ),
    "only the shape": (
        """
        x = tf.Variable([2.0])
        with tf.GradientTape() as tape:
            y = tf.ones_like(x) * 2.0
        """,
        ("shape",),
        3,
    ),
    "an integer that is cast later": (
        """
        x = tf.Variable(2)
        with tf.GradientTape() as tape:
            y = tf.stop_gradient(tf.cast(x, tf.float32) * 2.0)
        """,
        ("integer", "stop_gradient"),
        3,
    ),
    "reset, and not watched again": (
        """
        x, c = tf.Variable(2.0), tf.constant(2.0)
        with tf.GradientTape() as tape:
            h = x * c
            tape.reset()
            y = h + c * 0.0
        """,
        ("reset", "reset"),
        4,
    ),
    "the second epoch": (
        """
        w = tf.Variable([1.0, 2.0])
        for epoch in range(2):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(w * w)
            if epoch == 0:
                g = tape.gradient(y, w)
                w = w - 0.1 * g
        x = w
        """,
        ("replaced",),
        7,
    ),
    "a target in several parts": (
        """
        x = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            a = tf.stop_gradient(x)
            b = tf.argmax(x)
        y = {"a": a, "b": b}
        """,
        ("stop_gradient", "integer"),
        3,
    ),
    "a closure over a number, compiled": (
        """
        x = jnp.array(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            k = float(x)
            y = jax.jit(lambda v: v * k)(jnp.array(3.0))
        """,
        ("python",),
        4,
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed(name, tmp_path):
    text, kinds, line = MIXED[name]
    file = tmp_path / "program.py"
    file.write_text(inspect.cleandoc(text) + "\nexplanation = tape.explain(y, x)\ngradient = tape.gradient(y, x)\n")
    space = {"tf": tf, "jnp": jnp, "jax": jax, "np": np, "threading": threading}
    exec(compile(file.read_text(), str(file), "exec"), space)
    (report,) = space["explanation"]
    assert space["gradient"] is None
    assert report.kinds == kinds, str(report)
    if line is not None:
        assert report.reasons[0].line.number == line, str(report)
    assert all(reason.message and reason.remedy for reason in report.reasons)
    assert report.name in ("x", "w")


# ---- what it gives --------------------------------------------------------------------------------------------------


def test_several_sources_and_targets():
    a, b, c = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b"), tf.constant(3.0)
    with tf.GradientTape() as tape:
        y, z = a * c, a + 1.0
    found = tape.explain([y, z], {"a": a, "b": b, "c": c})
    assert [r.connected for r in found] == [True, False, False] and len(found) == 3
    text = str(found)
    assert "a: connected" in text and "b: None" in text and repr(found) == text
    html = found._repr_html_()
    assert "<script" not in html and "never watched" in html


def test_it_agrees_with_gradient_and_uses_nothing_up():
    x = tf.Variable([1.0, 2.0])
    c = tf.constant(1.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * c)
    before = len(tape)
    connected = [r.connected for r in tape.explain(y, [x, c])]
    assert len(tape) == before
    assert connected == [g is not None for g in tape.gradient(y, [x, c])]


def test_inside_the_block_and_under_jit():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = x * x
        before = len(outer)
        assert tape.explain(y, x)[0].connected
        assert len(outer) == before  # nobody's tape records that we look

    @jax.jit
    def step(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = jax.lax.stop_gradient(v) * 2.0
        assert tape.explain(y, v)[0].kinds == ("stop_gradient",)
        return y

    step(jnp.array(2.0))


def test_what_is_no_tensor():
    with tf.GradientTape() as tape:
        pass
    with pytest.raises(TypeError, match="sources"):
        tape.explain(tf.constant(1.0), ["x"])


def test_the_logs_point_to_it(caplog):
    """At the level at which TensorFlow's tape talks of what it cannot differentiate; its optimizers warn (test_keras)."""
    x, c, i = tf.Variable(3.0), tf.constant(1.0), tf.constant(1)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(i)
        y = x * x
    assert "must be floating" in caplog.text and "tape.explain" in caplog.text
    caplog.clear()
    tape.gradient(y, [x, c])
    assert not caplog.records
    with caplog.at_level("DEBUG", logger="tapejax"):
        tape.gradient(y, x)
        assert not caplog.records
        tape.gradient(y, [x, c, i])
        tape.jacobian(y, c)
    assert "gradient is None for source 1, 2 of 3: tape.explain" in caplog.text and "jacobian is None" in caplog.text


def test_nothing_that_looks_uses_a_tape_up():
    """Also when the tape is not persistent, still recording, or looked at from inside another."""
    x, c = tf.Variable([1.0, 2.0]), tf.constant(1.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.stop_gradient(x) * x)
            inside = [str(tape), repr(tape), tape._repr_html_(), str(tape.explain(y, [x, c])), str(tape.steps(y, x))]
            tape.check_numerics(y, x), tape.jaxpr(y, x), str(tape.as_function(y, x))
        before = len(outer), len(tape)
        looks = [str(tape), repr(tape), tape._repr_html_(), str(tape.explain(y, [x, c])), str(tape.steps(y, x))]
        looks += [tape.steps(y, x)._repr_html_(), tape.explain(y, x)._repr_html_(), tape.steps(y, x).gradients]
        tape.check_numerics(y, x), tape.jaxpr(y, x), str(tape.as_function(y, x)), tape[0], tape[:], list(tape)
        assert (len(outer), len(tape)) == before == (2 + 1, 2 + 1) and all(x is not None for x in (*inside, *looks))
        np.testing.assert_array_equal(tape.gradient(y, x), [1.0, 2.0])
        with pytest.raises(RuntimeError):
            tape.gradient(y, x)
    assert tape.explain(y, x)[0].kinds == ("used up",)
    for look in (str, repr, len, list):
        look(tape)


def test_a_number_of_python_or_numpy_is_explained():
    """`gradient` refuses a number that is no tensor; `explain` says why, and where it was made."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = float(y)
        n = y.numpy()
    for target, name, kind in ((z, "z", "Python float"), (n, "n", "NumPy float32"), ([y, z], "z", "Python float")):
        (report,) = tape.explain(target, [x])
        assert report.kinds == ("python",) and not report.connected
        assert f"target {name} is a {kind}" in report.reasons[0].message
        assert report.reasons[0].line.text.startswith(f"{name} = ")
    connected, number = tape.explain(y, [x, 2.0])
    assert connected.connected and number.kinds == ("python",)


def test_a_gradient_that_does_not_depend_on_the_source():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = 3.0 * x
        slope = inner.gradient(y, x)
        loss = tf.reduce_sum(slope)
    (report,) = outer.explain(loss, x)
    assert report.kinds == ("no derivative",) and report.reasons[0].operation == "gradient"
    assert "y is linear there, so slope is a constant" in report.reasons[0].message
