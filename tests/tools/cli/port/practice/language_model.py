"""A character model: LSTM cells written out, truncated back-propagation, clipped gradients, a rate that decays by epoch."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)
TEXT = "the quick brown fox jumps over the lazy dog and the lazy dog sleeps on " * 12
chars = sorted(set(TEXT))
index = {c: i for i, c in enumerate(chars)}
BATCH, LENGTH, UNITS, VOCAB = 4, 12, 20, len(chars)
ids = np.array([index[c] for c in TEXT], "int32")
ids = ids[: len(ids) // BATCH * BATCH].reshape(BATCH, -1)


class LSTM(tf.Module):
    def __init__(self, units, inputs, name=None):
        super().__init__(name=name)
        scale = 1.0 / np.sqrt(units + inputs)
        self.w = tf.Variable(tf.random.uniform([inputs + units, 4 * units], -scale, scale), name="w")
        self.b = tf.Variable(tf.zeros([4 * units]), name="b")

    def __call__(self, x, state):
        h, c = state
        i, f, g, o = tf.split(tf.concat([x, h], axis=1) @ self.w + self.b, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (h, c)


class CharModel(tf.Module):
    def __init__(self):
        super().__init__()
        self.embedding = tf.Variable(tf.random.normal([VOCAB, 8], stddev=0.1), name="embedding")
        self.cell = LSTM(UNITS, 8)
        self.out = tf.Variable(tf.random.normal([UNITS, VOCAB], stddev=0.1), name="out")

    def __call__(self, tokens, state):
        logits = []
        for x in tf.unstack(tf.nn.embedding_lookup(self.embedding, tokens), axis=1):
            h, state = self.cell(x, state)
            logits.append(h @ self.out)
        return tf.stack(logits, axis=1), state


model = CharModel()
optimizer = tf.keras.optimizers.SGD(learning_rate=1.0)


@tf.function
def train_step(x, y, state):
    with tf.GradientTape() as tape:
        logits, state = model(x, state)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    grads, norm = tf.clip_by_global_norm(grads, 0.5)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, state


for epoch in range(2):
    state = (tf.zeros([BATCH, UNITS]), tf.zeros([BATCH, UNITS]))
    total, steps = 0.0, 0
    for start in range(0, ids.shape[1] - LENGTH - 1, LENGTH):
        x = tf.constant(ids[:, start : start + LENGTH])
        y = tf.constant(ids[:, start + 1 : start + LENGTH + 1])
        loss, state = train_step(x, y, state)
        total, steps = total + float(loss), steps + 1
    optimizer.learning_rate.assign(optimizer.learning_rate * 0.8)
    print(f"epoch {epoch}: perplexity {np.exp(total / steps):.3f}")
