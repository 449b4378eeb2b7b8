"""Soft actor-critic: two critics, slowly moving targets, and a temperature that is learned."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(8)
STATE, ACTION, GAMMA, TAU = 3, 1, 0.98, 0.05
TARGET_ENTROPY = -float(ACTION)


def mlp(inputs, outputs, name):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((inputs,)),
            tf.keras.layers.Dense(16, activation="relu"),
            tf.keras.layers.Dense(outputs),
        ],
        name=name,
    )


actor = mlp(STATE, 2 * ACTION, "actor")
critic_1, critic_2 = mlp(STATE + ACTION, 1, "critic_1"), mlp(STATE + ACTION, 1, "critic_2")
target_1, target_2 = mlp(STATE + ACTION, 1, "target_1"), mlp(STATE + ACTION, 1, "target_2")
target_1.set_weights(critic_1.get_weights())
target_2.set_weights(critic_2.get_weights())
log_alpha = tf.Variable(0.0, name="log_alpha")
actor_optimizer = tf.keras.optimizers.Adam(3e-3)
critic_optimizer = tf.keras.optimizers.Adam(3e-3)
alpha_optimizer = tf.keras.optimizers.Adam(3e-3)


def sample_action(states, noise):
    mean, log_std = tf.split(actor(states), 2, axis=1)
    log_std = tf.clip_by_value(log_std, -5.0, 2.0)
    before = mean + tf.exp(log_std) * noise
    action = tf.tanh(before)
    log_prob = -0.5 * noise**2 - log_std - 0.5 * np.log(2 * np.pi)
    log_prob -= tf.math.log(1.0 - action**2 + 1e-6)
    return action, tf.reduce_sum(log_prob, axis=1, keepdims=True)


@tf.function
def update_critics(states, actions, rewards, next_states, noise):
    next_actions, next_log_prob = sample_action(next_states, noise)
    pairs = tf.concat([next_states, next_actions], 1)
    smaller = tf.minimum(target_1(pairs), target_2(pairs))
    targets = rewards + GAMMA * (smaller - tf.exp(log_alpha) * next_log_prob)
    variables = critic_1.trainable_variables + critic_2.trainable_variables
    with tf.GradientTape() as tape:
        pairs = tf.concat([states, actions], 1)
        critic_loss = tf.reduce_mean((critic_1(pairs) - targets) ** 2) + tf.reduce_mean(
            (critic_2(pairs) - targets) ** 2
        )
    critic_optimizer.apply_gradients(zip(tape.gradient(critic_loss, variables), variables))
    return critic_loss


@tf.function
def update_actor(states, noise):
    with tf.GradientTape() as tape:
        actions, log_prob = sample_action(states, noise)
        pairs = tf.concat([states, actions], 1)
        value = tf.minimum(critic_1(pairs), critic_2(pairs))
        actor_loss = tf.reduce_mean(tf.exp(log_alpha) * log_prob - value)
    actor_optimizer.apply_gradients(
        zip(tape.gradient(actor_loss, actor.trainable_variables), actor.trainable_variables)
    )
    with tf.GradientTape() as tape:
        alpha_loss = -tf.reduce_mean(log_alpha * tf.stop_gradient(log_prob + TARGET_ENTROPY))
    alpha_optimizer.apply_gradients([(tape.gradient(alpha_loss, log_alpha), log_alpha)])
    return actor_loss


def move_targets():
    for target, critic in ((target_1, critic_1), (target_2, critic_2)):
        for slow, fast in zip(target.variables, critic.variables):
            slow.assign(TAU * fast + (1.0 - TAU) * slow)


rng = np.random.default_rng(0)
for step in range(8):
    states = tf.constant(rng.normal(size=(32, STATE)), tf.float32)
    actions = tf.constant(rng.uniform(-1, 1, (32, ACTION)), tf.float32)
    rewards = -tf.reduce_sum(states**2, 1, keepdims=True) - 0.1 * actions**2
    next_states = 0.9 * states + 0.1 * actions
    critic_noise = tf.constant(rng.normal(size=(32, ACTION)), tf.float32)
    critic_loss = update_critics(states, actions, rewards, next_states, critic_noise)
    actor_noise = tf.constant(rng.normal(size=(32, ACTION)), tf.float32)
    actor_loss = update_actor(states, actor_noise)
    move_targets()
    print(step, float(critic_loss), float(actor_loss), float(tf.exp(log_alpha)))
