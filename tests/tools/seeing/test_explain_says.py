"""What `tape.explain` says of a student's programs word for word, and near programs of which it says nothing."""

from __future__ import annotations

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

# Each program ends with `tape`, `y` and `x`; the text is what follows "The gradient of ... with respect to", without the path.
SAYS = {
    "a value scaled under its own name": (
        """
        x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            x = x / 255
            y = tf.reduce_sum(w * x)
        """,
        "connected",
        """
        this x is not the value that was watched at program.py:3: truediv made it here, and the gradient
        is the one with respect to this value
          program.py:4  x = x / 255
        -> for the gradient with respect to the other, keep both: give what this line computes a name of
           its own
        """,
    ),
    "a Variable scaled under its own name": (
        """
        x = tf.Variable([2.0, 1.0])
        with tf.GradientTape(persistent=True) as tape:
            x = x / 255
            y = tf.reduce_sum(x * x)
        """,
        "connected",
        """
        this x is not the Variable of program.py:1: truediv made it here, and the gradient is the one
        with respect to this value
          program.py:3  x = x / 255
        -> for the gradient with respect to the other, keep both: give what this line computes a name of
           its own
        """,
    ),
    "a step under the name that was watched": (
        """
        x = tf.constant(2.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        x = x - 0.1 * tape.gradient(y, x)
        """,
        "None",
        """
        this x is not the value that was watched at program.py:3: the name means another value now,
        which the tape does not watch
          program.py:5  x = x - 0.1 * tape.gradient(y, x)
        -> ask for the value that was watched: give the new one a name of its own
        """,
    ),
    "a Variable made in the block": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            v = tf.Variable(2 * x)
            y = v * v
        """,
        "None",
        """
        line 3 makes a new Variable, v, and a Variable keeps the number that it is given, not how it was
        computed: the path from x ends there
          program.py:3  v = tf.Variable(2 * x)
        -> make Variables before the block, and compute with the tensor itself: without tf.Variable(...)
           on this line
        """,
    ),
    "a Variable without a name made in the block": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.Variable(2 * x) * 3.0
        """,
        "None",
        """
        line 3 makes a new Variable, and a Variable keeps the number that it is given, not how it was
        computed: the path from x ends there
          program.py:3  y = tf.Variable(2 * x) * 3.0
        -> make Variables before the block, and compute with the tensor itself: without tf.Variable(...)
           on this line
        """,
    ),
    "a loss that is a NumPy number": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            loss = x * x
            loss = loss.numpy()
        y = loss
        """,
        "an error",
        """
        the target loss is a NumPy float32 and no tensor: the tape does not see what such a number is
        computed from, and gradient() raises TypeError
          program.py:4  loss = loss.numpy()
        -> pass the tensor or variable itself: float(), .numpy(), np.asarray() and get_weights() give
           copies; or compute it in jnp or tf
        """,
    ),
    "a loss that is a Python number": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = float(x * x)
        """,
        "an error",
        """
        the target y is a Python float and no tensor: the tape does not see what such a number is
        computed from, and gradient() raises TypeError
          program.py:3  y = float(x * x)
        -> pass the tensor or variable itself: float(), .numpy(), np.asarray() and get_weights() give
           copies; or compute it in jnp or tf
        """,
    ),
    "a loss that went through NumPy": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            loss = x * x
            y = tf.constant(loss.numpy())
        """,
        "None",
        """
        y was computed by NumPy or plain Python, which the tape does not see: to it the result is a new
        constant
          program.py:4  y = tf.constant(loss.numpy())
        -> use the jnp or tf function of the same name, and do not convert (float(), np.asarray(),
           .numpy()) on the way
        """,
    ),
    "a penalty that is a Python number": (
        """
        x = tf.Variable(5.0)
        with tf.GradientTape(persistent=True) as tape:
            loss = 3.0 * x**2
            penalty = 0.04 * float(x**2)
            y = loss + penalty
        """,
        "connected",
        """
        the gradient (30.0) is that of a part of y only: penalty, which enters it, left the tape here
        for NumPy or plain Python, and counts as a constant
          program.py:4  penalty = 0.04 * float(x**2)
        -> use the jnp or tf function of the same name, and do not convert (float(), np.asarray(),
           .numpy()) on the way; if a constant is meant, tf.stop_gradient says so
        """,
    ),
    "a penalty in the same line": (
        """
        x = tf.Variable(5.0)
        with tf.GradientTape(persistent=True) as tape:
            y = 3.0 * x**2 + 0.04 * float(x**2)
        """,
        "connected",
        """
        the gradient (30.0) is that of a part of y only: a factor or term of this line, which enters it,
        left the tape here for NumPy or plain Python, and counts as a constant
          program.py:3  y = 3.0 * x**2 + 0.04 * float(x**2)
        -> use the jnp or tf function of the same name, and do not convert (float(), np.asarray(),
           .numpy()) on the way; if a constant is meant, tf.stop_gradient says so
        """,
    ),
    "a penalty by NumPy": (
        """
        x = tf.Variable([5.0, 1.0])
        with tf.GradientTape(persistent=True) as tape:
            weights = x.numpy()
            penalty = 0.04 * np.sum(weights**2)
            y = tf.reduce_sum(x) + penalty
        """,
        "connected",
        """
        the gradient is that of a part of y only: weights, which enters it, left the tape here for NumPy
        or plain Python, and counts as a constant
          program.py:3  weights = x.numpy()
        -> use the jnp or tf function of the same name, and do not convert (float(), np.asarray(),
           .numpy()) on the way; if a constant is meant, tf.stop_gradient says so
        """,
    ),
    "a penalty of plain arrays": (
        """
        x = jnp.array([5.0, 1.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            penalty = 0.04 * float(jnp.sum(x**2))
            y = jnp.sum(x) + penalty
        """,
        "connected",
        """
        the gradient is that of a part of y only: penalty, which enters it, left the tape here for NumPy
        or plain Python, and counts as a constant
          program.py:4  penalty = 0.04 * float(jnp.sum(x**2))
        -> use the jnp or tf function of the same name, and do not convert (float(), np.asarray(),
           .numpy()) on the way; if a constant is meant, tf.stop_gradient says so
        """,
    ),
    "a dead ReLU": (
        """
        data, x = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([[-1.0], [-2.0]])
        with tf.GradientTape(persistent=True) as tape:
            h = tf.nn.relu(data @ x)
            y = tf.reduce_mean((h - 1.0) ** 2)
        """,
        "connected, and zero",
        """
        the gradient is zero from relu on: to first order y does not change with t0, which is [[ -5.],
        [-11.]]; below zero relu is flat
          program.py:3  h = tf.nn.relu(data @ x)
        -> where y has a minimum there is nothing to fix; else take other initial values or a smaller
           step, or leaky_relu in place of relu
        """,
    ),
    "a dead ReLU behind a square": (
        """
        x = tf.Variable([-3.0, -1.0])
        with tf.GradientTape(persistent=True) as tape:
            h = tf.nn.relu(x * 2.0)
            y = tf.reduce_sum(h**2)
        """,
        "connected, and zero",
        """
        the gradient is zero from pow on: to first order y does not change with h, which is [0., 0.]
          program.py:4  y = tf.reduce_sum(h**2)
        -> where y has a minimum there is nothing to fix; else change the values (other initial ones, a
           smaller step), or take an operation that is not flat there
        relu would pass on nothing in any case: t0 is [-6., -2.]; below zero relu is flat
          program.py:3  h = tf.nn.relu(x * 2.0)
        -> take other initial values or a smaller step, or leaky_relu in place of relu
        """,
    ),
    "a saturated sigmoid": (
        """
        x = tf.Variable(200.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.sigmoid(x)
        """,
        "connected, and zero",
        """
        the gradient is zero from sigmoid on: to first order y does not change with x, which is 200.0;
        far from zero sigmoid is saturated
          program.py:3  y = tf.sigmoid(x)
        -> where y has a minimum there is nothing to fix; else bring x near zero: scale the inputs, take
           smaller initial weights; in a loss, leave sigmoid out and give the logits to the function
           that takes them (..._with_logits, from_logits=True)
        """,
    ),
    "a minimum": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = (x - 3.0) ** 2
        """,
        "connected, and zero",
        """
        the gradient is zero from pow on: to first order y does not change with t0, which is 0.0
          program.py:3  y = (x - 3.0) ** 2
        -> where y has a minimum there is nothing to fix; else change the values (other initial ones, a
           smaller step), or take an operation that is not flat there
        """,
    ),
    "two ways that cancel": (
        """
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = x * 2.0 - x * 2.0
        """,
        "connected, and zero",
        """
        the gradient is zero: what comes back to x along several ways adds up to zero
        -> if y should change with x, see whether the lines that use x compute what they should
        """,
    ),
    "swapped": (
        """
        w = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            loss = w * w
        y, x = w, loss
        """,
        "None",
        """
        the arguments are swapped: loss was computed from w, and not w from loss
          program.py:3  loss = w * w
        -> the target comes first, then the sources: gradient(loss, w)
        """,
    ),
    "swapped, of several": (
        """
        w, b = tf.Variable(3.0), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            loss = w * w + b
        y, x = [w, b], loss
        """,
        "None",
        """
        the arguments are swapped: loss was computed from [w, b], and not [w, b] from loss
          program.py:3  loss = w * w + b
        -> the target comes first, then the sources: gradient(loss, [w, b])
        """,
    ),
    "a column of predictions less a row of labels": (
        """
        data, labels = tf.ones([5, 3]), tf.ones([5])
        x = tf.Variable(tf.ones([3, 1]))
        with tf.GradientTape(persistent=True) as tape:
            predicted = data @ x
            y = tf.reduce_mean((predicted - labels) ** 2 + 1.0)
        """,
        "connected",
        """
        subtract makes (5, 5) of predicted (5, 1) and labels (5,): each element of one with each of the
        other
          program.py:5  y = tf.reduce_mean((predicted - labels) ** 2 + 1.0)
        -> if they belong together element by element, give both one shape: tf.reshape(predicted, (5,))
        """,
    ),
    "a row of predictions less a column of labels": (
        """
        data, labels = jnp.ones([5, 3]), jnp.array([[1.0], [2.0], [3.0], [4.0], [6.0]])
        x = jnp.ones(3)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = jnp.mean((data @ x - labels) ** 2)
        """,
        "connected",
        """
        subtract makes (5, 5) of labels (5, 1) and t0 (5,): each element of one with each of the other
          program.py:5  y = jnp.mean((data @ x - labels) ** 2)
        -> if they belong together element by element, give both one shape: tf.reshape(labels, (5,))
        """,
    ),
}

# In these the gradient is what was meant: nothing is noted.
NEAR = {
    "the scaled value has a name of its own": """
        x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            scaled = x / 255
            y = tf.reduce_sum(w * scaled)
    """,
    "an intermediate is asked for by its name": """
        w = tf.Variable([3.0, 4.0])
        with tf.GradientTape(persistent=True) as tape:
            x = w / 255
            y = tf.reduce_sum(x * x)
    """,
    "scaled, then watched": """
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape(persistent=True) as tape:
            x = x / 255
            tape.watch(x)
            y = tf.reduce_sum(x * x)
    """,
    "an accumulator in a loop": """
        w, x = tf.Variable(2.0), tf.constant(1.0)
        with tf.GradientTape(persistent=True) as tape:
            for _ in range(3):
                x = x * w
            y = x + 1.0
    """,
    "another function's value of that name": """
        def prepare(tape, x):
            tape.watch(x)
            x = x / 255
            return x
        v = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            x = prepare(tape, v)
            y = x * x
    """,
    "a number for the log": """
        x = tf.Variable(5.0)
        with tf.GradientTape(persistent=True) as tape:
            penalty = 0.04 * x**2
            logged = float(penalty)
            y = 3.0 * x**2 + penalty
    """,
    "numbers of the epochs before": """
        x, history = tf.Variable(5.0), []
        for epoch in range(3):
            with tf.GradientTape(persistent=True) as tape:
                y = 3.0 * x**2
                history.append(float(y))
            best = min(history)
    """,
    "the length of what enters": """
        x = tf.Variable([5.0, 1.0])
        with tf.GradientTape(persistent=True) as tape:
            n = float(len(x.numpy()))
            y = tf.reduce_sum(x) / n
    """,
    "a decision by NumPy": """
        x = tf.Variable([5.0, -1.0])
        with tf.GradientTape(persistent=True) as tape:
            mask = (x.numpy() > 0).astype(np.float32)
            y = tf.reduce_sum(x * mask)
    """,
    "a number that has nothing to do with it": """
        x, rate = tf.Variable(5.0), tf.Variable(0.1)
        with tf.GradientTape(persistent=True) as tape:
            factor = 2.0 * float(rate)
            y = x * factor
    """,
    "a schedule by NumPy": """
        x = tf.Variable([5.0, -1.0])
        with tf.GradientTape(persistent=True) as tape:
            factor = float(np.exp(-3.0)) * np.mean([1.0, 2.0])
            y = tf.reduce_sum(x * factor)
    """,
    "half of it is dead": """
        x = tf.Variable([-3.0, 1.0])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(tf.nn.relu(x * 2.0))
    """,
    "nothing in it": """
        x = tf.Variable(tf.zeros([0, 3]))
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(x * 2.0)
    """,
    "a small gradient": """
        x = tf.Variable(1e-20)
        with tf.GradientTape(persistent=True) as tape:
            y = 1e-20 * x
    """,
    "all pairs of one value": """
        x = tf.Variable([5.0, -1.0])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum((x[:, None] - 2.0 * x) ** 2 + x)
    """,
    "a grid of columns": """
        x = tf.Variable([5.0, -1.0])
        grid = tf.reshape(tf.constant([1.0, 2.0]), [2, 1])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum((grid - x) ** 2)
    """,
    "a column that is asked for in the block": """
        data, centres = tf.constant([1.0, 2.0]), tf.constant([1.0, 4.0])
        x = tf.Variable(3.0)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum((tf.expand_dims(data * x, 1) - centres) ** 2)
    """,
    "a row and a column of other lengths": """
        x, grid = tf.Variable([5.0, -1.0, 2.0]), tf.constant([[1.0], [2.0]])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum((grid - x) ** 2)
    """,
    "columns": """
        x, labels = tf.Variable([[5.0], [-1.0]]), tf.constant([[1.0], [2.0]])
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum((x - labels) ** 2)
    """,
}

# Programs near one of the above, with the kind of what is said, and a word that must not be.
OTHER = {
    "neither from the other": (
        """
        w, b = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            x = w * w
            y = b * b
        """,
        "unrelated",
        "swapped",
    ),
    "a branch that was not taken": (
        """
        w, x = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            h = w * 3.0 if w > 0.0 else x**2
            y = h + 1.0
        """,
        "unrelated",
        "NumPy",
    ),
    "assigned, not made": (
        """
        x, v = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            v.assign(x * x)
            y = v * v
        """,
        "state",
        "new Variable",
    ),
}


def run(text, tmp_path):
    file = tmp_path / "program.py"
    code = inspect.cleandoc(text) + "\n\nfound = tape.explain(y, x)\n"
    file.write_text(code)
    space = {"tf": tf, "jnp": jnp, "np": np}
    exec(compile(code, str(file), "exec"), space)
    return space, space["found"][0]


@pytest.mark.parametrize("name", SAYS)
def test_says(name, tmp_path):
    program, state, text = SAYS[name]
    space, report = run(program, tmp_path)
    assert "\n".join(map(str, report.reasons)) == inspect.cleandoc(text)
    assert report.state == state and f"{report.name}: {state}" in str(report)
    if state != "an error":
        gradient = space["tape"].gradient(space["y"], space["x"])
        assert (gradient is not None) == report.connected
        assert gradient is None or np.asarray(gradient).any() == (state == "connected")


@pytest.mark.parametrize("name", NEAR)
def test_says_nothing(name, tmp_path):
    space, report = run(NEAR[name], tmp_path)
    assert report.connected and report.state == "connected" and not report.reasons, str(report)
    assert space["tape"].gradient(space["y"], space["x"]) is not None


@pytest.mark.parametrize("name", OTHER)
def test_says_another_thing(name, tmp_path):
    program, kind, word = OTHER[name]
    _, report = run(program, tmp_path)
    assert report.kinds == (kind,) and word not in str(report)


def test_the_gradient_is_the_same_before_and_after():
    """To the last bit: looking runs a backward pass of its own."""
    rng = np.random.default_rng(0)
    x, w = (tf.Variable(rng.normal(size=(8, 8)).astype(np.float32)) for _ in range(2))

    def gradients(look):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.tanh(x @ w) * tf.nn.relu(w)) * float(w[0, 0])
        if look:
            assert [report.kinds for report in tape.explain(y, [x, w])] == [(), ("python",)]
        return [np.asarray(g) for g in tape.gradient(y, [x, w])]

    before = gradients(False)
    for look in (True, False, True):
        for a, b in zip(before, gradients(look), strict=True):
            np.testing.assert_array_equal(a, b)


