"""Metric learning with batch-hard triplets; AdamW with exclusion of nothing, gradients accumulated over 4 micro-batches."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(8)
PEOPLE, SHOTS, FEATURES, MICRO = 6, 4, 12, 4
identities = rng.normal(size=(20, FEATURES))

embedder = tf.keras.Sequential(
    [
        tf.keras.layers.Input((FEATURES,)),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(8),
        tf.keras.layers.UnitNormalization(),
    ],
    name="embedder",
)
embedder.set_weights([rng.normal(scale=0.3, size=w.shape) for w in embedder.get_weights()])
accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in embedder.trainable_variables]
optimizer = tf.keras.optimizers.AdamW(learning_rate=3e-3, weight_decay=1e-2)


def sample_batch():
    people = rng.choice(20, PEOPLE, replace=False)
    labels = np.repeat(people, SHOTS)
    x = identities[labels] + 0.7 * rng.normal(size=(len(labels), FEATURES))
    return tf.constant(x, tf.float32), tf.constant(labels, tf.int32)


def pairwise_distances(embeddings):
    dots = tf.matmul(embeddings, embeddings, transpose_b=True)
    squares = tf.linalg.diag_part(dots)
    distances = tf.maximum(squares[:, None] - 2.0 * dots + squares[None, :], 0.0)
    mask = tf.cast(tf.equal(distances, 0.0), tf.float32)
    return tf.sqrt(distances + mask * 1e-16) * (1.0 - mask)


def batch_hard_triplet_loss(labels, embeddings, margin=0.5):
    distances = pairwise_distances(embeddings)
    same = tf.equal(labels[:, None], labels[None, :])
    positive = tf.logical_and(same, tf.logical_not(tf.cast(tf.eye(tf.shape(labels)[0]), tf.bool)))
    hardest_positive = tf.reduce_max(tf.where(positive, distances, tf.zeros_like(distances)), axis=1)
    hardest_negative = tf.reduce_min(tf.where(same, tf.fill(tf.shape(distances), 1e9), distances), axis=1)
    return tf.reduce_mean(tf.nn.softplus(hardest_positive - hardest_negative + margin))


@tf.function
def accumulate(x, labels):
    with tf.GradientTape() as tape:
        loss = batch_hard_triplet_loss(labels, embedder(x, training=True))
    gradients = tape.gradient(loss, embedder.trainable_variables)
    for total, gradient in zip(accumulated, gradients):
        total.assign_add(gradient / MICRO)
    return loss


@tf.function
def apply():
    clipped, norm = tf.clip_by_global_norm([v.value() if callable(v.value) else v for v in accumulated], 0.5)
    optimizer.apply_gradients(zip(clipped, embedder.trainable_variables))
    for total in accumulated:
        total.assign(tf.zeros_like(total))
    return norm


for step in range(24):
    losses = [accumulate(*sample_batch()) for _ in range(MICRO)]
    norm = apply()
    print(f"{step:3d} loss", " ".join(f"{float(x):.6f}" for x in losses), f"norm {float(norm):.4f}")
