"""TRADES: robust training against a PGD attack on the KL divergence, with a small convolutional network."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(7)
EPS, STEP_SIZE, NUM_STEPS, BETA = 0.1, 0.03, 4, 6.0


class SmallCNN(tf.keras.Model):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = tf.keras.layers.Conv2D(8, 3, padding="same", use_bias=False)
        self.bn1 = tf.keras.layers.BatchNormalization()
        self.conv2 = tf.keras.layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")
        self.pool = tf.keras.layers.GlobalAveragePooling2D()
        self.fc = tf.keras.layers.Dense(num_classes)

    def call(self, x, training=False):
        x = tf.nn.relu(self.bn1(self.conv1(x), training=training))
        return self.fc(self.pool(self.conv2(x)))


model = SmallCNN(4)
model.build((None, 8, 8, 1))
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10, 20], [0.1, 0.01, 0.001])
optimizer = tf.keras.optimizers.SGD(learning_rate=schedule, momentum=0.9, nesterov=True)
kl = tf.keras.losses.KLDivergence(reduction="sum")


def perturb(model, x_natural):
    p_natural = tf.nn.softmax(model(x_natural, training=False))
    x_adv = x_natural + 0.001 * tf.random.normal(tf.shape(x_natural))
    for _ in range(NUM_STEPS):
        with tf.GradientTape() as tape:
            tape.watch(x_adv)
            loss_kl = kl(p_natural, tf.nn.softmax(model(x_adv, training=False)))
        grad = tape.gradient(loss_kl, x_adv)
        x_adv = x_adv + STEP_SIZE * tf.sign(grad)
        x_adv = tf.minimum(tf.maximum(x_adv, x_natural - EPS), x_natural + EPS)
        x_adv = tf.clip_by_value(x_adv, 0.0, 1.0)
    return tf.stop_gradient(x_adv)


def trades_loss(model, x, y, x_adv):
    logits = model(x, training=True)
    natural = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    robust = kl(tf.nn.softmax(logits), tf.nn.softmax(model(x_adv, training=True))) / tf.cast(tf.shape(x)[0], tf.float32)
    l2 = tf.add_n([tf.nn.l2_loss(w) for w in model.trainable_weights if "kernel" in w.name])
    return natural + BETA * robust + 5e-4 * l2, natural, robust


@tf.function
def train_step(x, y):
    x_adv = perturb(model, x)
    with tf.GradientTape() as tape:
        loss, natural, robust = trades_loss(model, x, y, x_adv)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, natural, robust


rng = np.random.default_rng(0)
patterns = rng.uniform(size=(4, 8, 8, 1))
labels = rng.integers(0, 4, 384).astype("int32")
images = np.clip(patterns[labels] + 0.2 * rng.normal(size=(384, 8, 8, 1)), 0, 1).astype("float32")
train_ds = tf.data.Dataset.from_tensor_slices((images, labels)).batch(32)

for epoch in range(2):
    for x, y in train_ds:
        loss, natural, robust = train_step(x, y)
    print(f"epoch {epoch}: loss {float(loss):.4f} natural {float(natural):.4f} robust {float(robust):.5f}")
