import tensorflow as tf

a = tf.Variable(0.5)
b = tf.Variable(2.0)
for turn in range(2):
    a.assign(0.5)
    b.assign(2.0)
    for i in range(4):
        with tf.GradientTape() as tape:
            loss = tf.sin(a) ** 2 + (a - b) ** 2
        g = tape.gradient(loss, [a, b])
        a.assign_sub(0.1 * g[0])
        b.assign_sub(0.01 * g[1])
        print(turn, i, float(loss))
