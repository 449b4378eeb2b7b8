"""Two convolutions with batch normalisation by hand and average pooling, on small images: 10 steps and an evaluation."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images, labels = rng.normal(size=(160, 12, 12, 1)).astype("float32"), rng.integers(0, 3, 160)
shapes = {"k1": (3, 3, 1, 8), "s1": (8,), "k2": (3, 3, 8, 16), "s2": (16,), "w": (16, 3), "b": (3,)}
v = {name: tf.Variable(0.2 * rng.normal(size=shape).astype("float32"), name=name) for name, shape in shapes.items()}
m = {name: tf.Variable(tf.zeros(shape)) for name, shape in shapes.items()}


def normalised(x, shift):
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, shift, None, 1e-3)


def logits(x):
    x = tf.nn.relu(normalised(tf.nn.conv2d(x, v["k1"], 1, "SAME"), v["s1"]))
    x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
    x = tf.nn.relu(normalised(tf.nn.conv2d(x, v["k2"], 2, "SAME"), v["s2"]))
    return tf.matmul(tf.reduce_mean(x, [1, 2]), v["w"]) + v["b"]


for step in range(10):
    batch = slice(16 * step, 16 * step + 16)
    with tf.GradientTape() as tape:
        losses = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels[batch], 3), logits(images[batch]))
        loss = tf.reduce_mean(losses)
    for name, g in tape.gradient(loss, v).items():
        m[name].assign(0.9 * m[name] + 0.1 * g**2)
        v[name].assign_sub(0.01 * g / (tf.sqrt(m[name]) + 1e-6))
    if step % 3 == 0:
        print(step, float(loss))
guess = tf.argmax(logits(images[:64]), -1)
print(float(tf.reduce_mean(tf.cast(guess == labels[:64], tf.float32))))
