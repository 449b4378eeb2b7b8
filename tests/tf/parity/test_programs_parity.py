"""Small whole programs as people write them with a `GradientTape`, without Keras: the same losses step by step.

Those with Keras are in keras_programs.py.
"""

import functools
import math

import numpy as np
from harness import parity


def program(body=None, rtol=1e-4, atol=1e-5):
    """A parity test of a whole program, run as ``tapejax run`` runs it."""
    if body is None:
        return functools.partial(program, rtol=rtol, atol=atol)
    return parity(body, rtol=rtol, atol=atol, x64_only="tapejax run switches 64-bit types on")


def draw(*shape, seed=0, scale=1.0):
    return (scale * np.random.default_rng((seed, *shape)).normal(size=shape)).astype("float32")


class Layers:
    """Dense layers written out, as books do it: a list of matrices and biases."""

    def __init__(self, tf, sizes, activation, seed=0):
        self.tf, self.activation = tf, activation
        self.weights = [
            tf.Variable(draw(n, m, seed=seed, scale=1.0 / math.sqrt(n))) for n, m in zip(sizes[:-1], sizes[1:])
        ]
        self.biases = [tf.Variable(tf.zeros([m])) for m in sizes[1:]]

    @property
    def variables(self):
        return self.weights + self.biases

    def __call__(self, x, variables=None):
        variables = variables if variables is not None else self.variables
        half = len(self.weights)
        for i, (w, b) in enumerate(zip(variables[:half], variables[half:])):
            x = self.tf.matmul(x, w) + b
            if i < half - 1:
                x = self.activation(x)
        return x


def descend(variables, grads, rate):
    for v, g in zip(variables, grads):
        v.assign_sub(rate * g)


