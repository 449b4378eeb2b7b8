"""Bayes by backprop: a regression whose layers hold a normal distribution for each weight, and pay for it by its KL."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(9)
N, BATCH, EPOCHS, PRIOR = 96, 16, 4, 1.0


class BayesianDense(tf.keras.layers.Layer):
    """A dense layer of random weights; the draws of a step are given to it."""

    def __init__(self, units, activation=None, **more):
        super().__init__(**more)
        self.units, self.activation = units, tf.keras.activations.get(activation)

    def build(self, shape):
        size = (int(shape[-1]), self.units)
        self.mean = self.add_weight(shape=size, initializer="zeros", name="mean")
        self.mean.assign(rng.normal(0, 0.5, size).astype("float32"))
        self.rho = self.add_weight(shape=size, initializer=tf.keras.initializers.Constant(-3.0), name="rho")
        self.bias = self.add_weight(shape=(self.units,), initializer="zeros", name="bias")

    def call(self, x, draw):
        sigma = tf.nn.softplus(self.rho)
        weights = self.mean + sigma * draw
        return self.activation(x @ weights + self.bias)

    def kl(self):
        sigma = tf.nn.softplus(self.rho)
        return tf.reduce_sum(tf.math.log(PRIOR / sigma) + (sigma**2 + self.mean**2) / (2.0 * PRIOR**2) - 0.5)


class Network(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first = BayesianDense(16, "tanh", name="first")
        self.second = BayesianDense(1, name="second")
        self.log_noise = self.add_weight(shape=(), initializer=tf.keras.initializers.Constant(-1.0), name="log_noise")

    def call(self, x, draws):
        return self.second(self.first(x, draws[0]), draws[1])[:, 0]

    def kl(self):
        return self.first.kl() + self.second.kl()


def draws():
    shapes = (1, 16), (16, 1)
    return [tf.constant(rng.normal(size=shape), tf.float32) for shape in shapes]


x = np.sort(rng.uniform(-2, 2, (N, 1))).astype("float32")
y = (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=N)).astype("float32")
model = Network()
model(x[:1], draws())
optimizer = tf.keras.optimizers.Adam(1e-2)
mean_loss = tf.keras.metrics.Mean()


@tf.function
def train_step(x, y, noise, weight):
    with tf.GradientTape() as tape:
        predicted = model(x, noise)
        scale = tf.exp(model.log_noise)
        likelihood = tf.reduce_sum(0.5 * ((y - predicted) / scale) ** 2 + model.log_noise)
        loss = likelihood + weight * model.kl()
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean_loss.update_state(loss)
    return loss


step = 0
for epoch in range(EPOCHS):
    order = rng.permutation(N)
    warm_up = min(1.0, (epoch + 1) / 3)
    for start in range(0, N, BATCH):
        rows = order[start : start + BATCH]
        weight = tf.constant(warm_up * BATCH / N, tf.float32)
        loss = train_step(tf.constant(x[rows]), tf.constant(y[rows]), draws(), weight)
        print(f"step {step} loss {float(loss):.6f}")
        step += 1
    print(f"epoch {epoch}: {float(mean_loss.result()):.4f}")
    mean_loss.reset_state()
samples = np.stack([model(x, draws()).numpy() for _ in range(8)])
print("mean standard deviation:", round(float(samples.std(0).mean()), 3))
