"""Mixup with label smoothing, hand-written weight decay, stochastic weight averaging of the last steps."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(4)
N, FEATURES, CLASSES, STEPS, SWA_START, SWA_FREQUENCY = 256, 8, 4, 30, 8, 2
centres = rng.randn(CLASSES, FEATURES) * 1.5
labels = rng.randint(0, CLASSES, N)
features = (centres[labels] + rng.randn(N, FEATURES)).astype(np.float32)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((FEATURES,)),
        tf.keras.layers.Dense(24),
        tf.keras.layers.BatchNormalization(momentum=0.9),
        tf.keras.layers.ReLU(),
        tf.keras.layers.Dense(24),
        tf.keras.layers.LayerNormalization(),
        tf.keras.layers.ReLU(),
        tf.keras.layers.Dense(CLASSES),
    ]
)
model.set_weights([rng.randn(*w.shape) * 0.3 if w.ndim > 1 else w for w in model.get_weights()])
swa_weights = [tf.Variable(w, trainable=False) for w in model.trainable_variables]
swa_count = tf.Variable(0.0, trainable=False)
loss_fn = tf.keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10, 20], [0.1, 0.05, 0.01])
optimizer = tf.keras.optimizers.SGD(learning_rate=schedule, momentum=0.9)
accuracy = tf.keras.metrics.CategoricalAccuracy()


def mixup(x, y, alpha=0.2):
    lam = rng.beta(alpha, alpha, size=(len(x), 1)).astype(np.float32)
    order = rng.permutation(len(x))
    return lam * x + (1 - lam) * x[order], lam * y + (1 - lam) * y[order]


def train_step(x, y, weight_decay=5e-4):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    grads = [g + weight_decay * v if "kernel" in v.name else g for g, v in zip(grads, model.trainable_variables)]
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    accuracy.update_state(y, logits)
    return loss


def update_swa():
    swa_count.assign_add(1.0)
    for average, weight in zip(swa_weights, model.trainable_variables):
        average.assign(average + (weight - average) / swa_count)


onehot = np.eye(CLASSES, dtype=np.float32)
for step in range(STEPS):
    pick = rng.choice(N, 32, replace=False)
    x, y = mixup(features[pick], onehot[labels[pick]])
    loss = train_step(tf.convert_to_tensor(x), tf.convert_to_tensor(y))
    if step >= SWA_START and step % SWA_FREQUENCY == 0:
        update_swa()
    print("step", step, "loss", float(loss), "acc", float(accuracy.result()))
print("swa", float(tf.linalg.global_norm(swa_weights)))
