"""SimCLR on small synthetic images: two augmentations, a projection head, NT-Xent with a learned temperature."""

import numpy as np
import tensorflow as tf

BATCH, SIZE, STEPS = 16, 8, 24
rng = np.random.default_rng(0)
tf.random.set_seed(0)


def make_images(n):
    centres = rng.uniform(2, 6, size=(n, 2))
    ys, xs = np.mgrid[:SIZE, :SIZE]
    d = (ys - centres[:, :1, None]) ** 2 + (xs - centres[:, 1:, None]) ** 2
    return np.exp(-d / 4.0).astype("float32")[..., None]


def augment(images):
    shift = int(rng.integers(-1, 2))
    images = np.roll(images, shift, axis=2)
    noise = rng.normal(scale=0.05, size=images.shape).astype("float32")
    scale = rng.uniform(0.8, 1.2, size=(len(images), 1, 1, 1)).astype("float32")
    return tf.constant(images * scale + noise)


def build_encoder():
    inputs = tf.keras.Input((SIZE, SIZE, 1))
    x = tf.keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(inputs)
    x = tf.keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(x)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, x, name="encoder")


def build_head():
    return tf.keras.Sequential(
        [
            tf.keras.Input((16,)),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(8, use_bias=False),
        ],
        name="head",
    )


encoder, head = build_encoder(), build_head()
log_temperature = tf.Variable(np.log(0.5).astype("float32"), name="log_temperature")
for model in (encoder, head):
    model.set_weights([rng.normal(scale=0.3, size=w.shape) for w in model.get_weights()])
schedule = tf.keras.optimizers.schedules.CosineDecay(3e-3, STEPS, warmup_target=1e-2, warmup_steps=4)
optimizer = tf.keras.optimizers.Adam(schedule)


def nt_xent(za, zb):
    za, zb = tf.math.l2_normalize(za, axis=1), tf.math.l2_normalize(zb, axis=1)
    z = tf.concat([za, zb], axis=0)
    logits = tf.matmul(z, z, transpose_b=True) / tf.exp(log_temperature)
    logits = logits - 1e9 * tf.eye(2 * BATCH)
    labels = tf.concat([tf.range(BATCH, 2 * BATCH), tf.range(BATCH)], axis=0)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(loss), logits


@tf.function
def train_step(view_a, view_b):
    with tf.GradientTape() as tape:
        za = head(encoder(view_a, training=True), training=True)
        zb = head(encoder(view_b, training=True), training=True)
        loss, logits = nt_xent(za, zb)
    variables = encoder.trainable_variables + head.trainable_variables + [log_temperature]
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


for step in range(STEPS):
    images = make_images(BATCH)
    loss = train_step(augment(images), augment(images))
    print(f"{step:3d} loss {float(loss):.6f} temperature {float(tf.exp(log_temperature)):.4f}")
