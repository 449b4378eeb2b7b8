"""Q-learning by functions: a replay buffer that is filled first, and soft updates of the target network."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
tf.keras.utils.set_random_seed(3)


def make_net():
    inp = tf.keras.Input((3,))
    x = tf.keras.layers.Dense(8, activation="relu")(inp)
    return tf.keras.Model(inp, tf.keras.layers.Dense(2)(x))


q_net, target_net = make_net(), make_net()
target_net.set_weights(q_net.get_weights())
opt = tf.keras.optimizers.RMSprop(0.005)
TAU = 0.1
buffer = []
BATCH = 8


@tf.function
def train_step(s, a, r, s2):
    target = r + 0.9 * tf.reduce_max(target_net(s2), axis=1)
    with tf.GradientTape() as tape:
        q = tf.reduce_sum(q_net(s) * tf.one_hot(a, 2), axis=1)
        loss = tf.reduce_mean(tf.keras.losses.huber(target[:, None], q[:, None]))
    grads = tape.gradient(loss, q_net.trainable_variables)
    opt.apply_gradients(zip(grads, q_net.trainable_variables))
    return loss


def update_target():
    for w, tw in zip(q_net.weights, target_net.weights):
        tw.assign(TAU * w + (1 - TAU) * tw)


s = rng.normal(size=3).astype("float32")
for step in range(30):
    if rng.random() < 0.3:
        a = int(rng.integers(2))
    else:
        a = int(tf.argmax(q_net(s[None])[0]))
    r = np.float32(s[0] if a else -s[0])
    s2 = (0.9 * s + 0.3 * rng.normal(size=3)).astype("float32")
    buffer.append((s, a, r, s2))
    s = s2
    if len(buffer) < BATCH:
        continue
    idx = rng.integers(len(buffer), size=BATCH)
    bs, ba, br, bs2 = [np.array(x) for x in zip(*[buffer[i] for i in idx])]
    loss = train_step(bs, ba, br, bs2)
    update_target()
    if step % 10 == 0:
        print(step, float(loss))
print("mean Q:", float(tf.reduce_mean(q_net(np.array([b[0] for b in buffer[:4]])))))
