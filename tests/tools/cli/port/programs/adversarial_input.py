"""Targeted adversarial example: the input is optimised, the network is fixed."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(2)
np.random.seed(2)
net = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(4, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(3, kernel_initializer=tf.keras.initializers.RandomNormal(stddev=1.0, seed=4)),
    ]
)
image = tf.convert_to_tensor(np.random.rand(1, 6, 6, 1).astype("float32"))
original = image
target = tf.constant([2])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
print("before:", tf.nn.softmax(net(image)).numpy())

step_size = 0.05
eps = 0.3
for i in range(15):
    with tf.GradientTape() as tape:
        tape.watch(image)
        loss = loss_fn(target, net(image))
    gradient = tape.gradient(loss, image)
    image = image - step_size * tf.sign(gradient)
    image = tf.clip_by_value(image, original - eps, original + eps)
    image = tf.clip_by_value(image, 0.0, 1.0)
    if i % 5 == 0:
        print(i, float(loss))

print("after:", tf.nn.softmax(net(image)).numpy())
print("largest change:", float(tf.reduce_max(tf.abs(image - original))))
