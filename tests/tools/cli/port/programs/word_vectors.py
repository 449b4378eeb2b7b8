"""Skip-gram word2vec with negative sampling on a toy corpus."""

import numpy as np
import tensorflow as tf

np.random.seed(4)
corpus = "the quick brown fox jumps over the lazy dog while the cat sleeps near the warm fire and the dog barks".split()
vocab = sorted(set(corpus))
word_to_id = {w: i for i, w in enumerate(vocab)}
ids = [word_to_id[w] for w in corpus]
V, D, WINDOW, NEG = len(vocab), 6, 2, 3

pairs = []
for i, center in enumerate(ids):
    for j in range(max(0, i - WINDOW), min(len(ids), i + WINDOW + 1)):
        if i != j:
            pairs.append((center, ids[j]))
pairs = np.array(pairs)

embeddings = tf.Variable(tf.random.uniform([V, D], -0.5, 0.5, seed=1), name="embeddings")
context = tf.Variable(tf.random.uniform([V, D], -0.5, 0.5, seed=2), name="context")
optimizer = tf.keras.optimizers.SGD(learning_rate=0.3)


def batches(pairs, batch_size):
    np.random.shuffle(pairs)
    for start in range(0, len(pairs) - batch_size + 1, batch_size):
        yield pairs[start : start + batch_size]


for epoch in range(2):
    total = 0.0
    for batch in batches(pairs, 16):
        centers, targets = batch[:, 0], batch[:, 1]
        negatives = np.random.randint(0, V, size=(len(batch), NEG))
        with tf.GradientTape() as tape:
            c = tf.nn.embedding_lookup(embeddings, centers)
            pos = tf.reduce_sum(c * tf.nn.embedding_lookup(context, targets), axis=1)
            neg = tf.einsum("bd,bnd->bn", c, tf.gather(context, negatives))
            loss = -tf.reduce_mean(tf.math.log_sigmoid(pos) + tf.reduce_sum(tf.math.log_sigmoid(-neg), axis=1))
        grads = tape.gradient(loss, [embeddings, context])
        optimizer.apply_gradients(zip(grads, [embeddings, context]))
        total += loss.numpy()
    print("epoch", epoch, "loss", total)

# nearest neighbours of a word
norm = embeddings / tf.norm(embeddings, axis=1, keepdims=True)
sim = tf.matmul(norm, norm, transpose_b=True).numpy()
word = "dog"
nearest = np.argsort(-sim[word_to_id[word]])[1:4]
print(word, "->", [vocab[i] for i in nearest])