@program
def test_a_pinn_of_burgers_equation(tf):
    """Nested tapes for u_t, u_x and u_xx, losses of data and of the equation, Adam written out, compiled."""
    net = Layers(tf, [2, 8, 8, 1], tf.tanh)
    t, x = tf.constant(np.linspace(0, 1, 6)[:, None], tf.float32), tf.constant(draw(6, 1))
    x0 = tf.constant(np.linspace(-1, 1, 5)[:, None], tf.float32)
    u0 = -tf.sin(math.pi * x0)
    nu = 0.01 / math.pi

    def residual(t, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch([t, x])
                u = net(tf.concat([t, x], axis=1))
            u_x = inner.gradient(u, x)
            u_t = inner.gradient(u, t)
            del inner
        u_xx = outer.gradient(u_x, x)
        return u_t + u * u_x - nu * u_xx

    m = [tf.Variable(tf.zeros_like(v)) for v in net.variables]
    s = [tf.Variable(tf.zeros_like(v)) for v in net.variables]
    count = tf.Variable(0.0)

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            data = tf.reduce_mean(tf.square(net(tf.concat([tf.zeros_like(x0), x0], 1)) - u0))
            physics = tf.reduce_mean(tf.square(residual(t, x)))
            loss = data + physics
        grads = tape.gradient(loss, net.variables)
        count.assign_add(1.0)
        for v, g, m_, s_ in zip(net.variables, grads, m, s):
            m_.assign(0.9 * m_ + 0.1 * g)
            s_.assign(0.999 * s_ + 0.001 * tf.square(g))
            v.assign_sub(0.01 * (m_ / (1 - 0.9**count)) / (tf.sqrt(s_ / (1 - 0.999**count)) + 1e-7))
        return loss, data, physics

    return [train_step() for _ in range(4)]


@program
def test_maml(tf):
    """Model-agnostic meta-learning of sine waves: the gradient of a loss after a step of gradient descent."""
    net = Layers(tf, [1, 8, 8, 1], tf.nn.relu)
    mse = lambda y, z: tf.reduce_mean(tf.square(y - z))  # noqa: E731
    rng, losses = np.random.default_rng(0), []
    for _ in range(3):
        with tf.GradientTape() as outer:
            meta = 0.0
            for _ in range(2):
                amplitude, phase = rng.uniform(0.1, 5.0), rng.uniform(0, math.pi)
                x = tf.constant(rng.uniform(-5, 5, (10, 1)), tf.float32)
                y = amplitude * tf.sin(x + phase)
                with tf.GradientTape() as inner:
                    loss = mse(y[:5], net(x[:5]))
                grads = inner.gradient(loss, net.variables)
                adapted = [v - 0.01 * g for v, g in zip(net.variables, grads)]
                meta += mse(y[5:], net(x[5:], adapted))
        descend(net.variables, outer.gradient(meta, net.variables), 0.005)
        losses.append(meta)
    return losses, net.variables[0]


@program
def test_a_neural_ode(tf):
    """Runge-Kutta in a loop of the compiled step, gradients through the solver."""
    net = Layers(tf, [2, 6, 2], tf.tanh)
    start = tf.constant([[2.0, 0.0], [0.5, 0.5]])
    target = tf.constant(draw(5, 2, 2, scale=0.5))

    def rk4(y, h):
        k1 = net(y**3)
        k2 = net((y + h / 2 * k1) ** 3)
        k3 = net((y + h / 2 * k2) ** 3)
        k4 = net((y + h * k3) ** 3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @tf.function
    def train_step(h):
        with tf.GradientTape() as tape:
            y, loss = start, tf.constant(0.0)
            for i in tf.range(5):
                y = rk4(y, h)
                loss += tf.reduce_mean(tf.abs(y - target[i]))
        descend(net.variables, tape.gradient(loss, net.variables), 0.05)
        return loss

    return [train_step(tf.constant(0.1)) for _ in range(4)]


@program
def test_a_real_nvp(tf):
    """Affine coupling layers as modules, trained by maximum likelihood; samples by the inverse."""

    class Coupling(tf.Module):
        def __init__(self, flip, seed, name=None):
            super().__init__(name=name)
            self.flip, self.net = flip, Layers(tf, [1, 6, 2], tf.nn.relu, seed)
            self.layer_variables = self.net.variables

        def split(self, x):
            a, b = tf.split(x, 2, axis=-1)
            return (b, a) if self.flip else (a, b)

        def join(self, a, b):
            return tf.concat([b, a] if self.flip else [a, b], axis=-1)

        def forward(self, x):
            a, b = self.split(x)
            log_s, t = tf.split(self.net(a), 2, axis=-1)
            log_s = tf.tanh(log_s)
            return self.join(a, b * tf.exp(log_s) + t), tf.reduce_sum(log_s, axis=-1)

        def inverse(self, z):
            a, b = self.split(z)
            log_s, t = tf.split(self.net(a), 2, axis=-1)
            return self.join(a, (b - t) * tf.exp(-tf.tanh(log_s)))

    flows = [Coupling(bool(i % 2), i) for i in range(3)]
    variables = [v for flow in flows for v in flow.trainable_variables]
    x = tf.constant(draw(16, 2) * [1.0, 0.3] + [0.5, -1.0], tf.float32)

    @tf.function
    def train_step(x):
        with tf.GradientTape() as tape:
            z, log_det = x, tf.zeros([tf.shape(x)[0]])
            for flow in flows:
                z, ld = flow.forward(z)
                log_det += ld
            log_prob = -0.5 * tf.reduce_sum(z**2 + math.log(2 * math.pi), axis=-1) + log_det
            loss = -tf.reduce_mean(log_prob)
        grads = tape.gradient(loss, variables)
        grads, norm = tf.clip_by_global_norm(grads, 1.0)
        descend(variables, grads, 0.1)
        return loss, norm

    found = [train_step(x) for _ in range(4)]
    sample = tf.constant(draw(3, 2))
    for flow in reversed(flows):
        sample = flow.inverse(sample)
    return found, sample, len(variables)


@program
def test_power_iteration_on_the_hessian(tf):
    """Hessian-vector products forward over reverse and reverse over reverse; the largest eigenvalue."""
    net = Layers(tf, [3, 4, 1], tf.tanh)
    x, y = tf.constant(draw(8, 3)), tf.constant(draw(8, 1))
    loss = lambda: tf.reduce_mean(tf.square(net(x) - y))  # noqa: E731

    def reverse(vs):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                value = loss()
            grads = inner.gradient(value, net.variables)
            dot = tf.add_n([tf.reduce_sum(g * v) for g, v in zip(grads, vs)])
        return outer.gradient(dot, net.variables)

    def forward(vs):
        with tf.autodiff.ForwardAccumulator(net.variables, vs) as acc:
            with tf.GradientTape() as tape:
                value = loss()
            grads = tape.gradient(value, net.variables)
        return acc.jvp(grads)

    vs, found = [tf.ones_like(v) for v in net.variables], []
    for i in range(4):
        hv = (reverse if i % 2 else forward)(vs)
        hv = [tf.zeros_like(v) if h is None else h for h, v in zip(hv, vs)]
        found.append(tf.add_n([tf.reduce_sum(h * v) for h, v in zip(hv, vs)]))
        vs, _ = tf.clip_by_global_norm(hv, 1.0, use_norm=tf.linalg.global_norm(hv))
    return found


@program(rtol=1e-3)
def test_lbfgs_by_hand(tf):
    """The two-loop recursion over lists of tensors, with a backtracking line search; Rosenbrock's function."""
    x = tf.Variable([-1.2, 1.0])

    def value_and_gradient():
        with tf.GradientTape() as tape:
            value = 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2
        return value, tape.gradient(value, x)

    history, losses = [], []
    value, grad = value_and_gradient()
    for _ in range(6):
        q, alphas = tf.identity(grad), []
        for s, y in reversed(history):
            rho = 1.0 / tf.tensordot(y, s, 1)
            alpha = rho * tf.tensordot(s, q, 1)
            q = q - alpha * y
            alphas.append((alpha, rho))
        if history:
            s, y = history[-1]
            q = q * tf.tensordot(s, y, 1) / tf.tensordot(y, y, 1)
        for (s, y), (alpha, rho) in zip(history, reversed(alphas)):
            q = q + s * (alpha - rho * tf.tensordot(y, q, 1))
        start, step = tf.identity(x), 1.0
        slope = tf.tensordot(grad, q, 1)
        x.assign(start - step * q)
        new, new_grad = value_and_gradient()
        while new > value - 1e-4 * step * slope:
            step *= 0.5
            x.assign(start - step * q)
            new, new_grad = value_and_gradient()
        history = (history + [(x - start, new_grad - grad)])[-3:]
        value, grad = new, new_grad
        losses.append(value)
    return losses, x


@program
def test_langevin_sampling(tf):
    """An energy model: samples by noisy descent in a `tf.while_loop`, and contrastive divergence."""
    net = Layers(tf, [2, 6, 1], tf.nn.softplus)
    noise = tf.constant(draw(5, 4, 2))
    data = tf.constant(draw(4, 2) + 2.0)

    def sample(x):
        def body(i, x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                energy = tf.reduce_sum(net(x))
            x = x - 0.1 * tape.gradient(energy, x) + 0.05 * noise[i]
            return i + 1, tf.clip_by_value(x, -3.0, 3.0)

        _, x = tf.while_loop(lambda i, x: i < 5, body, (tf.constant(0), x))
        return tf.stop_gradient(x)

    @tf.function
    def train_step(x):
        negative = sample(x)
        with tf.GradientTape() as tape:
            up, down = net(data), net(negative)
            loss = tf.reduce_mean(up) - tf.reduce_mean(down) + 0.1 * tf.reduce_mean(up**2 + down**2)
        descend(net.variables, tape.gradient(loss, net.variables), 0.1)
        return loss, negative

    x, losses = tf.constant(draw(4, 2, seed=1)), []
    for _ in range(3):
        loss, x = train_step(x)
        losses.append(loss)
    return losses, x


@program
def test_k_means_and_a_mixture_by_gradient(tf):
    """Soft assignments, the log-likelihood of a mixture of Gaussians, parameters in a dict."""
    x = tf.constant(np.concatenate([draw(6, 2) * 0.3 + 2.0, draw(6, 2, seed=1) * 0.3 - 2.0]).astype("float32"))
    params = {
        "logits": tf.Variable(tf.zeros([2])),
        "means": tf.Variable([[0.5, 0.0], [-0.5, 0.1]]),
        "log_scales": tf.Variable(tf.zeros([2, 2])),
    }

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            delta = x[:, tf.newaxis, :] - params["means"]
            scaled = delta * tf.exp(-params["log_scales"])
            log_normal = -0.5 * tf.reduce_sum(tf.square(scaled) + math.log(2 * math.pi), -1)
            log_normal -= tf.reduce_sum(params["log_scales"], -1)
            joint = tf.nn.log_softmax(params["logits"]) + log_normal
            loss = -tf.reduce_mean(tf.reduce_logsumexp(joint, axis=1))
        grads = tape.gradient(loss, params)
        for name in params:
            params[name].assign_sub(0.2 * grads[name])
        return loss, tf.argmax(joint, axis=1), tf.nn.softmax(joint[0])

    return [step(x) for _ in range(4)], params


@program
def test_matrix_factorisation(tf):
    """Embeddings looked up by user and item, biases, weight decay; rows that occur twice; mini-batches of a dataset."""
    users, items = tf.Variable(draw(5, 3, scale=0.3)), tf.Variable(draw(6, 3, seed=1, scale=0.3))
    bias = tf.Variable(tf.zeros([5]))
    rng = np.random.default_rng(0)
    u, i, r = rng.integers(0, 5, 12), rng.integers(0, 6, 12), rng.integers(1, 6, 12).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((u, i, r)).batch(4)
    losses = []
    for _ in range(2):
        for u, i, r in dataset:
            with tf.GradientTape() as tape:
                p, q = tf.nn.embedding_lookup(users, u), tf.gather(items, i)
                predicted = tf.reduce_sum(p * q, axis=1) + tf.gather(bias, u) + 3.0
                loss = tf.reduce_mean(tf.math.squared_difference(predicted, r))
                loss += 0.01 * (tf.nn.l2_loss(users) + tf.nn.l2_loss(items))
            for v, g in zip([users, items, bias], tape.gradient(loss, [users, items, bias])):
                v.assign_sub(0.1 * tf.convert_to_tensor(g))
            losses.append(loss)
    return losses, bias


@program
def test_a_translator_with_attention(tf):
    """An encoder and a decoder of GRU cells, additive attention, teacher forcing, masks, a `TensorArray` in the loop."""
    vocabulary, width = 7, 5
    embedding = tf.Variable(draw(vocabulary, width, scale=0.5))
    cells = [[tf.Variable(draw(2 * width, width, seed=3 * k + j, scale=0.4)) for j in range(3)] for k in range(2)]
    attend = [tf.Variable(draw(width, width, seed=9)), tf.Variable(draw(width, 1, seed=10))]
    output = tf.Variable(draw(2 * width, vocabulary, seed=11))
    variables = [embedding, *cells[0], *cells[1], *attend, output]
    source = tf.constant([[1, 2, 3, 0], [4, 5, 0, 0]])
    target = tf.constant([[1, 3, 2, 6, 0], [1, 5, 4, 0, 0]])

    def gru(cell, x, h):
        z = tf.sigmoid(tf.concat([x, h], 1) @ cell[0])
        r = tf.sigmoid(tf.concat([x, h], 1) @ cell[1])
        candidate = tf.tanh(tf.concat([x, r * h], 1) @ cell[2])
        return (1 - z) * h + z * candidate

    @tf.function
    def train_step(source, target):
        loss, count = tf.constant(0.0), tf.constant(0.0)
        with tf.GradientTape() as tape:
            embedded = tf.nn.embedding_lookup(embedding, source)
            h = tf.zeros([2, width])
            states = tf.TensorArray(tf.float32, size=4)
            for i in tf.range(4):
                h = gru(cells[0], embedded[:, i], h)
                states = states.write(i, h)
            encoded = tf.transpose(states.stack(), [1, 0, 2])
            mask = tf.cast(tf.equal(source, 0), tf.float32)
            for t in tf.range(4):
                score = tf.squeeze(tf.tanh(encoded @ attend[0] + h[:, tf.newaxis]) @ attend[1], -1) - 1e9 * mask
                context = tf.reduce_sum(tf.nn.softmax(score)[..., tf.newaxis] * encoded, axis=1)
                h = gru(cells[1], tf.gather(embedding, target[:, t]) + context, h)
                logits = tf.concat([h, context], axis=-1) @ output
                real = tf.cast(target[:, t + 1] != 0, tf.float32)
                ce = tf.nn.sparse_softmax_cross_entropy_with_logits(target[:, t + 1], logits)
                loss += tf.reduce_sum(ce * real)
                count += tf.reduce_sum(real)
            loss = loss / count
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
        grads, norm = tf.clip_by_global_norm(grads, 1.0)
        descend(variables, grads, 0.5)
        return loss, norm

    return [train_step(source, target) for _ in range(3)]


@program
def test_private_gradients(tf):
    """A gradient for each example by `tape.jacobian`, clipped one by one, summed, noise added."""
    w, b = tf.Variable(draw(3, 2)), tf.Variable(tf.zeros([2]))
    x, y = tf.constant(draw(6, 3)), tf.constant([0, 1, 1, 0, 1, 0])
    noise = [tf.constant(draw(4, 3, 2, seed=5)), tf.constant(draw(4, 2, seed=5))]

    @tf.function
    def step(i):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x @ w + b)
        each = tape.jacobian(losses, [w, b])
        norms = tf.sqrt(tf.add_n([tf.reduce_sum(tf.reshape(g, [6, -1]) ** 2, axis=1) for g in each]))
        factor = tf.minimum(1.0, 0.5 / (norms + 1e-6))
        for v, g, n in zip([w, b], each, noise):
            v.assign_sub(0.3 * (tf.einsum("i,i...->...", factor, g) + 0.05 * n[i]) / 6.0)
        return tf.reduce_mean(losses), norms

    return [step(i) for i in tf.range(4)]


@program
def test_bayes_by_backprop(tf):
    """Weights with a mean and a spread, samples by the reparameterisation trick, the divergence to the prior."""
    mu, rho = tf.Variable(draw(4, 1)), tf.Variable(tf.fill([4, 1], -2.0))
    x = tf.constant(draw(10, 4))
    y = tf.matmul(x, tf.constant([[1.0], [-2.0], [0.5], [0.0]])) + draw(10, 1, scale=0.1)
    eps = draw(4, 3, 4, 1)
    losses = []
    for step in range(4):
        with tf.GradientTape() as tape:
            sigma = tf.math.softplus(rho)
            w = mu + sigma * eps[step]
            predicted = tf.squeeze(tf.matmul(tf.tile(x[tf.newaxis], [3, 1, 1]), w), -1)
            likelihood = tf.reduce_mean(tf.reduce_sum((predicted - tf.transpose(y)) ** 2, axis=1))
            kl = tf.reduce_sum(-tf.math.log(sigma) + 0.5 * (sigma**2 + mu**2) - 0.5)
            loss = likelihood + kl / 10
        grads = tape.gradient(loss, [mu, rho])
        descend([mu, rho], grads, 0.02)
        losses.append((loss, kl))
    return losses, mu, rho


@program
def test_a_deep_equilibrium(tf):
    """A fixed point found by a `while` that looks at the residual, differentiated implicitly by a custom gradient."""
    w, u = tf.Variable(0.2 * draw(3, 3)), tf.Variable(draw(2, 3))
    x, y = tf.constant(draw(5, 2)), tf.constant(draw(5, 3))

    @tf.function
    def solve(w, slope, constant, kind):
        z, i, residual = tf.zeros_like(constant), tf.constant(0), tf.constant(1.0)
        while i < 50 and residual > 1e-6:
            new = tf.tanh(z @ w + constant) if kind == "forward" else constant + (z * slope) @ w
            residual = tf.reduce_max(tf.abs(new - z))
            z, i = new, i + 1
        return z

    @tf.custom_gradient
    def equilibrium(w, ux):
        z = solve(w, ux, ux, "forward")

        def grad(upstream):
            slope = 1.0 - z**2
            v = solve(tf.transpose(w), slope, upstream, "backward")
            return tf.transpose(z) @ (v * slope), v * slope

        return z, grad

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(equilibrium(w, x @ u) - y))
        grads = tape.gradient(loss, [w, u])
        descend([w, u], grads, 0.5)
        return loss

    return [step() for _ in range(4)], w


@program
def test_discrete_choices(tf):
    """A straight-through estimator, a Gumbel softmax, and a quantiser with a gradient of its own."""
    logits, w = tf.Variable(draw(4, 3)), tf.Variable(draw(3, 2))
    gumbel = tf.constant(-np.log(-np.log(np.random.default_rng(0).uniform(0.05, 0.95, (4, 3)))), tf.float32)
    target = tf.constant(draw(4, 2))

    @tf.custom_gradient
    def quantise(x):
        return tf.round(x * 4.0) / 4.0, lambda dy: tf.where(tf.abs(x) <= 1.0, dy, tf.zeros_like(dy))

    losses = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            soft = tf.nn.softmax((logits + gumbel) / 0.5)
            hard = tf.one_hot(tf.argmax(soft, axis=1), 3)
            choice = soft + tf.stop_gradient(hard - soft)
            loss = tf.reduce_mean(tf.square(choice @ quantise(w) - target))
        descend([logits, w], tape.gradient(loss, [logits, w]), 0.5)
        losses.append(loss)
    return losses, logits, w


@program
def test_a_character_model(tf):
    """An LSTM cell in `tf.scan`, truncated back-propagation with the state carried from chunk to chunk, sampling greedily."""
    text = "hello tensor"
    letters = sorted(set(text))
    ids = np.array([letters.index(c) for c in text * 2])
    n, width = len(letters), 6
    kernel, bias = tf.Variable(draw(n + width, 4 * width, scale=0.3)), tf.Variable(tf.zeros([4 * width]))
    head = tf.Variable(draw(width, n, scale=0.3))
    variables = [kernel, bias, head]

    def cell(state, x):
        h, c = state
        i, f, g, o = tf.split(tf.concat([x, h], axis=-1) @ kernel + bias, 4, axis=-1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    @tf.function
    def step(inputs, labels, state):
        with tf.GradientTape() as tape:
            hs, cs = tf.scan(cell, tf.one_hot(inputs, n)[:, tf.newaxis], initializer=state)
            logits = tf.squeeze(hs, 1) @ head
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        descend(variables, tape.gradient(loss, variables), 1.0)
        return loss, (hs[-1], cs[-1])

    state, losses = (tf.zeros([1, width]), tf.zeros([1, width])), []
    for i in range(0, 20, 5):
        loss, state = step(tf.constant(ids[i : i + 5]), tf.constant(ids[i + 1 : i + 6]), state)
        losses.append(loss)
    said, letter = [], tf.constant([0])
    for _ in range(4):
        state = cell(state, tf.one_hot(letter, n))
        letter = tf.argmax(state[0] @ head, axis=-1, output_type=tf.int32)
        said.append(int(letter[0]))
    return losses, said


@program
def test_style_transfer(tf):
    """Gram matrices of fixed filters, the image is what is trained, clipped to its range."""
    filters = [tf.constant(draw(3, 3, 3, 4, scale=0.3)), tf.constant(draw(3, 3, 4, 4, scale=0.3))]
    content, style = tf.constant(draw(1, 8, 8, 3) * 0.2 + 0.5), tf.constant(draw(1, 8, 8, 3, seed=1) * 0.2 + 0.5)

    def features(image):
        found, x = [], image
        for f in filters:
            x = tf.nn.relu(tf.nn.conv2d(x, f, strides=1, padding="SAME"))
            found.append(x)
            x = tf.nn.avg_pool2d(x, 2, 2, "VALID")
        return found

    def gram(x):
        shape = tf.shape(x)
        return tf.linalg.einsum("bijc,bijd->bcd", x, x) / tf.cast(shape[1] * shape[2], tf.float32)

    styles, contents = [gram(x) for x in features(style)], features(content)[-1]
    image = tf.Variable(content)

    @tf.function()
    def train_step(image):
        with tf.GradientTape() as tape:
            found = features(image)
            loss = tf.add_n([tf.reduce_mean((gram(a) - b) ** 2) for a, b in zip(found, styles)])
            loss += 0.01 * tf.reduce_mean((found[-1] - contents) ** 2) + 1e-4 * tf.reduce_sum(
                tf.image.total_variation(image)
            )
        grad = tape.gradient(loss, image)
        image.assign(tf.clip_by_value(image - 2.0 * grad, 0.0, 1.0))
        return loss

    return [train_step(image) for _ in range(3)], image


@program
def test_a_diffusion_model(tf):
    """Noise is predicted at steps of a schedule; then sampled backward in a loop."""
    net = Layers(tf, [3, 8, 2], tf.nn.silu)
    beta = tf.linspace(1e-3, 0.2, 5)
    alpha_bar = tf.math.cumprod(1.0 - beta)
    x0 = tf.constant(draw(8, 2) * 0.1 + [1.0, -1.0], tf.float32)
    rng, losses = np.random.default_rng(0), []

    @tf.function
    def step(x0, t, eps):
        a = tf.gather(alpha_bar, t)[:, tf.newaxis]
        noisy = tf.sqrt(a) * x0 + tf.sqrt(1.0 - a) * eps
        with tf.GradientTape() as tape:
            predicted = net(tf.concat([noisy, tf.cast(t, tf.float32)[:, None] / 5.0], 1))
            loss = tf.reduce_mean(tf.square(eps - predicted))
        descend(net.variables, tape.gradient(loss, net.variables), 0.1)
        return loss

    @tf.function
    def sample(x, noise):
        for i in tf.range(4, -1, -1):
            t = tf.fill([tf.shape(x)[0], 1], tf.cast(i, tf.float32) / 5.0)
            eps = net(tf.concat([x, t], 1))
            x = (x - beta[i] / tf.sqrt(1.0 - alpha_bar[i]) * eps) / tf.sqrt(1.0 - beta[i])
            if i > 0:
                x += tf.sqrt(beta[i]) * noise[i]
        return x

    for _ in range(3):
        t, eps = rng.integers(0, 5, 8).astype("int32"), rng.normal(size=(8, 2)).astype("float32")
        losses.append(step(x0, tf.constant(t), tf.constant(eps)))
    return losses, sample(tf.constant(draw(3, 2)), tf.constant(draw(5, 3, 2)))


@program
def test_a_trajectory(tf):
    """Controls of a thrown body found through the simulation; it stops when it falls below the ground."""
    velocity = tf.Variable([2.0, 5.0])
    target = tf.constant(4.0)

    @tf.function
    def simulate(velocity):
        position, t = tf.constant([0.0, 1.0]), 0
        for _ in tf.range(40):
            velocity = velocity - 0.05 * (tf.constant([0.0, 9.8]) + 0.1 * velocity * tf.norm(velocity))
            position = position + 0.05 * velocity
            t += 1
            if position[1] < 0.0:
                break
        return position, t

    found = []
    for _ in range(4):
        with tf.GradientTape() as tape:
            position, t = simulate(velocity)
            loss = (position[0] - target) ** 2
        velocity.assign_sub(0.05 * tape.gradient(loss, velocity))
        found.append((loss, t))
    return found, velocity


@program
def test_optimal_transport(tf):
    """Sinkhorn's iteration until it converges, inside the step that is differentiated."""
    a = tf.Variable(draw(5, 2))
    b = tf.constant(draw(4, 2, seed=1) + 1.0)

    @tf.function
    def sinkhorn(a, b):
        cost = tf.reduce_sum((a[:, None] - b[None]) ** 2, -1)
        f, g, error = tf.zeros([5]), tf.zeros([4]), tf.constant(1.0)
        n = tf.constant(0)
        while tf.logical_and(error > 1e-3, n < 30):
            old = f
            f = -0.5 * (tf.reduce_logsumexp((g[None] - cost) / 0.5, axis=1) - math.log(0.2))
            f = f - 0.5 * math.log(5.0) * 0.0
            g = -0.5 * (tf.reduce_logsumexp((f[:, None] - cost) / 0.5, axis=0) - math.log(0.25))
            error = tf.reduce_sum(tf.abs(f - old))
            n += 1
        plan = tf.exp((f[:, None] + g[None] - cost) / 0.5)
        return tf.reduce_sum(plan * cost), n

    found = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss, n = sinkhorn(a, b)
        a.assign_sub(0.5 * tape.gradient(loss, a))
        found.append((loss, n))
    return found, a


@program(rtol=1e-3, atol=1e-4)
def test_a_gaussian_process(tf):
    """Hyperparameters by the marginal likelihood, through a Cholesky decomposition; prediction."""
    x = tf.constant(np.linspace(-2, 2, 7)[:, None], tf.float32)
    y = tf.sin(2.0 * x) + draw(7, 1, scale=0.1)
    raw_parameters = [tf.Variable(v) for v in (0.5, 0.0, -1.0)]

    def kernel(a, b):
        length, scale = tf.nn.softplus(raw_parameters[0]), tf.exp(raw_parameters[1])
        return scale * tf.exp(-0.5 * tf.square(a - tf.transpose(b)) / length**2)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            noise = tf.nn.softplus(raw_parameters[2])
            chol = tf.linalg.cholesky(kernel(x, x) + noise * tf.eye(7))
            alpha = tf.linalg.cholesky_solve(chol, y)
            loss = 0.5 * tf.squeeze(tf.matmul(y, alpha, transpose_a=True))
            loss += tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))
        grads = tape.gradient(loss, raw_parameters)
        descend(raw_parameters, grads, 0.05)
        return loss, tf.matmul(kernel(tf.constant([[0.3]]), x), alpha)

    return [step() for _ in range(4)]


