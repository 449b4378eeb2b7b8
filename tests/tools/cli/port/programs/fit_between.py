import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
net = tf.keras.Sequential(
    [
        tf.keras.layers.Input((3,)),
        tf.keras.layers.Dense(4),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dense(2),
    ]
)
net.set_weights([rng.randn(*w.shape) if w.ndim > 1 else w for w in net.get_weights()])
x = tf.constant(rng.randn(8, 3).astype("float32"))
y = tf.constant(rng.randn(8, 2).astype("float32"))
opt = tf.keras.optimizers.RMSprop(0.01, momentum=0.5, centered=True)
net.compile("adam", "mse")


def train(n):
    for k in range(n):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(x, training=True) - y) ** 2)
        opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        print(k, float(loss))


train(4)
net.fit(x, y, verbose=0, epochs=2)
train(4)
net.fit(x, y, verbose=0, epochs=2)
