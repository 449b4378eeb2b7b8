"""The split player's data: JAX's own programs of a recording, and which equation belongs to which operation of the tape."""

from __future__ import annotations

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tools.seeing import split, steps


def walk_of(tape, target, sources):
    return steps.Backward(tape, target, sources)


def run(program, *args):
    return jax.extend.core.jaxpr_as_fun(program)(*args)


def recorded():
    """y = Σ softmax(tanh(a·w))·sin(x): a product, functions with rules of their own, jitted ones, a broadcast."""
    x, w, a = jnp.asarray(0.7), jnp.asarray([[1.0, -0.2], [0.3, 0.4]]), jnp.asarray([[1.0, 2.0]])

    def function(x, w):
        h = jax.nn.relu(jnp.tanh(a @ w))
        return jnp.sum(jax.nn.softmax(h) * jnp.sin(x) * h)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = function(x, w)
    return tape, y, [x, w], function


def test_the_programs_compute_what_jax_computes():
    tape, y, sources, function = recorded()
    found = split.programs(walk_of(tape, y, sources))
    value, *rest = run(found.forward, *sources)
    residuals = rest[found.values :]
    assert residuals
    np.testing.assert_allclose(value, function(*sources), rtol=1e-6)
    tangents = [jnp.asarray(2.0), jnp.asarray([[0.5, 1.0], [-1.0, 3.0]])]
    np.testing.assert_allclose(
        run(found.linear, *residuals, *tangents)[0], jax.jvp(function, sources, tangents)[1], rtol=1e-5
    )
    gradients = run(found.transposed, *residuals, jnp.asarray(3.0))
    for got, want in zip(gradients, jax.grad(function, (0, 1))(*sources), strict=True):
        np.testing.assert_allclose(got, 3.0 * want, rtol=1e-5)
    for got, want in zip(gradients, tape.gradient(y, sources), strict=True):
        np.testing.assert_allclose(got, 3.0 * want, rtol=1e-5)


def test_the_rows_by_hand():
    """y = h² + h with h = sin(x): each program is short enough to be written down."""
    x = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        h = tf.sin(x)
        y = h * h + h
    data = tape.play(y, x).data
    label = lambda node: None if node is None else data["nodes"][node]["label"]  # noqa: E731
    forward, linear, transposed = [
        [(text, label(node)) for text, _, node in program["rows"]] for program in data["split"]
    ]
    assert forward == [
        ("λ x", None),
        ("h = sin x", "sin"),
        ("a = cos x", "sin"),
        ("t1 = mul h h", "multiply"),
        ("y = add t1 h", "add"),
        ("return y; keep a, h", None),
    ]
    assert linear == [
        ("λ dx", None),
        ("dh = mul dx a", "sin"),
        ("b = mul dh h", "multiply"),
        ("c = mul h dh", "multiply"),
        ("dt1 = add_any b c", "multiply"),
        ("dy = add dt1 dh", "add"),
        ("return dy", None),
    ]
    names = [node for _, node in transposed]
    assert transposed[0] == ("λ ct_y", None) and transposed[-1] == ("return ct_x", None)
    assert names[1:-2] == ["add", *["multiply"] * (len(names) - 4)] and transposed[-2][0].startswith("ct_x = mul ")
    assert transposed[-2][1] == "sin" and transposed[-2][0].endswith(" a")


def test_every_equation_belongs_to_an_operation():
    tape, y, sources, _ = recorded()
    for program in tape.play(y, sources).data["split"]:
        first, *equations, last = program["rows"]
        assert first[2] is None and last[2] is None
        given = [row for row in equations if " = constant " in row[0]]  # from outside, or by what carries no gradient
        assert bool(given) == (program["by"] == "jax.make_jaxpr")
        equations = [row for row in equations if row not in given]
        assert equations and all(node is not None for _, _, node in equations)
        names = [name for text, _, _ in equations for name in text.partition(" = ")[0].split(", ")]
        assert len(names) == len(set(names))  # each is written once


def test_letters_are_no_names_of_the_tape():
    a, b = tf.Variable(0.5), tf.constant(2.0)
    with tf.GradientTape() as tape:
        c = tf.sin(a) * b
    rows = tape.play(c, a).data["split"][0]["rows"]
    assert [text for text, _, _ in rows][:3] == ["λ a", "b = constant 2.0", "t0 = sin a"] and rows[3][0] == "e = cos a"


def test_a_rule_that_is_a_pullback_appears_where_it_is_transposed():
    @tf.custom_gradient
    def other(x):
        return 2.0 * x, lambda upstream: 5.0 * upstream

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = other(x * x)
    found = split.programs(walk_of(tape, y, x))
    residuals = run(found.forward, jnp.asarray(3.0))[found.targets + found.values :]
    assert run(found.transposed, *residuals, jnp.asarray(1.0)) == [30.0] == [tape.gradient(y, x).numpy()]
    assert any("custom_lin" in text for text, _, _ in tape.play(y, x).data["split"][1]["rows"])


def texts(page):
    return [[text for text, _, _ in program["rows"]] for program in page.data["split"]]


