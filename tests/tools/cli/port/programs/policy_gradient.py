"""REINFORCE on a bandit with a state: whole batches of plays, returns with a moving baseline."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(7)
tf.random.set_seed(7)
STATES, ACTIONS, PLAYS = 4, 3, 32
best = rng.randint(0, ACTIONS, STATES)

logits_table = tf.Variable(tf.zeros([STATES, ACTIONS]), name="policy")
optimizer = tf.keras.optimizers.SGD(learning_rate=0.5, momentum=0.9, nesterov=True)
baseline = 0.0


def play(probabilities):
    states = rng.randint(0, STATES, PLAYS)
    actions = np.array([rng.choice(ACTIONS, p=p / p.sum()) for p in probabilities[states].astype("float64")])
    rewards = (actions == best[states]).astype("float32") + 0.1 * rng.randn(PLAYS).astype("float32")
    return states, actions, rewards


for episode in range(12):
    policy = np.full((STATES, ACTIONS), 1 / ACTIONS)
    states, actions, rewards = play(policy)
    advantage = rewards - baseline
    baseline = 0.9 * baseline + 0.1 * float(rewards.mean())
    with tf.GradientTape() as tape:
        logits = tf.gather(logits_table, states)
        log_probability = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
        entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), axis=-1)
        loss = -tf.reduce_mean(log_probability * advantage) - 0.01 * tf.reduce_mean(entropy)
    optimizer.apply_gradients([(tape.gradient(loss, logits_table), logits_table)])
    print(f"episode {episode}: reward {rewards.mean():.3f}, loss {loss.numpy():.4f}")
