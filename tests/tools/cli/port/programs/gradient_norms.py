import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
net = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.Adam(0.1)


def gradients(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(net(x) ** 2)
    return loss, tape.gradient(loss, net.trainable_variables)


x0 = tf.ones((4, 3))
print("before", [float(tf.norm(g)) for g in gradients(x0)[1]])
norms = []
for k in range(10):
    x = tf.constant(rng.randn(4, 3).astype("float32"))
    loss, g = gradients(x)
    opt.apply_gradients(zip(g, net.trainable_variables))
    if k % 3 == 0:
        norms.append(float(tf.linalg.global_norm(gradients(x0)[1])))
print("after", norms, float(tf.norm(gradients(x0)[1][0])))
