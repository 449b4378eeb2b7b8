"""REINFORCE with whole episodes as a batch, of any length, and a moving baseline. The first episodes only fill the statistics."""

import numpy as np
import tensorflow as tf

np.random.seed(5)
tf.random.set_seed(5)
N_ACTIONS = 2
W1 = tf.Variable(tf.random.normal([2, 8], stddev=0.3, seed=1), name="W1")
b1 = tf.Variable(tf.zeros([8]))
W2 = tf.Variable(tf.random.normal([8, N_ACTIONS], stddev=0.3, seed=2), name="W2")
params = [W1, b1, W2]
optimizer = tf.keras.optimizers.Adam(learning_rate=0.02)


def policy(s):
    return tf.matmul(tf.nn.relu(tf.matmul(s, W1) + b1), W2)


def run_episode():
    s = np.random.uniform(-0.5, 0.5, size=2).astype(np.float32)
    states, actions, rewards = [], [], []
    for _ in range(10):
        logits = policy(tf.constant([s])).numpy()[0]
        p = np.exp(logits - logits.max())
        p = p / p.sum()
        a = np.random.choice(N_ACTIONS, p=p)
        states.append(s)
        actions.append(a)
        rewards.append(1.0 - abs(s[0]))
        s = s + np.array([0.15 if a else -0.15, 0.01], dtype=np.float32)
        if abs(s[0]) > 0.8:
            break
    return np.array(states), np.array(actions), np.array(rewards, dtype=np.float32)


baseline = 0.0
for episode in range(16):
    states, actions, rewards = run_episode()
    total = rewards.sum()
    baseline = 0.9 * baseline + 0.1 * total
    if episode < 3:
        print("warm-up", episode, total)
        continue
    advantages = np.cumsum(rewards[::-1])[::-1] - baseline
    with tf.GradientTape() as tape:
        logits = policy(states)
        neg_log_prob = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
        loss = tf.reduce_mean(neg_log_prob * advantages.astype(np.float32))
    grads = tape.gradient(loss, params)
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    optimizer.apply_gradients(zip(grads, params))
    print("episode", episode, "reward", total, "loss", float(loss), "norm", float(norm))
