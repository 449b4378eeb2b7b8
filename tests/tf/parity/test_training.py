"""Training loops: the losses of both systems agree step by step."""

import numpy as np
from harness import parity


def straight_line(seed, count=64):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=count).astype("float32")
    return x, (2.5 * x - 0.75 + rng.normal(scale=0.1, size=count)).astype("float32")


def three_clusters(seed, count=90):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    centers = np.array([[0.0, 2.0], [2.0, -1.0], [-2.0, -1.0]])
    return (centers[labels] + rng.normal(scale=0.7, size=(count, 2))).astype("float32"), labels.astype("int32")


@parity(rtol=1e-4)
def test_linear_regression(tf):
    """Descent by assign_sub on slope and intercept."""
    x, y = straight_line(seed=1)
    slope, intercept, losses = tf.Variable(0.0), tf.Variable(0.0), []
    for _ in range(40):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(slope * x + intercept - y))
        d_slope, d_intercept = tape.gradient(loss, [slope, intercept])
        slope.assign_sub(0.3 * d_slope)
        intercept.assign_sub(0.3 * d_intercept)
        losses.append(float(loss))
    return losses, slope, intercept


@parity(rtol=1e-4)
def test_a_softmax_classifier(tf):
    """Mini-batches, a softmax, cross entropy and an accuracy."""
    points, labels = three_clusters(seed=2)
    weights, bias = tf.Variable(tf.zeros([2, 3])), tf.Variable(tf.zeros([3]))
    losses = []
    for step in range(30):
        batch = slice(step % 3 * 30, step % 3 * 30 + 30)
        with tf.GradientTape() as tape:
            logits = tf.constant(points[batch]) @ weights + bias
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[batch], logits=logits))
        for variable, gradient in zip([weights, bias], tape.gradient(loss, [weights, bias])):
            variable.assign_sub(0.5 * gradient)
        losses.append(float(loss))
    predictions = tf.argmax(points @ weights + bias, axis=1, output_type=tf.int32)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(predictions, labels), tf.float32))
    return losses, accuracy


@parity(rtol=1e-3)
def test_a_two_layer_network_with_momentum(tf):
    """A hidden layer, weight decay, momentum in variables of its own."""
    x, y = straight_line(seed=3)
    rng = np.random.default_rng(4)
    shapes = [(1, 8), (8,), (8, 1), (1,)]
    weights = [tf.Variable(rng.normal(scale=0.5, size=shape).astype("float32")) for shape in shapes]
    momenta = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights]
    losses = []
    for _ in range(25):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(x[:, None] @ weights[0] + weights[1])
            output = tf.squeeze(hidden @ weights[2] + weights[3], axis=1)
            decay = tf.add_n([tf.nn.l2_loss(weight) for weight in weights])
            loss = tf.reduce_mean((output - y**2) ** 2) + 1e-3 * decay
        for weight, momentum, gradient in zip(weights, momenta, tape.gradient(loss, weights)):
            momentum.assign(0.9 * momentum + gradient)
            weight.assign_sub(0.05 * momentum)
        losses.append(float(loss))
    return losses


@parity(rtol=1e-4)
def test_adam_by_hand(tf):
    """An Adam step written out with tf functions."""
    v = tf.Variable([1.0, -2.0, 3.0])
    m, s = tf.zeros_like(v), tf.zeros_like(v)
    for step in range(1, 11):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v**4) / 4.0 + tf.reduce_sum(v[0] * v[1:])
        gradient = tf.convert_to_tensor(tape.gradient(loss, v))
        m, s = 0.9 * m + 0.1 * gradient, 0.99 * s + 0.01 * gradient**2
        v.assign_sub(0.1 * (m / (1 - 0.9**step)) / (tf.sqrt(s / (1 - 0.99**step)) + 1e-7))
    return v, m, s


@parity(rtol=1e-4)
def test_clipping_the_global_norm(tf):
    """clip_by_global_norm over a list of gradients before the update."""
    weights = [tf.Variable([3.0, -4.0]), tf.Variable([[12.0]])]
    norms = []
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(weight**2) for weight in weights])
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, weights), 2.0)
        for weight, gradient in zip(weights, gradients):
            weight.assign_sub(gradient * 0.5)
        norms.append(norm)
    return norms, weights


@parity(rtol=1e-4)
def test_accumulating_gradients(tf):
    """Gradients of several batches added up in variables, applied once."""
    x, y = straight_line(seed=5)
    slope = tf.Variable(0.0)
    total = tf.Variable(0.0, trainable=False)
    for _ in range(3):
        total.assign(0.0)
        for start in range(0, 64, 16):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((slope * x[start : start + 16] - y[start : start + 16]) ** 2)
            total.assign_add(tape.gradient(loss, slope) / 4.0)
        slope.assign_sub(0.5 * total)
    return slope, total


@parity(rtol=1e-4)
def test_a_recurrent_network_unrolled(tf):
    """A recurrent cell applied in a Python loop, weights shared by all steps."""
    rng = np.random.default_rng(6)
    sequence = rng.normal(size=(12, 3, 4)).astype("float32")
    kernel = tf.Variable(rng.normal(scale=0.3, size=(4, 5)).astype("float32"))
    recurrent = tf.Variable(rng.normal(scale=0.3, size=(5, 5)).astype("float32"))
    with tf.GradientTape() as tape:
        state = tf.zeros([3, 5])
        for inputs in sequence:
            state = tf.tanh(inputs @ kernel + state @ recurrent)
        loss = tf.reduce_mean(state**2)
    return loss, tape.gradient(loss, [kernel, recurrent])


@parity
def test_a_frozen_layer(tf):
    """Gradients for some of the variables only; the others stay as they are."""
    frozen, trained = tf.Variable([[2.0]], trainable=False), tf.Variable([[3.0]])
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(([[1.0]] @ frozen @ trained - 1.0) ** 2)
        variables = list(tape.watched_variables())
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.05 * gradient)
    return frozen, trained


@parity(rtol=1e-4)
def test_minimising_by_newtons_method(tf):
    """First and second derivative at every step."""
    x = tf.Variable(2.0)
    for _ in range(5):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x**4 - 3.0 * x**2 + x
            slope = inner.gradient(y, x)
        x.assign_sub(slope / outer.gradient(slope, x))
    return x


@parity(rtol=1e-4)
def test_training_the_input(tf):
    """Descent on an input that is a plain tensor, watched anew at every step."""
    weights = tf.constant([[1.0, -1.0], [0.5, 2.0]])
    x = tf.constant([[0.0, 0.0]])
    for _ in range(10):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum((x @ weights - [[1.0, 2.0]]) ** 2)
        x = x - 0.05 * tape.gradient(loss, x)
    return x
