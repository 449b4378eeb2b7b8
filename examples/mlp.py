"""Separate two spirals with a multi-layer perceptron that is built from tf.Modules.

A module owns its variables, and modules may hold modules, in lists, too: the model's `trainable_variables` are all of them.
The training step is a tf.function, and the optimizer (gradient descent with momentum) is a module like the others.

    python examples/mlp.py                  on TensorFlow
    python -m tapejax run examples/mlp.py   on JAX
"""

import numpy as np
import tensorflow as tf

STEPS = 200

rng = np.random.default_rng(1)


class Dense(tf.Module):
    """A layer: inputs times weights plus bias, through an activation function."""

    def __init__(self, inputs, outputs, activation=tf.identity, name=None):
        super().__init__(name=name)
        scale = np.sqrt(2 / inputs)
        self.weights = tf.Variable(rng.normal(0, scale, (inputs, outputs)).astype("float32"), name="weights")
        self.bias = tf.Variable(tf.zeros([outputs]), name="bias")
        self.activation = activation

    def __call__(self, x):
        return self.activation(tf.matmul(x, self.weights) + self.bias)


class Perceptron(tf.Module):
    """Layers, one after the other."""

    def __init__(self, widths, name=None):
        super().__init__(name=name)
        *hidden, last = zip(widths[:-1], widths[1:])
        self.layers = [Dense(*sizes, tf.nn.tanh, name="hidden") for sizes in hidden]
        self.layers.append(Dense(*last, name="scores"))

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return tf.squeeze(x, axis=-1)


class Momentum(tf.Module):
    """Gradient descent whose steps keep some of their direction."""

    def __init__(self, variables, learning_rate=0.2, momentum=0.9):
        super().__init__()
        self.variables_to_train = variables
        self.velocities = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]
        self.learning_rate, self.momentum = learning_rate, momentum

    def apply(self, gradients):
        for variable, velocity, gradient in zip(self.variables_to_train, self.velocities, gradients):
            velocity.assign(self.momentum * velocity - self.learning_rate * gradient)
            variable.assign_add(velocity)


def spirals(points):
    """Points (2 * points, 2) of two spirals that wind about each other, and which spiral they are of: 0 or 1."""
    radius = np.linspace(0.2, 1, points)
    angle = radius * 1.5 * np.pi
    one = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    both = np.concatenate([one, -one]) + rng.normal(0, 0.02, (2 * points, 2))
    return both.astype("float32"), np.repeat([0, 1], points).astype("float32")


points, labels = spirals(100)
model = Perceptron([2, 24, 24, 1], name="perceptron")
optimizer = Momentum(model.trainable_variables)
print(f"{len(model.submodules)} modules, {sum(int(tf.size(v)) for v in model.trainable_variables)} weights")


@tf.function
def train_step(points, labels):
    with tf.GradientTape() as tape:
        scores = model(points)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores))
    optimizer.apply(tape.gradient(loss, model.trainable_variables))
    correct = tf.equal(scores > 0, labels > 0.5)
    return loss, tf.reduce_mean(tf.cast(correct, tf.float32))


for step in range(STEPS + 1):
    loss, accuracy = train_step(tf.constant(points), tf.constant(labels))
    if step % 25 == 0:
        print(f"step {step:3d}  loss {loss:.5f}  accuracy {accuracy:.3f}")
