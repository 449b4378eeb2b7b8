"""A graph network on random graphs: messages along edges, sums at nodes, a label for each graph."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(14)
NODES, EDGES, GRAPHS, WIDTH = 24, 60, 4, 12


class MessagePassing(tf.keras.layers.Layer):
    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.message = tf.keras.layers.Dense(width, activation="relu")
        self.update = tf.keras.layers.Dense(width, activation="tanh")

    def call(self, nodes, senders, receivers):
        pairs = tf.concat([tf.gather(nodes, senders), tf.gather(nodes, receivers)], axis=1)
        received = tf.math.unsorted_segment_sum(self.message(pairs), receivers, num_segments=NODES)
        return self.update(tf.concat([nodes, received], axis=1))


class GraphNetwork(tf.keras.Model):
    def __init__(self, rounds=2):
        super().__init__()
        self.embed = tf.keras.layers.Dense(WIDTH)
        self.rounds = [MessagePassing(WIDTH) for _ in range(rounds)]
        self.readout = tf.keras.layers.Dense(1)

    def call(self, inputs):
        nodes, senders, receivers, graph_of = inputs
        x = self.embed(nodes)
        for layer in self.rounds:
            x = x + layer(x, senders, receivers)
        return self.readout(tf.math.segment_mean(x, graph_of))[:, 0]


rng = np.random.default_rng(0)


def random_graphs():
    """Graphs of equal size; the label is whether nodes with edges between them are alike."""
    nodes = rng.normal(size=(NODES, 5)).astype("float32")
    graph_of = np.repeat(np.arange(GRAPHS), NODES // GRAPHS).astype("int32")
    start = rng.integers(0, NODES, EDGES)
    size = NODES // GRAPHS
    senders = start.astype("int32")
    receivers = (start // size * size + rng.integers(0, size, EDGES)).astype("int32")
    similar = (nodes[senders] * nodes[receivers]).sum(1)
    scores = np.bincount(graph_of[senders], similar, GRAPHS)
    return (nodes, senders, receivers, graph_of), (scores > np.median(scores)).astype("float32")


model = GraphNetwork()
optimizer = tf.keras.optimizers.AdamW(5e-3, weight_decay=1e-3)


@tf.function
def train_step(graph, labels):
    with tf.GradientTape() as tape:
        logits = model(graph, training=True)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, norm


for step in range(24):
    graph, labels = random_graphs()
    loss, norm = train_step(tuple(map(tf.constant, graph)), tf.constant(labels))
    if step % 8 == 0:
        print(f"{step}: loss {loss:.4f}, norm {norm:.3f}")
