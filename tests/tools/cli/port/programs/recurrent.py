"""Next characters by a GRU, fed by tf.data in order; the step's noise is TensorFlow's own."""

import tensorflow as tf

tf.random.set_seed(14)
text = "the tape records what is computed and plays it back to find how each part of it changed the end "
chars = sorted(set(text))
ids = [chars.index(c) for c in text]
inputs = tf.constant([ids[i : i + 12] for i in range(0, 72, 4)])
labels = tf.constant([ids[i + 1 : i + 13] for i in range(0, 72, 4)])
dataset = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(6).repeat(3)

embedding = tf.keras.layers.Embedding(len(chars), 8)
gru = tf.keras.layers.GRU(12, return_sequences=True)
head = tf.keras.layers.Dense(len(chars))
optimizer = tf.keras.optimizers.Lion(1e-3)

for step, (x, y) in enumerate(dataset):
    noise = tf.random.normal([6, 12, 8], stddev=0.1)
    with tf.GradientTape() as tape:
        logits = head(gru(embedding(x) + noise))
        loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))
    variables = embedding.trainable_variables + gru.trainable_variables + head.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    print(step, float(loss))
