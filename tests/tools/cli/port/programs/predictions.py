"""A classifier with batch normalisation, whose predictions are made after training."""

import numpy as np
import tensorflow as tf

np.random.seed(0)
X = np.random.rand(40, 3).astype("float32")
Y = (X.sum(axis=1, keepdims=True) > 1.5).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, activation="relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
bce = tf.keras.losses.BinaryCrossentropy()
opt = tf.keras.optimizers.SGD(0.1, momentum=0.9)
losses = []
for _ in range(6):
    with tf.GradientTape() as tape:
        pred = model(X, training=True)
        loss = bce(Y, pred)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    losses.append(float(loss.numpy()))
pred = model.predict(X, verbose=0)
print("accuracy", ((pred > 0.5).astype("float32") == Y).mean())
print("losses", losses)
