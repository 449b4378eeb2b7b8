"""`custom_gradient`, `stop_gradient`, `recompute_grad`, `grad_pass_through`."""

import numpy as np
from harness import error_of, parity

# --- one argument, one result ---------------------------------------------------------------------------------------


@parity
def test_clipping_a_gradient_on_its_way(tf):
    """The identity forward, a clipped gradient backward."""

    @tf.custom_gradient
    def clip_gradients(y):
        return y, lambda dy: tf.clip_by_norm(dy, 0.5)

    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        output = clip_gradients(v * v)
    return output, tape.gradient(output, v)


@parity
def test_a_stable_softplus(tf):
    """log(1 + exp(x)) far out, where the plain gradient is nan."""

    def plain(x):
        return tf.math.log(1 + tf.exp(x))

    @tf.custom_gradient
    def stable(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    x = tf.constant([0.0, 100.0])
    found = []
    for f in (plain, stable):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        found.append((y, tape.gradient(y, x)))
    return found


@parity
def test_rounding_that_lets_gradient_through(tf):
    """Values changed, gradient not."""

    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda dy: dy

    x = tf.Variable([1.4, 2.6])
    with tf.GradientTape() as tape:
        y = rounded(x * x) * x
    return y, tape.gradient(y, x)


@parity
def test_the_wrong_gradient_is_used(tf):
    """What the function says is the gradient, right or wrong; output gradients reach it."""

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 100.0

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = square(x)
    return (
        tape.gradient(y, x),
        tape.gradient(y, x, output_gradients=tf.constant([0.5, -1.0])),
        tape.jacobian(y, x),
    )


@parity
def test_without_a_tape(tf):
    """The function alone gives its value; the gradient function never runs."""

    @tf.custom_gradient
    def loud(x):
        print("forward")

        def grad(dy):
            print("backward")
            return dy

        return x * 2.0, grad

    loud(tf.constant(3.0))
    with tf.GradientTape():
        y = loud(tf.constant(4.0))
    return y


@parity
def test_python_in_the_gradient_function(tf):
    """It is Python: it prints, appends, branches on values and uses NumPy, once for each call."""
    seen = []

    @tf.custom_gradient
    def watched(x):
        def grad(dy):
            print("cotangent", dy.numpy())
            seen.append(float(dy))
            if dy > 2.0:
                return tf.constant(np.sqrt(dy.numpy()))
            return dy

        return x * 1.0, grad

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = watched(x) * x
        z = watched(y) + watched(x)
    return tape.gradient(y, x), tape.gradient(z, x), seen


@parity
def test_cotangents_from_several_uses(tf):
    """One result used twice: its gradient function runs once, with the sum."""
    calls = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            calls.append(dy)
            return dy * 2.0

        return x + 1.0, grad

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(x)
        z = y * y + 5.0 * y
    return tape.gradient(z, x), calls


@parity
def test_a_constant_argument(tf):
    """By an argument that is not watched the gradient is None; NumPy arrays and numbers are arguments as well."""

    @tf.custom_gradient
    def product(x, y):
        return x * y, lambda dy: (dy * y, dy * x)

    x, c = tf.Variable(3.0), tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = product(x, c), product(x, 5.0)
        w = product(x, np.float32(6.0))
    return tape.gradient(y, [x, c]), tape.gradient(z, x), tape.gradient(w, x)


@parity
def test_integers_as_arguments(tf):
    """An integer argument gets no gradient whatever is returned for it."""

    @tf.custom_gradient
    def power(x, n):
        return x ** tf.cast(n, tf.float32), lambda dy: (dy * 10.0, None)

    x, n = tf.Variable(3.0), tf.constant(2)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = power(x, n)
    return y, tape.gradient(y, [x, n])


# --- several arguments and results ----------------------------------------------------------------------------------


@parity
def test_several_arguments_and_results(tf):
    """One cotangent for each result, one gradient for each argument."""

    @tf.custom_gradient
    def f(x, y, z):
        def grad(da, db):
            print("da", da.numpy(), "db", db.numpy())
            return da * 1.0, db * 10.0, da * 100.0 + db

        return (x * y, y + z), grad

    x, y, z = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape(persistent=True) as tape:
        a, b = f(x, y, z)
        total = a * 2.0 + b * 3.0
    return tape.gradient(total, [x, y, z]), tape.gradient(a, [x, y, z]), tape.gradient([a, b], [x, y, z])


@parity
def test_an_unused_result(tf):
    """Its cotangent is zeros of its shape."""

    @tf.custom_gradient
    def f(x):
        return (
            x * 2.0,
            tf.stack([x, x]),
        ), lambda da, db: da + tf.reduce_sum(db) + 7.0 * tf.cast(tf.size(db), tf.float32)

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        a, _ = f(x)
    return tape.gradient(a, x)


@parity
def test_none_as_gradient(tf):
    """None says: not connected."""

    @tf.custom_gradient
    def f(x, y):
        return x * y, lambda dy: (dy * y, None)

    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = f(x, y)
        both = z + y
    return (
        tape.gradient(z, [x, y]),
        tape.gradient(both, [x, y]),
        tape.gradient(z, y, unconnected_gradients="zero"),
    )


@parity
def test_structured_results(tf):
    """A list or a tuple of results, as it was returned."""

    @tf.custom_gradient
    def as_list(x):
        return [x, x * 2.0], lambda a, b: a + b

    @tf.custom_gradient
    def as_tuple_of_one(x):
        return (x * 3.0,), lambda a: a

    @tf.custom_gradient
    def as_dict(x):
        return {"b": x * 2.0, "a": x}, lambda first, second: first + 10.0 * second

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        values = as_list(x), as_tuple_of_one(x), as_dict(x)
    return values, [tape.gradient(v, x) for v in values], tape.gradient(values[2]["a"], x)


@parity
def test_structured_arguments(tf):
    """A list among the arguments: the gradients come as one flat list."""

    @tf.custom_gradient
    def f(pair, z):
        x, y = pair
        return x * y * z, lambda dy: [dy * 1.0, dy * 2.0, dy * 3.0]

    x, y, z = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        w = f([x * 1.0, y * 1.0], z * 1.0)
    return w, tape.gradient(w, [x, y, z])


@parity
def test_keyword_arguments(tf):
    """Keywords reach the function and get no gradient."""

    @tf.custom_gradient
    def scaled(x, *, factor=2.0, verbose=False):
        if verbose:
            print("scaled by", factor)
        return x * factor, lambda dy: dy * factor * 10.0

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = scaled(x), scaled(x, factor=3.0, verbose=True)
    return y, z, tape.gradient(y, x), tape.gradient(z, x)


@parity
def test_a_tensor_in_a_keyword(tf):
    """A tensor in a keyword is a constant."""

    @tf.custom_gradient
    def f(x, factor=None):
        return x * factor, lambda dy: dy * factor

    x, factor = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(factor)
        y = f(x, factor=factor)
    return tape.gradient(y, [x, factor])


# --- variables ------------------------------------------------------------------------------------------------------


@parity
def test_variables_that_the_function_reads(tf):
    """They come in `variables`, and their gradients go back in a list of their own."""
    w, b = tf.Variable([2.0, 3.0], name="w"), tf.Variable(1.0, name="b")

    @tf.custom_gradient
    def layer(x):
        def grad(dy, variables=None):
            print([v.name for v in variables])
            return dy * w, [dy * 10.0, tf.reduce_sum(dy) * 100.0]

        return x * w + b, grad

    x = tf.Variable([4.0, 5.0])
    with tf.GradientTape() as tape:
        y = layer(x)
    return y, tape.gradient(y, [x, w, b])


@parity
def test_variables_as_arguments(tf):
    """A variable that is an argument is an argument, not one of the `variables`."""

    @tf.custom_gradient
    def f(x, v):
        return x * v, lambda dy: (dy * v, dy * 5.0)

    x, v = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(x, v)
    return tape.gradient(y, [x, v])


@parity
def test_variables_without_a_place_for_them(tf):
    """The gradient function must take `variables` if Variables are read."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy: dy * v

    def with_a_tape():
        x = tf.Variable(2.0)
        with tf.GradientTape():
            return f(x)

    return error_of(f, tf.constant(2.0)), error_of(with_a_tape)


@parity
def test_gradients_of_variables_that_are_missing(tf):
    """As many gradients as variables; a pair is wanted."""
    v, x = tf.Variable(3.0), tf.Variable(2.0)

    def ask(result):
        @tf.custom_gradient
        def f(x):
            def grad(dy, variables=None):
                return result

            return x * v, grad

        with tf.GradientTape() as tape:
            y = f(x)
        return error_of(tape.gradient, y, [x, v])

    one = tf.constant(1.0)
    return ask((one, [])), ask((one, [one, one])), ask((one, [one]))


@parity
def test_untrainable_and_closed_over_tensors(tf):
    """A Variable with trainable=False and a tensor of the outside are constants of the function."""
    scale, outside = tf.Variable(3.0, trainable=False), tf.constant(5.0)

    @tf.custom_gradient
    def f(x):
        return x * scale * outside, lambda dy: dy * 7.0

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(outside)
        y = f(x)
    return y, tape.gradient(y, [x, scale, outside])


@parity
def test_keywords_taken_as_a_whole(tf):
    """**kwargs takes `variables` too."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, **kwargs):
            return dy * v, [dy * 2.0 for _ in kwargs["variables"]]

        return x * v, grad

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = f(x)
    return tape.gradient(y, [x, v])


# --- methods and classes --------------------------------------------------------------------------------------------


@parity
def test_in_a_method(tf):
    """A function made in a method sees the instance."""

    class Layer:
        def __init__(self):
            self.scale = 3.0

        def __call__(self, x):
            @tf.custom_gradient
            def call(x):
                return x * self.scale, lambda dy: dy * self.scale * 10.0

            return call(x)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = Layer()(x)
    return y, tape.gradient(y, x)


@parity
def test_a_static_method(tf):
    """Decorated under staticmethod."""

    class Functions:
        @staticmethod
        @tf.custom_gradient
        def double(x):
            return x * 2.0, lambda dy: dy * 20.0

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = Functions.double(x), Functions().double(x)
    return tape.gradient(y, x), tape.gradient(z, x)


@parity
def test_a_decorated_method(tf):
    """Decorated as a method."""

    class Layer:
        scale = 3.0

        @tf.custom_gradient
        def __call__(self, x):
            return x * self.scale, lambda dy: dy * self.scale * 10.0

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = Layer()(x)
    return tape.gradient(y, x)


@parity
def test_the_name_is_kept(tf):
    """The decorated function keeps name and docstring, and may be called without parentheses of its own."""

    @tf.custom_gradient
    def documented(x):
        """What it does."""
        return x, lambda dy: dy

    return (
        documented.__name__,
        documented.__doc__,
        tf.custom_gradient(lambda x: (x * 2.0, lambda dy: dy))(tf.constant(1.0)),
    )


# --- higher orders --------------------------------------------------------------------------------------------------


@parity
def test_second_order_through_the_gradient_function(tf):
    """The gradient function is differentiated like other code."""

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * 3.0 * x**2 * 10.0

    x = tf.Variable(2.0)
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = cube(x)
            slope = first.gradient(y, x)
        curvature = second.gradient(slope, x)
    return y, slope, curvature, third.gradient(curvature, x)


@parity
def test_an_overridden_second_order(tf):
    """A custom gradient in the gradient function: each order has its own."""

    @tf.custom_gradient
    def op(x):
        def first_order(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x):
                def second_order(ddy):
                    return tf.constant(-1.0) * ddy * tf.cos(x)

                return -0.5 * tf.sin(x), second_order

            return dy * first_order_custom(x)

        return tf.cos(x) / 2.0, first_order

    x = tf.Variable(0.7)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = op(x)
        slope = inner.gradient(y, x)
    return y, slope, outer.gradient(slope, x)


@parity
def test_custom_inside_custom(tf):
    """A custom gradient used in another's forward function is never asked; in its gradient function it is."""

    @tf.custom_gradient
    def inner(x):
        return x * x, lambda dy: dy * 1000.0

    @tf.custom_gradient
    def outer(x):
        return inner(x) * 2.0, lambda dy: dy * inner(x)

    x = tf.Variable(3.0)
    with tf.GradientTape() as second:
        with tf.GradientTape() as first:
            y = outer(x)
        slope = first.gradient(y, x)
    return y, slope, second.gradient(slope, x)


@parity
def test_one_after_another(tf):
    """A chain of custom gradients."""

    @tf.custom_gradient
    def tenfold(x):
        return x * 1.0, lambda dy: dy * 10.0

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tenfold(tf.sin(tenfold(x))))
        slope = inner.gradient(y, x)
    return slope, outer.jacobian(slope, x)


