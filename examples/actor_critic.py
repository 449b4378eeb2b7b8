"""Actor and critic learn to walk through a windy corridor.

The corridor has seven cells; the walk begins in the middle, ends at either end, and pays +1 at the right end and -1 at the left.
Each step costs a little, and now and then the wind blows one cell to the left. One network has two heads: the actor says
how likely each move is, the critic what return it expects. Episodes have any length, so nothing here is compiled: the
tape is open while the episode runs, environment and all.

    python examples/actor_critic.py                  on TensorFlow
    python -m tapejax run examples/actor_critic.py   on JAX
"""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

CELLS = 7
EPISODES = 24
LONGEST = 12
DISCOUNT = 0.97

rng = np.random.default_rng(7)


class Corridor:
    """The environment: `reset` and `step` as in Gym."""

    def reset(self):
        self.cell = CELLS // 2
        return self.observe()

    def observe(self):
        return np.eye(CELLS, dtype="float32")[self.cell]

    def step(self, action):
        self.cell += 1 if action == 1 else -1
        if rng.random() < 0.1:
            self.cell -= 1
        self.cell = int(np.clip(self.cell, 0, CELLS - 1))
        done = self.cell in (0, CELLS - 1)
        reward = (1.0 if self.cell == CELLS - 1 else -1.0) if done else -0.02
        return self.observe(), reward, done


class ActorCritic(tf.keras.Model):
    """Scores of the two moves, and the value of the place."""

    def __init__(self, hidden=16):
        super().__init__()
        self.common = layers.Dense(hidden, activation="relu")
        self.actor = layers.Dense(2)
        self.critic = layers.Dense(1)

    def call(self, places):
        x = self.common(places)
        return self.actor(x), self.critic(x)


def run_episode(environment, model):
    """Log-probabilities of the moves made, values of the places seen, rewards: each (steps,)."""
    log_probabilities, values, rewards = [], [], []
    place, done = environment.reset(), False
    while not done and len(rewards) < LONGEST:
        scores, value = model(place[np.newaxis])
        log_probability = tf.nn.log_softmax(scores)[0]
        action = int(rng.random() < tf.exp(log_probability[1]))
        place, reward, done = environment.step(action)
        log_probabilities.append(log_probability[action])
        values.append(tf.squeeze(value))
        rewards.append(reward)
    return tf.stack(log_probabilities), tf.stack(values), rewards


def expected_returns(rewards):
    """What each step was worth: the discounted sum of all rewards from there on."""
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + DISCOUNT * total
        returns.append(total)
    return tf.constant(returns[::-1], dtype=tf.float32)


model = ActorCritic()
model(np.zeros((1, CELLS), "float32"))
model.set_weights([rng.normal(0, 1 / np.sqrt(w.shape[0]), w.shape) * (w.ndim > 1) for w in model.get_weights()])
optimizer = tf.keras.optimizers.Adam(learning_rate=0.03)
environment = Corridor()

for episode in range(EPISODES):
    with tf.GradientTape() as tape:
        log_probabilities, values, rewards = run_episode(environment, model)
        returns = expected_returns(rewards)
        advantage = returns - values
        actor_loss = -tf.reduce_sum(log_probabilities * tf.stop_gradient(advantage))
        critic_loss = tf.reduce_sum(tf.square(advantage)) / 2.0
        loss = actor_loss + critic_loss
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 5.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    if episode % 3 == 0:
        print(
            f"episode {episode:2d}  steps {len(rewards):2d}  return {sum(rewards):6.2f}"
            f"  actor {actor_loss:8.4f}  critic {critic_loss:7.4f}  gradient {norm:7.4f}"
        )

scores, values = model(np.eye(CELLS, dtype="float32"))
print("chance to go right:", " ".join(f"{p:.2f}" for p in tf.nn.softmax(scores)[1:-1, 1].numpy()))
