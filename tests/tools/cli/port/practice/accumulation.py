"""Gradient accumulation: the sum of four small batches' gradients makes one step, clipped by its global norm."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
ACCUMULATE, MICRO_BATCH, EPOCHS = 4, 8, 3


class Classifier(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(24, activation="gelu")
        self.norm = tf.keras.layers.LayerNormalization()
        self.out = tf.keras.layers.Dense(3)

    def call(self, x):
        return self.out(self.norm(self.hidden(x)))


rng = np.random.default_rng(5)
x_train = rng.normal(size=(256, 10)).astype("float32")
y_train = (x_train @ rng.normal(size=(10, 3))).argmax(1).astype("int32")

model = Classifier()
model(x_train[:1])
optimizer = tf.keras.optimizers.AdamW(learning_rate=2e-3, weight_decay=1e-2)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]


@tf.function
def accumulate(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) / ACCUMULATE
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(accumulated, gradients):
        total.assign_add(gradient)
    return loss


@tf.function
def apply():
    clipped, norm = tf.clip_by_global_norm(accumulated, 1.0)
    optimizer.apply_gradients(zip(clipped, model.trainable_variables))
    for total in accumulated:
        total.assign(tf.zeros_like(total))
    return norm


for epoch in range(EPOCHS):
    order = rng.permutation(len(x_train))
    running = 0.0
    for i in range(len(x_train) // MICRO_BATCH):
        rows = order[i * MICRO_BATCH : (i + 1) * MICRO_BATCH]
        running += float(accumulate(tf.constant(x_train[rows]), tf.constant(y_train[rows])))
        if (i + 1) % ACCUMULATE == 0:
            norm = apply()
    print(epoch, running * ACCUMULATE / (i + 1), float(norm))