@parity
def test_second_order_with_a_cotangent(tf):
    """The cotangent itself carries gradient: a product of slopes."""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * dy * x

    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.sin(f(x))
        slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


@parity
def test_second_order_by_variables(tf):
    """And through the variables' gradients."""
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * w * 2.0, [dy * x * x]

        return x * w, grad

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        by_x, by_w = inner.gradient(y, [x, w])
    return by_x, by_w, outer.gradient(by_x, [x, w]), outer.gradient(by_w, [x, w])


@parity
def test_a_hessian_through_custom_gradients(tf):
    """jacobian and batch_jacobian go through it too, row by row."""

    @tf.custom_gradient
    def f(x):
        return tf.sin(x), lambda dy: dy * tf.cos(x)

    x = tf.Variable([[0.1, 0.2], [0.3, 0.4]])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(f(x) ** 2)
        slope = inner.gradient(y, x)
        z = f(x) * x
    return outer.jacobian(slope, x), outer.batch_jacobian(z, x)


# --- errors ---------------------------------------------------------------------------------------------------------


@parity
def test_the_wrong_number_of_gradients(tf):
    """As many gradients as arguments."""

    def ask(gradients):
        @tf.custom_gradient
        def f(x, y):
            return x * y, lambda dy: gradients

        x, y = tf.Variable(2.0), tf.Variable(3.0)
        with tf.GradientTape() as tape:
            z = f(x, y)
        return error_of(tape.gradient, z, [x, y])

    one = tf.constant(1.0)
    return ask(one), ask([one]), ask([one, one, one]), ask([one, one])


