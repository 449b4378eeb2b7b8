"""Mistakes that students make: what they read tells the cause, and the remedy that it names works."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_explain_says import run

import tapejax as tf

# ---- a gradient that is not finite ----

NOT_FINITE = {
    "a logarithm behind the shortest path": (
        """
        x = tf.Variable(0.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.math.log(x) * x
        """,
        "nan",
        "log",
        ["log", "multiply"],
        "tf.maximum",
    ),
    "a square root behind a where": (
        """
        x = tf.Variable([0.0, 4.0])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(jnp.where(x > 0.0, jnp.sqrt(jnp.asarray(x)), 0.0))
        """,
        "nan",
        "sqrt",
        ["sqrt", "where", "reduce_sum"],
        "where(ok, f(where(ok, x, 1.0)), 0.0)",
    ),
    "an overflow": (
        """
        x = tf.Variable(1e30)
        with tf.GradientTape(persistent=True) as tape:
            y = x * x * x
        """,
        "infinite",
        "multiply",
        ["multiply", "multiply"],
        "smaller numbers",
    ),
    "an infinite slope": (
        """
        x = tf.Variable(0.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.sqrt(x)
        """,
        "infinite",
        "sqrt",
        ["sqrt"],
        "",
    ),
    "16-bit numbers": (
        """
        x = tf.Variable(300.0, dtype=tf.bfloat16)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.exp(x)
        """,
        "infinite",
        "exp",
        ["exp"],
        "tf.maximum",
    ),
}


@pytest.mark.parametrize("name", NOT_FINITE)
def test_not_finite(name, tmp_path):
    program, value, operation, path, cure = NOT_FINITE[name]
    space, report = run(program, tmp_path)
    (note,) = report.reasons
    assert report.connected and report.state == "connected, and not finite"
    assert note.kind == "not finite" and note.operation == operation and note.line.file.endswith("program.py")
    assert f"the gradient is {value}, and tape.check_numerics" in note.message and cure in note.remedy
    assert [step.operation for step in report.path][-len(path) :] == path
    with pytest.raises(tf.errors.NonFiniteError) as error:  # the same operation
        space["tape"].check_numerics(space["y"], space["x"])
    assert error.value.entry.op.name.strip("_") == operation
    assert error.value.direction in note.message


def test_a_finite_gradient_has_no_such_note(tmp_path):
    _, report = run(
        """
        x = tf.Variable(0.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.where(x > 1.0, tf.math.log(2.0), x * x * 3.0 + x)
        """,
        tmp_path,
    )
    assert report.kinds == () and report.state == "connected"


# ---- a new tensor as the source ----

BLOCK = """
w = tf.Variable([1.0, 2.0])
p = tf.constant(3.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(p)
    y = tf.reduce_sum(w**2) * p
"""
NEW = {
    "w[0]": "w",
    "w[:1]": "w",
    "p * 1.0": "p",
    "w.read_value()": "w",
    "w.value()": "w",
    "tf.identity(w)": "w",
    "tf.convert_to_tensor(w)": "w",
    "tf.reshape(p, [1])": "p",
    "jnp.asarray(w) + 0.0": "w",
}


@pytest.mark.parametrize("source", NEW)
@pytest.mark.parametrize("named", [True, False])
def test_a_new_tensor(source, named, tmp_path):
    asked = f"x = {source}\nreport = tape.explain(y, x)[0]" if named else f"report = tape.explain(y, {source})[0]"
    space = executed(f"{BLOCK}{asked}", tmp_path)
    report = space["report"]
    assert report.kinds == ("new tensor",) and report.state == "None"
    assert report.name == ("x" if named else source)
    assert f"with respect to {NEW[source]}, and slice that" in report.remedies
    assert space["tape"].gradient(space["y"], space[NEW[source]]) is not None  # the remedy works


def executed(text, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(text, encoding="utf-8")
    space = {"tf": tf, "jnp": jnp, "np": np, "__name__": "program"}
    exec(compile(text, str(file), "exec"), space)
    report = space["report"]
    space["report"] = _Report(report.name, report.kinds, report.state, " ".join(r.remedy for r in report.reasons))
    return space


class _Report:
    def __init__(self, name, kinds, state, remedies):
        self.name, self.kinds, self.state, self.remedies = name, kinds, state, remedies


@pytest.mark.parametrize(
    "asked",
    [
        "report = tape.explain(y, [w[i] for i in range(2)])[1]",
        "report = tape.explain(y, [w[0], w[1]])[1]",
        "parts = [w[0], w[1]]\nreport = tape.explain(y, parts)[1]",
    ],
)
def test_slices_in_a_list(asked, tmp_path):
    assert "with respect to w, and slice" in executed(f"{BLOCK}{asked}", tmp_path)["report"].remedies


def test_a_constant_that_was_not_watched_is_no_new_tensor(tmp_path):
    text = f"z = tf.constant(1.0){BLOCK}report = tape.explain(y, z)[0]"
    assert executed(text, tmp_path)["report"].kinds == ("never watched", "unrelated")


# ---- what is passed in place of a tensor ----


class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([1.0, 2.0])


def recorded():
    model, x = Model(), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        a, b = x * x, tf.reduce_sum(model.w**2) * x
    return tape, model, x, a, b


def test_a_module_as_the_source():
    tape, model, *_, loss = recorded()
    for ask in (tape.gradient, tape.jacobian, tape.explain, tape.steps, tape.as_function):
        with pytest.raises(TypeError, match=r"holds .*Model.*trainable_variables"):
            ask(loss, model)
    with pytest.raises(ValueError, match=r"trainable_variables"):
        tape.watch(model)
    assert tape.gradient(loss, model.trainable_variables)[0] is not None


def test_a_function_in_place_of_its_result():
    tape, _, x, a, _ = recorded()
    for target, source in ((recorded, x), (a, recorded), (lambda: a, x)):
        for ask in (tape.gradient, tape.explain, tape.jacobian):
            with pytest.raises(TypeError, match="Pass what it returns, computed in the tape's block"):
                ask(target, source)


def test_several_targets_of_a_jacobian():
    tape, _, x, a, b = recorded()
    for ask in (tape.jacobian, tape.batch_jacobian):
        with pytest.raises(TypeError, match=r"persistent tape, or for one tensor.*tf.stack"):
            ask([a, b], x)
    with tape:
        both = tf.stack([a, b])
    np.testing.assert_allclose(tape.jacobian(both, x), [4.0, 5.0])


def test_numbers_are_not_watched():
    tape = tf.GradientTape()
    with tape:
        for number in (3.0, 3, [1.0], np.ones(2)):
            with pytest.raises(ValueError, match=r"Make it a tensor, x = tf.constant\(...\), watch x"):
                tape.watch(number)


def test_copies_of_weights():
    tape, model, _, _, loss = recorded()
    with pytest.raises(TypeError, match=r"NumPy arrays, as .numpy\(\) and get_weights\(\) give, are copies"):
        tape.gradient(loss, [model.w.numpy()])
    (report,) = tape.explain(loss, [model.w.numpy()])
    assert report.kinds == ("python",) and "pass the tensor or variable itself" in report.reasons[0].remedy


def test_no_sources():
    tape, *_, loss = recorded()
    explanation = tape.explain(loss, [])
    assert "no variables before it is built" in str(explanation) and "built" in explanation._repr_html_()


def test_a_tensor_kept_from_a_function():
    kept = []

    @tf.function
    def square(x):
        kept.append(x * 2)
        return x * x

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        square(x)
    uses = [
        lambda: kept[0] + 1.0,
        lambda: tf.add_n(kept),
        lambda: kept[0].numpy(),
        lambda: tape.gradient(kept[0], x),
        lambda: tape.explain(kept[0], x),
    ]
    kinds = jax.errors.UnexpectedTracerError, tf.errors.NoValueError  # of numpy() an AttributeError, as TensorFlow's
    for use in uses:
        with pytest.raises(kinds, match=r"return it from\s+the function") as error:
            use()
        assert "test_explain_students.py" in str(error.value) and "staging.py" not in str(error.value)
    with pytest.raises(jax.errors.UnexpectedTracerError) as error:  # JAX's own message names the user's line
        jnp.sum(kept[0])
    assert "test_explain_students.py" in str(error.value)


@pytest.mark.parametrize("x", [tf.Variable(3.0), tf.constant(3.0), 3.0])
def test_jax_grad_of_tensors(x):
    def square(x):
        return tf.square(x)

    with pytest.raises(ValueError, match=r"jax.grad\(lambda x: jnp.asarray\(f\(x\)\)\)"):
        jax.grad(square)(x)
    gradient = jax.grad(lambda x: jnp.asarray(square(x)))(x)  # the remedy works
    np.testing.assert_allclose(jnp.asarray(gradient), 6.0)


# ---- a gradient of zero: each kind has its own remedy ----

ZERO = {
    "tf.reduce_sum(tf.nn.dropout(d @ x, rate=0.9999, seed=1))": ("dropout", "smaller rate"),
    "tf.reduce_sum(tf.clip_by_value(d @ x, -1.0, 1.0))": ("clip_by_value", "clip the gradients"),
    "jnp.sum(jnp.clip(jnp.asarray(d @ x), -1.0, 1.0))": ("clip", "clip the gradients"),
    "tf.reduce_sum(tf.sigmoid(100 * (d @ x)))": ("sigmoid", "with_logits"),
    "tf.reduce_sum(tf.tanh(100 * (d @ x)))": ("tanh", "scale the inputs"),
    "tf.reduce_sum(tf.nn.relu(-(d @ x)))": ("relu", "leaky_relu"),
    "tf.reduce_sum(tf.maximum(d @ x, 10.0))": ("maximum", "chooses the other side"),
    "tf.reduce_sum((d @ x) @ tf.zeros([2, 1]))": ("matmul", "random numbers"),
}


@pytest.mark.parametrize("expression", ZERO)
def test_zero(expression, tmp_path):
    operation, cure = ZERO[expression]
    _, report = run(
        f"""
        d, x = tf.ones([4, 3]), tf.Variable(tf.ones([3, 2]))
        with tf.GradientTape(persistent=True) as tape:
            y = {expression}
        """,
        tmp_path,
    )
    (note,) = report.reasons
    assert (note.kind, note.operation) == ("zero", operation) and cure in note.remedy
    assert ("leaky_relu" in note.remedy) == (operation == "relu")


def test_two_layers_of_zeros():
    x, a, b = tf.ones([4, 3]), tf.Variable(tf.zeros([3, 2])), tf.Variable(tf.zeros([2, 1]))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum((tf.tanh(x @ a) @ b - 1.0) ** 2)
    for report in tape.explain(loss, [a, b]):
        assert report.reasons[0].operation == "matmul" and "begin with random numbers" in report.reasons[0].remedy


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_a_softmax_over_one_class_is_constant(name):
    "It is not saturated: no scale of the inputs would help."
    x = tf.Variable([[2.0], [-1.0]])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(getattr(tf.nn, name)(x))
    said = str(tape.explain(loss, x))
    assert "single class" in said and "saturated" not in said


@pytest.mark.parametrize("take", [jnp.take, lambda x, i: x.at[i].get(mode="fill", fill_value=0)])
def test_an_index_beyond_the_end(take):
    table, ids = jnp.arange(3.0), jnp.array([3, 7])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(table)
        loss = jnp.sum(take(table, ids))
    (note,) = tape.explain(loss, table)[0].reasons
    assert note.kind == "zero" and "beyond the end" in note.message and "within the shape" in note.remedy


# ---- gradients too small for their dtype ----


def small(x):
    return jnp.mean((x * jnp.asarray(1e-2, x.dtype)) ** 2)


@pytest.mark.parametrize("f", [small, jax.jit(small)], ids=["eager", "jitted"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_gradient_underflows(f, dtype):
    "The remedy is tried: the scaled loss has the gradient that float32 has."
    x = jnp.full(1000, 1e-2, dtype)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = f(x)
        scaled = loss * 2.0**15
    notes = tape.explain(loss, x)[0].reasons
    assert [note.kind for note in notes] == ["zero"] * (dtype == "float16")
    if notes:
        assert "too small for a float16" in notes[0].message and "2.0**15" in notes[0].remedy
    found = tape.gradient(scaled, x).astype("float32") / 2.0**15
    np.testing.assert_allclose(found, jax.grad(small)(x.astype("float32")), rtol=0.05)


def test_a_small_gradient_that_is_zero_anyway():
    "Scaled up, what is zero stays zero, and what overflows says nothing."
    x = jnp.array([-1.0, -2.0], "float16")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        flat = jnp.sum(jax.nn.relu(x)) * jnp.float16(1e-6)
        steep = jnp.sum((x * jnp.float16(6e4)) * jnp.zeros(2, "float16")) * jnp.float16(1e-6)
    for loss in (flat, steep):
        assert "underflows" not in str(tape.explain(loss, x))


def test_a_rule_in_python_sees_no_other_cotangents():
    @jax.custom_vjp
    def rule(x):
        return x

    rule.defvjp(lambda x: (x, None), lambda _, cotangent: (seen.append(float(cotangent)) or cotangent * 0.0,))
    seen, x = [], jnp.array(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = rule(x) * 0.5
    assert tape.explain(loss, x)[0].kinds == ("zero",) and set(seen) == {0.5}


# ---- probabilities where logits are taken ----

TWICE = {
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=tf.sigmoid(d @ x))": "sigmoid",
    "tf.nn.softmax_cross_entropy_with_logits(labels=t, logits=tf.nn.softmax(d @ x))": "softmax",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 0, 1], logits=tf.nn.softmax(d @ x))": "softmax",
    "tf.nn.log_softmax(tf.reshape(tf.nn.softmax(d @ x), [4, 2]))": "softmax",
    "tf.math.log_sigmoid(tf.sigmoid(d @ x))": "sigmoid",
    "tf.nn.log_softmax(jax_nn.softmax(jnp.asarray(d @ x)))": "softmax",
}


@pytest.mark.parametrize("loss", [*TWICE, *(text.replace("tf.sigmoid(d @ x)", "d @ x") for text in list(TWICE)[:1])])
def test_squashed_twice(loss, tmp_path):
    _, report = run(
        f"""
        t, d, x = tf.constant([[0.0, 1.0]] * 4), tf.ones([4, 3]), tf.Variable([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])
        import jax.nn as jax_nn
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_mean({loss})
        """,
        tmp_path,
    )
    if loss in TWICE:
        assert report.kinds[0] == "squashed twice" and "from_logits=False" in report.reasons[0].remedy
        assert f"applies a {TWICE[loss]} of its own" in report.reasons[0].message
    else:
        assert report.kinds == ()


# ---- model.predict ----


def test_predict(tmp_path):
    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)

        def predict(self, x):
            return np.asarray(x) * self.w.numpy()

    model = Model()
    with tf.GradientTape(persistent=True) as tape:
        prediction = model.predict([1.0, 2.0])
        loss = tf.reduce_sum((prediction - tf.constant([0.0, 1.0])) ** 2)
    (report,) = tape.explain(loss, [model.w])
    assert report.state == "None" and report.reasons[-1].kind == "python"
    assert "prediction was computed by predict()" in report.reasons[-1].message
    assert "model(x, training=True)" in report.reasons[-1].remedy


def loss_of(prediction):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(prediction**2)
    return tape, loss


def test_predict_where_explain_is_called():
    """The block's function has the loss, and the statement that matters stands in its caller."""

    class Model:
        def __init__(self):
            self.w = tf.Variable(2.0)

        def predict(self, x):
            return np.asarray(x, np.float32) * self.w.numpy()

    model = Model()
    prediction = model.predict([1.0, 2.0])
    tape, loss = loss_of(prediction)
    (report,) = tape.explain(loss, [model.w])
    assert "prediction was computed by predict()" in str(report)


def test_a_conversion_of_another_statement_is_not_blamed(tmp_path):
    """`seen` went through NumPy, after which `y` was computed from a constant."""
    _, report = run(
        """
        x, c = tf.Variable(2.0), tf.constant(3.0)
        def half(q):
            return 0.5
        def double(q):
            return 2 * float(q)
        with tf.GradientTape(persistent=True) as tape:
            seen = tf.sin(c) * double(x)
            y = tf.cos(c) * half(x)
        """,
        tmp_path,
    )
    assert all(reason.line is None or reason.line.number != 5 for reason in report.reasons), report


# ---- layer.get_weights ----


class Layer:
    def __init__(self):
        self.kernel = tf.Variable([[1.0], [2.0]])

    def get_weights(self):
        return [self.kernel.numpy()]


def computed_inside(layer):
    with tf.GradientTape() as tape:
        penalty = tf.reduce_sum(tf.constant(layer.get_weights()[0]) ** 2)
    return tape, penalty


def with_a_name(layer):
    with tf.GradientTape() as tape:
        (w,) = layer.get_weights()
        penalty = tf.reduce_sum(w**2)
    return tape, penalty


@pytest.mark.parametrize("run", [computed_inside, with_a_name])
def test_get_weights(run):
    layer = Layer()
    tape, penalty = run(layer)
    (report,) = tape.explain(penalty, [layer.kernel])
    assert report.state == "None" and report.reasons[-1].kind == "python"
    assert "get_weights() gave, which are copies" in report.reasons[-1].message
    assert "trainable_variables" in report.reasons[-1].remedy


def test_what_the_block_used_is_no_new_tensor():
    x = tf.Variable(2.0)
    c = x * 2.0
    with tf.GradientTape() as tape:
        y = c * x
    assert tape.explain(y, c)[0].kinds == ("never watched",)


def test_a_column_without_a_name_is_compared_with_a_row():
    features, labels, w = tf.ones([4, 2]), tf.ones([4]), tf.Variable(tf.ones([2, 1]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((features @ w - labels) ** 2)
        chosen = tf.reduce_mean((tf.reshape(features @ w, [4, 1]) - labels) ** 2)
    assert tape.explain(loss, w)[0].kinds == ("broadcast",)
    assert tape.explain(chosen, w)[0].kinds == ()


def test_a_number_of_an_operation_in_a_function_that_has_returned():
    x = jnp.array(2.0)

    def block():
        with tf.GradientTape() as tape:
            tape.watch(x)
            factor = float(jnp.sin(x))
            y = jnp.ones(3) * factor
        return tape, y

    tape, result = block()
    (report,) = tape.explain(result, x)
    assert report.kinds == ("python",) and "factor = float" in report.reasons[0].line.text


def test_an_integer_of_numpys_is_no_part_of_a_gradient_that_is_lost():
    x = jnp.array([1.5, 2.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        count = np.asarray(x).astype(np.int32)
        y = jnp.sum(x * count)
    assert tape.explain(y, x)[0].kinds == ()


def test_a_target_of_another_function_than_the_block():
    x = tf.Variable(2.0)

    def block():
        with tf.GradientTape(persistent=True) as tape:
            _ = x * x
        return tape

    tape = block()
    y = x * 3.0
    (report,) = tape.explain(y, x)
    assert report.kinds == ("outside",) and "outside the tape's block" in report.reasons[0].message
    assert report.reasons[0].line.text == "y = x * 3.0"


def test_what_numpy_computed_before_the_block_is_numpys():
    """To move the line into the block would not help."""
    x = jnp.array(2.0)
    factor = np.asarray(x) * 2.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.ones(3) * factor
    assert tape.explain(y, x)[0].kinds == ("python",)
