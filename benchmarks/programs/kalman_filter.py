"""A Kalman filter over 12 measurements of a position, the two variances by 6 steps on its likelihood."""

import numpy as np
import tensorflow as tf

measured = np.cumsum(np.random.RandomState(0).normal(size=[12, 1, 1]), 0).astype("float32")
move = tf.constant([[1.0, 1.0], [0.0, 1.0]])
see = tf.constant([[1.0, 0.0]])
log_moved, log_seen = tf.Variable(-1.0), tf.Variable(0.0)

for step in range(6):
    with tf.GradientTape() as tape:
        mean, covariance, loss = tf.zeros([2, 1]), tf.eye(2), 0.0
        for z in measured:
            mean = move @ mean
            covariance = move @ covariance @ tf.transpose(move) + tf.exp(log_moved) * tf.eye(2)
            spread = see @ covariance @ tf.transpose(see) + tf.exp(log_seen) * tf.eye(1)
            surprise = z - see @ mean
            loss += 0.5 * tf.reduce_sum(surprise * tf.linalg.solve(spread, surprise)) + 0.5 * tf.linalg.logdet(spread)
            gain = covariance @ tf.transpose(see) @ tf.linalg.inv(spread)
            mean, covariance = mean + gain @ surprise, (tf.eye(2) - gain @ see) @ covariance
    for variable, gradient in zip([log_moved, log_seen], tape.gradient(loss, [log_moved, log_seen]), strict=True):
        variable.assign_sub(0.05 * gradient)
    print(step, float(loss))
