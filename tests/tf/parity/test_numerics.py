"""`tf.debugging.enable_check_numerics`: which operations raise, and where; that `disable_check_numerics` takes it back."""

import contextlib
import functools

import numpy as np
from harness import error_of, parity

INF, NAN = np.inf, np.nan


@contextlib.contextmanager
def checked(tf):
    tf.debugging.enable_check_numerics()
    try:
        yield
    finally:
        tf.debugging.disable_check_numerics()


def slope(tf, f, x):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@parity
def test_eager_operations(tf):
    """The first that gives a NaN or an infinity raises, of any floating type."""
    one, big = tf.constant(1.0), tf.constant([[1e38]])
    with checked(tf):
        return [
            error_of(tf.math.log, tf.constant(-1.0)),
            error_of(tf.math.log, tf.constant([1.0, 0.0, -1.0], tf.float64)),
            error_of(lambda: one / tf.constant([0.0, 1.0])),
            error_of(lambda: 1.0 / (one - 1.0)),
            error_of(lambda: tf.constant(6e4, tf.float16) * 2.0),
            error_of(tf.linalg.matmul, big, big),
            error_of(lambda: tf.Variable(1.0).assign_add(INF) + 0.0),
            error_of(lambda: tf.Variable(NAN) + 1.0),
            error_of(tf.nn.moments, tf.constant([1e30, -1e30]), [0]),
            error_of(tf.math.real, tf.constant(1j) / tf.constant(0j)),
            error_of(lambda: tf.custom_gradient(lambda x: (tf.math.log(x), lambda d: d))(tf.constant(-1.0))),
            error_of(tf.map_fn, tf.math.log, tf.constant([1.0, -1.0])),
            error_of(tf.vectorized_map, tf.math.log, tf.constant([1.0, -1.0])),
            tf.math.log(one),
        ]


@parity
def test_what_only_moves_numbers_may_move_any(tf):
    """So may constants, complex and integer operations; what asks for them may, too."""
    x = tf.constant([1.0, NAN, -INF])
    with checked(tf):
        return [
            tf.constant(NAN), tf.convert_to_tensor(np.float32([INF])), tf.fill([2], NAN), tf.identity(x), tf.reshape(x, [3, 1]),
            tf.concat([x, x], 0), tf.unstack(x), tf.expand_dims(x, 0), tf.squeeze(x[None]), x[1:], x[0],
            tf.transpose(x[None]), tf.maximum(x, 0.0), tf.minimum(x, 0.0), tf.math.is_nan(x),
            tf.constant(1 + 1j) / tf.constant(0j), tf.constant(7) // 2, tf.reduce_max(x[::2]),
            error_of(tf.where, [True, True, False], x, x), error_of(tf.stop_gradient, x), error_of(tf.abs, x),
        ]  # fmt: skip


@parity
def test_inside_a_function(tf):
    """At each call, where the result shows nothing and where nobody asks for it; afterwards it is as before."""

    @tf.function
    def hidden(x):
        return 0.0 * tf.cast(tf.math.is_nan(tf.math.log(x)), tf.float32)

    @tf.function
    def unused(x):
        tf.math.log(x)
        return x

    @tf.function
    def outer(x):
        return hidden(x) + 1.0

    masked = tf.function(lambda x: tf.where(x > 0.0, tf.math.log(x), 0.0))
    good, bad = tf.constant(2.0), tf.constant(-1.0)
    with checked(tf):
        found = [[f(good), *[error_of(f, bad) for _ in range(3)], f(good)] for f in (hidden, unused, outer, masked)]
        found.append(error_of(hidden.get_concrete_function(tf.TensorSpec([])), bad))
    return found, tf.math.log(bad)


