"""What a second guide shows, each once: control of recording, custom gradients, higher order, Jacobians, a Hessian."""

import tensorflow as tf

x, y = tf.Variable(2.0), tf.Variable(3.0)
with tf.GradientTape() as tape:
    x_sq = x * x
    with tape.stop_recording():
        y_sq = y * y
    z = x_sq + y_sq
print(tape.gradient(z, {"x": x, "y": y}))
with tf.GradientTape() as tape:
    z = x**2 + tf.stop_gradient(y**2)
print(tape.gradient(z, {"x": x, "y": y}))


@tf.custom_gradient
def clip_gradients(y):
    def backward(dy):
        return tf.clip_by_norm(dy, 0.5)

    return y, backward


v = tf.Variable(2.0)
with tf.GradientTape() as tape:
    output = clip_gradients(v * v)
print(tape.gradient(output, v))


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


x = tf.constant(100.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = log1pexp(x)
print(tape.gradient(y, x).numpy())

x0, x1 = tf.constant(0.0), tf.constant(0.0)
with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
    tape0.watch(x0)
    tape1.watch(x1)
    y0 = tf.math.sin(x0)
    y1 = tf.nn.sigmoid(x1)
    ys = tf.reduce_sum(y0 + y1)
print(tape0.gradient(ys, x0).numpy(), tape1.gradient(ys, x1).numpy())

x = tf.Variable(1.0)
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        y = x * x * x
    dy_dx = t1.gradient(y, x)
print(dy_dx.numpy(), t2.gradient(dy_dx, x).numpy())

data = tf.random.normal([7, 5])
kernel, bias = tf.Variable(tf.random.normal([5, 10])), tf.Variable(tf.zeros([10]))
with tf.GradientTape() as t2:
    with tf.GradientTape(watch_accessed_variables=False) as t1:
        t1.watch(data)
        out = tf.reduce_sum(tf.nn.relu(data @ kernel + bias) ** 2)
    g1 = t1.gradient(out, data)
    g1_mag = tf.norm(g1)
print([g.shape for g in t2.gradient(g1_mag, [kernel, bias])])

x = tf.linspace(-10.0, 10.0, 200 + 1)
delta = tf.Variable(0.0)
with tf.GradientTape() as tape:
    y = tf.nn.sigmoid(x + delta)
print(tape.jacobian(y, delta).shape)

with tf.GradientTape(persistent=True) as tape:
    y = tf.nn.relu(data @ kernel + bias)
j = tape.jacobian(y, kernel)
g = tape.gradient(y, kernel)
print(j.shape, float(tf.reduce_max(tf.abs(g - tf.reduce_sum(j, axis=[0, 1])))))

k1, k2 = tf.Variable(tf.random.normal([5, 5])), tf.Variable(tf.random.normal([5, 3]))
with tf.GradientTape() as t2:
    with tf.GradientTape() as t1:
        loss = tf.reduce_mean(tf.nn.softplus(data @ k1) @ k2) ** 2
    g = t1.gradient(loss, k1)
h = t2.jacobian(g, k1)
n = tf.reduce_prod(k1.shape)
h_mat = tf.reshape(h, [n, n])
update = tf.linalg.solve(h_mat + tf.eye(h_mat.shape[0]) * 1e-3, tf.reshape(g, [n, 1]))
k1.assign_sub(tf.reshape(update, k1.shape))

with tf.GradientTape() as tape:
    tape.watch(data)
    y = tf.nn.elu(data @ k1)
print(tape.batch_jacobian(y, data).shape)
