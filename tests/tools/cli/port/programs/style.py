"""An image that is itself the variable: its features come to those of another, and it is clipped after each step."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(9)
tf.keras.utils.set_random_seed(9)
content = tf.constant(rng.uniform(size=(1, 8, 8, 3)).astype("float32"))
style = tf.constant(rng.uniform(size=(1, 8, 8, 3)).astype("float32"))
extractor = tf.keras.layers.Conv2D(5, 3, activation="relu")


def gram_matrix(x):
    result = tf.linalg.einsum("bijc,bijd->bcd", x, x)
    shape = tf.shape(x)
    return result / tf.cast(shape[1] * shape[2], tf.float32)


style_target, content_target = gram_matrix(extractor(style)), extractor(content)
image = tf.Variable(content)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.02, beta_1=0.99, epsilon=1e-1)


@tf.function()
def train_step(image):
    with tf.GradientTape() as tape:
        features = extractor(image)
        loss = tf.reduce_sum((gram_matrix(features) - style_target) ** 2)
        loss += 0.1 * tf.reduce_mean((features - content_target) ** 2)
        loss += 1e-3 * tf.image.total_variation(image)[0]
    grad = tape.gradient(loss, image)
    optimizer.apply_gradients([(grad, image)])
    image.assign(tf.clip_by_value(image, 0.0, 1.0))
    return loss


for _ in range(12):
    loss = train_step(image)
    print(".", end="")
print(f" {float(loss):.5f}")