@program
def test_newtons_method_for_logistic_regression(tf):
    """Jacobians of gradients, a solve, a stopping rule in Python."""
    x, y = tf.constant(draw(12, 3)), tf.constant((draw(12) > 0).astype("float32"))
    w, found = tf.Variable(tf.zeros([3])), []
    for _ in range(10):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                logits = tf.linalg.matvec(x, w)
                loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
                loss += 0.05 * tf.reduce_sum(w**2)
            grad = inner.gradient(loss, w)
        hessian = outer.jacobian(grad, w)
        w.assign_sub(tf.squeeze(tf.linalg.solve(hessian, grad[:, tf.newaxis]), 1))
        found.append(loss)
        if tf.norm(grad) < 1e-5:
            break
    return found, w, len(found)


@program
def test_schedules_accumulation_and_averages(tf):
    """A warm-up and a cosine in the step, gradients of two batches added up, norms clipped, an average of the weights."""
    net = Layers(tf, [2, 5, 1], tf.nn.elu)
    accumulated = [tf.Variable(tf.zeros_like(v), trainable=False) for v in net.variables]
    average = [tf.Variable(v, trainable=False) for v in net.variables]
    step = tf.Variable(0, dtype=tf.int64)
    x = draw(24, 2)
    dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1] * x[:, 1:])).batch(4)

    def rate():
        s = tf.cast(step, tf.float32)
        if s < 2.0:
            return 0.2 * (s + 1.0) / 2.0
        return 0.1 * (1.0 + tf.cos(math.pi * tf.minimum((s - 2.0) / 4.0, 1.0)))

    @tf.function
    def train_step(x, y, last):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(x) - y))
        for a, g in zip(accumulated, tape.gradient(loss, net.variables)):
            a.assign_add(g / 2.0)
        lr = rate()
        if last:
            grads, _ = tf.clip_by_global_norm(accumulated, 0.5)
            for v, a, m, g in zip(net.variables, accumulated, average, grads):
                v.assign_sub(lr * g)
                a.assign(tf.zeros_like(a))
                m.assign(0.9 * m + 0.1 * v)
            step.assign_add(1)
        return loss, lr

    found = [train_step(x, y, tf.equal(i % 2, 1)) for i, (x, y) in dataset.enumerate()]
    return found, average, step


