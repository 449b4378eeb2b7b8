"""Self-supervised learning with a slowly moving target encoder (in the manner of BYOL)."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(17)
MOMENTUM, DIM = 0.97, 8


def encoder(name):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((10,)),
            tf.keras.layers.Dense(24, use_bias=False),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.ReLU(),
            tf.keras.layers.Dense(DIM),
        ],
        name=name,
    )


online, target = encoder("online"), encoder("target")
target.set_weights(online.get_weights())
predictor = tf.keras.Sequential([tf.keras.layers.Input((DIM,)), tf.keras.layers.Dense(DIM)], name="predictor")
optimizer = tf.keras.optimizers.SGD(learning_rate=tf.keras.optimizers.schedules.CosineDecay(0.1, 40), momentum=0.9)


def regression_loss(p, z):
    p, z = tf.math.l2_normalize(p, axis=1), tf.math.l2_normalize(z, axis=1)
    return 2.0 - 2.0 * tf.reduce_mean(tf.reduce_sum(p * z, axis=1))


@tf.function
def train_step(view_1, view_2):
    z_1, z_2 = target(view_1, training=False), target(view_2, training=False)
    variables = online.trainable_variables + predictor.trainable_variables
    with tf.GradientTape() as tape:
        p_1, p_2 = predictor(online(view_1, training=True)), predictor(online(view_2, training=True))
        loss = regression_loss(p_1, tf.stop_gradient(z_2)) + regression_loss(p_2, tf.stop_gradient(z_1))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    for slow, fast in zip(target.weights, online.weights):
        slow.assign(MOMENTUM * slow + (1 - MOMENTUM) * fast)
    return loss


rng = np.random.default_rng(17)
base = rng.normal(size=(256, 10)).astype("float32")
for step in range(24):
    rows = base[rng.choice(256, 32, replace=False)]
    views = [tf.constant(rows + 0.2 * rng.normal(size=rows.shape).astype("float32")) for _ in range(2)]
    loss = train_step(*views)
    if step % 8 == 0:
        print(step, float(loss))
