"""REINFORCE with a baseline on a corridor: single observations one by one, episodes of changing length."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
policy = [tf.Variable(0.3 * rng.normal(size=shape).astype("float32")) for shape in ((2, 16), (16,), (16, 2), (2,))]
baseline = [tf.Variable(0.3 * rng.normal(size=shape).astype("float32")) for shape in ((2, 8), (8, 1))]


def act(state):
    w1, b1, w2, b2 = policy
    return tf.nn.log_softmax(tf.tanh(state @ w1 + b1) @ w2 + b2)


def value(states):
    return tf.squeeze(tf.nn.relu(states @ baseline[0]) @ baseline[1], 1)


for episode in range(8):
    place, states, actions, rewards = 0.0, [], [], []
    with tf.GradientTape() as tape:
        chosen = []
        for t in range(25):
            state = tf.constant([[place, t / 25]], tf.float32)
            log_probability = act(state)
            action = int(rng.uniform() < float(tf.exp(log_probability[0, 1])))
            chosen.append(log_probability[0, action])
            place += (2 * action - 1) * 0.3 + 0.05 * rng.normal()
            states.append([place, t / 25])
            rewards.append(-abs(place - 1.0))
            if abs(place) > 1.6:
                break
        returns = np.cumsum(rewards[::-1])[::-1].astype("float32")
        advantage = returns - value(tf.constant(states, tf.float32))
        loss = -tf.reduce_sum(tf.stack(chosen) * tf.stop_gradient(advantage)) + 0.5 * tf.reduce_sum(advantage**2)
    variables = policy + baseline
    for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
        v.assign_sub(0.01 * tf.clip_by_norm(g, 1.0))
    print(episode, len(rewards))
