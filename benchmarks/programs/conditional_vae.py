"""A variational autoencoder that is told the class, with Adam by hand: 12 steps, then samples."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
rng = np.random.default_rng(0)
data, labels = (rng.uniform(size=(120, 36)) > 0.6).astype("float32"), rng.integers(0, 5, 120)


class Dense(tf.Module):
    def __init__(self, inputs, outputs, activation=tf.identity):
        self.w = tf.Variable(rng.normal(0, inputs**-0.5, (inputs, outputs)).astype("float32"))
        self.b = tf.Variable(tf.zeros([outputs]))
        self.activation = activation

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)


class VAE(tf.Module):
    def __init__(self):
        self.encoder = [Dense(41, 24, tf.nn.elu), Dense(24, 6)]
        self.decoder = [Dense(8, 24, tf.nn.elu), Dense(24, 36)]

    def loss(self, x, c):
        mean, log_variance = tf.split(self.encoder[1](self.encoder[0](tf.concat([x, c], 1))), 2, axis=1)
        z = mean + tf.exp(0.5 * log_variance) * tf.random.normal(mean.shape)
        out = self.decode(z, c)
        likelihood = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=out), 1)
        divergence = -0.5 * tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance), axis=1)
        return tf.reduce_mean(likelihood + divergence)

    def decode(self, z, c):
        return self.decoder[1](self.decoder[0](tf.concat([z, c], 1)))


model = VAE()
first, second = ([tf.Variable(tf.zeros_like(v)) for v in model.trainable_variables] for _ in "12")
for step in range(1, 13):
    some = rng.integers(0, 120, 30)
    with tf.GradientTape() as tape:
        loss = model.loss(data[some], tf.one_hot(labels[some], 5))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
    for v, g, m, s in zip(model.trainable_variables, gradients, first, second, strict=True):
        m.assign(0.9 * m + 0.1 * g)
        s.assign(0.999 * s + 0.001 * g * g)
        v.assign_sub(0.01 * (m / (1 - 0.9**step)) / (tf.sqrt(s / (1 - 0.999**step)) + 1e-8))
samples = tf.sigmoid(model.decode(tf.random.normal([4, 3]), tf.one_hot([0, 1, 2, 3], 5)))
print(samples.shape, bool(loss < 40.0))
