"""A ``tf.function`` whose shapes depend on values: XLA has no program for it, so it runs as Python."""

import numpy as np
from harness import parity

X = [1.0, -2.0, 3.0, -4.0]

# Each is a function of a vector, in the body of a `function`.
BODIES = {
    "boolean_mask": lambda tf, x: tf.boolean_mask(x, x > 0),
    "an index": lambda tf, x: x[x > 0],
    "where": lambda tf, x: tf.where(x > 0),
    "unique": lambda tf, x: tf.unique(tf.cast(x, tf.int32) // 2)[0],
    "dynamic_partition": lambda tf, x: tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2),
    "non_max_suppression": lambda tf, x: tf.image.non_max_suppression(tf.stack([x, x, x + 1, x + 1], 1), x, 3),
    "a slice": lambda tf, x: x[: tf.cast(tf.reduce_max(x), tf.int32)],
    "range": lambda tf, x: tf.range(tf.cast(x[2], tf.int32)),
    "reshape": lambda tf, x: tf.reshape(x, [tf.cast(x[2], tf.int32) - 1, -1]),
    "zeros": lambda tf, x: tf.zeros([tf.cast(x[2], tf.int32)]),
    "fill": lambda tf, x: tf.fill([tf.cast(x[2], tf.int32)], x[0]),
    "top_k": lambda tf, x: tf.math.top_k(x, tf.cast(x[2], tf.int32))[0],
    "repeat": lambda tf, x: tf.repeat(x, tf.cast(tf.abs(x), tf.int32)),
    "tile": lambda tf, x: tf.tile(x, [tf.cast(x[0], tf.int32) + 1]),
    "one_hot": lambda tf, x: tf.one_hot([0, 1], tf.cast(x[2], tf.int32)),
    "linspace": lambda tf, x: tf.linspace(0.0, 1.0, tf.cast(x[2], tf.int32)),
    "bincount": lambda tf, x: tf.math.bincount(tf.cast(tf.abs(x), tf.int32)),
    "unsorted_segment_sum": lambda tf, x: tf.math.unsorted_segment_sum(x, [0, 1, 0, 1], tf.cast(x[2], tf.int32)),
    "scatter_nd": lambda tf, x: tf.scatter_nd([[0], [1], [0], [2]], x, [tf.cast(x[2], tf.int32)]),
    "broadcast_to": lambda tf, x: tf.broadcast_to(x, [tf.cast(x[2], tf.int32), 4]),
    "pad": lambda tf, x: tf.pad(x, [[0, tf.cast(x[2], tf.int32)]]),
    "split": lambda tf, x: tf.split(x, [tf.cast(x[2], tf.int32), 1]),
    "cond": lambda tf, x: tf.cond(x[0] > 0, lambda: x[:2], lambda: x),
    "switch_case": lambda tf, x: tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: x[1:] * 2.0]),
    "while_loop": lambda tf, x: tf.while_loop(
        lambda i, y: i < x[2],
        lambda i, y: (i + 1.0, tf.concat([y, x * i], 0)),
        [tf.constant(0.0), tf.zeros([1])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1],
}


@parity
def test_results(tf):
    """The results, and their gradients where there are some."""
    x, found = tf.Variable(X), {}
    for name, body in BODIES.items():
        f = tf.function(lambda x, body=body: body(tf, x))
        with tf.GradientTape() as tape:
            y = f(tf.identity(x))
            parts = [part for part in (y if isinstance(y, (list, tuple)) else [y]) if part.dtype.is_floating]
            loss = tf.add_n([tf.reduce_sum(part**2) for part in parts]) if parts else tf.constant(0.0)
        found[name] = y, tape.gradient(loss, x)
    return found


@parity
def test_another_call_has_another_shape(tf):
    """What a call gives has the shape that its own values ask for."""
    positive = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    return [positive(tf.constant(x)) for x in (X, [1.0, 2.0, 3.0, 4.0], [-1.0, -1.0, -1.0, -1.0], [5.0])]


def filled(tf, x, n):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
    i = 0
    while i < n:
        array = array.write(i, x * tf.cast(i, tf.float32))
        i += 1
    return array.stack()


def appended(tf, x, n):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(n):
        if i % 2 == 0:
            array = array.write(array.size(), x + tf.cast(i, tf.float32))
    return array.stack()


def read(tf, x, n):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
    array = array.write(0, x)
    for i in tf.range(1, n):
        array = array.write(i, array.read(i - 1) * 2.0)
    return array.stack()


def in_while_loop(tf, x, n):
    start = [tf.constant(0), tf.TensorArray(tf.float32, 0, dynamic_size=True)]
    step = lambda i, array: (i + 1, array.write(i, x + tf.cast(i, tf.float32)))  # noqa: E731
    return tf.while_loop(lambda i, _: i < n, step, start)[1].stack()


