"""A line through noisy points: 60 steps of gradient descent."""

import tensorflow as tf

tf.random.set_seed(0)
x = tf.random.normal([200])
y = 3.0 * x + 2.0 + 0.1 * tf.random.normal([200])


class Line(tf.Module):
    def __init__(self):
        self.w = tf.Variable(5.0)
        self.b = tf.Variable(0.0)

    def __call__(self, x):
        return self.w * x + self.b


def mean_square(target, predicted):
    return tf.reduce_mean(tf.square(target - predicted))


model = Line()
for step in range(60):
    with tf.GradientTape() as tape:
        loss = mean_square(y, model(x))
    dw, db = tape.gradient(loss, [model.w, model.b])
    model.w.assign_sub(0.1 * dw)
    model.b.assign_sub(0.1 * db)
    if step % 20 == 0:
        print(f"step {step}: {loss.numpy():.4f}")
print(model.w.numpy(), model.b.numpy())
