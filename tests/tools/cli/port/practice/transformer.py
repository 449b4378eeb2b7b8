"""A small transformer that learns to reverse sequences, with a learning rate that warms up."""

import numpy as np
import tensorflow as tf

VOCABULARY, LENGTH, WIDTH, BATCH = 12, 8, 16, 16

rng = np.random.default_rng(0)
tf.random.set_seed(0)


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    """Grows linearly, then falls with the square root of the step."""

    def __init__(self, width, warmup=10):
        self.width, self.warmup = width, warmup

    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1.0
        rate = tf.minimum(tf.math.rsqrt(step), step * self.warmup**-1.5)
        return 0.1 * self.width**-0.5 * rate


class Block(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = tf.keras.layers.MultiHeadAttention(2, WIDTH // 2)
        self.first = tf.keras.layers.LayerNormalization()
        self.second = tf.keras.layers.LayerNormalization()
        self.hidden = tf.keras.layers.Dense(2 * WIDTH, activation="relu")
        self.out = tf.keras.layers.Dense(WIDTH)

    def call(self, x):
        x = self.first(x + self.attention(x, x))
        return self.second(x + self.out(self.hidden(x)))


tokens = tf.keras.layers.Embedding(VOCABULARY, WIDTH)
places = tf.keras.layers.Embedding(LENGTH, WIDTH)
block = Block()
head = tf.keras.layers.Dense(VOCABULARY)
layers = [tokens, places, block, head]


def model(x):
    h = tokens(x) + places(tf.range(LENGTH))
    return head(block(h))


model(tf.zeros([1, LENGTH], tf.int32))
variables = [v for layer in layers for v in layer.trainable_variables]
optimizer = tf.keras.optimizers.Adam(WarmUp(WIDTH), beta_2=0.98)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


for step in range(24):
    x = rng.integers(0, VOCABULARY, size=(BATCH, LENGTH)).astype("int32")
    loss = train_step(tf.constant(x), tf.constant(x[:, ::-1].copy()))
    if step % 8 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
test = rng.integers(0, VOCABULARY, size=(64, LENGTH)).astype("int32")
print("accuracy", np.mean(model(test).numpy().argmax(-1) == test[:, ::-1]))
