"""`jacobian` and `batch_jacobian`: any rank, any structure, what is not connected, what is refused."""

import collections

import numpy as np
from harness import error_of, parity

import tapejax


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


# --- shapes of the target and of the sources ------------------------------------------------------------------------


@parity
def test_a_scalar_source_under_a_curve(tf):
    """By a scalar the Jacobian has the target's shape."""
    x, delta = tf.linspace(-10.0, 10.0, 201), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)
    slope = tape.jacobian(y, delta)
    return y.shape, slope.shape, slope


@parity
def test_a_scalar_target(tf):
    """Of a scalar it is the gradient, by a scalar a scalar."""
    x, s = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(x**2) * s
    return tape.jacobian(y, x), tape.gradient(y, x), tape.jacobian(y, s)


@parity
def test_the_kernel_of_a_layer(tf):
    """The target's shape comes first, then the source's; summed over the target it is the gradient."""
    x, kernel, bias = tf.constant(draw(7, 5)), tf.Variable(draw(5, 10, seed=1)), tf.Variable(draw(10, seed=2))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.nn.relu(x @ kernel + bias)
    by_kernel = tape.jacobian(y, kernel)
    summed = tf.reduce_sum(by_kernel, axis=[0, 1])
    return by_kernel, tape.jacobian(y, bias), summed, tape.gradient(y, kernel)


@parity
def test_every_pair_of_ranks(tf):
    """Any rank by any rank."""
    shapes = [(), (1,), (3,), (2, 3), (2, 1, 2)]
    found = []
    for i, of in enumerate(shapes):
        for j, by in enumerate(shapes):
            x = tf.constant(draw(*by, seed=j))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.constant(draw(*of, seed=i)) * tf.reduce_sum(tf.sin(x) * tf.cos(x)) ** 2
            found.append(tape.jacobian(y, x))
    return found


@parity
def test_a_tall_and_a_wide_matrix(tf):
    """Few inputs and many outputs, or the reverse: whichever mode is cheaper, the result is the same."""
    found = []
    for shape in [(40, 2), (2, 40)]:
        x = tf.Variable(draw(shape[1]))
        with tf.GradientTape() as tape:
            y = tf.tanh(tf.linalg.matvec(tf.constant(draw(*shape)), x))
        found.append(tape.jacobian(y, x))
    return found


@parity
def test_no_elements(tf):
    """A target or source without elements gives a Jacobian without elements."""
    empty, x = tf.constant(np.zeros((0, 3), "float32")), tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([empty, x])
        nothing = x[2:] * 3.0
        both = tf.concat([tf.reshape(empty, [-1]), x * x], 0)
    return [tape.jacobian(both, empty), tape.jacobian(both, x)], [error_of(tape.jacobian, nothing, x) is None]


@parity
def test_a_structure_of_sources(tf):
    """The result has the structure of the sources."""
    Pair = collections.namedtuple("Pair", "weight bias")
    x, w, b = tf.Variable([1.0, -2.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0]]), tf.Variable(0.5)
    with tf.GradientTape(persistent=True) as tape:
        y = tf.linalg.matvec(w, x) * x + b
    return (
        tape.jacobian(y, [x, w, b]),
        tape.jacobian(y, {"x": x, "layer": (w, [b])}),
        tape.jacobian(y, Pair(w, b)),
        tape.jacobian(y, []),
    )


@parity
def test_a_source_given_twice(tf):
    """A duplicate gets the whole Jacobian, both times."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x**3
    return tape.jacobian(y, [x, x])


@parity
def test_the_target_as_source(tf):
    """By itself it is the identity."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(x, x), tape.jacobian(y, [y, x])


@parity
def test_an_intermediate_as_source(tf):
    """By an intermediate and by what it comes from, together."""
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * tf.reduce_sum(x)
    return tape.jacobian(z, y), tape.jacobian(z, [x, y]), tape.jacobian(y, z)