@program
def test_a_hypernetwork(tf):
    """The weights of one network are what another one computes; a batch of networks by `vectorized_map`."""
    hyper = Layers(tf, [2, 6, 9], tf.tanh)
    tasks, x = tf.constant(draw(3, 2)), tf.constant(draw(3, 5, 2))
    y = tf.reduce_sum(x * tasks[:, None], -1, keepdims=True)

    def main(args):
        flat, x = args
        w1, w2 = tf.reshape(flat[:6], [2, 3]), tf.reshape(flat[6:], [3, 1])
        return tf.tanh(x @ w1) @ w2

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            predicted = tf.vectorized_map(main, (hyper(tasks), x))
            loss = tf.reduce_mean((y - predicted) ** 2)
        descend(hyper.variables, tape.gradient(loss, hyper.variables), 0.2)
        return loss

    return [step() for _ in range(3)]


@program
def test_word_vectors(tf):
    """Skip-grams with negative samples; gradients go to the rows that occur."""
    inputs, outputs = tf.Variable(draw(8, 4, scale=0.5)), tf.Variable(draw(8, 4, seed=1, scale=0.5))
    rng, losses = np.random.default_rng(0), []

    @tf.function
    def step(centre, context, negative):
        with tf.GradientTape() as tape:
            c = tf.gather(inputs, centre)
            positive = tf.reduce_sum(c * tf.gather(outputs, context), -1)
            others = tf.einsum("bd,bkd->bk", c, tf.gather(outputs, negative))
            loss = tf.reduce_mean(tf.nn.softplus(-positive) + tf.reduce_sum(tf.nn.softplus(others), -1))
        for v, g in zip([inputs, outputs], tape.gradient(loss, [inputs, outputs])):
            v.scatter_sub(tf.IndexedSlices(0.5 * tf.gather(tf.convert_to_tensor(g), tf.range(8)), tf.range(8)))
        return loss

    for _ in range(3):
        centre, context = rng.integers(0, 8, (2, 5))
        losses.append(step(centre, context, rng.integers(0, 8, (5, 3))))
    return losses, inputs


