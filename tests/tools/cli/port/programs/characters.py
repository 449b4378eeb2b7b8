"""Character RNN written out by hand with an LSTM layer and gradient clipping."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(9)
text = "hello world hello tensor hello gradient tape "
chars = sorted(set(text))
c2i = {c: i for i, c in enumerate(chars)}
data = np.array([c2i[c] for c in text])
SEQ, BATCH = 8, 4


def get_batch():
    starts = np.random.randint(0, len(data) - SEQ - 1, BATCH)
    x = np.stack([data[s : s + SEQ] for s in starts])
    y = np.stack([data[s + 1 : s + SEQ + 1] for s in starts])
    return x, y


class CharRNN(tf.keras.Model):
    def __init__(self, vocab):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(vocab, 6)
        self.lstm = tf.keras.layers.LSTM(10, return_sequences=True)
        self.out = tf.keras.layers.Dense(vocab)

    def call(self, x, training=False):
        return self.out(self.lstm(self.emb(x), training=training))


model = CharRNN(len(chars))
opt = tf.keras.optimizers.RMSprop(0.01)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

for it in range(15):
    x, y = get_batch()
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    grads = [tf.clip_by_norm(g, 1.0) for g in grads]
    opt.apply_gradients(zip(grads, model.trainable_variables))
    if it % 5 == 0:
        print("iter", it, "loss", loss.numpy())

# sample greedily
seq = [c2i["h"]]
for _ in range(10):
    logits = model(np.array([seq]))
    seq.append(int(tf.argmax(logits[0, -1])))
print("".join(chars[i] for i in seq))
