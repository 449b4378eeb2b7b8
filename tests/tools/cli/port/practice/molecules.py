"""A message-passing network with edge features, a GRU update and set2set-like readout, for a regression on molecules."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(11)
UNITS, STEPS, NUM_GRAPHS = 8, 3, 6


class EdgeNetwork(layers.Layer):
    def build(self, input_shape):
        self.atom_dim = input_shape[0][-1]
        self.bond_dim = input_shape[1][-1]
        self.kernel = self.add_weight(
            shape=(self.bond_dim, self.atom_dim * self.atom_dim), initializer="glorot_uniform", name="kernel"
        )
        self.bias = self.add_weight(shape=(self.atom_dim * self.atom_dim,), initializer="zeros", name="bias")

    def call(self, inputs):
        atom_features, bond_features, pair_indices = inputs
        bond_features = tf.matmul(bond_features, self.kernel) + self.bias
        bond_features = tf.reshape(bond_features, (-1, self.atom_dim, self.atom_dim))
        neighbors = tf.gather(atom_features, pair_indices[:, 1])
        neighbors = tf.expand_dims(neighbors, axis=-1)
        transformed = tf.squeeze(tf.matmul(bond_features, neighbors), axis=-1)
        return tf.math.unsorted_segment_sum(transformed, pair_indices[:, 0], num_segments=tf.shape(atom_features)[0])


class MessagePassing(layers.Layer):
    def __init__(self, units, steps=4, **kwargs):
        super().__init__(**kwargs)
        self.units, self.steps = units, steps

    def build(self, input_shape):
        self.atom_dim = input_shape[0][-1]
        self.message_step = EdgeNetwork()
        self.pad_length = max(0, self.units - self.atom_dim)
        self.update_step = layers.GRUCell(self.atom_dim + self.pad_length)

    def call(self, inputs):
        atom_features, bond_features, pair_indices = inputs
        h = tf.pad(atom_features, [(0, 0), (0, self.pad_length)])
        for _ in range(self.steps):
            messages = self.message_step([h, bond_features, pair_indices])
            h, _ = self.update_step(messages, [h])
        return h


class MPNN(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.passing = MessagePassing(UNITS, STEPS)
        self.gate = layers.Dense(UNITS, activation="sigmoid")
        self.project = layers.Dense(UNITS, activation="tanh")
        self.head = tf.keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(1)])

    def call(self, inputs):
        atoms, bonds, pairs, molecule = inputs
        h = self.passing([atoms, bonds, pairs])
        gated = self.gate(tf.concat([h, atoms], -1)) * self.project(h)
        graph = tf.math.unsorted_segment_sum(gated, molecule, NUM_GRAPHS)
        largest = tf.math.unsorted_segment_max(h, molecule, NUM_GRAPHS)
        return tf.squeeze(self.head(tf.concat([graph, largest], -1)), -1)


rng = np.random.default_rng(0)


def make_batch(atoms_each=5, bonds_each=8):
    n, m = NUM_GRAPHS * atoms_each, NUM_GRAPHS * bonds_each
    atoms = rng.normal(size=(n, 4)).astype("float32")
    bonds = rng.normal(size=(m, 3)).astype("float32")
    offset = np.repeat(np.arange(NUM_GRAPHS) * atoms_each, bonds_each)[:, None]
    pairs = (rng.integers(0, atoms_each, (m, 2)) + offset).astype("int32")
    molecule = np.repeat(np.arange(NUM_GRAPHS), atoms_each).astype("int32")
    target = np.array([atoms[molecule == g].sum() * 0.1 for g in range(NUM_GRAPHS)], "float32")
    return (atoms, bonds, pairs, molecule), target


model = MPNN()
model(make_batch()[0])
optimizer = tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(5e-3, 10, 0.9))
mae = tf.keras.metrics.MeanAbsoluteError()


@tf.function
def train_step(inputs, target):
    with tf.GradientTape() as tape:
        prediction = model(inputs, training=True)
        loss = tf.reduce_mean(tf.keras.losses.huber(target, prediction, delta=1.0))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mae.update_state(target, prediction)
    return loss


for epoch in range(3):
    mae.reset_state()
    for _ in range(8):
        inputs, target = make_batch()
        loss = train_step(inputs, target)
    print(f"epoch {epoch}: loss {float(loss):.4f}, mae {float(mae.result()):.4f}")
