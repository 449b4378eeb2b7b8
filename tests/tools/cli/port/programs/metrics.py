"""A multilayer perceptron on two noisy classes, with Keras layers and Adam."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

np.random.seed(1)
tf.random.set_seed(1)

# ---------- data ----------
N = 96
X = np.random.randn(N, 4).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)
x_train, y_train = X[:64], y[:64]
x_test, y_test = X[64:], y[64:]

# ---------- model ----------
init = keras.initializers.GlorotUniform(seed=7)
model = keras.Sequential(
    [
        layers.Dense(16, activation="relu", kernel_initializer=init),
        layers.Dropout(0.2, seed=3),
        layers.Dense(16, activation="relu", kernel_initializer=keras.initializers.HeNormal(seed=8)),
        layers.Dense(2),
    ]
)
loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(learning_rate=0.01)
train_loss = keras.metrics.Mean(name="train_loss")
train_accuracy = keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_object(y, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(y, logits)


EPOCHS = 3
BATCH = 16
for epoch in range(EPOCHS):
    train_loss.reset_state()
    train_accuracy.reset_state()
    perm = np.random.permutation(len(x_train))
    for i in range(0, len(x_train), BATCH):
        idx = perm[i : i + BATCH]
        train_step(x_train[idx], y_train[idx])
    print(f"Epoch {epoch + 1}, Loss: {train_loss.result():.4f}, Accuracy: {train_accuracy.result() * 100:.2f}")

# evaluation
logits = model(x_test, training=False)
test_acc = np.mean(np.argmax(logits.numpy(), axis=1) == y_test)
print("test accuracy:", test_acc)
print("predictions:", tf.argmax(model(x_test[:5]), axis=1).numpy())
