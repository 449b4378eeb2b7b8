import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
X = rng.randn(64, 3).astype("float32")
Y = (X @ [1.0, -2.0, 0.5]).astype("float32")[:, None]
model = tf.keras.Sequential(
    [tf.keras.layers.Input((3,)), tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)]
)
opt = tf.keras.optimizers.Adam(0.05)
for step in range(6):
    xb, yb = X[step * 8 : (step + 1) * 8], Y[step * 8 : (step + 1) * 8]
    with tf.GradientTape() as tape:
        per = tf.reduce_mean((model(xb) - yb) ** 2, 1)
    jac = tape.jacobian(per, model.trainable_variables)
    clipped = [tf.reduce_mean(tf.clip_by_value(j, -1.0, 1.0), 0) for j in jac]
    opt.apply_gradients(zip(clipped, model.trainable_variables))
    print(step, float(tf.reduce_mean(per)))
