"""Double DQN with prioritised weights, a soft target update and an epsilon that decays."""

import random
from collections import deque

import numpy as np
import tensorflow as tf

random.seed(0)
np.random.seed(0)
tf.random.set_seed(0)


class GridWorld:
    SIZE = 5

    def reset(self):
        self.pos = np.array([0, 0])
        self.steps = 0
        return self.observe()

    def observe(self):
        return np.concatenate([self.pos / (self.SIZE - 1), (self.SIZE - 1 - self.pos) / (self.SIZE - 1)]).astype(
            np.float32
        )

    def step(self, action):
        move = [(0, 1), (1, 0), (0, -1), (-1, 0)][action]
        self.pos = np.clip(self.pos + move, 0, self.SIZE - 1)
        self.steps += 1
        done = bool((self.pos == self.SIZE - 1).all())
        return self.observe(), 1.0 if done else -0.05, done or self.steps >= 25


def build_q_network(num_actions, dueling=True):
    inputs = tf.keras.Input(shape=(4,))
    x = tf.keras.layers.Dense(24, activation="relu")(inputs)
    x = tf.keras.layers.Dense(24, activation="relu")(x)
    value = tf.keras.layers.Dense(1)(x)
    advantage = tf.keras.layers.Dense(num_actions)(x)
    q = tf.keras.layers.Lambda(lambda va: va[0] + va[1] - tf.reduce_mean(va[1], axis=1, keepdims=True))(
        [value, advantage]
    )
    return tf.keras.Model(inputs, q)


class DQNAgent:
    def __init__(self, num_actions, gamma=0.95, tau=0.05, batch_size=16):
        self.num_actions, self.gamma, self.tau, self.batch_size = num_actions, gamma, tau, batch_size
        self.memory = deque(maxlen=2000)
        self.epsilon, self.epsilon_min, self.epsilon_decay = 1.0, 0.05, 0.97
        self.model = build_q_network(num_actions)
        self.target_model = build_q_network(num_actions)
        self.target_model.set_weights(self.model.get_weights())
        self.optimizer = tf.keras.optimizers.Adam(learning_rate=2e-3, clipnorm=1.0)
        self.loss_fn = tf.keras.losses.Huber(reduction="none")

    def act(self, state):
        if np.random.rand() <= self.epsilon:
            return random.randrange(self.num_actions)
        return int(np.argmax(self.model(state[None])[0]))

    def remember(self, *transition):
        self.memory.append(transition)

    def update_target(self):
        for target, source in zip(self.target_model.trainable_variables, self.model.trainable_variables):
            target.assign(self.tau * source + (1.0 - self.tau) * target)

    def replay(self):
        if len(self.memory) < self.batch_size:
            return None
        minibatch = random.sample(self.memory, self.batch_size)
        states = np.array([m[0] for m in minibatch])
        actions = np.array([m[1] for m in minibatch])
        rewards = np.array([m[2] for m in minibatch], dtype=np.float32)
        next_states = np.array([m[3] for m in minibatch])
        dones = np.array([m[4] for m in minibatch], dtype=np.float32)

        best = tf.argmax(self.model(next_states), axis=1)
        next_q = tf.gather(self.target_model(next_states), best, axis=1, batch_dims=1)
        target_q = rewards + (1.0 - dones) * self.gamma * next_q
        weights = np.abs(rewards) + 0.5
        weights /= weights.max()
        with tf.GradientTape() as tape:
            q_values = self.model(states, training=True)
            indices = tf.stack([tf.range(self.batch_size), tf.cast(actions, tf.int32)], axis=1)
            chosen = tf.gather_nd(q_values, indices)
            td = self.loss_fn(target_q[:, None], chosen[:, None])
            loss = tf.reduce_mean(weights * td)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.update_target()
        if self.epsilon > self.epsilon_min:
            self.epsilon *= self.epsilon_decay
        return float(loss)


env, agent = GridWorld(), DQNAgent(num_actions=4)
for episode in range(3):
    state, total, done, losses = env.reset(), 0.0, False, []
    while not done:
        action = agent.act(state)
        next_state, reward, done = env.step(action)
        agent.remember(state, action, reward, next_state, done)
        state, total = next_state, total + reward
        if (loss := agent.replay()) is not None:
            losses.append(loss)
    print(f"episode {episode}: return {total:.2f}, loss {np.mean(losses):.4f}, epsilon {agent.epsilon:.3f}")
