"""Teach a convolutional network to tell bars from crosses and rings.

The images are drawn here, the layers are Keras's, the data come in batches from tf.data, and the training loop is written out
with a tape inside a tf.function. Loss and accuracy are Keras metrics, which add up over an epoch.

    python examples/convolutional.py                  on TensorFlow
    python -m tapejax run examples/convolutional.py   on JAX
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

CLASSES = ["bar", "cross", "ring"]
SIZE = 12
EPOCHS = 5
BATCH = 32

rng = np.random.default_rng(2)


def draw(kind):
    """One noisy image (12, 12) with a figure of that kind somewhere in it."""
    image = rng.normal(0, 0.15, (SIZE, SIZE))
    row, column = rng.integers(3, SIZE - 3, 2)
    if kind == "bar":
        image[row, column - 3 : column + 4] += 1
    elif kind == "cross":
        image[row, column - 2 : column + 3] += 1
        image[row - 2 : row + 3, column] += 1
    else:
        image[row - 2 : row + 3, column - 2 : column + 3] += 1
        image[row - 1 : row + 2, column - 1 : column + 2] -= 1
    return image


def images(count):
    """Images (count, 12, 12, 1) and what they show (count,)."""
    labels = rng.integers(0, len(CLASSES), count)
    return np.stack([draw(CLASSES[label]) for label in labels])[..., np.newaxis].astype("float32"), labels


train_images, train_labels = images(480)
test_images, test_labels = images(120)

train_data = tf.data.Dataset.from_tensor_slices((train_images, train_labels)).batch(BATCH).prefetch(tf.data.AUTOTUNE)
test_data = tf.data.Dataset.from_tensor_slices((test_images, test_labels)).batch(60)

model = tf.keras.Sequential(
    [
        tf.keras.Input(shape=(SIZE, SIZE, 1)),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.GlobalMaxPooling2D(),
        layers.Dense(len(CLASSES)),
    ]
)
# Drawn by NumPy, so that every run starts from the same weights.
model.set_weights([rng.normal(0, np.sqrt(2 / max(1, np.prod(w.shape[:-1]))), w.shape) for w in model.get_weights()])

loss_function = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
mean_loss = tf.keras.metrics.Mean(name="loss")
accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        scores = model(images, training=True)
        loss = loss_function(labels, scores)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean_loss.update_state(loss)
    accuracy.update_state(labels, scores)


@tf.function
def test_step(images, labels):
    scores = model(images, training=False)
    mean_loss.update_state(loss_function(labels, scores))
    accuracy.update_state(labels, scores)


for epoch in range(1, EPOCHS + 1):
    for name, data, step in [("train", train_data, train_step), ("test", test_data, test_step)]:
        mean_loss.reset_state()
        accuracy.reset_state()
        for batch, labels in data:
            step(batch, labels)
        print(f"epoch {epoch}  {name:5} loss {mean_loss.result():.5f}  accuracy {accuracy.result():.3f}")
