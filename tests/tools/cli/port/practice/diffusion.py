"""A denoising diffusion model of points on a ring, with an exponential moving average of its weights."""

import numpy as np
import tensorflow as tf

T, BATCH, STEPS, DECAY = 50, 64, 24, 0.95
rng = np.random.default_rng(2)
betas = np.linspace(1e-3, 0.15, T, dtype="float32")
alpha_bars = tf.constant(np.cumprod(1.0 - betas), tf.float32)


def ring(n):
    angle = rng.uniform(0, 2 * np.pi, n)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return (points + 0.05 * rng.normal(size=(n, 2))).astype("float32")


class TimeEmbedding(tf.keras.layers.Layer):
    def __init__(self, size, **more):
        super().__init__(**more)
        self.frequencies = np.exp(np.linspace(0.0, 4.0, size // 2)).astype("float32")

    def call(self, t):
        angles = tf.cast(t, tf.float32)[:, None] / T * self.frequencies[None, :]
        return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)


class Denoiser(tf.keras.Model):
    def __init__(self, width=32):
        super().__init__()
        self.time = TimeEmbedding(8)
        self.lift = tf.keras.layers.Dense(width)
        self.shift = tf.keras.layers.Dense(width)
        self.hidden = [tf.keras.layers.Dense(width) for _ in range(2)]
        self.out = tf.keras.layers.Dense(2)

    def call(self, x, t):
        h = tf.nn.silu(self.lift(x) + self.shift(self.time(t)))
        for layer in self.hidden:
            h = h + tf.nn.silu(layer(h))
        return self.out(h)


model, average = Denoiser(), Denoiser()
for network in (model, average):
    network(tf.zeros([1, 2]), tf.zeros([1], tf.int32))
for weight in model.trainable_variables:
    if len(weight.shape) > 1:
        weight.assign(rng.normal(0, 1 / np.sqrt(weight.shape[0]), weight.shape).astype("float32"))
average.set_weights(model.get_weights())
optimizer = tf.keras.optimizers.AdamW(2e-3, weight_decay=1e-3, global_clipnorm=1.0)


def add_noise(x, t, noise):
    a = tf.gather(alpha_bars, t)[:, None]
    return tf.sqrt(a) * x + tf.sqrt(1.0 - a) * noise


@tf.function
def train_step(x, t, noise):
    with tf.GradientTape() as tape:
        predicted = model(add_noise(x, t, noise), t)
        loss = tf.reduce_mean(tf.square(noise - predicted))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    for slow, fast in zip(average.trainable_variables, model.trainable_variables):
        slow.assign(DECAY * slow + (1.0 - DECAY) * fast)
    return loss


def sample(n):
    x = tf.constant(rng.normal(size=(n, 2)), tf.float32)
    for i in reversed(range(T)):
        t = tf.fill([n], i)
        a, b = alpha_bars[i], betas[i]
        x = (x - b / tf.sqrt(1.0 - a) * average(x, t)) / np.sqrt(1.0 - b)
        if i:
            x = x + np.sqrt(b) * tf.constant(rng.normal(size=(n, 2)), tf.float32)
    return x


for step in range(STEPS):
    x, t = ring(BATCH), rng.integers(0, T, BATCH).astype("int32")
    noise = rng.normal(size=(BATCH, 2)).astype("float32")
    loss = train_step(tf.constant(x), tf.constant(t), tf.constant(noise))
    print(f"step {step} loss {float(loss):.7f}")
print("radius of samples:", round(float(tf.reduce_mean(tf.norm(sample(32), axis=1))), 2))