def names_in(row):
    return {name for name in row.replace(",", " ").replace(";", " ").split() if name.isidentifier()}


def networks():
    x, w, v = tf.ones([5, 3]), tf.Variable(tf.ones([3, 4]), name="w"), tf.Variable(tf.ones([4, 1]), name="v")
    with tf.GradientTape() as tape:
        h = tf.nn.relu(x @ w - 0.5)
        loss = tf.reduce_mean((tf.sigmoid(h @ v) - 1.0) ** 2)
    return tape, loss, [w, v]


def rounded():
    a = jnp.asarray(2.0)
    with tf.GradientTape() as tape:
        tape.watch(a)
        z = jnp.sin(a) - 0.5
        r = jnp.round(a) + z
    return tape, r, a


def nested():
    a = jnp.asarray(2.0)
    with tf.GradientTape() as outer:
        outer.watch(a)
        with tf.GradientTape() as inner:
            inner.watch(a)
            y = jnp.sin(a) * a
        g = inner.gradient(y, a)
    return outer, g, a


@pytest.mark.parametrize("make", [networks, rounded, nested, lambda: recorded()[:3]])
def test_every_name_is_defined(make):
    """By a row above, in the same program or in the jaxpr, which says what it keeps."""
    jaxpr, *others = texts(played(make))
    known = set()
    for row in (*jaxpr, *others[0], *others[1]):
        if row.startswith("#"):
            continue
        left, equals, right = row.partition(" = ")
        if row.startswith("λ "):
            known |= names_in(row[2:])
        elif equals:
            used = names_in(right.partition(" ")[2])
            assert right.startswith("constant ") or used - {"as", "it", "is"} <= known, row
            known |= names_in(left)
        else:
            assert names_in(row.partition("#")[0]) - {"return", "keep"} <= known, row


def played(make):
    tape, target, sources = make()
    return tape.play(target, sources)


def test_a_step_that_passes_a_cotangent_says_so():
    page = played(rounded)
    _, linear, transposed = texts(page)
    assert linear[2:-1] == ["dz = dt0, as it is", "dtarget = dz, as it is"]
    assert transposed[1:3] == ["# add passes its cotangent on as it is", "# subtract passes its cotangent on as it is"]
    operations = {frame["node"] for frame in page.data["frames"] if frame["kind"] == "backward"}
    for program in page.data["split"][1:]:  # no step is dark
        assert operations == {node for _, _, node in program["rows"] if node is not None}


def test_what_says_that_it_passes_does():
    """Of each operation that is said to pass its cotangent on, the numbers of the backward pass are those that came."""
    for make in (networks, rounded, nested):
        tape, target, sources = make()
        said = [text.split()[1] for text in texts(tape.play(target, sources))[2] if "as it is" in text]
        walk = walk_of(tape, target, sources)
        passed = [
            step.operation
            for step in walk
            if all(np.array_equal(x, step.incoming[0][1]) for _, x in step.outgoing) and step.entry.outputs
        ]
        assert set(said) <= set(passed) and (make is nested or said)


def test_relu_is_one_row():
    for rows, name in zip(texts(played(networks)), ("relu", "relu_linear", "relu_transposed"), strict=True):
        assert sum(f" = {name} " in row for row in rows) == 1 and not any("select_n" in row for row in rows)


def test_functions_say_zero_where_the_tape_says_none():
    a, b = jnp.asarray(2.0), jnp.asarray([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        r = jnp.round(a) * 2.0
        s = jnp.sin(a) + r
    jaxpr, linear, transposed = texts(tape.play(r, a))
    assert jaxpr[1:] == ["r = constant 4.0", "return r"] and linear[-1] == "return 0.0"
    assert tape.gradient(r, a) is None and jax.grad(lambda a: jnp.round(a) * 2.0)(a) == 0.0
    assert transposed[-1] == "return 0.0 # 0.0 where the tape says None"
    found = split.programs(walk_of(tape, s, [a, b]))
    residuals = run(found.forward, a, b)[found.targets + found.values :]
    gradients = run(found.transposed, *residuals, jnp.asarray(1.0))
    np.testing.assert_allclose(gradients[0], jnp.cos(a), rtol=1e-6)
    np.testing.assert_array_equal(gradients[1], jnp.zeros(2))
    assert "# 0.0 where the tape says None" in texts(tape.play(s, [a, b]))[2][-1]


def test_a_page_begins_beside_jaxs_programs():
    tape, target, sources = rounded()
    assert tape.play(target, sources, split=True).data["begin_split"]
    assert not tape.play(target, sources).data["begin_split"]


def test_what_is_no_function_of_the_sources_has_no_programs():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        area = x * x
        price = area * 2.0
    assert tape.play(price, [x, area]).data["split"] is None
    with pytest.raises(ValueError, match="split=True .* computed from another"):
        tape.play(price, [x, area], split=True)


def test_nothing_is_run_again():
    calls = []

    def host(x):
        calls.append(1)
        return np.sin(x)

    x = jnp.asarray(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        c = jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), jax.lax.stop_gradient(x))
        y = c * x
    count = len(calls)
    assert split.programs(walk_of(tape, y, x)) is not None and len(calls) == count
