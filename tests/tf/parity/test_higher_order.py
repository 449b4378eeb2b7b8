"""Higher orders: Hessians, Newton's method, Jacobians of gradients and gradients of Jacobians, penalties."""

import numpy as np
from harness import parity


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


# --- Hessians -------------------------------------------------------------------------------------------------------


@parity
def test_the_hessian_of_a_vector(tf):
    """The Jacobian, on an outer tape, of a gradient."""
    x = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_prod(x) + tf.reduce_sum(x**4)
        slope = inner.gradient(y, x)
    return slope, outer.jacobian(slope, x)


@parity
def test_the_hessian_of_a_layer(tf):
    """By a kernel it has four axes and is symmetric."""
    x = tf.constant(draw(7, 5))
    first, second = tf.Variable(draw(5, 4, seed=1)), tf.Variable(draw(4, 3, seed=2))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.nn.relu(tf.nn.relu(x @ first) @ second) ** 2)
        slope = inner.gradient(loss, first)
    hessian = outer.jacobian(slope, first)
    matrix = tf.reshape(hessian, [20, 20])
    return hessian.shape, hessian, tf.reduce_max(tf.abs(matrix - tf.transpose(matrix))) < 1e-5


@parity(rtol=1e-3, atol=1e-4)
def test_a_newton_step(tf):
    """A step of Newton's method on a layer's kernel, by the Hessian."""
    x, kernel, wanted = (
        tf.constant(draw(7, 3)),
        tf.Variable(draw(3, 2, seed=1)),
        tf.constant(draw(7, 2, seed=2)),
    )

    def step():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_mean((tf.tanh(x @ kernel) - wanted) ** 2) + 0.5 * tf.reduce_sum(kernel**2)
            slope = inner.gradient(loss, kernel)
        hessian = outer.jacobian(slope, kernel)
        count = tf.reduce_prod(kernel.shape)
        matrix, vector = tf.reshape(hessian, [count, count]), tf.reshape(slope, [count, 1])
        update = tf.linalg.solve(matrix + tf.eye(matrix.shape[0]) * 1e-3, vector)
        kernel.assign_sub(tf.reshape(update, kernel.shape))
        return loss

    return [step(), step(), step()], kernel


@parity
def test_the_blocks_of_a_hessian(tf):
    """Of several parameters: each gradient with respect to each parameter."""
    w, b = tf.Variable([[0.3, -0.2], [0.1, 0.7]]), tf.Variable([0.1, -0.1])
    x = tf.constant([[1.0, -2.0], [0.5, 1.5]])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(tf.sin(x @ w + b) ** 2)
        slopes = inner.gradient(loss, [w, b])
    return [[outer.jacobian(slope, parameter) for parameter in (w, b)] for slope in slopes]


@parity
def test_the_hessian_by_two_jacobians(tf):
    """The Jacobian of a Jacobian, also of a vector: one more axis."""
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            y = tf.stack([x[0] ** 2 * x[1], tf.sin(x[0] * x[1]), x[1]])
            z = x[0] * x[1] ** 3
        rows, slope = inner.jacobian(y, x), inner.jacobian(z, x)
    return rows, outer.jacobian(rows, x), outer.jacobian(slope, x)


