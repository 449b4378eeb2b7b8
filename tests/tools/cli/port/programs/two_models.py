import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
temperature = tf.Variable(1.0, name="temperature")


def make():
    return tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(3)])


first, second = make(), make()
first_optimizer, second_optimizer = tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.SGD(0.1)
for _ in range(4):
    x = tf.constant(rng.normal(size=(8, 3)), tf.float32)
    with tf.GradientTape() as tape:
        first_loss = tf.reduce_mean(first(x) ** 2)
    gradients = tape.gradient(first_loss, first.trainable_variables)
    first_optimizer.apply_gradients(zip(gradients, first.trainable_variables))
    variables = second.trainable_variables + [temperature]
    with tf.GradientTape() as tape:
        second_loss = tf.reduce_mean(temperature * first(second(x)) ** 2)
    second_optimizer.apply_gradients(zip(tape.gradient(second_loss, variables), variables))
