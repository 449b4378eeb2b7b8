"""A deep Q network: a replay buffer, a target network that is copied every few steps, Huber's loss."""

import collections
import random

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(4)
random.seed(4)
GAMMA, BATCH, COPY_EVERY = 0.9, 16, 5
Transition = collections.namedtuple("Transition", "state action reward next_state done")


def make_network(name):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((4,)),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(3),
        ],
        name=name,
    )


class Pendulum:
    """Something to act on: a linear system with noise, whose state must stay small."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.matrix = 0.9 * np.linalg.qr(self.rng.normal(size=(4, 4)))[0]
        self.push = self.rng.normal(size=4)
        self.state = self.rng.normal(size=4)

    def step(self, action):
        self.state = self.matrix @ self.state + 0.3 * (action - 1) * self.push + 0.05 * self.rng.normal(size=4)
        done = bool(np.abs(self.state).max() > 2.5)
        reward = 1.0 - float(np.square(self.state).mean())
        if done:
            self.state = self.rng.normal(size=4)
        return self.state.astype("float32"), reward, done


q_network, target_network = make_network("q_network"), make_network("target_network")
target_network.set_weights(q_network.get_weights())
optimizer = tf.keras.optimizers.Adam(1e-3)
huber = tf.keras.losses.Huber()
buffer = collections.deque(maxlen=500)


@tf.function
def learn(states, actions, rewards, next_states, dones):
    best_next = tf.reduce_max(target_network(next_states), axis=1)
    targets = rewards + GAMMA * best_next * (1.0 - dones)
    with tf.GradientTape() as tape:
        q_values = tf.reduce_sum(q_network(states) * tf.one_hot(actions, 3), axis=1)
        loss = huber(targets, q_values)
    gradients = tape.gradient(loss, q_network.trainable_variables)
    optimizer.apply_gradients(zip(gradients, q_network.trainable_variables))
    return loss


env = Pendulum()
state = env.state.astype("float32")
for step in range(60):
    epsilon = max(0.1, 1.0 - step / 40)
    if random.random() < epsilon:
        action = random.randrange(3)
    else:
        action = int(tf.argmax(q_network(state[None])[0]))
    next_state, reward, done = env.step(action)
    buffer.append(Transition(state, action, reward, next_state, float(done)))
    state = next_state
    if len(buffer) < 2 * BATCH:
        continue
    batch = Transition(*zip(*random.sample(buffer, BATCH)))
    loss = learn(
        tf.constant(np.array(batch.state)),
        tf.constant(np.array(batch.action, "int32")),
        tf.constant(np.array(batch.reward, "float32")),
        tf.constant(np.array(batch.next_state)),
        tf.constant(np.array(batch.done, "float32")),
    )
    if step % COPY_EVERY == 0:
        target_network.set_weights(q_network.get_weights())
        print(step, float(loss))
