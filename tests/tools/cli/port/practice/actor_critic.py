"""An actor-critic on a walk along a line: a step to the right place is rewarded."""

import numpy as np
import tensorflow as tf

PLACES, ACTIONS, LENGTH, DISCOUNT = 6, 2, 10, 0.9

rng = np.random.default_rng(0)
tf.random.set_seed(0)


class ActorCritic(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.common = tf.keras.layers.Dense(16, activation="tanh")
        self.actor = tf.keras.layers.Dense(ACTIONS)
        self.critic = tf.keras.layers.Dense(1)

    def call(self, states):
        x = self.common(states)
        return self.actor(x), self.critic(x)[:, 0]


model = ActorCritic()
model(tf.zeros([1, PLACES]))
optimizer = tf.keras.optimizers.RMSprop(5e-3)


def run_episode():
    place, states, actions, rewards = PLACES // 2, [], [], []
    for _ in range(LENGTH):
        state = np.eye(PLACES, dtype="float32")[place]
        logits, _ = model(state[None])
        p = tf.nn.softmax(logits).numpy()[0].astype("float64")
        action = rng.choice(ACTIONS, p=p / p.sum())
        place = int(np.clip(place + (1 if action else -1), 0, PLACES - 1))
        states.append(state)
        actions.append(action)
        rewards.append(float(place == PLACES - 1))
    return np.stack(states), np.array(actions, "int32"), np.array(rewards, "float32")


def returns_of(rewards):
    found, total = [], 0.0
    for reward in rewards[::-1]:
        total = reward + DISCOUNT * total
        found.append(total)
    return np.array(found[::-1], "float32")


def train_step(states, actions, returns):
    with tf.GradientTape() as tape:
        logits, values = model(states)
        log_p = tf.nn.log_softmax(logits)
        chosen = tf.reduce_sum(log_p * tf.one_hot(actions, ACTIONS), axis=1)
        advantage = returns - values
        actor_loss = -tf.reduce_mean(chosen * tf.stop_gradient(advantage))
        critic_loss = tf.reduce_mean(tf.square(advantage))
        loss = actor_loss + 0.5 * critic_loss
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for episode in range(24):
    states, actions, rewards = run_episode()
    returns = tf.constant(returns_of(rewards))
    loss = train_step(tf.constant(states), tf.constant(actions), returns)
    if episode % 8 == 0:
        print(f"episode {episode}: reward {rewards.sum():.0f}, loss {float(loss):.4f}")
