"""Sharpness-aware minimisation: climb to the worst neighbour, take the gradient there, step from where we were."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(1)
X = rng.normal(size=(128, 6)).astype("float32")
Y = (np.sin(X[:, :1] * 2) + X[:, 1:2] * X[:, 2:3] > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(32).repeat()


class SAMModel(tf.keras.Model):
    def __init__(self, network, rho=0.05):
        super().__init__()
        self.network = network
        self.rho = rho

    def call(self, inputs, training=False):
        return self.network(inputs, training=training)


network = tf.keras.Sequential(
    [
        tf.keras.Input((6,)),
        tf.keras.layers.Dense(16, activation="swish"),
        tf.keras.layers.Dense(16, activation="swish"),
        tf.keras.layers.Dense(1),
    ]
)
network.set_weights([rng.normal(scale=0.5, size=w.shape) for w in network.get_weights()])
model = SAMModel(network)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.SGD(0.2, momentum=0.9, nesterov=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = bce(y, model(x, training=True))
    trainable = model.trainable_variables
    gradients = tape.gradient(loss, trainable)
    norm = tf.linalg.global_norm(gradients)
    scale = model.rho / (norm + 1e-12)

    perturbations = []
    for variable, gradient in zip(trainable, gradients):
        e = gradient * scale
        variable.assign_add(e)
        perturbations.append(e)

    with tf.GradientTape() as tape:
        sharp_loss = bce(y, model(x, training=True))
    sharp_gradients = tape.gradient(sharp_loss, trainable)
    for variable, e in zip(trainable, perturbations):
        variable.assign_sub(e)
    optimizer.apply_gradients(zip(sharp_gradients, trainable))
    return loss, sharp_loss, norm


for step, (x, y) in zip(range(24), dataset):
    loss, sharp, norm = train_step(x, y)
    print(f"{step:3d} loss {float(loss):.6f} sharp {float(sharp):.6f} norm {float(norm):.4f}")
