"""A model of Keras's trained by a loop of one's own, with its loss, metric and optimizer: 2 epochs of 10 batches."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
features = rng.normal(size=(320, 16)).astype("float32")
labels = (features[:, 0] * features[:, 1] > 0).astype("int32")
data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32)
model = tf.keras.Sequential(
    [
        tf.keras.Input((16,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(2),
    ]
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
metric = tf.keras.metrics.SparseCategoricalAccuracy()
optimizer = tf.keras.optimizers.Adam(1e-2)
for epoch in range(2):
    for x, y in data:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        gradients = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=False))
        metric.update_state(y, logits)
    print(epoch, float(loss), float(metric.result()))
    metric.reset_state()
