"""A character-level GRU language model: written cell, truncated sequences, gradient clipping, inverse square root schedule."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
TEXT = "the quick brown fox jumps over the lazy dog. " * 40
vocabulary = sorted(set(TEXT))
index = {character: i for i, character in enumerate(vocabulary)}
codes = np.array([index[c] for c in TEXT], dtype=np.int32)
VOCAB, EMBED, UNITS, LENGTH, BATCH = len(vocabulary), 12, 24, 10, 8


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, warmup):
        self.peak, self.warmup = peak, warmup

    def __call__(self, step):
        step = tf.cast(step + 1, tf.float32)
        return self.peak * tf.minimum(step / self.warmup, tf.sqrt(self.warmup / step))


class GRUCell(tf.Module):
    def __init__(self, inputs, units, name=None):
        super().__init__(name=name)
        init = tf.keras.initializers.GlorotUniform(seed=2)
        self.units = units
        self.w_gates = tf.Variable(init([inputs + units, 2 * units]), name="w_gates")
        self.b_gates = tf.Variable(tf.ones([2 * units]), name="b_gates")
        self.w_new = tf.Variable(init([inputs + units, units]), name="w_new")
        self.b_new = tf.Variable(tf.zeros([units]), name="b_new")

    def __call__(self, x, h):
        gates = tf.sigmoid(tf.concat([x, h], axis=-1) @ self.w_gates + self.b_gates)
        reset, update = tf.split(gates, 2, axis=-1)
        new = tf.tanh(tf.concat([x, reset * h], axis=-1) @ self.w_new + self.b_new)
        return update * h + (1.0 - update) * new


class LanguageModel(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.embedding = tf.Variable(tf.random.normal([VOCAB, EMBED], stddev=0.1, seed=3), name="embedding")
        self.cell = GRUCell(EMBED, UNITS)
        self.w_out = tf.Variable(tf.random.normal([UNITS, VOCAB], stddev=0.1, seed=4), name="w_out")
        self.b_out = tf.Variable(tf.zeros([VOCAB]), name="b_out")

    def __call__(self, tokens, h):
        embedded = tf.nn.embedding_lookup(self.embedding, tokens)
        logits = []
        for t in range(LENGTH):
            h = self.cell(embedded[:, t], h)
            logits.append(h @ self.w_out + self.b_out)
        return tf.stack(logits, axis=1), h


model = LanguageModel()
optimizer = tf.keras.optimizers.Adam(Schedule(0.02, 10.0))


@tf.function
def train_step(tokens, targets, h):
    with tf.GradientTape() as tape:
        logits, h = model(tokens, h)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, norm, h


rows = codes[: len(codes) // BATCH * BATCH].reshape(BATCH, -1)
for epoch in range(2):
    h = tf.zeros([BATCH, UNITS])
    for start in range(0, rows.shape[1] - LENGTH - 1, LENGTH):
        tokens = tf.constant(rows[:, start : start + LENGTH])
        targets = tf.constant(rows[:, start + 1 : start + LENGTH + 1])
        loss, norm, h = train_step(tokens, targets, h)
        if start % 50 == 0:
            print(f"epoch {epoch} loss {float(loss):.4f} perplexity {float(tf.exp(loss)):.2f} norm {float(norm):.3f}")
