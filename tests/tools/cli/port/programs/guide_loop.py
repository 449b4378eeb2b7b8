"""The custom loop of the guides: a Keras model, a compiled step, a metric, batches of which the last is smaller."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
images = rng.normal(size=(72, 6)).astype("float32")
labels = (images[:, 0] * images[:, 1] > 0).astype("int64") + (images[:, 2] > 0)

model = keras.Sequential([keras.layers.Dense(12, activation="relu"), keras.layers.Dense(3)])
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(learning_rate=0.02)
train_metric = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    train_metric.update_state(y, logits)
    return loss_value


def batches(size):
    for start in range(0, len(images), size):
        yield images[start : start + size], labels[start : start + size]


for epoch in range(4):
    print("epoch", epoch)
    for step, (x_batch, y_batch) in enumerate(batches(32)):
        loss_value = train_step(x_batch, y_batch)
        if step % 2 == 0:
            print(f"  step {step}: loss {float(loss_value):.4f}")
    print(f"  accuracy {float(train_metric.result()):.3f}")
    train_metric.reset_state()
