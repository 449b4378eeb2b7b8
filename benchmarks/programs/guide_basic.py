"""What a first guide to gradient tapes shows, each once."""

import tensorflow as tf

x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = x**2
print(tape.gradient(y, x).numpy())

w = tf.Variable(tf.random.normal((3, 2)), name="w")
b = tf.Variable(tf.zeros(2, dtype=tf.float32), name="b")
row = [[1.0, 2.0, 3.0]]
with tf.GradientTape(persistent=True) as tape:
    y = row @ w + b
    loss = tf.reduce_mean(y**2)
print([g.shape for g in tape.gradient(loss, [w, b])], tape.gradient(loss, {"w": w, "b": b})["b"].numpy())

layer = tf.Module()
layer.kernel = tf.Variable(tf.random.normal((3, 2)))
layer.bias = tf.Variable(tf.zeros(2))
with tf.GradientTape() as tape:
    loss = tf.reduce_mean(tf.nn.relu(tf.constant(row) @ layer.kernel + layer.bias) ** 2)
for variable, gradient in zip(layer.trainable_variables, tape.gradient(loss, layer.trainable_variables), strict=False):
    print(variable.shape, gradient.shape)

x0, x1 = tf.Variable(3.0), tf.Variable(3.0, trainable=False)
x2, x3 = tf.Variable(2.0) + 1.0, tf.constant(3.0)
with tf.GradientTape() as tape:
    y = (x0**2) + (x1**2) + (x2**2)
print(tape.gradient(y, [x0, x1, x2, x3]))

x = tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = x**2
print(tape.gradient(y, x).numpy())

x0, x1 = tf.Variable(0.0), tf.Variable(10.0)
with tf.GradientTape(watch_accessed_variables=False) as tape:
    tape.watch(x1)
    y0 = tf.math.sin(x0)
    y1 = tf.nn.softplus(x1)
    y = y0 + y1
    ys = tf.reduce_sum(y)
grad = tape.gradient(ys, {"x0": x0, "x1": x1})
print(grad["x0"], grad["x1"].numpy())

x = tf.constant([1, 3.0])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = x * x
    z = y * y
print(tape.gradient(z, x).numpy(), tape.gradient(y, x).numpy())

x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y0 = x**2
    y1 = 1 / x
print(tape.gradient({"y0": y0, "y1": y1}, x).numpy())
with tf.GradientTape() as tape:
    y = x * [3.0, 4.0]
print(tape.gradient(y, x).numpy())

x = tf.linspace(-10.0, 10.0, 200 + 1)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.nn.sigmoid(x)
print(tape.gradient(y, x).numpy().max())

x, v0, v1 = tf.constant(1.0), tf.Variable(2.0), tf.Variable(2.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    result = v0 if x > 0.0 else v1**2
print(tape.gradient(result, [v0, v1]), tape.gradient(result, x))

x = tf.Variable([[1.0, 2.0], [3.0, 4.0]], dtype=tf.float32)
with tf.GradientTape() as tape:
    y = tf.reduce_mean(x**2, axis=0)
    y = tf.reduce_mean(y, axis=0)
print(tape.gradient(y, x))
x = tf.constant(10)
with tf.GradientTape() as tape:
    tape.watch(tf.cast(x, tf.float32))
    y = x * x
print(tape.gradient(y, x))

image = tf.Variable([[[0.5, 0.0, 0.0]]])
delta = tf.Variable(0.1)
with tf.GradientTape() as tape:
    scaled = tf.clip_by_value(image * delta, 0.0, 1.0)
print(tape.gradient(scaled, [image, delta], unconnected_gradients=tf.UnconnectedGradients.ZERO))
