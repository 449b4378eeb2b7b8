import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
net = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
net.set_weights([rng.randn(3, 2), rng.randn(2)])
other = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
other.compile("sgd", "mse")
x = tf.constant(rng.randn(8, 3).astype("float32"))
y = tf.constant(rng.randn(8, 2).astype("float32"))
opt = tf.keras.optimizers.Adam(0.1)
net.compile(opt, "mse")
net.fit(x, y, verbose=0, epochs=3)
for k in range(5):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x) - y) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    other.train_on_batch(x, y)
    print(k, float(loss), net.evaluate(x, y, verbose=0))
print(net.predict(x, verbose=0)[0])
