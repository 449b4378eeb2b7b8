"""Burgers' equation with an unknown viscosity: a network for the solution, and two variables for the coefficients."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(11)


class PINN:
    def __init__(self, widths=(16, 16)):
        self.net = tf.keras.Sequential([tf.keras.layers.Input((2,))])
        for width in widths:
            self.net.add(tf.keras.layers.Dense(width, activation="tanh", kernel_initializer="glorot_normal"))
        self.net.add(tf.keras.layers.Dense(1))
        self.advection = tf.Variable(0.5, dtype=tf.float32, name="advection")
        self.log_viscosity = tf.Variable(-3.0, dtype=tf.float32, name="log_viscosity")
        self.optimizer = tf.keras.optimizers.Adam(2e-3)

    @property
    def variables(self):
        return self.net.trainable_variables + [self.advection, self.log_viscosity]

    def u(self, x, t):
        return self.net(tf.concat([x, t], axis=1))

    def residual(self, x, t):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape(persistent=True) as first:
                first.watch([x, t])
                u = self.u(x, t)
            u_x, u_t = first.gradient(u, x), first.gradient(u, t)
        u_xx = second.gradient(u_x, x)
        return u_t + self.advection * u * u_x - tf.exp(self.log_viscosity) * u_xx

    def loss(self, x, t, observed):
        data_loss = tf.reduce_mean(tf.square(self.u(x, t) - observed))
        equation_loss = tf.reduce_mean(tf.square(self.residual(x, t)))
        return data_loss + equation_loss

    @tf.function
    def step(self, x, t, observed):
        with tf.GradientTape() as tape:
            loss = self.loss(x, t, observed)
        gradients = tape.gradient(loss, self.variables)
        self.optimizer.apply_gradients(zip(gradients, self.variables))
        return loss


rng = np.random.default_rng(0)
x_all = rng.uniform(-1, 1, (400, 1)).astype("float32")
t_all = rng.uniform(0, 1, (400, 1)).astype("float32")
u_all = (-np.sin(np.pi * x_all) * np.exp(-0.3 * t_all) + 0.01 * rng.normal(size=x_all.shape)).astype("float32")

pinn = PINN()
history = []
for iteration in range(24):
    batch = rng.choice(400, 64, replace=False)
    x, t, observed = (tf.constant(a[batch]) for a in (x_all, t_all, u_all))
    history.append(float(pinn.step(x, t, observed)))
    if iteration % 8 == 0:
        print(iteration, history[-1], pinn.advection.numpy(), np.exp(pinn.log_viscosity.numpy()))