@parity
def test_no_pair(tf):
    """The function returns a result and a function."""
    x = tf.constant(2.0)
    return [
        error_of(tf.custom_gradient(f), x)
        for f in (
            lambda x: x,
            lambda x: (x, x, x),
            lambda x: None,
            lambda x: (x,),
            lambda x: [x, lambda dy: dy],
        )
    ]


@parity
def test_the_users_own_exception(tf):
    """It comes through as it is, forward and backward; the tape goes on."""

    class Mine(Exception):
        pass

    @tf.custom_gradient
    def fails_backward(x):
        def grad(dy):
            raise Mine("backward")

        return x * 2.0, grad

    @tf.custom_gradient
    def fails_forward(x):
        raise Mine("forward")

    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = fails_backward(x)
        raised = error_of(fails_forward, x)
        z = x * 3.0
    return raised, error_of(tape.gradient, y, x), tape.gradient(z, x)


@parity(differs="a gradient of another shape than its argument is refused; TensorFlow does not look")
def test_a_gradient_of_another_shape(tf):
    """TensorFlow hands on what the function returns."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: tf.constant([1.0, 2.0, 3.0])

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = f(x)
    return error_of(tape.gradient, y, x)


@parity
def test_a_gradient_as_a_number(tf):
    """A NumPy array or a Python number is a gradient too."""

    @tf.custom_gradient
    def by_numpy(x):
        return x * 2.0, lambda dy: np.array([5.0, 6.0], "float32")

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = by_numpy(x)
    return tf.convert_to_tensor(tape.gradient(y, x))


# --- stop_gradient --------------------------------------------------------------------------------------------------


@parity
def test_stop_gradient(tf):
    """A constant, along one path only."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = x**2 + tf.stop_gradient(y**2)
        w = tf.stop_gradient(x) * x
        straight_through = x + tf.stop_gradient(tf.round(x * 1.3) - x)
    return (
        tape.gradient(z, {"x": x, "y": y}),
        tape.gradient(w, x),
        straight_through,
        tape.gradient(straight_through, x),
    )