@parity
def test_a_growing_tensor_array(tf):
    """It grows in a loop whose end is a tensor."""
    x, found = tf.Variable(1.5), {}
    for body in (filled, appended, read, in_while_loop):
        f = tf.function(lambda x, n, body=body: body(tf, x, n))
        for n in (4, 2, 4):
            with tf.GradientTape() as tape:
                y = f(tf.identity(x), tf.constant(n))
                loss = tf.reduce_sum(y * y)
            found.setdefault(body.__name__, []).append((y, tape.gradient(loss, x)))
    return found


@parity
def test_branches_and_loops_of_python(tf):
    """Shapes differ between branches; an integer is first assigned in a loop; a declared shape changes."""

    @tf.function
    def branch(x):
        if x[0] > 0:
            return x[:2]
        return x

    @tf.function
    def expression(x):
        return x[1:] if x[0] > 0 else x

    @tf.function
    def last(n):
        for i in tf.range(n):
            k = i * 2
        return k

    @tf.function
    def grow(n):
        y = tf.zeros([1])
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
            y = tf.concat([y, [tf.cast(i, tf.float32)]], 0)
        return y

    x, three = tf.constant(X), tf.constant(3)
    return branch(x), branch(-x), expression(x), expression(-x), last(three), grow(three), grow(tf.constant(1))


@parity
def test_variables_are_as_after_one_call(tf):
    """What the trace that was given up did to variables, and created, leaves no trace."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.calls = None, tf.Variable(0)

        @tf.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([4]) * 2.0)
            self.calls.assign_add(1)
            return tf.reduce_sum(tf.boolean_mask(x * self.w, x > 0))

    model, found = Model(), []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = model(tf.constant(X))
        found.append((y, tape.gradient(y, model.w), model.calls))
    return found, len(model.trainable_variables)


@parity
def test_functions_that_call_functions(tf):
    """The outermost runs as Python; what it calls is compiled where it can be, also on its own."""
    v = tf.Variable(1.0)

    @tf.function
    def inner(x):
        v.assign_add(1.0)
        return x * v

    @tf.function
    def outer(x):
        v.assign(v * 2.0)
        y = inner(x)
        return y[: tf.reduce_sum(tf.cast(y > 0, tf.int32))]

    x = tf.constant(X)
    return [(outer(x), v.read_value()) for _ in range(2)], inner(x), v.read_value()


@parity
def test_a_training_step_of_masked_values(tf):
    """The tape is in the function."""
    v = tf.Variable(1.0)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            kept = tf.boolean_mask(x, x > 0)
            loss = tf.reduce_sum(kept * kept * v)
        v.assign_sub(0.01 * tape.gradient(loss, v))
        return loss

    return [train(tf.constant(X)) for _ in range(3)], v


@parity
def test_only_calls_that_need_it(tf):
    """Another Python argument is another program."""

    @tf.function
    def f(x, training=False):
        return tf.boolean_mask(x, x > 0) if training else x * 2

    x = tf.constant(X)
    return f(x), f(x, training=True), f(x), f(x, training=True), f.experimental_get_tracing_count()


@parity
def test_higher_order(tf):
    """A second derivative, and a Jacobian, of what runs as Python."""
    x, positive = tf.Variable(X), tf.function(lambda x: tf.boolean_mask(x, x > 0))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(positive(x) ** 3)
        first = inner.gradient(y, x)
    with tf.GradientTape() as tape:
        z = positive(x) * 2.0
    return first, outer.gradient(first, x), tape.jacobian(z, x)


@parity
def test_a_concrete_function(tf):
    """It is there, and runs as the function does."""
    positive = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    concrete = positive.get_concrete_function(tf.TensorSpec([4], tf.float32))
    return concrete(tf.constant(X)), concrete(-tf.constant(X)), len(concrete.structured_input_signature[0])


def test_it_is_said_once(caplog):
    """For a call of this kind, in the log: a function that runs as Python is slower."""
    import tapejax as tf

    caplog.set_level("INFO", "tapejax")
    positive = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    for _ in range(3):
        positive(tf.constant(X))
    (said,) = caplog.messages
    assert "runs as Python" in said and "mask must have a known value" in said


def test_inside_another_trace_it_is_refused():
    """There are no values for Python to look at."""
    import jax
    import pytest

    import tapejax as tf

    positive = tf.function(lambda x: tf.boolean_mask(x, x > 0))
    with pytest.raises(TypeError, match="mask must have a known value"):
        jax.jit(lambda x: positive(x))(np.float32(X))
    np.testing.assert_array_equal(positive(tf.constant(X)), [1.0, 3.0])
