"""Sine wave with an RNN, validation loop, early stopping and a learning rate schedule."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
t = np.linspace(0, 20, 120, dtype="float32")
wave = np.sin(t)
W = 8
xs = np.stack([wave[i : i + W] for i in range(len(wave) - W)])[..., None]
ys = wave[W:][:, None]
x_train, y_train, x_val, y_val = xs[:80], ys[:80], xs[80:], ys[80:]

model = tf.keras.Sequential([tf.keras.layers.Input((W, 1)), tf.keras.layers.SimpleRNN(6), tf.keras.layers.Dense(1)])
schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.02, 10, 0.9)
opt = tf.keras.optimizers.Adam(schedule)
mse = tf.keras.losses.MeanSquaredError()

best, patience = float("inf"), 0
for epoch in range(6):
    order = np.random.permutation(len(x_train))
    epoch_loss = 0.0
    for i in range(0, len(order), 20):
        xb, yb = x_train[order[i : i + 20]], y_train[order[i : i + 20]]
        with tf.GradientTape() as tape:
            loss = mse(yb, model(xb, training=True)) + sum(model.losses)
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
        epoch_loss += loss.numpy()
    val = mse(y_val, model(x_val, training=False)).numpy()
    print(f"epoch {epoch}: train {epoch_loss / 4:.4f} val {val:.4f}")
    if val < best:
        best, patience = val, 0
        best_weights = model.get_weights()
    else:
        patience += 1
        if patience == 2:
            print("early stop")
            break
model.set_weights(best_weights)
print("final val", float(mse(y_val, model.predict(x_val, verbose=0))))
