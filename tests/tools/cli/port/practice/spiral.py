"""Latent dynamics of a spiral by a neural ODE; gradients by the adjoint method with an augmented state."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
np.random.seed(1)
N_TIMES, BATCH, BATCH_TIME = 40, 16, 4
true_A = tf.constant([[-0.1, 2.0], [-2.0, -0.1]])


class ODEFunc(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(20, activation="tanh")
        self.out = tf.keras.layers.Dense(2)

    def call(self, t, y):
        return self.out(self.hidden(y**3))


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt / 2 * k1)
    k3 = func(t + dt / 2, y + dt / 2 * k2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def odeint(func, y0, ts):
    ys = [y0]
    for i in range(len(ts) - 1):
        ys.append(rk4_step(func, ts[i], ts[i + 1] - ts[i], ys[-1]))
    return tf.stack(ys)


def odeint_adjoint(func, y0, ts):
    @tf.custom_gradient
    def solve(y0, *params):
        ys = odeint(func, y0, ts)

        def grad(dys, variables=None):
            adj = dys[-1]
            grad_params = [tf.zeros_like(p) for p in variables]
            for i in reversed(range(len(ts) - 1)):
                dt = ts[i + 1] - ts[i]
                y = ys[i + 1]
                with tf.GradientTape() as tape:
                    tape.watch(y)
                    f = func(ts[i + 1], y)
                adj_y, *adj_p = tape.gradient(f, [y, *variables], output_gradients=adj)
                grad_params = [g + dt * p for g, p in zip(grad_params, adj_p)]
                adj = adj + dt * adj_y + dys[i]
            return [adj, *[None for _ in params]], grad_params

        return ys, grad

    return solve(y0)


t = tf.linspace(0.0, 8.0, N_TIMES)
true_y = odeint(lambda t, y: tf.matmul(y**3, true_A), tf.constant([[2.0, 0.0]]), t).numpy()


def get_batch():
    s = np.random.choice(N_TIMES - BATCH_TIME, BATCH, replace=False)
    batch_y0 = true_y[s, 0]
    batch_y = np.stack([true_y[s + i, 0] for i in range(BATCH_TIME)], axis=0)
    return tf.constant(batch_y0), t[:BATCH_TIME], tf.constant(batch_y)


func = ODEFunc()
func(tf.constant(0.0), tf.zeros([1, 2]))
optimizer = tf.keras.optimizers.RMSprop(1e-3)
for itr in range(1, 25):
    batch_y0, batch_t, batch_y = get_batch()
    with tf.GradientTape() as tape:
        pred_y = odeint_adjoint(func, batch_y0, batch_t)
        loss = tf.reduce_mean(tf.abs(pred_y - batch_y))
    grads = tape.gradient(loss, func.trainable_variables)
    optimizer.apply_gradients(zip(grads, func.trainable_variables))
    if itr % 8 == 0:
        print(f"Iter {itr:04d} | Total Loss {loss.numpy():.6f}")
