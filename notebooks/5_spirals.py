"""Two spirals, told apart by a small network: a TensorFlow program from before Keras, with its own layers and optimizer."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(7)


def spirals(count):
    """`count` points on each of two spirals that wind around each other, and which spiral each is on."""
    angle = np.sqrt(rng.uniform(0.05, 1.0, count)) * 3.0 * np.pi
    arm = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / (3.0 * np.pi)
    points = np.concatenate([arm, -arm]) + 0.02 * rng.normal(size=(2 * count, 2))
    return tf.constant(points, tf.float32), tf.constant(np.repeat([[0.0], [1.0]], count, axis=0), tf.float32)


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name)
        self.w = tf.Variable(rng.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs), dtype=tf.float32, name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")

    def __call__(self, x):
        return tf.matmul(x, self.w) + self.b


class Network(tf.Module):
    def __init__(self, width):
        super().__init__("network")
        self.layers = [Dense(2, width), Dense(width, width), Dense(width, 1)]

    def __call__(self, x):
        *hidden, last = self.layers
        for layer in hidden:
            x = tf.nn.elu(layer(x))
        return last(x)


class Momentum:
    def __init__(self, variables, rate, keep):
        self.rate, self.keep = rate, keep
        self.speeds = [tf.Variable(tf.zeros_like(v), trainable=False) for v in variables]

    def apply(self, gradients, variables):
        for gradient, speed, variable in zip(gradients, self.speeds, variables, strict=True):
            speed.assign(self.keep * speed - self.rate * gradient)
            variable.assign_add(speed)


points, labels = spirals(200)
network = Network(32)
optimizer = Momentum(network.trainable_variables, rate=0.1, keep=0.95)


def loss_of(points, labels):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=network(points)))


def train_step(points, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(points, labels)
    gradients = tape.gradient(loss, network.trainable_variables)
    optimizer.apply(gradients, network.trainable_variables)
    return loss


if __name__ == "__main__":
    for step in range(401):
        loss = train_step(points, labels)
        if step % 20 == 0:
            right = tf.reduce_sum(tf.cast(tf.equal(network(points) > 0.0, labels > 0.5), tf.int32))
            print(f"step {step:4}  loss {loss.numpy():.4f}  {right.numpy()} of {len(points)} right")
