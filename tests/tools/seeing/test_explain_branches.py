"""`tape.explain` blames no line that did not run: Python's line events are the oracle."""

from __future__ import annotations

import inspect
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

# Each gives what stands in the block after `used = x * 1.0`, and the line that is to be blamed, None if none can be.
PROGRAMS = {
    "a branch that ran, and one that did not": ("if flag:\n    h = float(x)\nelse:\n    h = x * 2.0\ny = tf.sin(h)", 6),
    "the other branch": ("if not flag:\n    h = float(x)\nelse:\n    h = tf.constant(1.0)\ny = tf.sin(h)", None),
    "a branch that records": ("if not flag:\n    h = float(x)\nelse:\n    h = tf.sin(1.0)\ny = tf.sin(h)", None),
    "a stop in the other": (
        "if not flag:\n    h = float(x)\nelse:\n    h = tf.stop_gradient(x)\ny = tf.sin(tf.constant(h))",
        8,
    ),
    "a branch beside nothing": ("h = tf.constant(1.0)\nif not flag:\n    h = np.sin(x)\ny = tf.sin(h)", None),
    "one that ran beside nothing": ("h = tf.constant(1.0)\nif flag:\n    h = np.sin(x)\ny = tf.sin(h)", 7),
    "the only binding": ("if flag:\n    h = np.sin(x)\ny = tf.sin(h)", 6),
    "elif": ("if not flag:\n    h = 1.0\nelif flag:\n    h = float(x)\nelse:\n    h = 3.0\ny = tf.sin(h)", 8),
    "not elif": ("if flag:\n    h = 1.0\nelif flag:\n    h = float(x)\nelse:\n    h = 2.0\ny = tf.sin(h)", None),
    "a number that both may give": ("h = 2.0\nif not flag:\n    h = float(x)\ny = tf.sin(h)", None),
    "an exception that is not raised": (
        "try:\n    h = tf.sin(1.0)\nexcept ValueError:\n    h = np.sin(x)\ny = tf.sin(h)",
        None,
    ),
    "an exception": ("try:\n    h = tf.reshape(1.0, [2])\nexcept ValueError:\n    h = np.sin(x)\ny = tf.sin(h)", 8),
    "no round": ("h = tf.constant(1.0)\nfor _ in range(0):\n    h = h + np.sin(x)\ny = tf.sin(h)", None),
    "rounds": ("h = 0.0\nfor _ in range(3):\n    h = h + np.sin(x)\ny = tf.sin(h)", 7),
    "no round of a while": ("h = tf.constant(1.0)\nwhile not flag:\n    h = h + np.sin(x)\ny = tf.sin(h)", None),
    "a list that is filled": ("h = []\nfor _ in range(3):\n    h.append(float(x))\ny = tf.sin(tf.constant(h))", 7),
    "a list that is not": ("h = [2.0]\nif not flag:\n    h.append(float(x))\ny = tf.sin(tf.constant(h))", None),
    "a list that another line fills": (
        "h = []\nif not flag:\n    h.append(float(x))\nh.append(3.0)\ny = tf.sin(tf.constant(h))",
        None,
    ),
    "an assignment": ("v = tf.Variable(1.0)\nif not flag:\n    v.assign(x)\ny = v * v", None),
    "a choice": ("h = float(x) if not flag else tf.constant(1.0)\ny = tf.sin(h)", None),
    "the other choice": ("h = float(x) if flag else tf.constant(1.0)\ny = tf.sin(h)", 5),
    "below a continue": (
        "for _ in range(2):\n    h = tf.constant(1.0)\n    if flag:\n        continue\n    h = float(x)\ny = tf.sin(h)",
        None,
    ),
    "a match": (
        "match flag:\n    case False:\n        h = float(x)\n    case _:\n        h = tf.constant(1.0)\ny = tf.sin(h)",
        None,
    ),
    "part of the target": ("if flag:\n    c = float(x)\nelse:\n    c = 3.0\ny = tf.sin(x) * c", 6),
    "no part of the target": ("if not flag:\n    c = float(x)\nelse:\n    c = 3.0\ny = tf.sin(x) * c", None),
}


def explained(program, tmp_path):
    """The report on what `program` says, and the lines of it that ran."""
    file, ran = tmp_path / "program.py", set()
    file.write_text(program, encoding="utf-8")

    def trace(frame, event, _):
        if frame.f_code.co_filename != str(file):
            return None
        if event == "line":
            ran.add(frame.f_lineno)
        return trace

    space = {"tf": tf, "np": np, "jnp": jnp, "__name__": "program"}
    former = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(compile(program, str(file), "exec"), space)
    finally:
        sys.settrace(former)
    (report,) = space["explanation"]
    return report, ran


HEAD = """{source}
flag = True
with tf.GradientTape(persistent=True) as tape:
    {used}
"""


@pytest.mark.parametrize("source", ["tf.Variable", "jnp.asarray"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_line_that_did_not_run_is_not_blamed(name, source, tmp_path):
    block, line = PROGRAMS[name]
    head = HEAD.format(source=f"x = {source}(2.0)", used="tape.watch(x); used = x * 1.0")
    body = "\n".join("    " + each for each in block.splitlines())
    report, ran = explained(f"{head}{body}\nexplanation = tape.explain(y, x)\n", tmp_path)
    blamed = {reason.line.number for reason in report.reasons if reason.line and reason.kind != "unrelated"}
    assert blamed <= ran, report
    assert blamed == ({line} - {None}), report


@pytest.mark.parametrize("flag, line", [(True, 7), (False, None)])
def test_in_a_function_that_has_returned(flag, line, tmp_path):
    """What its names held is gone: only what is on record tells which branch ran."""
    report, ran = explained(
        inspect.cleandoc(f"""
        def block(x, flag):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                used = x * 1.0
                h = tf.constant(1.0)
                if flag:
                    h = np.sin(x)
                y = tf.sin(h)
            return tape, y
        x = tf.Variable(2.0)
        tape, y = block(x, {flag})
        explanation = tape.explain(y, x)
        """),
        tmp_path,
    )
    blamed = {reason.line.number for reason in report.reasons if reason.line and reason.kind != "unrelated"}
    assert blamed <= ran and blamed == ({line} - {None}), report


def test_an_argument_is_a_binding_too(tmp_path):
    report, ran = explained(
        inspect.cleandoc("""
        def block(x, h, flag):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                used = x * 1.0
                if flag:
                    h = np.sin(x)
                y = tf.sin(h)
            return tape.explain(y, x)
        explanation = block(tf.Variable(2.0), tf.constant(1.0), False)
        """),
        tmp_path,
    )
    assert {reason.kind for reason in report.reasons} == {"unrelated"}, report
