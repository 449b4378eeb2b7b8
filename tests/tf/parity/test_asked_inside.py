"""Derivatives asked for elsewhere than where they were recorded: after the block, inside a function, around a trace."""

from harness import error_of, parity


def along(tf, x):
    """Forward mode in the direction of ones."""
    return tf.autodiff.ForwardAccumulator(x, tf.ones_like(x))


# --- forward mode ---------------------------------------------------------------------------------------------------


@parity
def test_nested_accumulators_after_both_blocks(tf):
    """The outer one has followed the inner one's products; the inner one not the outer one's."""
    x = tf.constant([1.1, 0.3])
    with along(tf, x) as outer:
        with along(tf, x) as inner:
            y = tf.sin(x) * x
    p, q = inner.jvp(y), outer.jvp(y)
    return p, q, outer.jvp(p), inner.jvp(q), inner.jvp(p), outer.jvp(q)


@parity
def test_three_accumulators(tf):
    """The third derivative."""
    x = tf.constant(1.1)
    with along(tf, x) as a, along(tf, x) as b, along(tf, x) as c:
        y = x**3.5
    p = c.jvp(y)
    q = b.jvp(p)
    return p, q, a.jvp(q), a.jvp(p), b.jvp(a.jvp(y))


@parity
def test_a_tape_around_an_accumulator(tf):
    """A tape that was entered before an accumulator follows its products, one entered later does not."""
    x, v = tf.constant([1.1, 0.3]), tf.Variable(1.1)
    with tf.GradientTape(persistent=True) as around:
        around.watch(x)
        with along(tf, x) as accumulator:
            y = tf.sin(x) * x
        with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as of_variable:
            w = v**3.5
    p = accumulator.jvp(y)
    found = [p, around.gradient(p, x), around.gradient(of_variable.jvp(w), v)]
    with along(tf, x) as accumulator:
        with tf.GradientTape(persistent=True) as within:
            within.watch(x)
            y = tf.sin(x) * x
            p = accumulator.jvp(y)
        g = within.gradient(y, x)
    return [*found, p, within.gradient(p, x), accumulator.jvp(g)]


@parity
def test_accumulators_and_functions(tf):
    """Nested in a function, around one, and asked inside one."""
    x = tf.constant([1.1, 0.3])

    @tf.function
    def nested(x):
        with along(tf, x) as outer:
            with along(tf, x) as inner:
                y = tf.sin(x) * x
        return outer.jvp(inner.jvp(y))

    body = tf.function(lambda x: tf.sin(x) * x)
    with along(tf, x) as outer:
        with along(tf, x) as inner:
            y = body(x)

        @tf.function
        def asked():
            return outer.jvp(tf.sin(x))

        inside = asked()
    return nested(x), outer.jvp(inner.jvp(y)), inside


# --- tapes ----------------------------------------------------------------------------------------------------------


@parity(warns=True)
def test_a_tape_asked_inside_a_function(tf):
    """What a function computes under a tape can be differentiated there, and the tape goes on as before."""
    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x

        @tf.function
        def inside():
            z = x * x * y * v
            return [tape.gradient(z, x), tape.gradient(z, v), tape.gradient(y, x)]

        found = inside()
        w = x * y
    return found, tape.gradient(w, x), tape.gradient(y, x)


@parity(warns=True)
def test_a_tape_asked_in_a_function_in_a_function(tf):
    """A tape of the outer function, asked in the inner one."""

    @tf.function
    def outer(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x

            @tf.function
            def inner():
                return tape.gradient(y, x), tape.gradient(x * x * x, x)

            found = inner()
        return found

    return outer(tf.constant(2.0))


# --- targets that are sources ---------------------------------------------------------------------------------------


@parity(warns=True)
def test_a_target_that_is_a_source(tf):
    """Its gradient is the cotangent, integers included."""
    found = []
    for x in (tf.constant(3), tf.constant([3, 4]), tf.constant(2.0), tf.constant(3, tf.uint8)):
        for watched in (True, False):
            with tf.GradientTape(persistent=True) as tape:
                if watched:
                    tape.watch(x)
                y = tf.identity(x)
            found += [tape.gradient(x, x), tape.gradient(y, x), tape.gradient([x, x], x), tape.gradient(x, [x, x])]
            found.append(tape.gradient(x, x, unconnected_gradients="zero"))
            found.append(tape.gradient(x, x, output_gradients=x))
    i = tf.constant(3)
    with tf.autodiff.ForwardAccumulator(i, tf.constant(2)) as accumulator:
        i * 2  # noqa: B018  something to record
    with tf.GradientTape() as tape:
        tape.watch(i)
        i * 2  # noqa: B018  something to record
    return found, accumulator.jvp(i), tape.jacobian(i, i)


# --- custom gradients in functions ----------------------------------------------------------------------------------


@parity
def test_a_backward_function_runs_when_a_tape_asks(tf):
    """Not when a function is traced without one."""
    log = []

    @tf.custom_gradient
    def f(x):
        def backward(dy):
            log.append("backward")
            return dy * 10.0

        return x * 2.0, backward

    @tf.custom_gradient
    def raising(x):
        def backward(dy):
            raise RuntimeError("no gradient")

        return x * 2.0, backward

    def differentiated(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    x, g, h = tf.constant(3.0), tf.function(lambda x: f(x)), tf.function(lambda x: raising(x))
    around = tf.function(lambda x: g(x) * x)
    found = [g(x), around(x), h(x), len(log), differentiated(g), differentiated(around), differentiated(g)]
    return found, len(log) > 0, error_of(differentiated, h)


@parity
def test_a_tape_in_a_function_runs_a_backward_function_when_asked(tf):
    """Inside the function, and for a second derivative from outside."""
    log = []

    @tf.custom_gradient
    def f(x):
        s = tf.sin(x)

        def backward(dy):
            log.append(1)
            return dy * 10.0 * s

        return x * 2.0, backward

    @tf.function
    def unasked(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * x
        return y

    @tf.function
    def asked(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * x
        return tape.gradient(y, x)

    x = tf.constant(3.0)
    found = [unasked(x), len(log), asked(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = asked(x)
    return found, tape.gradient(y, x)


@parity
def test_custom_gradients_in_traced_loops(tf):
    """First without a tape, then with one."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * 10.0

    def looped(x):
        start = (tf.constant(0), x)
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, f(x)), start, maximum_iterations=5)[1]

    x, found = tf.constant(3.0), []
    for body in (looped, lambda x: tf.cond(x > 0.0, lambda: f(x), lambda: x), lambda x: tf.map_fn(f, x * tf.ones([2]))):
        function = tf.function(body)
        found.append(function(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        found.append(tape.gradient(y, x))
    return found
