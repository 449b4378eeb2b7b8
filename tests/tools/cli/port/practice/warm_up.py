"""A small decoder that learns to reverse sequences: masked attention, layer norms, a learning rate that warms up."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(6)
VOCAB, LENGTH, WIDTH, HEADS = 11, 9, 16, 2


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, width, warmup_steps=10):
        super().__init__()
        self.width, self.warmup_steps = float(width), float(warmup_steps)

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        return self.width**-0.5 * tf.minimum(step**-0.5, step * self.warmup_steps**-1.5)


class Block(tf.keras.layers.Layer):
    def __init__(self, width, heads, **kwargs):
        super().__init__(**kwargs)
        self.attention = tf.keras.layers.MultiHeadAttention(heads, width // heads)
        self.norm_1, self.norm_2 = tf.keras.layers.LayerNormalization(), tf.keras.layers.LayerNormalization()
        self.feed_forward = tf.keras.Sequential(
            [tf.keras.layers.Dense(2 * width, activation="relu"), tf.keras.layers.Dense(width)]
        )

    def call(self, x):
        x = self.norm_1(x + self.attention(x, x, use_causal_mask=True))
        return self.norm_2(x + self.feed_forward(x))


class Decoder(tf.keras.Model):
    def __init__(self, layers=2):
        super().__init__()
        self.tokens = tf.keras.layers.Embedding(VOCAB, WIDTH)
        self.positions = tf.keras.layers.Embedding(LENGTH, WIDTH)
        self.blocks = [Block(WIDTH, HEADS) for _ in range(layers)]
        self.head = tf.keras.layers.Dense(VOCAB)

    def call(self, ids):
        x = self.tokens(ids) * tf.sqrt(float(WIDTH)) + self.positions(tf.range(tf.shape(ids)[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def make_batch(rng, count):
    first = rng.integers(1, VOCAB, (count, (LENGTH + 1) // 2))
    return np.concatenate([first, first[:, ::-1]], axis=1).astype("int32")


model = Decoder()
model(np.zeros((1, LENGTH), "int32"))
optimizer = tf.keras.optimizers.Adam(WarmUp(WIDTH), beta_1=0.9, beta_2=0.98, epsilon=1e-9)
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
train_loss = tf.keras.metrics.Mean(name="train_loss")


def masked_loss(real, predicted):
    mask = tf.cast(real != 0, tf.float32)
    return tf.reduce_sum(loss_object(real, predicted) * mask) / tf.reduce_sum(mask)


@tf.function
def train_step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = masked_loss(targets, model(inputs, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)


rng = np.random.default_rng(0)
for epoch in range(3):
    train_loss.reset_state()
    for _ in range(8):
        batch = make_batch(rng, 16)
        train_step(tf.constant(batch[:, :-1]), tf.constant(batch[:, 1:]))
    print(f"epoch {epoch + 1}: {train_loss.result():.4f}")
