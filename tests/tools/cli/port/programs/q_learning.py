"""Deep Q-learning from a replay buffer, with a target network that is copied every few steps."""

import random
from collections import deque

import numpy as np
import tensorflow as tf

random.seed(8)
np.random.seed(8)
tf.random.set_seed(8)


def network():
    return tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(10, activation="relu"), tf.keras.layers.Dense(2)]
    )


model, target_model = network(), network()
target_model.set_weights(model.get_weights())
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01, clipnorm=1.0)
loss_fn = tf.keras.losses.Huber()
buffer = deque(maxlen=200)
for _ in range(100):
    state = np.random.randn(3).astype("float32")
    action = random.randrange(2)
    reward = np.float32(state[0] if action else -state[0])
    buffer.append(
        (state, action, reward, state + 0.1 * np.random.randn(3).astype("float32"), float(random.random() < 0.1))
    )


def sample(size):
    rows = random.sample(range(len(buffer)), size)
    return [np.array([buffer[i][part] for i in rows]) for part in range(5)]


def training_step(size):
    states, actions, rewards, next_states, done = sample(size)
    next_q = target_model(next_states).numpy().max(axis=1)
    target_q = (rewards + (1 - done) * 0.9 * next_q).reshape(-1, 1)
    mask = tf.one_hot(actions, 2)
    with tf.GradientTape() as tape:
        q = tf.reduce_sum(model(states) * mask, axis=1, keepdims=True)
        loss = tf.reduce_mean(loss_fn(target_q, q))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for step in range(14):
    loss = training_step(16)
    if step % 5 == 4:
        target_model.set_weights(model.get_weights())
    print(step, float(loss))