def test_several_zero_gradients_and_a_look_under_jit():
    a, b, c = tf.Variable(-1.0), tf.Variable(2.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.relu(a) * b + c
    found = tape.explain(y, {"a": a, "b": b, "c": c})
    assert [report.kinds for report in found] == [("zero",), ("zero",), ()]
    assert "connected, and zero" in found._repr_html_() and "note: zero" in found._repr_html_()

    @jax.jit
    def step(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = jnp.maximum(v, 0.0)
        assert tape.explain(y, v)[0].kinds == ()  # there are no numbers yet
        return y

    step(jnp.array(-2.0))


def test_a_rule_that_raises():
    """`gradient` raises what the rule raises: that is said."""

    @tf.custom_gradient
    def doubled(x):
        def backward(dy):
            raise ArithmeticError("not today")

        return x * 2.0, backward

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = doubled(x)
    said = str(tape.explain(y, x))
    assert "x: an error" in said and "ArithmeticError" in said and "not today" in said
    with pytest.raises(ArithmeticError):
        tape.gradient(y, x)


def test_one_rule_that_raises_leaves_the_numbers_of_other_sources():
    @tf.custom_gradient
    def refuses(x):
        return x * 2.0, lambda dy: [][0]

    @tf.custom_gradient
    def silent(x):
        return x * 2.0, lambda dy: None

    sources = a, b, c, d = [tf.Variable(v) for v in (2.0, 3.0, 0.0, 4.0)]
    with tf.GradientTape(persistent=True) as tape:
        y = refuses(a) + silent(b) + c**2 + refuses(d * d)
    reports = tape.explain(y, sources)
    assert [report.kinds for report in reports] == [
        ("not differentiable",), ("custom gradient",), ("zero",), ("not differentiable",)
    ]  # fmt: skip
    assert [report.connected for report in reports] == [False, False, True, False]


def test_more_sources_than_operations_where_values_are_not_known():
    said = []

    @jax.jit
    def product(a, b, c):
        with tf.GradientTape() as tape:
            tape.watch((a, b, c))
            y = jax.jit(lambda a, b, c: a * b * c)(a, b, c)
        said.append(str(tape.explain(y, [a, b, c])))
        return y

    product(1.0, 2.0, 3.0)
    assert said[0].count("connected") == 3
