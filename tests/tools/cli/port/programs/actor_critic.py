"""Actor-critic with a shared body: both losses train it, one after the other."""

import numpy as np
import tensorflow as tf

np.random.seed(3)
tf.random.set_seed(3)
GAMMA = 0.9


def env_step(s, a):
    s2 = np.clip(s + (0.2 if a else -0.2), -1, 1).astype(np.float32)
    return s2, float(1.0 - abs(s2[0])), abs(s2[0]) >= 1.0


body = tf.keras.layers.Dense(8, activation="tanh")
actor_head = tf.keras.layers.Dense(2)
critic_head = tf.keras.layers.Dense(1)
body.build((None, 1))
actor_head.build((None, 8))
critic_head.build((None, 8))
actor_vars = body.trainable_variables + actor_head.trainable_variables
critic_vars = body.trainable_variables + critic_head.trainable_variables
actor_opt = tf.keras.optimizers.Adam(1e-2)
critic_opt = tf.keras.optimizers.Adam(2e-2)

for episode in range(4):
    state = np.array([0.0], dtype=np.float32)
    total = 0.0
    for _ in range(6):
        s = state.reshape(1, -1)
        probs = tf.nn.softmax(actor_head(body(s))).numpy()[0]
        action = np.random.choice(2, p=probs / probs.sum())
        next_state, reward, done = env_step(state, action)
        total += reward
        value_next = critic_head(body(next_state.reshape(1, -1)))
        target = reward + (0.0 if done else GAMMA * float(value_next[0, 0]))
        with tf.GradientTape(persistent=True) as tape:
            h = body(s)
            logits = actor_head(h)
            value = critic_head(h)[0, 0]
            advantage = target - value
            log_prob = tf.nn.log_softmax(logits)[0, action]
            actor_loss = -log_prob * tf.stop_gradient(advantage)
            critic_loss = advantage**2
        actor_grads = tape.gradient(actor_loss, actor_vars)
        critic_grads = tape.gradient(critic_loss, critic_vars)
        actor_opt.apply_gradients(zip(actor_grads, actor_vars))
        critic_opt.apply_gradients(zip(critic_grads, critic_vars))
        del tape
        state = next_state
        if done:
            break
    print("episode", episode, "return", round(total, 3))
print("value of the middle:", float(critic_head(body(np.zeros((1, 1), np.float32)))[0, 0]))
