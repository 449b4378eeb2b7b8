"""Which pixels matter: integrated gradients of a small fixed network, along 21 images from black to the given one."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
image = tf.constant(rng.random((16, 16, 3)).astype("float32"))
filters = tf.constant(rng.normal(size=(3, 3, 3, 8)).astype("float32"))
dense = tf.constant(rng.normal(size=(8, 5)).astype("float32"))


def model(images):
    x = tf.nn.relu(tf.nn.conv2d(images, filters, strides=2, padding="VALID"))
    return tf.matmul(tf.reduce_mean(x, axis=[1, 2]), dense)


def interpolate(baseline, image, alphas):
    alphas = alphas[:, tf.newaxis, tf.newaxis, tf.newaxis]
    baseline = tf.expand_dims(baseline, axis=0)
    return baseline + alphas * (tf.expand_dims(image, axis=0) - baseline)


def gradients_of(images, target):
    with tf.GradientTape() as tape:
        tape.watch(images)
        probabilities = tf.nn.softmax(model(images), axis=-1)[:, target]
    return tape.gradient(probabilities, images)


baseline = tf.zeros(image.shape)
alphas = tf.linspace(start=0.0, stop=1.0, num=21)
target = int(tf.argmax(model(image[tf.newaxis])[0]))
batches = []
for start in range(0, 21, 7):
    batches.append(gradients_of(interpolate(baseline, image, alphas[start : start + 7]), target))
gradients = tf.concat(batches, axis=0)
average = tf.math.reduce_mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)
attributions = (image - baseline) * average
score, empty = (tf.nn.softmax(model(x[tf.newaxis]))[0, target] for x in (image, baseline))
print(float(tf.reduce_sum(attributions)), float(score - empty))
mask = tf.reduce_sum(tf.math.abs(attributions), axis=-1)
print(mask.shape, float(tf.reduce_max(mask)))
