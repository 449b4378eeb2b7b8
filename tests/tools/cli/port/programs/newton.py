import tensorflow as tf

x = tf.Variable([-1.2, 1.0])


def f(x):
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


for i in range(6):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = f(x)
        g = inner.gradient(loss, x)
    H = outer.jacobian(g, x)
    x.assign_sub(tf.squeeze(tf.linalg.solve(H, g[:, None]), 1))
    print(i, loss.numpy())
