"""`ForwardAccumulator`: derivatives along a tangent."""

import numpy as np
from harness import error_of, parity

# --- what it computes -----------------------------------------------------------------------------------------------


@parity
def test_the_product_with_a_tangent(tf):
    """One tensor, one tangent; asked outside the block, as often as one likes."""
    x = tf.constant([[2.0, 3.0], [1.0, 4.0]])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([[1.0, 0.0], [0.0, -1.0]])) as acc:
        y = tf.reduce_sum(x * x, axis=1)
        z = tf.sin(y)
    return acc.jvp(y), acc.jvp(z), acc.jvp(y)


@parity
def test_a_variable(tf):
    """A variable as primal."""
    v = tf.Variable([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant([10.0, 20.0])) as acc:
        y = v**3
    return acc.jvp(y)


@parity
def test_several_primals(tf):
    """A list, a tuple, a dict or a nest of primals: the products add up."""
    a, b = tf.constant([1.0, 2.0]), tf.constant(3.0)
    ta, tb = tf.constant([0.5, -1.0]), tf.constant(2.0)
    found = []
    for primals, tangents in [
        ([a, b], [ta, tb]),
        ((a, b), (ta, tb)),
        ({"a": a, "b": b}, {"a": ta, "b": tb}),
        ([a, [b]], [ta, [tb]]),
    ]:
        with tf.autodiff.ForwardAccumulator(primals, tangents) as acc:
            y = a * b + tf.sin(b)
        found.append(acc.jvp(y))
    return found


@parity
def test_a_structure_of_results(tf):
    """The structure that was asked for comes back."""
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y, z = x * x, [x * 3.0, (x, tf.constant(1.0))]
    return acc.jvp([y, z]), acc.jvp({"y": y, "z": z}), acc.jvp([])


@parity
def test_the_primal_itself(tf):
    """Its product is its tangent."""
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([3.0, 4.0])) as acc:
        pass
    return acc.jvp(x)


@parity
def test_columns_of_a_jacobian(tf):
    """Unit tangents give the columns."""
    x = tf.constant([1.0, 2.0, 3.0])
    columns = []
    for unit in np.eye(3, dtype="float32"):
        with tf.autodiff.ForwardAccumulator(x, tf.constant(unit)) as acc:
            y = tf.stack([x[0] * x[1], tf.exp(x[2] / 3.0)])
        columns.append(acc.jvp(y))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack([x[0] * x[1], tf.exp(x[2] / 3.0)])
    return tf.stack(columns, axis=1), tape.jacobian(y, x)


@parity
def test_many_operations(tf):
    """Products of matrices, reductions, gathers, kinks."""
    x = tf.Variable([[1.0, -2.0], [0.5, 2.0]])
    direction = tf.constant([[1.0, 0.0], [2.0, -1.0]])
    with tf.autodiff.ForwardAccumulator(x, direction) as acc:
        values = [
            x @ tf.transpose(x),
            tf.nn.softmax(x),
            tf.nn.relu(x),
            tf.reduce_max(x, axis=0),
            tf.gather(x, [1, 0, 1]),
            tf.linalg.inv(x),
            tf.concat([x, x], 0)[::2],
            tf.where(x > 0.0, x * x, -x),
            tf.math.cumsum(x, axis=1),
            tf.split(x, 2, axis=1),
        ]
    return acc.jvp(values)


@parity
def test_in_double_precision(tf):
    """float64 all the way."""
    x = tf.constant([1.0, 2.0], tf.float64)
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, -1.0], tf.float64)) as acc:
        y = tf.exp(x) / x
    return acc.jvp(y)


# --- what is not connected ------------------------------------------------------------------------------------------


@parity
def test_unconnected(tf):
    """None, or zeros of the value's shape."""
    x, other = tf.constant(2.0), tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y, z = x * 2.0, other * 3.0
    return (
        acc.jvp(z),
        acc.jvp([y, z]),
        acc.jvp([y, z], unconnected_gradients="zero"),
        acc.jvp(z, unconnected_gradients=tf.UnconnectedGradients.ZERO),
        acc.jvp(other),
        error_of(acc.jvp, z, unconnected_gradients="nothing"),
    )


@parity
def test_stop_gradient(tf):
    """It stops tangents as well."""
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = tf.stop_gradient(x * x) * x
        z = tf.stop_gradient(x)
    return acc.jvp(y), acc.jvp(z)


@parity
def test_integers_in_the_way(tf):
    """Nothing passes through integers."""
    x = tf.constant(2.5)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        whole = tf.cast(x, tf.int32)
        y = tf.cast(whole, tf.float32) * 2.0
    return acc.jvp(whole), acc.jvp(y)


