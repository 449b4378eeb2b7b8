"""Complex numbers: TensorFlow's gradient of a function of z is the conjugate of JAX's."""

import numpy as np
from harness import error_of, parity


def z_of(tf, dtype="complex64"):
    return tf.constant([1.0 + 2.0j, -0.5 + 0.3j], dtype)


# --- holomorphic functions ------------------------------------------------------------------------------------------


@parity
def test_holomorphic_functions(tf):
    """The conjugate of the complex derivative."""
    z = z_of(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        values = [
            z * z,
            z**3,
            tf.exp(z),
            tf.sin(z),
            tf.math.log(z),
            tf.sqrt(z),
            1.0 / z,
            tf.tanh(z),
            (2.0 + 1.0j) * z,
        ]
    return [tape.gradient(y, z) for y in values]


@parity
def test_in_double_precision(tf):
    """complex128 likewise."""
    z = z_of(tf, "complex128")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = tf.exp(z * z) / z
        loss = tf.abs(y)
    return tape.gradient(y, z), tape.gradient(loss, z), tape.jacobian(y, z)


@parity
def test_functions_that_are_not_holomorphic(tf):
    """Conjugates, moduli and parts."""
    z = z_of(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        values = [
            tf.math.conj(z),
            z * tf.math.conj(z),
            tf.math.real(z),
            tf.math.imag(z),
            tf.abs(z),
            tf.abs(z) ** 2,
            tf.math.angle(z),
            tf.math.real(z * z) * tf.math.imag(z),
            tf.complex(tf.math.imag(z), tf.math.real(z)),
        ]
    return [tape.gradient(y, z) for y in values]


@parity
def test_the_modulus_at_zero(tf):
    """A kink: zero."""
    z = tf.constant([0.0 + 0.0j, 1.0 + 0.0j], tf.complex64)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = tf.abs(z)
    return tape.gradient(y, z)


# --- real and complex together --------------------------------------------------------------------------------------


@parity
def test_a_real_loss_of_a_complex_source(tf):
    """The direction of steepest ascent: what descent subtracts."""
    z, wanted = (
        tf.Variable([1.0 + 2.0j, 3.0 - 1.0j], dtype=tf.complex64),
        tf.constant([0.0 + 1.0j, 1.0 + 0.0j], tf.complex64),
    )
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.abs(z - wanted) ** 2)
        slope = tape.gradient(loss, z)
        z.assign_sub(0.25 * slope)
        losses.append(loss)
    return losses, slope, z


@parity
def test_a_complex_loss_of_a_real_source(tf):
    """The gradient by a real source is real."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        z = tf.complex(x, x**2)
        y = tf.exp(z) * (1.0 + 2.0j)
        w = tf.cast(x, tf.complex64) * (3.0 - 2.0j)
    return tape.gradient(y, x), tape.gradient(w, x), tape.gradient(y, z)


@parity
def test_real_and_complex_parameters(tf):
    """Each in its own dtype."""
    z, x = tf.Variable([1.0 + 2.0j, 0.5 - 1.0j], dtype=tf.complex64), tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = z * tf.cast(x, tf.complex64) + tf.complex(x, 0.5 * x)
        loss = tf.reduce_sum(tf.math.real(y) ** 2 + tf.math.imag(y))
    return tape.gradient(loss, {"z": z, "x": x})


@parity
def test_polar_coordinates(tf):
    """From modulus and angle to a complex number and back."""
    r, phi = tf.Variable([1.0, 2.0]), tf.Variable([0.3, -1.0])
    with tf.GradientTape(persistent=True) as tape:
        z = tf.complex(r * tf.cos(phi), r * tf.sin(phi))
        w = z * z
        modulus, angle = tf.abs(w), tf.math.angle(w)
    return tape.gradient(modulus, [r, phi]), tape.gradient(angle, [r, phi]), tape.gradient(w, [r, phi, z])


@parity
def test_matrices(tf):
    """Products, adjoints, inverses and sums."""
    a = tf.constant([[1.0 + 1.0j, 2.0], [0.5j, 3.0 - 1.0j]], tf.complex64)
    b = tf.constant([[0.3j, 1.0], [1.0 - 1.0j, 0.2]], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        values = [
            a @ b,
            tf.linalg.matmul(a, b, adjoint_a=True),
            tf.linalg.adjoint(a) * b,
            tf.linalg.inv(a),
            tf.reduce_sum(a * b, axis=0),
            tf.einsum("ij,kj->ik", a, tf.math.conj(b)),
        ]
        norm = tf.reduce_sum(tf.abs(a @ b) ** 2)
    return [tape.gradient(y, [a, b], unconnected_gradients="zero") for y in values], tape.gradient(norm, [a, b])


@parity
def test_reductions(tf):
    """Product, mean and where."""
    z = z_of(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        values = [
            tf.reduce_prod(z),
            tf.reduce_mean(z),
            tf.where([True, False], z * z, z),
            tf.concat([z, tf.math.conj(z)], 0) ** 2,
        ]
    return [tape.gradient(y, z) for y in values]


# --- what one may ask -----------------------------------------------------------------------------------------------


@parity
def test_output_gradients(tf):
    """Complex, as TensorFlow has them."""
    z = z_of(tf)
    weights = tf.constant([2.0 - 1.0j, 1.0j], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y, real = z * z, tf.math.real(z * z)
    return (
        tape.gradient(y, z, output_gradients=weights),
        tape.gradient([y, real], z, output_gradients=[weights, tf.constant([1.0, 3.0])]),
        error_of(tape.gradient, y, z, output_gradients=tf.constant([1.0, 2.0])),
    )


@parity
def test_unconnected(tf):
    """None, or zeros of the source's dtype."""
    z, w = z_of(tf), tf.constant([1.0 + 1.0j], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([z, w])
        y = tf.math.real(z)
        stopped = tf.math.real(tf.stop_gradient(z))
    return (
        tape.gradient(y, [z, w]),
        tape.gradient(y, [z, w], unconnected_gradients="zero"),
        tape.gradient(stopped, z),
    )


@parity
def test_a_complex_target_and_itself(tf):
    """By itself it is one."""
    z = z_of(tf)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    return tape.gradient([y, z], [z, y])


@parity
def test_jacobians(tf):
    """Row by row what gradient() gives, for complex and real targets and sources."""
    z, x = z_of(tf), tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([z, x])
        holomorphic = z * tf.reduce_sum(z)
        modulus = tf.abs(z) * tf.math.real(z[0])
        from_real = tf.complex(x, x * x) * (1.0 + 2.0j)
    return tape.jacobian(holomorphic, z), tape.jacobian(modulus, z), tape.jacobian(from_real, x)


@parity
def test_a_scalar_source_under_a_complex_curve(tf):
    """Also where one column would do."""
    w, t = tf.constant(0.5 + 1.0j, tf.complex64), tf.constant([0.0, 1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([w, t])
        y = tf.exp(w * tf.cast(t, tf.complex64))
        real = tf.math.real(y)
    return tape.jacobian(y, w), tape.jacobian(real, w), tape.jacobian(y, t)


@parity
def test_batch_jacobians(tf):
    """And example by example."""
    z = tf.constant([[1.0 + 2.0j, 0.5j], [-1.0, 2.0 - 1.0j]], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = z * tf.reduce_sum(z, axis=1, keepdims=True)
        real = tf.math.imag(y)
    return tape.batch_jacobian(y, z), tape.batch_jacobian(real, z)


@parity
def test_second_order(tf):
    """The gradient of a gradient, by the same convention."""
    z = z_of(tf)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(z)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(z)
            cube, energy = z**3, tf.reduce_sum(tf.abs(z * z) ** 2)
        slope, ascent = inner.gradient(cube, z), inner.gradient(energy, z)
    return slope, outer.gradient(slope, z), ascent, outer.gradient(ascent, z), outer.jacobian(ascent, z)


@parity
def test_custom_gradients(tf):
    """The gradient function sees and returns TensorFlow's convention."""

    @tf.custom_gradient
    def square(z):
        def grad(dy):
            print((np.round(dy.numpy(), 3) + 0.0).tolist())  # no negative zeros
            return dy * tf.math.conj(2.0 * z) * 10.0

        return z * z, grad

    z = z_of(tf)
    weights = tf.constant([2.0 - 1.0j, 1.0j], tf.complex64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        y = square(z)
        w = square(z) * (1.0 + 1.0j)
        real = tf.math.imag(square(z))
    return (
        tape.gradient(y, z),
        tape.gradient(w, z),
        tape.gradient(real, z),
        tape.gradient(y, z, output_gradients=weights),
    )


@parity
def test_a_custom_gradient_between_real_and_complex(tf):
    """From a real argument to a complex result."""

    @tf.custom_gradient
    def turn(x):
        return tf.complex(x, -x), lambda dy: tf.math.real(dy) * 3.0 + tf.math.imag(dy) * 5.0

    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = turn(x) * (2.0 + 1.0j)
    return tape.gradient(y, x)


@parity
def test_through_control_flow(tf):
    """A loop and a map over complex rows."""
    z = z_of(tf)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        _, power = tf.while_loop(lambda i, w: i < 3, lambda i, w: (i + 1, w * z), (tf.constant(0), z))
        mapped = tf.map_fn(lambda a: a * a, z)
    return tape.gradient(power, z), tape.gradient(mapped, z)


@parity(differs="the gradient of a complex sqrtm is the derivative")
def test_the_root_of_a_complex_matrix(tf):
    matrix = np.array([[3.0 + 0.5j, 1.0], [0.2, 2.0 - 0.3j]], "complex64")
    x = tf.constant(matrix)
    with tf.GradientTape() as tape:
        tape.watch(x)
        root = tf.linalg.sqrtm(x)
        y = tf.reduce_sum(tf.math.real(root * root * root))
    return root, tape.gradient(y, x)


@parity
def test_of_no_elements(tf):
    "What has no elements is connected as what has some."
    x, y = tf.zeros([0]), tf.Variable([1.0])
    functions = [
        lambda: tf.abs(tf.complex(x, x)),
        lambda: tf.abs(tf.complex(y, x) + 2.0),
        lambda: tf.complex(x, x) + 2.0,
        lambda: tf.math.angle(tf.complex(x, x)),
        lambda: tf.abs(x),
    ]
    found = []
    for function in functions:
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = function()
        found.append(tape.gradient(z, [x, y]))
    return found, tf.TensorArray(tf.float32, size=2).unstack(tf.ones([0])).stack()
