"""Sequence regression with a GRU: a Trainer class, a tf.data pipeline, clipping by the global norm, early stopping."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)


def make_data(n_samples=320, timesteps=10, features=3):
    gen = np.random.RandomState(11)
    x = gen.randn(n_samples, timesteps, features).astype(np.float32)
    weights = np.linspace(0.1, 1.0, timesteps).astype(np.float32)
    y = np.tanh((x[..., 0] * x[..., 1] * weights).sum(axis=1, keepdims=True)) + 0.3 * x[:, -1, 2:3]
    return x, y.astype(np.float32)


def make_datasets(x, y, batch_size, split=0.8):
    n_train = int(len(x) * split)
    train = (
        tf.data.Dataset.from_tensor_slices((x[:n_train], y[:n_train]))
        .shuffle(buffer_size=n_train, seed=5, reshuffle_each_iteration=True)
        .batch(batch_size)
        .prefetch(tf.data.AUTOTUNE)
    )
    val = tf.data.Dataset.from_tensor_slices((x[n_train:], y[n_train:])).batch(batch_size)
    return train, val


class GRURegressor(tf.keras.Model):
    def __init__(self, units=12, dropout=0.2):
        super().__init__()
        self.rnn = tf.keras.layers.GRU(units)
        self.dropout = tf.keras.layers.Dropout(dropout)
        self.hidden = tf.keras.layers.Dense(units, activation="elu", kernel_regularizer=tf.keras.regularizers.L2(1e-3))
        self.out = tf.keras.layers.Dense(1)

    def call(self, inputs, training=None):
        x = self.rnn(inputs)
        x = self.dropout(x, training=training)
        return self.out(self.hidden(x))


class EarlyStopping:
    def __init__(self, patience=2, min_delta=1e-3):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.wait = 0

    def should_stop(self, value):
        if value < self.best - self.min_delta:
            self.best = value
            self.wait = 0
            return False
        self.wait += 1
        return self.wait >= self.patience


class Trainer:
    def __init__(self, model, optimizer, loss_fn, clip_norm=1.0):
        self.model = model
        self.optimizer = optimizer
        self.loss_fn = loss_fn
        self.clip_norm = clip_norm
        self.train_loss = tf.keras.metrics.Mean(name="train_loss")
        self.val_loss = tf.keras.metrics.Mean(name="val_loss")
        self.global_step = tf.Variable(0, dtype=tf.int64, trainable=False)

    @tf.function
    def train_step(self, x, y):
        with tf.GradientTape() as tape:
            y_pred = self.model(x, training=True)
            loss = self.loss_fn(y, y_pred)
            total_loss = loss + tf.add_n(self.model.losses)
        grads = tape.gradient(total_loss, self.model.trainable_variables)
        grads, grad_norm = tf.clip_by_global_norm(grads, self.clip_norm)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.global_step.assign_add(1)
        self.train_loss.update_state(loss)
        return grad_norm

    @tf.function
    def val_step(self, x, y):
        y_pred = self.model(x, training=False)
        self.val_loss.update_state(self.loss_fn(y, y_pred))

    def fit(self, train_ds, val_ds, epochs, stopper):
        for epoch in range(1, epochs + 1):
            self.train_loss.reset_state()
            self.val_loss.reset_state()
            for x, y in train_ds:
                norm = self.train_step(x, y)
            for x, y in val_ds:
                self.val_step(x, y)
            print(
                f"Epoch {epoch:02d} | train {self.train_loss.result():.4f} | val {self.val_loss.result():.4f}"
                f" | |g| {norm:.3f} | step {int(self.global_step)}"
            )
            if stopper.should_stop(float(self.val_loss.result())):
                print(f"early stop at epoch {epoch}")
                break


if __name__ == "__main__":
    x, y = make_data()
    train_ds, val_ds = make_datasets(x, y, batch_size=24)
    trainer = Trainer(
        model=GRURegressor(),
        optimizer=tf.keras.optimizers.Adam(learning_rate=5e-3),
        loss_fn=tf.keras.losses.Huber(delta=0.5),
    )
    trainer.fit(train_ds, val_ds, epochs=3, stopper=EarlyStopping())
