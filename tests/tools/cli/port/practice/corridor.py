"""Advantage actor-critic with Keras, on a walk to the right end of a corridor."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

seed = 7
tf.random.set_seed(seed)
np.random.seed(seed)
tf.keras.utils.set_random_seed(seed)

STATES, ACTIONS, STEPS, GAMMA = 5, 2, 12, 0.95


class Corridor:
    def reset(self):
        self.at = STATES // 2
        return self.observe()

    def observe(self):
        return np.eye(STATES, dtype="float32")[self.at]

    def step(self, action):
        self.at = int(np.clip(self.at + (1 if action == 1 else -1), 0, STATES - 1))
        return self.observe(), 1.0 if self.at == STATES - 1 else -0.05


class ActorCritic(tf.keras.Model):
    def __init__(self, actions, hidden):
        super().__init__()
        self.common = layers.Dense(hidden, activation="relu")
        self.actor = layers.Dense(actions)
        self.critic = layers.Dense(1)

    def call(self, inputs):
        x = self.common(inputs)
        return self.actor(x), self.critic(x)


model = ActorCritic(ACTIONS, 32)
model(np.zeros((1, STATES), "float32"))
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
huber = tf.keras.losses.Huber(reduction="sum")
env = Corridor()


def run_episode():
    observations, actions, rewards = [], [], []
    observation = env.reset()
    for _ in range(STEPS):
        logits, _ = model(observation[None])
        action = tf.random.categorical(logits, 1)[0, 0]
        observations.append(observation)
        actions.append(int(action))
        observation, reward = env.step(int(action))
        rewards.append(reward)
    return np.array(observations), np.array(actions, "int32"), np.array(rewards, "float32")


def expected_return(rewards):
    returns, total = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        total = rewards[t] + GAMMA * total
        returns[t] = total
    return (returns - returns.mean()) / (returns.std() + 1e-7)


def compute_loss(logits, actions, values, returns):
    advantage = returns - values
    log_probs = tf.nn.log_softmax(logits)
    action_log_probs = tf.gather(log_probs, actions, batch_dims=1)
    actor_loss = -tf.reduce_sum(action_log_probs * tf.stop_gradient(advantage))
    critic_loss = huber(returns[:, None], values[:, None])
    entropy = -tf.reduce_sum(tf.nn.softmax(logits) * log_probs)
    return actor_loss + 0.5 * critic_loss - 0.01 * entropy


def train_step():
    observations, actions, rewards = run_episode()
    returns = expected_return(rewards)
    with tf.GradientTape() as tape:
        logits, values = model(tf.constant(observations))
        loss = compute_loss(logits, tf.constant(actions), tf.squeeze(values, axis=-1), tf.constant(returns))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return rewards.sum(), loss


running = 0.0
for episode in range(40):
    reward, loss = train_step()
    running = 0.95 * running + 0.05 * reward
    if episode % 10 == 0:
        print(episode, round(float(running), 3), round(float(loss), 3))
