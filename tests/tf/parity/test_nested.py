"""Several tapes: nested, side by side, and in other threads."""

import threading

from harness import error_of, parity


@parity
def test_a_second_derivative(tf):
    """The outer tape records what the inner tape's gradient() does."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**4 + tf.sin(x)
        slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


@parity
def test_derivatives_of_order_four(tf):
    """Nesting goes to any depth."""
    x = tf.constant(0.5)
    with tf.GradientTape() as t4:
        t4.watch(x)
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = tf.exp(2.0 * x) * x
                first = t1.gradient(y, x)
            second = t2.gradient(first, x)
        third = t3.gradient(second, x)
    return first, second, third, t4.gradient(third, x)


@parity
def test_the_inner_gradient_taken_outside(tf):
    """Taken after the outer block, the inner gradient is not recorded."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
    slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


@parity
def test_the_inner_gradient_taken_between_the_blocks(tf):
    """Taken inside the outer but outside the inner block, it is recorded by the outer tape alone."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape(persistent=True) as inner:
            y = x**3
        slope = inner.gradient(y, x)
        z = slope * x
    return outer.gradient(z, x), inner.gradient(slope, x), inner.gradient(z, x)


@parity
def test_watching_on_one_tape_only(tf):
    """What the inner tape watches the outer does not know."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


@parity
def test_watching_on_the_outer_tape_only(tf):
    """And the other way round: the inner gradient is None."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            y = x**3
    return inner.gradient(y, x), outer.gradient(y, x)


@parity
def test_two_tapes_side_by_side(tf):
    """Two tapes in one with statement record the same operations, each for what it watches."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as for_x, tf.GradientTape() as for_y:
        for_x.watch(x)
        for_y.watch(y)
        z = x**2 * y + y
    return for_x.gradient(z, [x, y]), for_y.gradient(z, [x, y])


@parity
def test_an_inner_tape_that_watches_nothing(tf):
    """watch_accessed_variables=False concerns one tape."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            y = v * v
        nothing = inner.gradient(y, v)
        z = y * v
    return nothing, outer.gradient(z, v), [len(tape.watched_variables()) for tape in (outer, inner)]


@parity
def test_a_gradient_penalty(tf):
    """A loss with the norm of an input gradient in it, differentiated with respect to the weights."""
    x = tf.constant([[1.0, -2.0], [0.5, 1.5]])
    weights, bias = tf.Variable([[0.3, -0.2], [0.1, 0.7]]), tf.Variable([0.1, -0.1])
    with tf.GradientTape() as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            output = tf.tanh(x @ weights + bias)
        slope = inner.gradient(output, x)
        loss = tf.reduce_mean(output**2) + tf.reduce_mean((tf.norm(slope, axis=1) - 1.0) ** 2)
    return loss, outer.gradient(loss, [weights, bias])


@parity
def test_a_mixed_second_derivative(tf):
    """By one variable inside, by another outside."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            z = x**2 * y**3
        dz_dx = inner.gradient(z, x)
    return outer.gradient(dz_dx, [x, y])


@parity
def test_a_second_derivative_that_is_zero(tf):
    """A linear function's gradient does not depend on its argument: the outer gradient is None."""
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            line, square = 3.0 * x, x * x
        slope, constant_plus = inner.gradient(line, x), inner.gradient(square, x)
    return slope, outer.gradient(slope, x), outer.gradient(constant_plus, x)