@parity
def test_what_stop_gradient_takes(tf):
    """Anything that can be a tensor; the result is a new value."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        stopped = tf.stop_gradient(x)
        y = stopped * stopped
    return tf.stop_gradient([1.0, 2.0]), tf.stop_gradient(3), tape.gradient(y, x)


@parity(differs="the result of stop_gradient is a source like another; in TensorFlow nothing depends on it")
def test_the_gradient_by_what_was_stopped(tf):
    """As by any other intermediate."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        stopped = tf.stop_gradient(x)
        y = stopped * stopped
    return tape.gradient(y, stopped)


# --- recompute_grad -------------------------------------------------------------------------------------------------


@parity
def test_recompute_grad(tf):
    """Same value, same gradients; the function runs again in the backward pass."""
    calls = []

    @tf.recompute_grad
    def f(x, y):
        calls.append(1)
        return tf.sin(x * y) * x

    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = f(x, y)
    forward = len(calls)
    return z, tape.gradient(z, [x, y]), forward, len(calls)


@parity
def test_recompute_grad_of_variables(tf):
    """The variables that it reads get their gradients."""
    w, b = tf.Variable([2.0, 3.0]), tf.Variable(0.5)

    def layer(x):
        return tf.tanh(x * w + b)

    x = tf.Variable([0.1, 0.2])
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(layer)(x) * x
    return y, tape.gradient(y, [x, w, b])


