"""fit() with a train_step of its own: a shared trunk, two heads, two optimizers, uncertainty weights (Kendall)."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(5)
tf.random.set_seed(5)
x = rng.normal(size=(192, 10)).astype("float32")
depth = (x[:, :3].sum(1, keepdims=True) + 0.1 * rng.normal(size=(192, 1))).astype("float32")
kind = (x[:, 3] * x[:, 4] > 0).astype("int32")


class MultiTask(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.trunk = tf.keras.Sequential(
            [tf.keras.layers.Dense(32, activation="gelu"), tf.keras.layers.Dense(16, activation="gelu")]
        )
        self.regression = tf.keras.layers.Dense(1)
        self.classification = tf.keras.layers.Dense(2)
        self.log_variances = self.add_weight(shape=(2,), initializer="zeros", name="log_variances")
        self.loss_tracker = tf.keras.metrics.Mean(name="loss")
        self.accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    def compile(self, trunk_optimizer, head_optimizer):
        super().compile()
        self.trunk_optimizer = trunk_optimizer
        self.head_optimizer = head_optimizer

    def call(self, inputs, training=False):
        features = self.trunk(inputs, training=training)
        return self.regression(features), self.classification(features)

    @property
    def metrics(self):
        return [self.loss_tracker, self.accuracy]

    def train_step(self, data):
        inputs, (depth, kind) = data
        with tf.GradientTape() as tape:
            predicted, logits = self(inputs, training=True)
            squared = tf.reduce_mean(tf.square(depth - predicted))
            cross = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(kind, logits, from_logits=True))
            s = self.log_variances
            loss = tf.exp(-s[0]) * squared + tf.exp(-s[1]) * cross + tf.reduce_sum(s)
        trunk = self.trunk.trainable_variables
        heads = self.regression.trainable_variables + self.classification.trainable_variables + [self.log_variances]
        gradients = tape.gradient(loss, trunk + heads)
        self.trunk_optimizer.apply_gradients(zip(gradients[: len(trunk)], trunk))
        self.head_optimizer.apply_gradients(zip(gradients[len(trunk) :], heads))
        self.loss_tracker.update_state(loss)
        self.accuracy.update_state(kind, logits)
        return {"loss": loss, "accuracy": self.accuracy.result()}


class Losses(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(batch, f"loss {float(logs['loss']):.6f}")


model = MultiTask()
model(x[:2])
model.set_weights([rng.normal(scale=0.3, size=w.shape) if w.ndim > 1 else w for w in model.get_weights()])
model.compile(tf.keras.optimizers.Adam(1e-3), tf.keras.optimizers.RMSprop(5e-3, rho=0.95))
model.fit(x, (depth, kind), batch_size=32, epochs=4, shuffle=False, verbose=0, callbacks=[Losses()])