@program
def test_a_hidden_markov_model(tf):
    """The forward algorithm in a loop over the observations, parameters as logits, learned by its gradient."""
    initial, transition, emission = (tf.Variable(draw(*s)) for s in ((3,), (3, 3), (3, 4)))
    variables = [initial, transition, emission]
    observed = tf.constant([0, 3, 1, 1, 2, 0, 3])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def log_likelihood(observed):
        log_t, log_e = tf.nn.log_softmax(transition), tf.nn.log_softmax(emission)
        alpha = tf.nn.log_softmax(initial) + log_e[:, observed[0]]
        for o in observed[1:]:
            alpha = tf.reduce_logsumexp(alpha[:, None] + log_t, axis=0) + log_e[:, o]
        return tf.reduce_logsumexp(alpha)

    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = -log_likelihood(observed)
        descend(variables, tape.gradient(loss, variables), 0.3)
        losses.append(loss)
    return losses, log_likelihood(observed[:3])


@program
def test_a_saddle_point(tf):
    """Consensus and extra-gradient steps of a game between two players, with persistent tapes."""
    x, y = tf.Variable([1.0, -0.5]), tf.Variable([0.3, 0.8])
    a = tf.constant([[1.0, 0.5], [-0.2, 0.7]])

    def game():
        return tf.tensordot(x, tf.linalg.matvec(a, y), 1) + 0.05 * tf.reduce_sum(x**4) - 0.05 * tf.reduce_sum(y**4)

    found = []
    for _ in range(3):
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as tape:
                value = game()
            gx, gy = tape.gradient(value, x), tape.gradient(value, y)
            consensus = 0.5 * (tf.reduce_sum(gx**2) + tf.reduce_sum(gy**2))
        cx, cy = outer.gradient(consensus, [x, y])
        before = x.read_value(), y.read_value()
        x.assign_sub(0.3 * (gx + 0.1 * cx))
        y.assign_add(0.3 * (gy - 0.1 * cy))
        with tf.GradientTape(persistent=True) as half:
            middle = game()
        x.assign(before[0] - 0.3 * half.gradient(middle, x))
        y.assign(before[1] + 0.3 * half.gradient(middle, y))
        found.append((value, consensus, middle))
        del tape, half
    return found, x, y
