"""Forecasts a noisy sine by an LSTM; stops when the validation loss no longer falls."""

import numpy as np
import tensorflow as tf

WINDOW, BATCH, PATIENCE = 12, 16, 3

rng = np.random.default_rng(3)
series = np.sin(np.arange(240) * 0.2) + 0.1 * rng.normal(size=240)
series = series.astype("float32")
windows = np.stack([series[i : i + WINDOW] for i in range(len(series) - WINDOW)])[..., None]
targets = series[WINDOW:, None]
cut = 176
train_x, train_y = windows[:cut], targets[:cut]
valid_x, valid_y = windows[cut:], targets[cut:]

tf.random.set_seed(0)
model = tf.keras.Sequential([tf.keras.layers.LSTM(8), tf.keras.layers.Dense(1)])
model.build((None, WINDOW, 1))
optimizer = tf.keras.optimizers.Adam(1e-2, clipnorm=1.0)


def mse(y, p):
    return tf.reduce_mean(tf.square(y - p))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        prediction = model(x, training=True)
        loss = mse(y, prediction)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


best, best_weights, waited = np.inf, None, 0
history = []
for epoch in range(4):
    order = rng.permutation(len(train_x))
    losses = []
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        losses.append(float(train_step(tf.constant(train_x[rows]), tf.constant(train_y[rows]))))
    valid = float(mse(valid_y, model(valid_x, training=False)))
    history.append((np.mean(losses), valid))
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}, validation {valid:.4f}")
    if valid < best - 1e-4:
        best, best_weights, waited = valid, model.get_weights(), 0
    else:
        waited += 1
        if waited >= PATIENCE:
            print("stopped early")
            break
model.set_weights(best_weights)
print("best validation loss", best)
print("forecast", model(valid_x[:3]).numpy().ravel())
