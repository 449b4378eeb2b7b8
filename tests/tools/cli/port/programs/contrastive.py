"""Contrastive learning: two noisy views of each example are to be told from all others."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(12)
rng = np.random.default_rng(12)
data = rng.normal(size=(60, 6)).astype("float32")


class Encoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.w1 = tf.Variable(tf.random.stateless_normal([6, 16], seed=[1, 2]) * 0.4, name="w1")
        self.w2 = tf.Variable(tf.random.stateless_normal([16, 4], seed=[3, 4]) * 0.4, name="w2")

    def __call__(self, x):
        return tf.math.l2_normalize(tf.nn.relu(x @ self.w1) @ self.w2, axis=1)


encoder = Encoder()
momentum = 0.8
velocities = {}


def train(views, temperature):
    first, second = views
    with tf.GradientTape() as tape:
        similarity = tf.matmul(encoder(first), encoder(second), transpose_b=True) / temperature
        targets = tf.range(tf.shape(similarity)[0])
        rows = tf.keras.losses.sparse_categorical_crossentropy(targets, similarity, from_logits=True)
        columns = tf.keras.losses.sparse_categorical_crossentropy(targets, tf.transpose(similarity), from_logits=True)
        loss = tf.reduce_mean(rows + columns) / 2.0
    for variable, gradient in zip(encoder.trainable_variables, tape.gradient(loss, encoder.trainable_variables)):
        if variable.name not in velocities:
            velocities[variable.name] = tf.Variable(tf.zeros_like(variable), trainable=False)
        velocity = velocities[variable.name]
        velocity.assign(momentum * velocity + gradient)
        variable.assign_sub(0.1 * velocity)
    return loss


for epoch in range(4):
    rng.shuffle(data)
    for start in range(0, 60, 20):
        batch = data[start : start + 20]
        noisy = [batch + 0.1 * rng.normal(size=batch.shape).astype("float32") for _ in range(2)]
        loss = train(noisy, temperature=0.5)
    print("epoch", epoch, float(loss))
