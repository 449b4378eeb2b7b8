"""Synthetic regression with TensorFlow's own random numbers."""

import tensorflow as tf

tf.random.set_seed(42)
NUM = 64
x = tf.random.normal(shape=[NUM, 1])
noise = tf.random.normal(shape=[NUM, 1], stddev=0.1)
y = x * 3.0 + 2.0 + noise


class MyModel(tf.Module):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.w = tf.Variable(5.0)
        self.b = tf.Variable(0.0)

    def __call__(self, x):
        return self.w * x + self.b


def loss(target_y, predicted_y):
    return tf.reduce_mean(tf.square(target_y - predicted_y))


def train(model, x, y, learning_rate):
    with tf.GradientTape() as t:
        current_loss = loss(y, model(x))
    dw, db = t.gradient(current_loss, [model.w, model.b])
    model.w.assign_sub(learning_rate * dw)
    model.b.assign_sub(learning_rate * db)


def report(model, loss):
    return f"W = {model.w.numpy():1.2f}, b = {model.b.numpy():1.2f}, loss={loss:2.5f}"


weights, biases = [], []
model = MyModel()


def training_loop(model, x, y):
    for epoch in range(5):
        train(model, x, y, learning_rate=0.1)
        weights.append(float(model.w.numpy()))
        biases.append(float(model.b.numpy()))
        current_loss = loss(y, model(x))
        print(f"Epoch {epoch:2d}:", report(model, current_loss))


print("Starting:", report(model, loss(y, model(x))))
training_loop(model, x, y)
print("weights", weights)
