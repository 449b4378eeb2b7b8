"""DQN with a replay buffer and a target network on a grid line."""

import random
from collections import deque

import numpy as np
import tensorflow as tf
from tensorflow import keras

random.seed(0)
np.random.seed(0)
tf.random.set_seed(0)


class LineEnv:
    def reset(self):
        self.x = random.uniform(-0.5, 0.5)
        self.steps = 0
        return np.array([self.x, self.steps / 10], dtype=np.float32)

    def step(self, a):
        self.x += (a - 1) * 0.2
        self.steps += 1
        done = abs(self.x) > 1 or self.steps >= 8
        return np.array([self.x, self.steps / 10], dtype=np.float32), -abs(self.x), done, {}


def build_model():
    return keras.Sequential(
        [
            keras.layers.Input(shape=(2,)),
            keras.layers.Dense(12, activation="relu", kernel_initializer=keras.initializers.HeUniform(seed=5)),
            keras.layers.Dense(3, activation="linear"),
        ]
    )


class DQNAgent:
    def __init__(self):
        self.memory = deque(maxlen=500)
        self.epsilon = 1.0
        self.model = build_model()
        self.target = build_model()
        self.target.set_weights(self.model.get_weights())
        self.optimizer = keras.optimizers.Adam(0.005)

    def act(self, state):
        if np.random.rand() < self.epsilon:
            return random.randrange(3)
        q = self.model(state[None, :])
        return int(np.argmax(q[0]))

    def remember(self, *transition):
        self.memory.append(transition)

    def replay(self, batch_size):
        if len(self.memory) < batch_size:
            return None
        batch = random.sample(self.memory, batch_size)
        states = np.array([t[0] for t in batch])
        actions = np.array([t[1] for t in batch])
        rewards = np.array([t[2] for t in batch], dtype=np.float32)
        next_states = np.array([t[3] for t in batch])
        dones = np.array([t[4] for t in batch], dtype=np.float32)
        next_q = tf.reduce_max(self.target(next_states), axis=1)
        targets = rewards + 0.95 * next_q * (1 - dones)
        with tf.GradientTape() as tape:
            q = self.model(states)
            q_a = tf.reduce_sum(q * tf.one_hot(actions, 3), axis=1)
            loss = tf.reduce_mean(tf.square(targets - q_a))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return float(loss)


env = LineEnv()
agent = DQNAgent()
for episode in range(8):
    state = env.reset()
    score, done = 0.0, False
    while not done:
        action = agent.act(state)
        next_state, reward, done, _ = env.step(action)
        agent.remember(state, action, reward, next_state, done)
        state = next_state
        score += reward
        loss = agent.replay(16)
    agent.epsilon = max(0.1, agent.epsilon * 0.8)
    if episode % 2 == 0:
        agent.target.set_weights(agent.model.get_weights())
    print(f"episode {episode} score {score:.2f} epsilon {agent.epsilon:.2f}")
print("Q at 0:", agent.model(np.zeros((1, 2), np.float32)).numpy())
