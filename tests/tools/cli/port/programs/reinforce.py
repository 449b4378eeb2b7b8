"""REINFORCE on a corridor: walk right to the goal."""

import numpy as np
import tensorflow as tf

np.random.seed(0)
tf.random.set_seed(0)


class Corridor:
    def __init__(self, n=5):
        self.n = n

    def reset(self):
        self.pos, self.t = 0, 0
        return self._obs()

    def _obs(self):
        obs = np.zeros(self.n, dtype=np.float32)
        obs[self.pos] = 1.0
        return obs

    def step(self, action):
        self.t += 1
        self.pos = min(max(self.pos + (1 if action == 1 else -1), 0), self.n - 1)
        done = self.pos == self.n - 1 or self.t >= 12
        reward = 1.0 if self.pos == self.n - 1 else -0.1
        return self._obs(), reward, done


env = Corridor()
policy = tf.keras.Sequential(
    [
        tf.keras.Input((5,)),
        tf.keras.layers.Dense(8, activation="tanh"),
        tf.keras.layers.Dense(2, activation="softmax"),
    ]
)
optimizer = tf.keras.optimizers.Adam(0.02)
GAMMA = 0.95


def discounted(rewards):
    out, running = [], 0.0
    for r in reversed(rewards):
        running = r + GAMMA * running
        out.insert(0, running)
    return np.array(out, dtype=np.float32)


for episode in range(12):
    state = env.reset()
    states, actions, rewards = [], [], []
    done = False
    while not done:
        probs = policy(state[np.newaxis, :]).numpy()[0]
        action = np.random.choice(2, p=probs / probs.sum())
        next_state, reward, done = env.step(action)
        states.append(state)
        actions.append(action)
        rewards.append(reward)
        state = next_state

    returns = discounted(rewards)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    # update the policy, one sample of the episode after another
    for s, a, g in zip(states, actions, returns):
        with tf.GradientTape() as tape:
            p = policy(s[np.newaxis, :], training=True)
            loss = -tf.math.log(p[0, a] + 1e-8) * g
        grads = tape.gradient(loss, policy.trainable_variables)
        optimizer.apply_gradients(zip(grads, policy.trainable_variables))
    print(f"Episode {episode}: total reward {sum(rewards):.2f}")

# the greedy policy
print("greedy:", [int(np.argmax(policy(np.eye(5, dtype=np.float32)[i : i + 1])[0])) for i in range(5)])
