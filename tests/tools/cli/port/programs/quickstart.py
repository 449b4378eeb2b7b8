"""A small CNN, fed by tf.data, in the way of the advanced quickstart."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model
from tensorflow.keras.layers import Conv2D, Dense, Flatten, MaxPooling2D

tf.random.set_seed(0)
np.random.seed(0)
x_train = np.random.rand(32, 8, 8).astype("float32")
y_train = (x_train[:, :4].mean(axis=(1, 2)) > x_train[:, 4:].mean(axis=(1, 2))).astype("int64")
x_test = np.random.rand(16, 8, 8).astype("float32")
y_test = (x_test[:, :4].mean(axis=(1, 2)) > x_test[:, 4:].mean(axis=(1, 2))).astype("int64")

# Add a channels dimension
x_train = x_train[..., tf.newaxis].astype("float32")
x_test = x_test[..., tf.newaxis].astype("float32")

train_ds = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(32).batch(8)
test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(8)


class MyModel(Model):
    def __init__(self):
        super().__init__()
        self.conv1 = Conv2D(4, 3, activation="relu")
        self.pool = MaxPooling2D()
        self.flatten = Flatten()
        self.d1 = Dense(8, activation="relu")
        self.d2 = Dense(2)

    def call(self, x):
        x = self.pool(self.conv1(x))
        x = self.flatten(x)
        return self.d2(self.d1(x))


model = MyModel()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()
train_loss = tf.keras.metrics.Mean(name="train_loss")
train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
test_loss = tf.keras.metrics.Mean(name="test_loss")
test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


@tf.function
def test_step(images, labels):
    predictions = model(images, training=False)
    t_loss = loss_object(labels, predictions)
    test_loss(t_loss)
    test_accuracy(labels, predictions)


EPOCHS = 3
for epoch in range(EPOCHS):
    # Reset the metrics at the start of the next epoch
    train_loss.reset_state()
    train_accuracy.reset_state()
    test_loss.reset_state()
    test_accuracy.reset_state()
    for images, labels in train_ds:
        train_step(images, labels)
    for test_images, test_labels in test_ds:
        test_step(test_images, test_labels)
    print(
        f"Epoch {epoch + 1}, Loss: {train_loss.result():.4f}, Accuracy: {train_accuracy.result() * 100:.2f}, "
        f"Test Loss: {test_loss.result():.4f}, Test Accuracy: {test_accuracy.result() * 100:.2f}"
    )