@parity(rtol=3e-5)  # near the ends 1 - tanh(3 x)² loses two digits
def test_the_curvature_of_a_curve(tf):
    """The second derivative at many points at once, by one scalar shift."""
    x, shift = tf.linspace(-1.0, 1.0, 21), tf.Variable(0.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.tanh(3.0 * (x + shift))
        slope = inner.jacobian(y, shift)
    return slope, outer.jacobian(slope, shift)


@parity
def test_a_hessian_by_the_diagonal(tf):
    """The Laplacian from one tape for each axis."""
    x = tf.constant([0.3, 0.6, 0.9])
    found = []
    for i in range(3):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.exp(x[0]) * tf.cos(x[1]) * x[2] ** 2
            slope = inner.gradient(y, x)[i]
        found.append(outer.gradient(slope, x)[i])
    return found, tf.add_n(found)


# --- derivatives of each other --------------------------------------------------------------------------------------


@parity
def test_the_gradient_of_a_jacobian(tf):
    """A penalty on the Jacobian's norm, differentiated with respect to the weights."""
    x, w = tf.constant([0.2, -0.4]), tf.Variable(draw(2, 3))
    with tf.GradientTape() as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            y = tf.tanh(tf.linalg.matvec(w, x, transpose_a=True))
        rows = inner.jacobian(y, x)
        penalty = tf.reduce_sum(rows**2)
    return rows, penalty, outer.gradient(penalty, w)


@parity
def test_the_gradient_of_a_batch_jacobian(tf):
    """The same for each example: the penalty of a contractive autoencoder."""
    x, w = tf.constant(draw(4, 3)), tf.Variable(draw(3, 2, seed=1))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            code = tf.nn.sigmoid(x @ w)
        penalty = tf.reduce_mean(tf.reduce_sum(inner.batch_jacobian(code, x) ** 2, axis=[1, 2]))
    return penalty, outer.gradient(penalty, w)


@parity
def test_the_gradient_of_a_forward_jacobian(tf):
    """A Jacobian of one column, which is taken forward, differentiated backward."""
    x, s, w = tf.constant(draw(30)), tf.Variable(0.3), tf.Variable(1.5)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.sin(x * s * w)
        column = inner.jacobian(y, s)
        z = tf.reduce_sum(column**2)
    return column, outer.gradient(z, [s, w])


@parity
def test_the_log_of_a_determinant(tf):
    """A change of variables: the log-determinant of a Jacobian, differentiated."""
    x, w = tf.constant([0.3, -0.7]), tf.Variable([[1.0, 0.2], [-0.3, 0.8]])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x + tf.tanh(tf.linalg.matvec(w, x))
        log_det = tf.math.log(tf.abs(tf.linalg.det(inner.jacobian(y, x))))
    return log_det, outer.gradient(log_det, w)


@parity
def test_zeros_of_an_inner_jacobian(tf):
    """Zeros of what is not connected are constants outside."""
    x, y = tf.Variable([1.0, 2.0]), tf.Variable([3.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            z = x**3
        by_x, by_y = inner.jacobian(z, [x, y], unconnected_gradients="zero")
        total = tf.reduce_sum(by_x) + tf.reduce_sum(by_y)
    return by_y, outer.gradient(total, [x, y])


@parity
def test_the_third_order(tf):
    """Three tapes: gradient, Jacobian, Jacobian."""
    x = tf.Variable([0.5, 1.5])
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = tf.reduce_sum(tf.sin(x)) * tf.reduce_prod(x)
            slope = first.gradient(y, x)
        hessian = second.jacobian(slope, x)
    return slope, hessian, third.jacobian(hessian, x)


@parity
def test_a_series(tf):
    """The Taylor coefficients of a function, by one tape for each order."""

    def derivatives(order, x):
        if order == 0:
            return [tf.exp(x) * tf.sin(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            lower = derivatives(order - 1, x)
        return lower + [tape.gradient(lower[-1], x)]

    return derivatives(4, tf.constant(0.7))


@parity
def test_a_constant_slope(tf):
    """The second derivative of a linear function is None; of a product of two variables it is by the other."""
    x, y = tf.Variable([2.0, 3.0]), tf.Variable([4.0, 5.0])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            line, product = 3.0 * x, x * y
        slope, by_x = inner.gradient(line, x), inner.gradient(product, x)
    return outer.jacobian(slope, x), outer.jacobian(by_x, [x, y])


# --- input gradients ------------------------------------------------------------------------------------------------


@parity
def test_input_gradient_regularisation(tf):
    """The norm of the gradient with respect to the input, differentiated with respect to the layer."""
    x, kernel, bias = tf.constant(draw(7, 5)), tf.Variable(draw(5, 10, seed=1)), tf.Variable(draw(10, seed=2))
    with tf.GradientTape() as outer:
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(x)
            out = tf.reduce_sum(tf.nn.relu(x @ kernel + bias) ** 2)
        slope = inner.gradient(out, x)
        size = tf.norm(slope)
    found = outer.gradient(size, [kernel, bias])
    return slope, size, [g.shape for g in found], found


@parity
def test_meta_learning(tf):
    """The loss after two steps of descent, differentiated with respect to where they began."""
    start, x, y = tf.Variable([0.5, -0.5]), tf.constant(draw(6, 2)), tf.constant(draw(6, seed=1))

    def loss(w):
        return tf.reduce_mean((tf.linalg.matvec(x, w) - y) ** 2)

    with tf.GradientTape() as outer:
        w = start * 1.0
        for _ in range(2):
            with tf.GradientTape() as inner:
                inner.watch(w)
                error = loss(w)
            w = w - 0.1 * inner.gradient(error, w)
        after = loss(w)
    return after, outer.gradient(after, start)


# --- levels that do not record --------------------------------------------------------------------------------------


@parity
def test_the_outer_tape_stopped(tf):
    """With the outer tape stopped, the inner Jacobian is a constant to it."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        with outer.stop_recording():
            rows = inner.jacobian(y, x)
        z = tf.linalg.matvec(rows, x)
    return outer.jacobian(z, x)


@parity
def test_the_inner_tape_stopped(tf):
    """What the inner tape does not see is a constant to it, but not to the outer one."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            with inner.stop_recording():
                factor = x**2
            y = tf.reduce_sum(factor * x)
        slope = inner.gradient(y, x)
    return slope, outer.jacobian(slope, x)


@parity
def test_an_outer_tape_that_watches_what_it_is_told(tf):
    """watch_accessed_variables=False outside: the inner tape's variables are constants there."""
    x, y = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(watch_accessed_variables=False) as outer:
        outer.watch(y)
        with tf.GradientTape() as inner:
            z = tf.reduce_sum(x**2 * y**2)
        slopes = inner.gradient(z, [x, y])
    return slopes, outer.jacobian(slopes[0], [x, y])


@parity
def test_three_levels_with_the_middle_one_stopped(tf):
    """Each level records for itself."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = x**4
            with second.stop_recording():
                slope = first.gradient(y, x)
            z = slope * x
        middle = second.gradient(z, x)
    return slope, middle, third.gradient(middle, x)


@parity
def test_a_stopped_gradient_inside(tf):
    """stop_gradient around a slope: a constant at the next order."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = x**3
        slope = inner.gradient(y, x)
        stopped = tf.stop_gradient(slope) * x
    return outer.jacobian(stopped, x), outer.jacobian(slope, x)


# --- a tape inside its own block ------------------------------------------------------------------------------------


@parity(warns=True)
def test_a_persistent_tape_inside_its_block(tf):
    """It records its own gradients: second and third order from one tape."""
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x**4
        first = tape.gradient(y, x)
        second = tape.gradient(first, x)
        third = tape.gradient(second, x)
    return first, second, third, tape.gradient(third, x)


@parity(warns=True)
def test_a_hessian_inside_the_block(tf):
    """And its own Jacobians."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(x) * tf.reduce_prod(x)
        slope = tape.gradient(y, x)
        hessian = tape.jacobian(slope, x)
        z = tf.reduce_sum(hessian * hessian)
    return hessian, tape.gradient(z, x)


@parity
def test_the_curvature_of_a_kink(tf):
    """Straight on both sides, but for some operations connected."""
    x = tf.Variable([-1.0, 2.0])
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape(persistent=True) as inner:
            values = [
                tf.nn.relu(x),
                tf.abs(x),
                tf.maximum(x, 0.0),
                tf.nn.leaky_relu(x),
                tf.where(x > 0.0, x, 0.0),
            ]
        slopes = [inner.gradient(y, x) for y in values]
    return [outer.gradient(slope, x) for slope in slopes]