@parity
def test_in_branches_and_loops(tf):
    """Of a branch the one that is taken; of a loop each round."""

    @tf.function
    def branch(x):
        return tf.cond(x > 0.0, lambda: x, lambda: tf.math.log(x))

    def loop(x):
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.math.log(y)), [0, x])[1]

    half, minus = tf.constant(0.5), tf.constant(-0.5)
    mapped = tf.function(lambda x: tf.map_fn(tf.math.log, x))
    with checked(tf):
        found = [branch(half), branch(half), *[error_of(branch, minus) for _ in range(2)]]
        for f in (loop, tf.function(loop)):
            found += [error_of(f, half), f(tf.constant(50.0))]
        return found, error_of(mapped, tf.constant([1.0, -0.5])), mapped(tf.constant([1.0, 2.0]))


@parity
def test_a_function_that_was_traced_before(tf):
    f = tf.function(tf.math.log)
    before = f(tf.constant(-1.0))
    with checked(tf):
        wrong = error_of(f, tf.constant(-1.0))
    return before, wrong, f(tf.constant(-1.0))


@parity
def test_the_backward_pass(tf):
    """A NaN that only the derivative has, at each call; a zero cotangent at a pole that stays zero is none."""

    def square_root(x):
        return tf.sqrt(x) * 2.0

    def guarded(x):
        return 0.0 * tf.sqrt(x)

    def norm(x):
        return tf.norm(tf.stack([x, x]))

    def tangent(x):
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as accumulator:
            y = tf.sqrt(x)
        return accumulator.jvp(y)

    found = []
    with checked(tf):
        for f in (square_root, norm, guarded):
            eager, inside = (functools.partial(slope, tf, g) for g in (f, tf.function(f)))
            for gradient in (eager, inside, tf.function(eager)):
                found.append([gradient(4.0), [error_of(gradient, 0.0) for _ in range(3)]])
        x = tf.constant([0.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)
        return found, error_of(tape.jacobian, y, x), error_of(tangent, x)


@parity
def test_graph_gradients(tf):
    """`tf.gradients`, which needs the function's graph."""
    f = tf.function(lambda x: tf.gradients(tf.sqrt(x), x)[0])
    with checked(tf):
        return f(tf.constant(4.0)), [error_of(f, tf.constant(0.0)) for _ in range(2)], f(tf.constant(1.0))


@parity
def test_variables_that_a_function_assigns(tf):
    """As without the check: what it assigns stays, its variables are made once, its gradient is the same."""

    class Counter(tf.Module):
        def __init__(self):
            self.v = None

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(2.0)
            self.v.assign_add(1.0)
            return self.v * x

    counter = Counter()
    with checked(tf):
        found = []
        for _ in range(3):
            with tf.GradientTape() as tape:
                y = counter(3.0)
            found.append((y, tape.gradient(y, counter.v)))
    return found, counter(1.0), counter.v


@parity
def test_it_may_be_enabled_and_disabled_twice(tf):
    bad = tf.constant(-1.0)
    tf.debugging.disable_check_numerics()
    tf.debugging.enable_check_numerics()
    tf.debugging.enable_check_numerics()
    wrong = error_of(tf.math.log, bad)
    tf.debugging.disable_check_numerics()
    after = tf.math.log(bad)
    tf.debugging.disable_check_numerics()
    return wrong, after, tf.math.log(bad)


@parity
def test_data(tf):
    numbers = tf.data.Dataset.from_tensor_slices(np.float32([1.0, -1.0]))
    with checked(tf):
        return error_of(lambda: list(numbers.map(tf.math.log)))


@parity(differs="a function is not traced for the check, and so not for ever")
def test_a_function_after_the_check(tf):
    f = tf.function(tf.math.log)
    with checked(tf):
        f(tf.constant(1.0))
    return error_of(f, tf.constant(-1.0))


@parity(differs="XLA is asked for no check")
def test_a_function_compiled_by_xla(tf):
    f = tf.function(lambda x: x + 1.0, jit_compile=True)
    with checked(tf):
        return error_of(f, tf.constant(1.0))
