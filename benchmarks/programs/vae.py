"""A variational autoencoder with Keras's layers and Adam: 10 steps."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
rng = np.random.default_rng(0)
images = (rng.random((10, 32, 64)) > 0.5).astype("float32")
latent = 2
encoder = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(2 * latent)])
decoder = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(64)])
optimizer = tf.keras.optimizers.Adam(1e-3)


def log_normal(sample, mean, logvar):
    log2pi = tf.math.log(2.0 * np.pi)
    return tf.reduce_sum(-0.5 * ((sample - mean) ** 2.0 * tf.exp(-logvar) + logvar + log2pi), axis=1)


def negative_elbo(x):
    mean, logvar = tf.split(encoder(x), num_or_size_splits=2, axis=1)
    z = tf.random.normal(shape=mean.shape) * tf.exp(logvar * 0.5) + mean
    cross = tf.nn.sigmoid_cross_entropy_with_logits(logits=decoder(z), labels=x)
    return -tf.reduce_mean(-tf.reduce_sum(cross, axis=1) + log_normal(z, 0.0, 0.0) - log_normal(z, mean, logvar))


for step in range(10):
    x = tf.convert_to_tensor(images[step])
    with tf.GradientTape() as tape:
        loss = negative_elbo(x)
    variables = encoder.trainable_variables + decoder.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=False))
    print(step, float(loss))
print(tf.sigmoid(decoder(tf.random.normal([4, latent]))).shape)