@parity
def test_other_variables(tf):
    """A variable that is no primal has no tangent."""
    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y, z = x * v, v * v
    return acc.jvp([y, z, v])


@parity
def test_only_in_the_block(tf):
    """What is computed before or after has no tangent."""
    x = tf.constant(2.0)
    before = x * x
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = before * x
    after = y * x
    return acc.jvp([before, y, after])


@parity
def test_asked_inside_the_block(tf):
    """A product may be asked inside; it is no longer part of what is recorded."""
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        y = x**3
        slope = acc.jvp(y)
        z = y * slope
    return slope, acc.jvp(slope), acc.jvp(z)


@parity
def test_entered_again(tf):
    """It goes on where it was; entered twice at once it is refused."""
    x = tf.constant(2.0)
    acc = tf.autodiff.ForwardAccumulator(x, tf.constant(1.0))
    with acc:
        y = x * x
        twice = error_of(acc.__enter__)
    with acc:
        z = y * x
    return twice, acc.jvp(y), acc.jvp(z)


@parity
def test_left_without_being_entered(tf):
    """Nothing happens."""
    acc = tf.autodiff.ForwardAccumulator(tf.constant(2.0), tf.constant(1.0))
    return acc.__exit__(None, None, None)


@parity
def test_before_the_block(tf):
    """The primal has its tangent from the beginning."""
    x = tf.constant(2.0)
    acc = tf.autodiff.ForwardAccumulator(x, tf.constant(1.0))
    y = x * x
    return acc.jvp(y), acc.jvp(x)


@parity
def test_an_exception_in_the_block(tf):
    """What was computed before it keeps its tangent."""
    x, made = tf.constant(2.0), []

    def fail(acc):
        with acc:
            made.append(x * x)
            raise KeyError("mine")

    acc = tf.autodiff.ForwardAccumulator(x, tf.constant(1.0))
    return error_of(fail, acc), acc.jvp(made[0])


# --- variables that change ------------------------------------------------------------------------------------------


@parity
def test_a_variable_assigned_to(tf):
    """What a primal variable is assigned in the block carries the tangent of the new value."""
    v, x = tf.Variable(2.0), tf.constant(5.0)
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)) as acc:
        before = v * v
        v.assign(x * 2.0)
        after = v * v
    return acc.jvp([before, after]), v


# --- what is refused ------------------------------------------------------------------------------------------------


@parity
def test_tangents_that_do_not_fit(tf):
    """Structure and dtype are the primal's."""
    x = tf.constant([1.0, 2.0])
    make = tf.autodiff.ForwardAccumulator
    return (
        error_of(make, x, [tf.constant([1.0, 2.0])]),
        error_of(make, [x, tf.constant(1.0)], [x]),
        error_of(make, x, tf.constant([1, 2])),
        error_of(make, [x, x], [x, x]),
    )


@parity(differs="a tangent has its primal's shape; TensorFlow does not look")
def test_tangents_of_another_shape(tf):
    """They cannot be tangents of it."""
    x = tf.constant([1.0, 2.0])
    make = tf.autodiff.ForwardAccumulator
    return error_of(make, x, tf.constant(1.0)), error_of(make, x, tf.constant([1.0, 2.0, 3.0]))


@parity(warns=True)
def test_an_integer_primal(tf):
    """It is reported and has no tangent."""
    n = tf.constant(2)
    with tf.autodiff.ForwardAccumulator(n, tf.constant(1)) as acc:
        y = tf.cast(n, tf.float32) * 2.0
    return acc.jvp(y)


# --- over and under each other --------------------------------------------------------------------------------------


@parity
def test_nested_accumulators(tf):
    """The derivative of a derivative, along one direction and another."""
    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.constant(10.0)) as inner:
            y = x**4
        slope = inner.jvp(y)
    return slope, outer.jvp(y), outer.jvp(slope)


@parity
def test_two_accumulators_side_by_side(tf):
    """Each has its own direction."""
    x = tf.constant([1.0, 2.0])
    one, two = tf.constant([1.0, 0.0]), tf.constant([0.0, 1.0])
    with tf.autodiff.ForwardAccumulator(x, one) as first, tf.autodiff.ForwardAccumulator(x, two) as second:
        y = tf.reduce_prod(x) * x
    return first.jvp(y), second.jvp(y)


@parity
def test_forward_over_reverse(tf):
    """A Hessian-vector product: the tangent of a gradient."""
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, -1.0])) as acc:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sin(x) ** 2) * tf.reduce_prod(x)
        slope = tape.gradient(y, x)
    return slope, acc.jvp(y), acc.jvp(slope)


