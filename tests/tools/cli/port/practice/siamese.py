"""A Siamese network: pairs of sequences of one class are near each other. Training stops early, by hand."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(11)
CLASSES, LENGTH, MARGIN, PATIENCE, EPOCHS = 4, 12, 1.0, 3, 12


def waves(labels):
    t = np.linspace(0, 1, LENGTH)
    clean = np.sin(2 * np.pi * (labels[:, None] + 1) * t + rng.uniform(0, 0.6, (len(labels), 1)))
    return (clean + 0.15 * rng.normal(size=clean.shape)).astype("float32")[..., None]


def make_pairs(n):
    left, right = rng.integers(0, CLASSES, n), rng.integers(0, CLASSES, n)
    right = np.where(rng.uniform(size=n) < 0.5, left, right)
    return waves(left), waves(right), (left == right).astype("float32")


class Embedding(tf.keras.Model):
    def __init__(self, size=8):
        super().__init__(name="embedding")
        self.conv = tf.keras.layers.Conv1D(8, 3, activation="relu", padding="same")
        self.pool = tf.keras.layers.MaxPooling1D(2)
        self.flat = tf.keras.layers.Flatten()
        self.project = tf.keras.layers.Dense(size)

    def call(self, x):
        x = self.flat(self.pool(self.conv(x)))
        return tf.math.l2_normalize(self.project(x), axis=-1)


def distance(a, b):
    return tf.sqrt(tf.maximum(tf.reduce_sum(tf.square(a - b), axis=-1), 1e-9))


def contrastive_loss(same, d):
    return tf.reduce_mean(same * tf.square(d) + (1.0 - same) * tf.square(tf.maximum(MARGIN - d, 0.0)))


embed = Embedding()
embed(tf.zeros([1, LENGTH, 1]))
for weight in embed.trainable_variables:
    if len(weight.shape) > 1:
        weight.assign(rng.normal(0, 0.4, weight.shape).astype("float32"))
optimizer = tf.keras.optimizers.RMSprop(1e-2)


@tf.function
def train_step(left, right, same):
    with tf.GradientTape() as tape:
        d = distance(embed(left), embed(right))
        loss = contrastive_loss(same, d)
    gradients = tape.gradient(loss, embed.trainable_variables)
    optimizer.apply_gradients(zip(gradients, embed.trainable_variables))
    return loss


@tf.function
def evaluate(left, right, same):
    d = distance(embed(left), embed(right))
    correct = tf.equal(d < 0.5, same > 0.5)
    return contrastive_loss(same, d), tf.reduce_mean(tf.cast(correct, tf.float32))


train, held_out = make_pairs(96), make_pairs(32)
dataset = tf.data.Dataset.from_tensor_slices(train).batch(24)
best, waited, best_weights = np.inf, 0, None
step = 0
for epoch in range(EPOCHS):
    for left, right, same in dataset:
        loss = train_step(left, right, same)
        print(f"step {step} loss {float(loss):.7f}")
        step += 1
    validation, accuracy = evaluate(*map(tf.constant, held_out))
    print(f"epoch {epoch} validation {float(validation):.6f} accuracy {float(accuracy):.3f}")
    if float(validation) < best - 1e-4:
        best, waited, best_weights = float(validation), 0, embed.get_weights()
    else:
        waited += 1
        if waited >= PATIENCE:
            print("stopped after epoch", epoch)
            break
embed.set_weights(best_weights)
