"""``tf.gradients`` in a function: derivatives of what the function computed, whatever it is."""

from harness import error_of, parity


@parity
def test_sources_of_all_kinds(tf):
    """Arguments, results, constants, variables that are read, trainable or not, and what is not connected."""
    x, w, fixed = tf.constant([1.0, 2.0]), tf.Variable(2.0), tf.Variable(3.0, trainable=False)

    @tf.function
    def results(x):
        y = x * 2.0
        z = y**3
        return tf.gradients(z, [x, y]), tf.gradients([z, y], x)

    @tf.function
    def others(x):
        c = tf.constant(3.0)
        y = c * c * w * fixed * x
        return tf.gradients(y, [w, fixed, c, x])

    @tf.function
    def unconnected(x):
        y = x * x
        return (
            tf.gradients(y, [w, x]),
            tf.gradients(y, [w, x], unconnected_gradients="zero"),
            tf.gradients(tf.cast(y, tf.int32), x),
            tf.gradients(y, 3.0),
        )

    return results(x), others(x), unconnected(x)


@parity
def test_cotangents_and_constants(tf):
    """`grad_ys`, of which some may be None; `stop_gradients`, which may be sources as well."""
    x, ones = tf.constant([1.0, 2.0]), tf.constant([1.0, 10.0])

    @tf.function
    def f(x):
        y = x * x
        return (
            tf.gradients(y, x, grad_ys=ones),
            tf.gradients([y, x], x, grad_ys=[ones, None]),
            tf.gradients([y, x], x, grad_ys=[[1.0, 2.0], [3.0, 4.0]]),
            tf.gradients(y * x, x, stop_gradients=[y]),
            tf.gradients(y * x + y, [x, y], stop_gradients=y),
            tf.gradients(y * x, [x, y]),
        )

    @tf.function
    def wrong(x):
        return tf.gradients([x, x], x, grad_ys=[x])

    return f(x), error_of(wrong, x)


@parity
def test_in_a_function_inside_a_function(tf):
    """What a function closes over leads back to what it was computed from, its arguments to themselves."""
    v = tf.Variable(3.0)

    @tf.function
    def of_arguments(a, b):
        c = a * b
        return c, tf.gradients(c, [a, b]), tf.gradients(b, a)

    @tf.function
    def outer(x):
        y = x * x
        at_v = v * x

        @tf.function
        def closing_over():
            z = y * x

            @tf.function
            def again():
                return tf.gradients(z * y, [x, y, z]), tf.gradients(z * y, x, stop_gradients=z)

            return again(), tf.gradients(y, x), tf.gradients(at_v * v, [v, x]), tf.gradients(at_v, v)

        product, slopes, none = of_arguments(x, y)
        return closing_over(), slopes, none, tf.gradients(product, x), tf.gradients(at_v * v, v)

    with tf.GradientTape() as tape:
        x = tf.constant(2.0)
        tape.watch(x)
        results = outer(x)
    return results, tape.gradient(results[0][1], x), outer(tf.constant(5.0))


@parity
def test_higher_orders(tf):
    """A gradient is computed in the graph, too; so is a tape's, and a tape around the function sees all of it."""
    x, w = tf.constant([1.0, 2.0]), tf.Variable(2.0)

    @tf.function
    def orders(x):
        found = [x**4]
        for _ in range(4):
            found += tf.gradients(found[-1], x)
        return found

    @tf.function
    def second(x):
        z = w * x
        y = tf.reduce_sum(z**3) * x[0]
        (slope,) = tf.gradients(y, x)
        return tf.gradients(slope, x), tf.gradients([y, z], [x, z])

    @tf.function
    def around(x):
        return tf.gradients(w * x**3, x)[0]

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            slope = tf.gradients(x**3, x)[0]
        return slope, tape.gradient(slope, x)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = around(x)
    return orders(x), second(x), y, tape.gradient(y, [w, x]), inside(x)


@parity
def test_a_differential_equation(tf):
    """The residual of u'' + u for a network u, and its gradient with respect to the network's weights."""
    weights = [tf.Variable([[0.5, 0.3]]), tf.Variable([[0.2], [0.1]])]

    @tf.function
    def u(t):
        return tf.tanh(t @ weights[0]) @ weights[1]

    @tf.function
    def loss(t):
        y = u(t)
        slope = tf.gradients(y, t)[0]
        return tf.reduce_mean((tf.gradients(slope, t)[0] + y) ** 2)

    with tf.GradientTape() as tape:
        residual = loss(tf.constant([[0.1], [0.4], [0.9]]))
    return residual, tape.gradient(residual, weights)


@parity
def test_with_control_flow(tf):
    """Through loops and branches, inside them, and in functions inside functions."""
    x = tf.constant([1.0, 2.0])

    @tf.function
    def through(x):
        y = x
        for _ in tf.range(3):
            y = y * x
        z = tf.cond(x[0] > 0.0, lambda: x * x, lambda: x)
        return tf.gradients(y, x), tf.gradients(z, x)

    @tf.function
    def inside(x):
        total = tf.zeros([2])
        for i in tf.range(3):
            y = x * tf.cast(i, tf.float32) * x
            total += tf.gradients(y, x)[0]
        return total

    @tf.function
    def nested(x):
        y = x * x
        captured = tf.function(lambda: tf.gradients(y * 2.0, y))()
        return captured, tf.function(lambda z: tf.gradients(z * z, z)[0])(x * 3.0)

    return through(x), inside(x), nested(x)


@parity
def test_of_every_call(tf):
    """With variables that the first call creates, other shapes, other functions after it, and a size that is not known."""
    traces = []

    class Model(tf.Module):
        def __init__(self):
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(4.0)
            return tf.gradients(self.v * x * x, [x, self.v])

    @tf.function
    def f(x):
        traces.append(x.shape.rank)
        return tf.gradients(x * x, x)[0]

    model, x = Model(), tf.constant([1.0, 2.0])
    found = [model(x), model(x), f(x), f(x * 2.0), f(tf.constant(3.0)), tf.function(lambda x: x + 1.0)(x)]
    for spec in ([2], [None]):
        found.append(f.get_concrete_function(tf.TensorSpec(spec))(x))
    return found, model(x * 2.0), len(set(traces))


@parity
def test_outside_of_a_function(tf):
    """There is no graph; a function that fails leaves none behind."""
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    refused = (error_of(tf.gradients, y, x),)

    @tf.function
    def fails(x):
        tf.gradients(x, x)
        raise KeyError("afterwards")

    return *refused, error_of(fails, x), error_of(tf.gradients, y, x), tape.gradient(y, x)
