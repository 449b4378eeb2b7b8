"""PPO on a cart that is pushed to the origin: clipped ratio, generalised advantages, entropy bonus, two networks."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)
GAMMA, LAMBDA, CLIP, ENTROPY, EPOCHS, HORIZON, MINIBATCH = 0.98, 0.95, 0.2, 0.01, 2, 64, 32
rng = np.random.default_rng(0)


class Cart:
    def reset(self):
        self.state = rng.uniform(-1, 1, 2).astype("float32")
        return self.state.copy()

    def step(self, action):
        position, speed = self.state
        speed = 0.95 * speed + (0.1, -0.1, 0.0)[action]
        self.state = np.array([position + 0.1 * speed, speed], dtype="float32")
        return self.state.copy(), -float(abs(position))


def mlp(outputs, name):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((2,)),
            tf.keras.layers.Dense(16, activation="tanh"),
            tf.keras.layers.Dense(16, activation="tanh"),
            tf.keras.layers.Dense(outputs),
        ],
        name=name,
    )


actor, critic = mlp(3, "actor"), mlp(1, "critic")
actor_optimizer = tf.keras.optimizers.Adam(3e-3, clipnorm=0.5)
critic_optimizer = tf.keras.optimizers.Adam(1e-2)


def log_probs(states, actions):
    logits = actor(states)
    log_all = tf.nn.log_softmax(logits)
    entropy = -tf.reduce_sum(tf.exp(log_all) * log_all, axis=1)
    return tf.reduce_sum(tf.one_hot(actions, 3) * log_all, axis=1), entropy


@tf.function
def train_actor(states, actions, old_log_probs, advantages):
    with tf.GradientTape() as tape:
        new_log_probs, entropy = log_probs(states, actions)
        ratio = tf.exp(new_log_probs - old_log_probs)
        clipped = tf.clip_by_value(ratio, 1 - CLIP, 1 + CLIP)
        surrogate = tf.minimum(ratio * advantages, clipped * advantages)
        policy_loss = -tf.reduce_mean(surrogate) - ENTROPY * tf.reduce_mean(entropy)
    grads = tape.gradient(policy_loss, actor.trainable_variables)
    actor_optimizer.apply_gradients(zip(grads, actor.trainable_variables))
    return policy_loss


@tf.function
def train_critic(states, returns):
    with tf.GradientTape() as tape:
        values = tf.squeeze(critic(states), axis=1)
        value_loss = tf.keras.losses.huber(returns, values)
    grads = tape.gradient(value_loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(grads, critic.trainable_variables))
    return value_loss


def rollout(env):
    states, actions, rewards = [], [], []
    state = env.reset()
    for _ in range(HORIZON):
        probabilities = tf.nn.softmax(actor(state[None])).numpy()[0]
        action = rng.choice(3, p=probabilities / probabilities.sum())
        states.append(state)
        actions.append(action)
        state, reward = env.step(action)
        rewards.append(reward)
    return np.array(states), np.array(actions, "int32"), np.array(rewards, "float32"), state


def advantages_of(rewards, values, last):
    found, advantage = np.zeros_like(rewards), 0.0
    following = np.append(values[1:], last)
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + GAMMA * following[t] - values[t]
        advantage = delta + GAMMA * LAMBDA * advantage
        found[t] = advantage
    return found


env = Cart()
for iteration in range(5):
    states, actions, rewards, last = rollout(env)
    values = critic(states).numpy()[:, 0]
    advantages = advantages_of(rewards, values, float(critic(last[None])[0, 0]))
    returns = (advantages + values).astype("float32")
    advantages = ((advantages - advantages.mean()) / (advantages.std() + 1e-8)).astype("float32")
    old_log_probs = log_probs(tf.constant(states), tf.constant(actions))[0].numpy()
    for _ in range(EPOCHS):
        order = rng.permutation(HORIZON)
        for start in range(0, HORIZON, MINIBATCH):
            pick = order[start : start + MINIBATCH]
            batch = [tf.constant(x[pick]) for x in (states, actions, old_log_probs, advantages, returns)]
            policy_loss = train_actor(*batch[:4])
            value_loss = train_critic(batch[0], batch[4])
    print(iteration, float(policy_loss), float(value_loss), rewards.mean())
