"""REINFORCE on a pole on a cart: six episodes."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
rng = np.random.default_rng(1)


def act(state, force):
    """One step of the cart: its new state, and whether the pole has fallen."""
    x, v, angle, turn = state
    sin, cos = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * turn**2 * sin) / 1.1
    turning = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    moving = push - 0.05 * turning * cos / 1.1
    state = np.array([x + 0.02 * v, v + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning])
    return state, abs(state[0]) > 2.4 or abs(state[2]) > 0.21


w1, b1 = tf.Variable(tf.random.normal([4, 32], stddev=0.3)), tf.Variable(tf.zeros([32]))
w2, b2 = tf.Variable(tf.random.normal([32, 2], stddev=0.3)), tf.Variable(tf.zeros([2]))
variables = [w1, b1, w2, b2]
optimizer = tf.keras.optimizers.Adam(1e-2)


def policy(states):
    return tf.matmul(tf.nn.relu(tf.matmul(states, w1) + b1), w2) + b2


def returns_of(rewards):
    returns, total = [], 0.0
    for reward in rewards[::-1]:
        total = reward + 0.99 * total
        returns.append(total)
    returns = tf.constant(returns[::-1], dtype=tf.float32)
    return (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + 1e-6)


for episode in range(6):
    state, done, logs, rewards = rng.uniform(-0.05, 0.05, 4), False, [], []
    with tf.GradientTape() as tape:
        while not done and len(rewards) < 40:
            logits = policy(tf.expand_dims(tf.constant(state, dtype=tf.float32), 0))
            action = tf.random.categorical(logits, 1)[0, 0]
            logs.append(tf.nn.log_softmax(logits)[0, action])
            state, done = act(state, 10.0 if action.numpy() else -10.0)
            rewards.append(1.0)
        loss = -tf.math.reduce_sum(tf.stack(logs) * returns_of(rewards))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=False))
    print(episode, len(rewards), float(loss))
