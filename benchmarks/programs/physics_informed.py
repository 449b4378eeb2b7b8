"""A network that solves an oscillator's equation, by tapes in tapes and Adam by hand: 8 steps."""

import tensorflow as tf

tf.random.set_seed(0)
t = tf.reshape(tf.linspace(0.0, 3.0, 40), [40, 1])
w1, b1 = tf.Variable(tf.random.normal([1, 20])), tf.Variable(tf.zeros([20]))
w2, b2 = tf.Variable(tf.random.normal([20, 20], stddev=0.3)), tf.Variable(tf.zeros([20]))
w3 = tf.Variable(tf.random.normal([20, 1], stddev=0.3))
variables = [w1, b1, w2, b2, w3]
first = [tf.Variable(tf.zeros_like(v)) for v in variables]
second = [tf.Variable(tf.zeros_like(v)) for v in variables]


def network(t):
    return tf.matmul(tf.tanh(tf.matmul(tf.tanh(tf.matmul(t, w1) + b1), w2) + b2), w3)


for step in range(1, 9):
    with tf.GradientTape() as tape:
        with tf.GradientTape() as outer:
            outer.watch(t)
            with tf.GradientTape() as inner:
                inner.watch(t)
                u = network(t)
            du = inner.gradient(u, t)
        ddu = outer.gradient(du, t)
        residual = tf.reduce_mean(tf.square(ddu + 4.0 * u))
        start = tf.square(u[0, 0] - 1.0) + tf.square(du[0, 0])
        loss = residual + 10.0 * start
    for v, m, s, g in zip(variables, first, second, tape.gradient(loss, variables), strict=False):
        m.assign(0.9 * m + 0.1 * g)
        s.assign(0.999 * s + 0.001 * tf.square(g))
        v.assign_sub(0.01 * (m / (1 - 0.9**step)) / (tf.sqrt(s / (1 - 0.999**step)) + 1e-7))
    if step % 4 == 0:
        print(step, float(loss))
