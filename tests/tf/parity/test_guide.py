"""The introductory autodiff guide, paragraph by paragraph, in programs of our own."""

import numpy as np
from harness import error_of, parity

# --- computing gradients --------------------------------------------------------------------------------------------


@parity
def test_a_scalar_variable(tf):
    """What happens to a Variable inside the block is recorded; gradient plays it backwards."""
    height = tf.Variable(1.5)
    with tf.GradientTape() as tape:
        energy = 9.81 * height + height**3
    slope = tape.gradient(energy, height)
    print(slope.numpy())
    return slope


@parity
def test_a_layer_by_hand(tf):
    """Tensors of any rank: the gradient of a loss with respect to a matrix and a bias."""
    rng = np.random.default_rng(0)
    weights = tf.Variable(rng.normal(size=(4, 3)).astype("float32"), name="weights")
    bias = tf.Variable(tf.zeros(3), name="bias")
    inputs = [[0.5, -1.0, 2.0, 0.25], [1.0, 1.0, 0.0, -0.5]]
    with tf.GradientTape(persistent=True) as tape:
        outputs = inputs @ weights + bias
        loss = tf.reduce_mean(outputs**2)
    return tape.gradient(loss, [weights, bias]), loss


@parity
def test_a_gradient_has_the_shape_of_its_source(tf):
    """Each gradient has the shape and dtype of its source."""
    weights, bias = tf.Variable(tf.ones([5, 2])), tf.Variable(tf.zeros([2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.ones([7, 5]) @ weights + bias)
    for variable, gradient in zip([weights, bias], tape.gradient(loss, [weights, bias])):
        print(variable.shape, gradient.shape, gradient.dtype == variable.dtype)


@parity
def test_sources_in_a_dict(tf):
    """A dict of sources gives a dict of gradients."""
    parameters = {"slope": tf.Variable(2.0), "intercept": tf.Variable([1.0, -1.0])}
    with tf.GradientTape() as tape:
        line = parameters["slope"] * [3.0, 4.0] + parameters["intercept"]
        loss = tf.reduce_sum(line**2)
    gradients = tape.gradient(loss, parameters)
    print(gradients["intercept"])
    return gradients


@parity
def test_unpacking_the_result(tf):
    """A list of gradients unpacks like any list."""
    a, b = tf.Variable(2.0), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        c = a * b
    [dc_da, dc_db] = tape.gradient(c, [a, b])
    return dc_da, dc_db


# --- gradients of a model -------------------------------------------------------------------------------------------


@parity
def test_a_module_collects_its_variables(tf):
    """A tf.Module gathers its trainable variables, and those are the sources."""

    class Dense(tf.Module):
        def __init__(self, inputs, outputs):
            super().__init__(name="dense")
            self.kernel = tf.Variable(tf.fill([inputs, outputs], 0.5), name="kernel")
            self.bias = tf.Variable(tf.zeros([outputs]), name="bias")
            self.calls = tf.Variable(0, trainable=False, name="calls")

        def __call__(self, x):
            return tf.nn.relu(x @ self.kernel + self.bias)

    layer = Dense(3, 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(layer(tf.constant([[1.0, 2.0, 3.0]])) ** 2)
    for variable, gradient in zip(layer.trainable_variables, tape.gradient(loss, layer.trainable_variables)):
        print(f"{variable.name}, shape: {gradient.shape}, sum: {tf.reduce_sum(gradient):.1f}")


@parity
def test_a_model_of_the_users_own(tf):
    """A plain class with a list of variables needs no base class."""

    class Line:
        def __init__(self):
            self.variables = [tf.Variable(2.0, name="slope"), tf.Variable(0.5, name="intercept")]

        def __call__(self, x):
            slope, intercept = self.variables
            return slope * x + intercept

    model = Line()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(tf.constant([1.0, 2.0, 3.0])) - 4.0) ** 2)
    for variable, gradient in zip(model.variables, tape.gradient(loss, model.variables)):
        print(f"{variable.name}, shape: {gradient.shape}, value: {gradient:.3f}")


# --- controlling what is watched ------------------------------------------------------------------------------------


@parity
def test_what_is_watched_by_default(tf):
    """Trainable variables are watched; untrainable ones, tensors and variable + tensor are not."""
    trained = tf.Variable(3.0, name="trained")
    frozen = tf.Variable(3.0, name="frozen", trainable=False)
    shifted = tf.Variable(2.0, name="shifted") + 1.0
    constant = tf.constant(3.0)
    with tf.GradientTape() as tape:
        total = trained**2 + frozen**2 + shifted**2 + constant**2
    for gradient in tape.gradient(total, [trained, frozen, shifted, constant]):
        print(gradient)
    print([variable.name for variable in tape.watched_variables()])


@parity
def test_watching_a_tensor(tf):
    """A tensor is differentiated once it was handed to watch."""
    angle = tf.constant([0.0, 0.5, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(angle)
        height = tf.sin(angle) * 2.0
    return tape.gradient(height, angle)


@parity
def test_watching_only_what_is_chosen(tf):
    """With watch_accessed_variables=False only the watched variable has a gradient."""
    left, right = tf.Variable(0.0), tf.Variable(10.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(right)
        total = tf.reduce_sum(tf.math.cos(left) + tf.nn.softplus(right))
    gradients = tape.gradient(total, {"left": left, "right": right})
    print("left:", gradients["left"])
    return gradients


# --- intermediate results -------------------------------------------------------------------------------------------


@parity
def test_an_intermediate_result_as_source(tf):
    """A value computed in the block can be the source."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        square = x * x
        cube_of_square = square**3
    return tape.gradient(cube_of_square, square)


@parity
def test_a_persistent_tape_answers_often(tf):
    """A persistent tape gives several gradients of one recording."""
    x = tf.constant([1.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.exp(y / 10.0)
    first, second, again = tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, x)
    del tape
    return first, second, again


@parity
def test_a_tape_answers_once_by_default(tf):
    """Without persistent=True the second gradient is refused."""
    x = tf.Variable(4.0)
    with tf.GradientTape() as tape:
        root = tf.sqrt(x)
    return tape.gradient(root, x), error_of(tape.gradient, root, x)


# --- targets that are no scalars ------------------------------------------------------------------------------------


@parity
def test_several_targets_add_up(tf):
    """The gradient of several targets is the sum of their gradients."""
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        targets = {"log": tf.math.log(x), "inverse": 1 / x}
    return tape.gradient(targets, x), tape.gradient(targets["log"], x), tape.gradient(targets["inverse"], x)


@parity
def test_a_vector_target_is_summed(tf):
    """The gradient of a vector is the gradient of its sum."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * [3.0, 4.0, -1.5]
    return tape.gradient(y, x)


@parity
def test_elementwise_derivatives_of_a_curve(tf):
    """For an elementwise function the summed gradient is the derivative at each point."""
    x = tf.linspace(-4.0, 4.0, 33)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.sigmoid(x) + tf.tanh(x)
    slope = tape.gradient(y, x)
    return x, y, slope, np.asarray(slope), np.array(y).shape


# --- control flow ---------------------------------------------------------------------------------------------------


@parity
def test_only_the_branch_taken_is_connected(tf):
    """Python's if is not recorded: the branch taken is connected, the other is not, the condition never."""
    switch, taken, other = tf.constant(1.0), tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(switch)
        result = taken**3 if switch > 0.5 else other**2
    for gradient in tape.gradient(result, [taken, other]):
        print(gradient)
    print(tape.gradient(result, switch))


@parity
def test_a_branch_that_returns_the_variable_itself(tf):
    """The target may be the variable itself; its derivative with respect to itself is one."""
    switch, taken, other = tf.constant(-1.0), tf.Variable([2.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        result = taken if switch < 0.0 else other
    return tape.gradient(result, [taken, other])


@parity
def test_a_loop_that_depends_on_values(tf):
    """A while loop on tensor values records the rounds that ran."""
    x = tf.Variable(1.3)
    with tf.GradientTape() as tape:
        y, rounds = x * 1.0, 0
        while y < 50.0:
            y, rounds = y * x + 1.0, rounds + 1
    return tape.gradient(y, x), y, rounds


@parity
def test_newton_steps_inside_the_block(tf):
    """An iteration to convergence can be differentiated through."""
    a = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        root = tf.constant(1.0)
        while abs(float(root * root - a)) > 1e-5:
            root = 0.5 * (root + a / root)
    return tape.gradient(root, a), root


# --- when gradient returns None -------------------------------------------------------------------------------------


@parity
def test_unconnected(tf):
    """No path from source to target: None."""
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y * y
    print(tape.gradient(z, x))


@parity
def test_a_variable_replaced_by_a_tensor(tf):
    """x = x + 1 replaces the variable by a tensor, which the next tape does not watch."""
    x = tf.Variable(2.0)
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x * 3
        print(isinstance(x, tf.Variable), tape.gradient(y, x))
        x = x + 1


@parity
def test_a_numpy_detour(tf):
    """What NumPy computes is not recorded."""
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = np.mean(x**2, axis=0)
        z = tf.reduce_mean(y, axis=0)
    return tape.gradient(z, x), isinstance(y, np.ndarray), z


@parity
def test_half_a_numpy_detour(tf):
    """A NumPy factor is a constant; what stayed in tensors is still differentiated."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x**2 * np.exp(x.numpy()) + np.sqrt(x)
    return tape.gradient(y, x)


@parity
def test_a_python_float_detour(tf):
    """float() leaves the tape."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * float(x)
    return tape.gradient(y, x)


@parity(warns=True)
def test_integers_have_no_gradient(tf):
    """Watching an integer gives a warning, its gradient is None."""
    x = tf.constant(10)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    print(tape.gradient(y, x))


@parity
def test_dtypes_are_not_cast_for_you(tf):
    """Mixing an int and a float tensor is an error rather than a lost gradient."""
    x, count = tf.Variable(2.0), tf.constant(3)
    with tf.GradientTape() as tape:
        refused = error_of(lambda: x * count)
        y = x * tf.cast(count, x.dtype)
    return refused, tape.gradient(y, x)


@parity
def test_state_stops_gradients(tf):
    """assign_add writes a value into a variable; the path of that value ends there."""
    start, total = tf.Variable(3.0), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        total.assign_add(start)
        y = total**2
    return tape.gradient(y, start), tape.gradient(y, total), y


@parity
def test_an_operation_without_a_gradient(tf):
    """A float operation without a derivative raises LookupError instead of giving None."""
    image, factor = tf.Variable([[[0.5, 0.0, 0.25]]]), tf.Variable(0.1)
    with tf.GradientTape() as tape:
        adjusted = tf.image.adjust_contrast(image, factor)
    return error_of(tape.gradient, adjusted, [image, factor])


# --- zeros instead of None ------------------------------------------------------------------------------------------


@parity
def test_zeros_instead_of_none(tf):
    """unconnected_gradients chooses between None and zeros of the source's shape."""
    x, y = tf.Variable([2.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = y**2
    print(tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO))
    print(tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.NONE))
    return tape.gradient(z, {"x": x, "y": y}, unconnected_gradients="zero")
