"""Learned physics: the friction and stiffness of an oscillator, fitted through a solver in tf.while_loop."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(6)
DT, LENGTH = 0.05, 30


def simulate_truth(x0, v0, k=2.0, c=0.3, cubic=0.5):
    xs, x, v = [], x0.copy(), v0.copy()
    for _ in range(LENGTH):
        a = -k * x - c * v - cubic * x**3
        v = v + DT * a
        x = x + DT * v
        xs.append(x)
    return np.stack(xs).astype("float32")


stiffness = tf.Variable(1.0, name="stiffness")
friction = tf.Variable(0.0, name="friction")
W1 = tf.Variable(rng.normal(scale=0.3, size=(2, 8)).astype("float32"), name="W1")
b1 = tf.Variable(tf.zeros([8]), name="b1")
W2 = tf.Variable(rng.normal(scale=0.1, size=(8, 1)).astype("float32"), name="W2")
physics, network = [stiffness, friction], [W1, b1, W2]
optimizer = tf.keras.optimizers.Adam(0.05)


def residual_force(x, v):
    h = tf.tanh(tf.matmul(tf.stack([x, v], axis=1), W1) + b1)
    return tf.matmul(h, W2)[:, 0]


def acceleration(x, v):
    return -stiffness * x - friction * v + residual_force(x, v)


def rollout(x0, v0):
    positions = tf.TensorArray(tf.float32, size=LENGTH)

    def body(i, x, v, positions):
        v = v + DT * acceleration(x, v)
        x = x + DT * v
        return i + 1, x, v, positions.write(i, x)

    _, _, _, positions = tf.while_loop(lambda i, *_: i < LENGTH, body, (0, x0, v0, positions))
    return positions.stack()


@tf.function
def train_step(x0, v0, observed):
    with tf.GradientTape() as tape:
        predicted = rollout(x0, v0)
        data_loss = tf.reduce_mean(tf.square(predicted - observed))
        penalty = 1e-3 * tf.add_n([tf.nn.l2_loss(w) for w in (W1, W2)])
        loss = data_loss + penalty
    gradients = tape.gradient(loss, physics + network)
    gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]
    optimizer.apply_gradients(zip(gradients, physics + network))
    return data_loss, loss


for step in range(24):
    x0, v0 = rng.normal(size=(2, 8)).astype("float32")
    observed = simulate_truth(x0, v0)
    data_loss, loss = train_step(tf.constant(x0), tf.constant(v0), tf.constant(observed))
    print(f"{step:3d} loss {float(loss):.6f} k {float(stiffness):.4f} c {float(friction):.4f}")