@parity
def test_hessian_vector_product(tf):
    """The gradient of gradient times vector."""
    x, vector = tf.Variable([1.0, 2.0, 3.0]), tf.constant([1.0, 0.0, -1.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(x**3) + x[0] * x[1] * x[2]
        along = tf.reduce_sum(inner.gradient(y, x) * vector)
    return outer.gradient(along, x)


@parity
def test_a_step_of_descent_differentiated(tf):
    """The loss after an update, differentiated with respect to the learning rate and the start."""
    w, rate = tf.Variable(1.0), tf.Variable(0.1)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = (w - 3.0) ** 2
        updated = w - rate * inner.gradient(loss, w)
        later = (updated - 3.0) ** 2
    return outer.gradient(later, [rate, w])


@parity
def test_an_inner_gradient_with_zeros(tf):
    """Zeros of an inner tape are constants to the outer."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            z = x * x
        gradients = inner.gradient(z, [x, y], unconnected_gradients="zero")
        total = gradients[0] * gradients[1] + gradients[0]
    return outer.gradient(total, [x, y])


@parity
def test_an_inner_gradients_zeros_come_from_the_source(tf):
    """To an outer tape they are computed from the source, of which they do not depend."""
    x, v, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0]), tf.Variable(2.0)
    found = []
    for source in (x, v):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = w * w
            zeros = inner.gradient(y, source, unconnected_gradients="zero")
            z = tf.reduce_sum(tf.exp(zeros))
        found.append(
            [outer.gradient(z, [zeros, x, v, w]), outer.gradient([zeros, z], zeros), len(outer.watched_variables())]
        )
    return found


@parity
def test_what_has_the_shape_of_a_watched_value_is_a_source(tf):
    x = tf.constant([1.0, 2.0])
    found = []
    for like in (
        tf.zeros_like,
        tf.ones_like,
        tf.floor,
        lambda x: tf.zeros_like(x, tf.float32),
        lambda x: tf.zeros(x.shape),
    ):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = like(x)
            z = y * 3.0 + x
        found.append([tape.gradient(z, y), tape.gradient(z, x), tape.gradient(y, x)])
    return found


@parity
def test_an_inner_tape_stopped_for_its_gradient(tf):
    """stop_recording on the outer tape keeps the inner gradient off it."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        with outer.stop_recording():
            slope = inner.gradient(y, x)
        z = slope * x
    return outer.gradient(z, x)


@parity
def test_a_function_that_opens_a_tape(tf):
    """A function that uses a tape of its own can be differentiated like any other."""

    def slope(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    x = tf.constant([0.1, 0.7])
    return slope(tf.sin, x), slope(lambda x: slope(tf.sin, x), x), slope(lambda x: slope(tf.sin, x) ** 2, x)


@parity
def test_an_exception_in_the_inner_block(tf):
    """The outer tape records on when the inner block fails."""
    x = tf.Variable(2.0)

    def fail():
        with tf.GradientTape():
            raise KeyError("inner")

    with tf.GradientTape() as outer:
        y = x * x
        raised = error_of(fail)
        z = y * x
    return raised, outer.gradient(z, x)


@parity
def test_a_tape_sees_its_own_thread(tf):
    """What another thread computes is not recorded."""
    x, results = tf.Variable(2.0, name="x"), []
    with tf.GradientTape(persistent=True) as tape:
        worker = threading.Thread(target=lambda: results.append(x * x))
        worker.start()
        worker.join()
        listed = len(tape.watched_variables())
        y = x * 3.0
    return listed, results, tape.gradient(results[0], x), tape.gradient(y, x)


@parity
def test_a_tape_of_another_thread_answers_here(tf):
    """A finished tape may be asked from any thread."""
    x, made = tf.Variable(2.0), []

    def record():
        with tf.GradientTape() as tape:
            y = x**3
        made.append((tape, y))

    worker = threading.Thread(target=record)
    worker.start()
    worker.join()
    ((tape, y),) = made
    return tape.gradient(y, x)


@parity
def test_tapes_in_many_threads(tf):
    """Each thread has its own tape and its own answer."""
    answers = {}

    def work(number):
        x = tf.Variable(float(number))
        for _ in range(20):
            with tf.GradientTape() as tape:
                y = x**2 * number
            answers[number] = tape.gradient(y, x)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(sorted(answers.items()))


@parity(differs="a constant inner gradient is a source like another; in TensorFlow nothing depends on it")
def test_a_constant_inner_gradient_as_a_source(tf):
    """The gradient of a linear function depends on nothing that is watched; asked for with respect to it, that is None."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = 2.0 * x
        slope = inner.gradient(y, x)
        z = tf.exp(slope)
    return outer.gradient(z, slope)