@parity
def test_reverse_over_forward(tf):
    """The gradient of a tangent: the same product."""
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, -1.0])) as acc:
            y = tf.reduce_sum(tf.sin(x) ** 2) * tf.reduce_prod(x)
        along = acc.jvp(y)
    return along, tape.gradient(along, x)


@parity
def test_the_jacobian_of_a_tangent(tf):
    """And the tangent of a Jacobian."""
    x = tf.constant([1.0, 2.0])
    direction = tf.constant([1.0, -1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, direction) as acc:
            y = x**3 * x[::-1]
        along = acc.jvp(y)
    with tf.autodiff.ForwardAccumulator(x, direction) as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3 * x[::-1]
        rows = inner.jacobian(y, x)
    return tape.jacobian(along, x), outer.jvp(rows)


@parity
def test_a_layer_forward_over_reverse(tf):
    """For a training step's loss, along all its parameters."""
    x, y = tf.constant([[1.0, -2.0], [0.5, 1.5]]), tf.constant([[1.0], [0.0]])
    parameters = [tf.Variable([[0.3], [-0.2]]), tf.Variable([0.1])]
    with tf.autodiff.ForwardAccumulator(parameters, [tf.ones_like(p) for p in parameters]) as acc:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.nn.sigmoid(x @ parameters[0] + parameters[1]) - y) ** 2)
        slopes = tape.gradient(loss, parameters)
    return acc.jvp(slopes), acc.jvp(loss)


@parity
def test_a_tape_that_is_stopped(tf):
    """Stopping a tape does not stop the accumulator."""
    x = tf.Variable(2.0)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        with tf.GradientTape() as tape:
            with tape.stop_recording():
                y = x**3
            z = y * x
    return tape.gradient(z, x), acc.jvp(y), acc.jvp(z)


# --- through what stands in the way ---------------------------------------------------------------------------------


@parity
def test_through_a_custom_gradient(tf):
    """Its gradient function tells the tangent where nothing else can."""

    @tf.custom_gradient
    def sine(x):
        return tf.constant(np.sin(x.numpy())), lambda dy: dy * tf.cos(x)

    x = tf.constant([2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, -1.0])) as acc:
        y = sine(x) * x
    return acc.jvp(y)


@parity(differs="forward mode keeps to a custom gradient as reverse mode does; TensorFlow looks into the function")
def test_through_a_custom_gradient_of_operations(tf):
    """The gradient function, or what the operations in the function are."""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 10.0 * x

    x = tf.constant([2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, -1.0])) as acc:
        y = f(x) * x
    return acc.jvp(y)


@parity
def test_through_a_custom_gradient_with_variables(tf):
    """Along the variables that it reads."""
    w = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * w, [dy * x]

        return x * w, grad

    x = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator([x, w], [tf.constant(1.0), tf.constant(1.0)]) as acc:
        y = f(x)
    return acc.jvp(y)


@parity
def test_through_control_flow(tf):
    """Through cond, while_loop, map_fn and scan."""
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0, -1.0])) as acc:
        branch = tf.cond(x[0] > 0.0, lambda: x * x, lambda: x)
        _, loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [tf.constant(0), x])
        mapped = tf.map_fn(lambda a: a**2, x)
        scanned = tf.scan(lambda a, b: a * b, x)
        folded = tf.foldl(lambda a, b: a * b, x)
    return acc.jvp([branch, loop, mapped, scanned, folded])


@parity
def test_along_complex_numbers(tf):
    """The tangent of a complex function is not conjugated."""
    z = tf.constant([1.0 + 2.0j], tf.complex64)
    with tf.autodiff.ForwardAccumulator(z, tf.constant([1.0 - 1.0j], tf.complex64)) as acc:
        y = z * z
        real = tf.math.real(z * z)
    return acc.jvp([y, real])


@parity
def test_a_custom_gradient_that_is_not_linear_in_a_function(tf):
    """Its tangent is that of its transpose, taken where all cotangents are one."""

    @tf.custom_gradient
    def clipped(x):
        return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.5)

    @tf.custom_gradient
    def cubed(x):
        return tf.identity(x), lambda upstream: upstream * upstream * upstream * x

    x = tf.constant([1.0, 2.0, -3.0])
    found = []
    for f in (tf.function(lambda x: clipped(x)), tf.function(lambda x: cubed(x))):
        for tangent in ([1.0, 1.0, 1.0], [2.0, 0.0, 1.0]):
            with tf.autodiff.ForwardAccumulator(x, tf.constant(tangent)) as accumulator:
                y = f(x)
            found.append(accumulator.jvp(y))
    return found
