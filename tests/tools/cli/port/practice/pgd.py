"""Adversarial training by projected gradient descent: the perturbation climbs, then the network learns from it."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(13)
EPSILON, STEP, INNER = 0.3, 0.1, 3

rng = np.random.default_rng(0)
means = rng.normal(size=(3, 8)) * 1.5


def make_batch(count):
    labels = rng.integers(0, 3, count)
    return (means[labels] + rng.normal(size=(count, 8))).astype("float32"), labels.astype("int32")


model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((8,)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(3),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def pgd_attack(x, y, start):
    x_adv = x + start
    for _ in range(INNER):
        with tf.GradientTape() as tape:
            tape.watch(x_adv)
            loss = loss_fn(y, model(x_adv))
        gradient = tape.gradient(loss, x_adv)
        x_adv = x_adv + STEP * tf.sign(gradient)
        x_adv = tf.clip_by_value(x_adv, x - EPSILON, x + EPSILON)
    return x_adv


def train_step(x, y, x_adv):
    with tf.GradientTape() as tape:
        clean_loss = loss_fn(y, model(x, training=True))
        adversarial_loss = loss_fn(y, model(x_adv, training=True))
        loss = 0.5 * clean_loss + 0.5 * adversarial_loss
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for step in range(8):
    x, y = make_batch(32)
    x, y = tf.constant(x), tf.constant(y)
    start = tf.constant(rng.uniform(-EPSILON, EPSILON, x.shape), tf.float32)
    x_adv = pgd_attack(x, y, start)
    loss = train_step(x, y, x_adv)
    print(step, float(loss))
