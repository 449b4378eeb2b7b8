import numpy as np
import tensorflow as tf
from scipy.optimize import minimize

w = tf.Variable(tf.zeros([3]))
b = tf.Variable(0.0)
rng = np.random.RandomState(0)
X = tf.constant(rng.randn(40, 3).astype("float32"))
Y = tf.constant((rng.randn(40) > 0).astype("float32"))


def value_and_grad(theta):
    w.assign(theta[:3].astype("float32"))
    b.assign(np.float32(theta[3]))
    with tf.GradientTape() as tape:
        logits = tf.linalg.matvec(X, w) + b
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(Y, logits)) + 0.01 * tf.reduce_sum(w**2)
    gw, gb = tape.gradient(loss, [w, b])
    return float(loss), np.concatenate([gw.numpy(), [gb.numpy()]]).astype("float64")


res = minimize(value_and_grad, np.zeros(4), jac=True, method="L-BFGS-B")
print(res.fun, res.x)