@parity
def test_one_result_of_several(tf):
    """Of one of an operation's results; the other is not connected to it."""
    x = tf.Variable([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        first, second = tf.split(x * x, 2)
    return tape.jacobian(first, x), tape.jacobian(second, x), tape.jacobian(second, first)


@parity
def test_rearrangements(tf):
    """Gather, transposition, concatenation, slices and masks."""
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        values = [
            tf.gather(x * 1.0, [1, 0, 1]),
            tf.transpose(x) * x,
            tf.concat([x, x * 2.0], axis=1),
            x[0, ::-1],
            tf.boolean_mask(x, [[True, False], [True, True]]),
            tf.pad(x, [[1, 0], [0, 1]]),
            tf.linalg.diag_part(x),
        ]
    return [tape.jacobian(y, x) for y in values]


@parity(rtol=1e-4)
def test_functions_of_a_matrix(tf):
    """Softmax, inverse, determinant, product of matrices."""
    x = tf.Variable([[2.0, 0.5], [0.3, 1.5]])
    with tf.GradientTape(persistent=True) as tape:
        values = [
            tf.nn.softmax(x),
            tf.linalg.inv(x),
            tf.linalg.det(x),
            x @ x @ x,
            tf.linalg.cholesky(x @ tf.transpose(x)),
        ]
    return [tape.jacobian(y, x) for y in values]


@parity
def test_ties_and_kinks(tf):
    """Ties are broken as in gradient()."""
    x = tf.Variable([0.0, 1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        values = [
            tf.nn.relu(x),
            tf.maximum(x, x[::-1] * 1.0),
            tf.reduce_max(x),
            tf.abs(x),
            tf.clip_by_value(x, 0.0, 1.0),
            tf.where(x > 0.0, x * 2.0, x),
        ]
    return [tape.jacobian(y, x) for y in values]


@parity
def test_half_precision(tf):
    """The Jacobian has the source's dtype."""
    x = tf.constant([1.0, 2.0], tf.float16)
    b = tf.constant([1.0, 2.0], tf.bfloat16)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, b])
        y, z, mixed = x * x, b * b, tf.cast(x, tf.float32) ** 3
    return tape.jacobian(y, x), tape.jacobian(z, b), tape.jacobian(mixed, x)


@parity
def test_double_precision(tf):
    """float64 all the way."""
    x = tf.constant([1.0, 2.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) * tf.reduce_sum(x)
    return tape.jacobian(y, x)


# --- what is not connected ------------------------------------------------------------------------------------------


@parity
def test_unconnected(tf):
    """None for what the target does not depend on, or zeros."""
    x, y, unseen = tf.Variable([1.0, 2.0]), tf.Variable([3.0]), tf.constant([1.0, 1.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        z = x * 2.0
    return (
        tape.jacobian(z, [x, y, unseen]),
        tape.jacobian(z, [x, y, unseen], unconnected_gradients="zero"),
        tape.jacobian(z, y, unconnected_gradients=tf.UnconnectedGradients.ZERO),
        tape.jacobian(z, y, unconnected_gradients="none"),
    )


@parity
def test_an_unknown_word_for_unconnected(tf):
    """It is refused."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    return error_of(tape.jacobian, y, x, unconnected_gradients="nothing")


@parity
def test_integers_in_the_way(tf):
    """Integer targets and sources, and floats computed from integers, are not connected."""
    x, count = tf.Variable([1.5, 2.5]), tf.Variable([1, 2])
    with tf.GradientTape(persistent=True) as tape:
        whole = tf.cast(x, tf.int32)
        back = tf.cast(whole, tf.float32) * 2.0
        scaled = x * tf.cast(count, tf.float32)
    return tape.jacobian(whole, x), tape.jacobian(back, x), tape.jacobian(scaled, [x, count])


@parity
def test_stopped_and_unwatched(tf):
    """stop_gradient, stop_recording, an unwatched constant and watch_accessed_variables=False."""
    x, c = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stop_gradient(x) * x
        with tape.stop_recording():
            z = x * x
        w = z * x * c
    with tf.GradientTape(watch_accessed_variables=False) as blind:
        v = x * x
    return tape.jacobian(y, x), tape.jacobian(z, x), tape.jacobian(w, [x, c]), blind.jacobian(v, x)


# --- the tape's state -----------------------------------------------------------------------------------------------


@parity
def test_a_variable_assigned_to_between_reads(tf):
    """The Jacobian adds up over all that the variable held when it was read."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        x.assign([5.0, 7.0])
        z = x**3
        total = y + z
    return tape.jacobian(y, x), tape.jacobian(z, x), tape.jacobian(total, x)


@parity
def test_a_tape_is_used_up(tf):
    """One Jacobian uses the tape up, for gradients too."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    return tape.jacobian(y, x), error_of(tape.jacobian, y, x), error_of(tape.gradient, y, x)


@parity
def test_a_persistent_tape(tf):
    """Any number, mixed with gradients."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        z = tf.reduce_sum(y)
    return tape.jacobian(y, x), tape.gradient(z, x), tape.jacobian(y, x), tape.jacobian(z, [x, y])


@parity
def test_inside_the_block(tf):
    """Asked inside the block, a tape that is not persistent stops."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
        rows = tape.jacobian(y, x)
        z = y * rows[0, 0]
    return rows, error_of(tape.jacobian, z, x)


@parity(warns=True)
def test_inside_the_block_of_a_persistent_tape(tf):
    """A persistent one records its own Jacobian."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x**3
        rows = tape.jacobian(y, x)
        z = tf.reduce_sum(rows) * x[0]
    return rows, tape.gradient(z, x), tape.jacobian(rows, x)


@parity
def test_a_tape_that_was_never_entered(tf):
    """There is nothing to differentiate."""
    x = tf.Variable([1.0, 2.0])
    return error_of(tf.GradientTape().jacobian, x * 1.0, x), error_of(tf.GradientTape().batch_jacobian, x * 1.0, x)


@parity
def test_without_vectorisation(tf):
    """experimental_use_pfor and parallel_iterations change nothing."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x[::-1]
    return tape.jacobian(y, x, experimental_use_pfor=False), tape.jacobian(
        y, x, parallel_iterations=1, experimental_use_pfor=False
    )


@parity
def test_a_variable_as_target(tf):
    """A variable read in the block is a target like another."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * 1.0
    return tape.jacobian(x, x), tape.jacobian(y, x)


@parity(differs="the target is checked: TypeError where TensorFlow stumbles over a missing attribute")
def test_targets_that_are_refused(tf):
    """The target is one tensor: no list, no None, no number."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [error_of(tape.jacobian, target, x) for target in ([y, y], {"y": y}, None, 3.0)]


@parity
def test_sources_that_are_refused(tf):
    """None and text are no sources."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
    return [error_of(tape.jacobian, y, source) for source in (None, [x, None], "x")]


# --- batch_jacobian -------------------------------------------------------------------------------------------------


@parity
def test_a_batch(tf):
    """For each example its own Jacobian: the diagonal of the full one."""
    x = tf.constant(draw(7, 5))
    layers = [tf.Variable(draw(5, 8, seed=1)), tf.Variable(draw(8, 6, seed=2))]
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = tf.nn.elu(tf.nn.elu(x @ layers[0]) @ layers[1])
    full, batch = tape.jacobian(y, x), tape.batch_jacobian(y, x)
    return batch, tf.reduce_sum(full, axis=2), tf.einsum("bxby->bxy", full)


@parity
def test_a_batch_of_higher_rank(tf):
    """(batch, *outs) by (batch, *ins)."""
    x = tf.Variable(draw(3, 2, 4))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.einsum("bij,bkj->bik", x, x)
        z = tf.reduce_sum(x**2, axis=2)
    return tape.batch_jacobian(y, x), tape.batch_jacobian(z, x), tape.batch_jacobian(x * 1.0, x)


@parity
def test_a_batch_that_is_mixed(tf):
    """Normalised over the batch, entry [b, i, j] is the derivative of the whole column i with respect to x[b, j]."""
    x, kernel = tf.constant(draw(6, 4)), tf.constant(draw(4, 3, seed=1))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        h = tf.nn.elu(x @ kernel)
        mean, variance = tf.nn.moments(h, axes=[0])
        y = tf.nn.elu(tf.nn.batch_normalization(h, mean, variance, None, None, 1e-3)) ** 2
    return tape.batch_jacobian(y, x), tf.reduce_sum(tape.jacobian(y, x), axis=0)


@parity
def test_the_batch_is_checked(tf):
    """Both need rank 2 or more, and the same number of rows."""
    x, wide, vector = tf.Variable(draw(3, 2)), tf.Variable(draw(4, 2)), tf.Variable(draw(3))
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
        row = tf.reduce_sum(x, axis=1)
        scalar = tf.reduce_sum(x)
        grown = x[:, None] * vector[:, None, None]
    pairs = [(row, x), (y, vector), (y, wide), (y, scalar), (grown, vector)]
    return [error_of(tape.batch_jacobian, *pair) for pair in pairs]


@parity(differs="a scalar target is a ValueError as a vector is; TensorFlow stumbles over its shape (IndexError)")
def test_a_scalar_as_batch(tf):
    """A scalar target has no batch."""
    x = tf.Variable(draw(3, 2))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x)
    return error_of(tape.batch_jacobian, y, x)


@parity
def test_a_batch_that_is_not_connected(tf):
    """Here TensorFlow gives zeros either way."""
    x, other = tf.Variable(draw(3, 2)), tf.Variable(draw(3, 4))
    with tf.GradientTape(persistent=True) as tape:
        y = x * 2.0
    return (
        tape.batch_jacobian(y, other),
        tape.batch_jacobian(y, other, unconnected_gradients="zero"),
        error_of(tape.batch_jacobian, y, x, unconnected_gradients="nothing"),
    )


@parity
def test_a_batch_uses_the_tape_up(tf):
    """As jacobian() does; a refused one too."""
    x = tf.Variable(draw(3, 2))
    with tf.GradientTape() as tape:
        y = x * x
    first = tape.batch_jacobian(y, x)
    with tf.GradientTape() as other:
        z = x * x
        row = tf.reduce_sum(z, axis=1)
    refused = error_of(other.batch_jacobian, row, x)
    return first, error_of(tape.batch_jacobian, y, x), refused, other.batch_jacobian(z, x)


@parity(differs="experimental_use_pfor=False works on any tape; TensorFlow wants a persistent one (RuntimeError)")
def test_without_vectorisation_on_a_tape_used_once(tf):
    """TensorFlow's loop asks the tape once for each row."""
    x = tf.Variable(draw(3, 2))
    with tf.GradientTape() as tape:
        y = x * x
    return error_of(tape.batch_jacobian, y, x, experimental_use_pfor=False)


@parity(differs="an empty batch gives an empty Jacobian; TensorFlow divides by zero")
def test_an_empty_batch(tf):
    """No rows."""
    x = tf.constant(np.zeros((0, 3), "float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tile(x, [1, 2]) * 2.0
    return error_of(tape.batch_jacobian, y, x)


@parity
def test_integers_in_a_batch(tf):
    """An integer target is not connected."""
    x = tf.Variable(draw(3, 2))
    with tf.GradientTape() as tape:
        y = tf.cast(x * 3.0, tf.int32)
    return error_of(tape.batch_jacobian, y, x)


@parity
def test_second_derivatives_of_a_batch(tf):
    """The Hessian of each example: the batch Jacobian of a gradient."""
    x = tf.Variable(draw(4, 3))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_prod(x, axis=1) + tf.reduce_sum(tf.sin(x), axis=1)
        slopes = inner.gradient(y, x)
    return outer.batch_jacobian(slopes, x)


@parity(differs="the jacobian of more results than inputs is taken forward, where the pole's zero meets no infinity")
def test_a_jacobian_behind_a_where_at_a_pole(tf):
    "It is finite and right, where TensorFlow's is nan; see the next test for `gradient`."
    with tf.GradientTape() as tape:
        v, r = _behind_a_where(tf)
    return tape.jacobian(r, v)


@parity
def test_a_gradient_behind_a_where_at_a_pole(tf):
    "It is nan in both."
    with tf.GradientTape() as tape:
        v, r = _behind_a_where(tf)
    return tape.gradient(r, v)


def _behind_a_where(tf):
    v = tf.Variable([0.0, 0.0])
    n = tf.sqrt(tf.reduce_sum(v * v))
    return v, tf.where(n < 1e-6, tf.stack([v[0], v[1], v[0] + v[1]]), tf.stack([v[0] / n, v[1] / n, n]))


def test_a_jacobian_behind_a_where_at_a_pole_is_right():
    with tapejax.GradientTape() as tape:
        v, r = _behind_a_where(tapejax)
    assert tape.jacobian(r, v).numpy().tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
