"""Which inputs did a prediction come from? Integrated gradients.

A network learns a made-up rule in which only three of eight inputs matter. The attribution of an input is the model's gradient,
averaged over the straight path from a baseline (all zeros) to the example, times the way that the input has gone. The
attributions add up to the difference of the two predictions, which the last column checks.

    python examples/integrated_gradients.py                  on TensorFlow
    python -m tapejax run examples/integrated_gradients.py   on JAX
"""

import numpy as np
import tensorflow as tf

INPUTS = 8
STEPS = 150

rng = np.random.default_rng(6)


def rule(x):
    return 2 * x[:, 0] - x[:, 3] + x[:, 0] * x[:, 5]


inputs = tf.keras.Input(shape=(INPUTS,))
hidden = tf.keras.layers.Dense(24, activation="tanh")(inputs)
hidden = tf.keras.layers.Dense(24, activation="softplus")(hidden)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(hidden))
model.set_weights([rng.normal(0, 1 / np.sqrt(w.shape[0]), w.shape) * (w.ndim > 1) for w in model.get_weights()])

x = rng.normal(size=(256, INPUTS)).astype("float32")
y = rule(x).astype("float32")[:, np.newaxis]
mean_squared_error = tf.keras.losses.MeanSquaredError()
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = mean_squared_error(y, model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step in range(STEPS + 1):
    loss = train_step(tf.constant(x), tf.constant(y))
    if step % 30 == 0:
        print(f"step {step:3d}  loss {loss:.5f}")


def integrated_gradients(baseline, example, points=50):
    """The attribution (8,) of each input of an example (8,)."""
    fractions = tf.linspace(0.0, 1.0, points + 1)
    path = baseline + fractions[:, tf.newaxis] * (example - baseline)
    with tf.GradientTape() as tape:
        tape.watch(path)
        predictions = model(path)
    gradients = tape.gradient(predictions, path)
    average = tf.reduce_mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)  # the trapezoidal rule
    return (example - baseline) * average


baseline = tf.zeros(INPUTS)
print("attributions of the inputs 0 to 7, their sum, and the difference of the predictions")
for example in tf.unstack(tf.constant(x[:4])):
    attributions = integrated_gradients(baseline, example)
    difference = model(example[tf.newaxis]) - model(baseline[tf.newaxis])
    row = " ".join(f"{value:6.2f}" for value in attributions.numpy())
    print(f"{row}   {tf.reduce_sum(attributions):7.3f} {tf.squeeze(difference):7.3f}")
