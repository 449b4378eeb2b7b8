"""Advantage actor-critic on a corridor: fixed-length rollouts, an entropy bonus, clipped gradients."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(2)
SIZE, STEPS, GAMMA = 7, 16, 0.95


class Corridor:
    """Left or right; a reward at the right end, which starts the walk anew."""

    def __init__(self, seed):
        self.rng, self.position = np.random.default_rng(seed), 1

    def observe(self):
        return np.eye(SIZE, dtype="float32")[self.position]

    def step(self, action):
        self.position = int(np.clip(self.position + (1 if action else -1), 0, SIZE - 1))
        done = self.position == SIZE - 1
        if done:
            self.position = int(self.rng.integers(0, 3))
        return 1.0 if done else -0.01, done


class ActorCritic(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.common = tf.keras.layers.Dense(24, activation="relu")
        self.actor = tf.keras.layers.Dense(2)
        self.critic = tf.keras.layers.Dense(1)

    def call(self, observations):
        hidden = self.common(observations)
        return self.actor(hidden), self.critic(hidden)


env, model = Corridor(0), ActorCritic()
model(np.zeros((1, SIZE), "float32"))
optimizer = tf.keras.optimizers.RMSprop(5e-3)
rng = np.random.default_rng(1)


def rollout():
    observations, actions, rewards, dones = [], [], [], []
    for _ in range(STEPS):
        observation = env.observe()
        logits, _ = model(observation[None])
        probabilities = tf.nn.softmax(logits)[0].numpy()
        action = int(rng.random() < probabilities[1] / probabilities.sum())
        reward, done = env.step(action)
        observations.append(observation)
        actions.append(action)
        rewards.append(reward)
        dones.append(done)
    _, last = model(env.observe()[None])
    value, returns = float(last[0, 0]), []
    for reward, done in zip(rewards[::-1], dones[::-1]):
        value = reward + GAMMA * value * (1.0 - done)
        returns.append(value)
    return np.array(observations), np.array(actions, "int32"), np.array(returns[::-1], "float32")


def train_step(observations, actions, returns):
    with tf.GradientTape() as tape:
        logits, values = model(observations)
        values = tf.squeeze(values, 1)
        advantages = returns - values
        log_probs = tf.nn.log_softmax(logits)
        chosen = tf.reduce_sum(tf.one_hot(actions, 2) * log_probs, axis=1)
        policy_loss = -tf.reduce_mean(chosen * tf.stop_gradient(advantages))
        value_loss = tf.reduce_mean(tf.square(advantages))
        entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_probs) * log_probs, axis=1))
        loss = policy_loss + 0.5 * value_loss - 0.01 * entropy
    grads = tape.gradient(loss, model.trainable_variables)
    grads, _ = tf.clip_by_global_norm(grads, 0.5)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for update in range(22):
    observations, actions, returns = rollout()
    loss = train_step(tf.constant(observations), tf.constant(actions), tf.constant(returns))
    if update % 7 == 0:
        print(update, float(loss), returns.mean())
