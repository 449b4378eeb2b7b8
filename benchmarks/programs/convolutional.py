"""A small convolutional network with dropout and a hand-written momentum: 15 steps."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images = rng.normal(size=(15, 32, 28, 28, 1)).astype("float32")
labels = rng.integers(0, 10, size=(15, 32))
glorot = tf.initializers.GlorotUniform(seed=1)
shapes = [(3, 3, 1, 16), (16,), (3, 3, 16, 32), (32,), (7 * 7 * 32, 64), (64,), (64, 10), (10,)]
variables = [tf.Variable(glorot(shape) if len(shape) > 1 else tf.zeros(shape)) for shape in shapes]
velocities = [tf.Variable(tf.zeros_like(variable)) for variable in variables]


def model(x, training):
    w1, b1, w2, b2, w3, b3, w4, b4 = variables
    x = tf.nn.relu(tf.nn.conv2d(x, w1, strides=1, padding="SAME") + b1)
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.nn.relu(tf.nn.conv2d(x, w2, strides=1, padding="SAME") + b2)
    x = tf.nn.max_pool2d(x, 2, 2, "SAME")
    x = tf.reshape(x, [x.shape[0], -1])
    x = tf.nn.relu(tf.matmul(x, w3) + b3)
    if training:
        x = tf.nn.dropout(x, rate=0.4)
    return tf.matmul(x, w4) + b4


for step in range(15):
    x, y = tf.constant(images[step]), tf.constant(labels[step])
    with tf.GradientTape() as tape:
        z = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z))
    for variable, velocity, gradient in zip(variables, velocities, tape.gradient(loss, variables), strict=False):
        velocity.assign(0.9 * velocity + gradient)
        variable.assign_sub(0.01 * velocity)
    if step % 5 == 0:
        print(step, float(loss))
right = tf.equal(tf.argmax(model(tf.constant(images[0]), training=False), axis=1), labels[0])
print("accuracy", float(tf.reduce_mean(tf.cast(right, tf.float32))))