@parity
def test_recompute_grad_of_python(tf):
    """On values it is Python both times: it may look at them, and be given one value twice."""

    @tf.recompute_grad
    def f(x, y):
        if tf.reduce_sum(x) > 0.0:
            return x * x * y
        return y

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * 1.0
        z = f(y, y)
    return z, tape.gradient(z, [x, y])


@parity(
    differs="recompute_grad computes with the values that its variables had; TensorFlow with those they have by then"
)
def test_recompute_grad_after_an_assignment(tf):
    """The variable has changed since."""
    w, x = tf.Variable(3.0), tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.recompute_grad(lambda a: a * w)(x)
    w.assign(100.0)
    return tape.gradient(y, x)


@parity
def test_recompute_grad_nested(tf):
    """One inside another, and one after another."""
    w = tf.Variable(2.0)

    @tf.recompute_grad
    def inner(x):
        return tf.sin(x) * w

    @tf.recompute_grad
    def outer(x):
        return inner(x) * inner(x * 2.0)

    x = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        y = outer(inner(x))
    return y, tape.gradient(y, [x, w])


@parity(differs="recompute_grad can be differentiated twice; TensorFlow raises NotImplementedError")
def test_recompute_grad_at_second_order(tf):
    """The gradient of the gradient."""
    f = tf.recompute_grad(lambda x: tf.reduce_sum(x**3))
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(x)
        slope = inner.gradient(y, x)
    return slope, error_of(outer.gradient, slope, x)


@parity
def test_recompute_grad_of_several_results(tf):
    """A structure of results, keywords, an integer argument."""

    @tf.recompute_grad
    def f(x, n, scale=1.0):
        return [x * scale, x ** tf.cast(n, tf.float32)]

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        a, b = f(x, tf.constant(3), scale=5.0)
        y = a * b
    return y, tape.gradient(y, x)


# --- grad_pass_through ----------------------------------------------------------------------------------------------


@parity
def test_grad_pass_through(tf):
    """The gradient of the identity, whatever the function does."""
    x = tf.Variable(1.3, name="x")
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(tf.round)(x * 2.0) * x
    return y, tape.gradient(y, x)


@parity
def test_grad_pass_through_a_variable(tf):
    """The variable inside is not reached: its gradient is None."""
    z = tf.Variable(3.0)
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(lambda a: z.assign(a * 2.0) * 1.0)(x)
        w = y * 4.0
    return w, z, tape.gradient(w, [x, z])


@parity
def test_a_variable_as_an_argument_that_changes_before_the_gradient(tf):
    """Eagerly the backward function sees what the variable holds then, in a `function` what it held when it was passed."""

    def make():
        v = tf.Variable(0.75)

        @tf.custom_gradient
        def square(x):
            return x * x, lambda cotangent: cotangent * 3.0 * x

        def step():
            with tf.GradientTape(persistent=True) as tape:
                y, z = square(v) * 1.0, square(tf.identity(v)) * 1.0
                v.assign_sub(1.0)
            return tape.gradient(y, v), tape.gradient(z, v), y

        return step

    return make()(), tf.function(make())()
