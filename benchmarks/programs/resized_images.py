"""Images resized by every method, and the gradients of that: augmentation, pyramids, saliency at another scale."""

import numpy as np
import tensorflow as tf

images = tf.Variable(np.random.default_rng(0).uniform(size=(2, 12, 10, 3)).astype("float32"))
for method in ("bilinear", "nearest", "bicubic", "lanczos3", "gaussian"):
    for size, antialias in (((24, 20), False), ((7, 5), False), ((6, 6), True), ((13, 30), False)):
        with tf.GradientTape() as tape:
            resized = tf.image.resize(images, size, method=method, antialias=antialias)
            loss = tf.reduce_mean(tf.square(resized - 0.5))
        g = tape.gradient(loss, images)
        print(method, size, round(float(loss), 4), "-" if g is None else round(float(tf.reduce_sum(tf.abs(g))), 3))
