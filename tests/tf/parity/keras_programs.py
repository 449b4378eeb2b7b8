"""Small whole programs with ``tf.keras`` as people write them: bodies of test_keras_parity, the same losses step by step."""

from __future__ import annotations

import math
import tempfile

import numpy as np
from keras_training import draw, history, start

BODIES = []


def parity(body):
    BODIES.append(body)
    return body


def images(count, size=8, channels=1, seed=0):
    return np.random.default_rng(seed).uniform(size=(count, size, size, channels)).astype("float32")


def classifier(tf, classes=3, channels=1):
    """A small convolutional classifier, a Functional model."""
    L = tf.keras.layers
    inputs = tf.keras.Input((8, 8, channels))
    x = L.Conv2D(4, 3, activation="relu", padding="same", name="first")(inputs)
    x = L.MaxPooling2D()(x)
    x = L.Conv2D(4, 3, activation="relu", name="last")(x)
    outputs = L.Dense(classes, name="head")(L.GlobalAveragePooling2D()(x))
    model = tf.keras.Model(inputs, outputs)
    start(model)
    return model


@parity
def grad_cam_and_saliency(tf):
    """Explanations of a classifier: Grad-CAM, saliency, SmoothGrad, guided back-propagation, integrated gradients."""
    model, x = classifier(tf), tf.constant(images(2))
    both = tf.keras.Model(model.inputs, [model.get_layer("last").output, model.output])

    def make_gradcam_heatmap(image, pred_index=None):
        with tf.GradientTape() as tape:
            activations, predictions = both(image)
            if pred_index is None:
                pred_index = tf.argmax(predictions[0])
            class_channel = predictions[:, pred_index]
        grads = tape.gradient(class_channel, activations)
        pooled = tf.reduce_mean(grads, axis=(0, 1, 2))
        heatmap = tf.squeeze(activations[0] @ pooled[..., tf.newaxis])
        heatmap = tf.maximum(heatmap, 0) / (tf.math.reduce_max(heatmap) + 1e-8)
        return heatmap.numpy()

    @tf.function
    def saliency(image, index):
        with tf.GradientTape() as tape:
            tape.watch(image)
            score = tf.gather(model(image, training=False), index, axis=1)
        return tf.reduce_max(tf.abs(tape.gradient(score, image)), axis=-1)

    def integrated_gradients(image, m_steps=5, batch_size=3):
        alphas = tf.linspace(0.0, 1.0, m_steps + 1)
        collected = tf.TensorArray(tf.float32, size=m_steps + 1)
        for first in tf.range(0, len(alphas), batch_size):
            last = tf.minimum(first + batch_size, len(alphas))
            path = alphas[first:last][:, None, None, None] * image[tf.newaxis]
            with tf.GradientTape() as tape:
                tape.watch(path)
                probability = tf.nn.softmax(model(path), axis=-1)[:, 1]
            collected = collected.scatter(tf.range(first, last), tape.gradient(probability, path))
        grads = collected.stack()
        return image * tf.math.reduce_mean((grads[:-1] + grads[1:]) / 2.0, axis=0)

    @tf.custom_gradient
    def guided_relu(x):
        return tf.nn.relu(x), lambda dy: tf.cast(dy > 0, "float32") * tf.cast(x > 0, "float32") * dy

    guided = tf.keras.models.clone_model(model)
    guided.set_weights(model.get_weights())
    for layer in guided.layers:
        if hasattr(layer, "activation") and layer.activation == tf.keras.activations.relu:
            layer.activation = guided_relu
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = guided(x)[:, 2]
    noisy = [saliency(x + draw(2, 8, 8, 1) * 0.1 * i, tf.constant(1)) for i in range(3)]
    return (
        make_gradcam_heatmap(x[:1]),
        make_gradcam_heatmap(x[1:], 2),
        tf.reduce_mean(tf.stack(noisy), axis=0),
        integrated_gradients(x[0]),
        tape.gradient(y, x),
    )


@parity
def adversarial_training(tf):
    """Projected gradient descent on the images inside a compiled step, with metrics and a dataset."""
    model = classifier(tf)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam(1e-2)
    train_loss = tf.keras.metrics.Mean(name="train_loss")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
    dataset = tf.data.Dataset.from_tensor_slices((images(12), np.arange(12) % 3)).batch(4)

    def attack(x, y, epsilon=0.1, steps=2):
        adversarial = x
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                tape.watch(adversarial)
                loss = loss_fn(y, model(adversarial, training=False))
            adversarial = adversarial + 0.05 * tf.sign(tape.gradient(loss, adversarial))
            adversarial = tf.clip_by_value(adversarial, x - epsilon, x + epsilon)
            adversarial = tf.clip_by_value(adversarial, 0.0, 1.0)
        return adversarial

    @tf.function
    def train_step(x, y):
        adversarial = attack(x, y)
        with tf.GradientTape() as tape:
            logits = model(adversarial, training=True)
            loss = 0.5 * (loss_fn(y, logits) + loss_fn(y, model(x, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        train_loss(loss)
        accuracy(y, logits)

    found = []
    for _ in range(2):
        train_loss.reset_state()
        accuracy.reset_state()
        for x, y in dataset:
            train_step(x, y)
        found.append((float(train_loss.result()), float(accuracy.result())))
    return found


@parity
def distillation(tf):
    """A student and a frozen teacher, losses given to `compile`, temperature, `test_step`."""
    keras = tf.keras

    class Distiller(keras.Model):
        def __init__(self, student, teacher):
            super().__init__()
            self.teacher, self.student = teacher, student

        def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
            super().compile(optimizer=optimizer, metrics=metrics)
            self.student_loss_fn, self.distillation_loss_fn = student_loss_fn, distillation_loss_fn
            self.alpha, self.temperature = alpha, temperature

        def train_step(self, data):
            x, y = data
            teacher_predictions = self.teacher(x, training=False)
            with tf.GradientTape() as tape:
                student_predictions = self.student(x, training=True)
                student_loss = self.student_loss_fn(y, student_predictions)
                distillation_loss = (
                    self.distillation_loss_fn(
                        tf.nn.softmax(teacher_predictions / self.temperature, axis=1),
                        tf.nn.softmax(student_predictions / self.temperature, axis=1),
                    )
                    * self.temperature**2
                )
                loss = self.alpha * student_loss + (1 - self.alpha) * distillation_loss
            trainable_vars = self.student.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, trainable_vars), trainable_vars))
            self.compiled_metrics_update(y, student_predictions)
            return {m.name: m.result() for m in self.metrics if m.name != "loss"} | {
                "student_loss": student_loss,
                "distillation_loss": distillation_loss,
            }

        def compiled_metrics_update(self, y, predictions):
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, predictions)

        def test_step(self, data):
            x, y = data
            y_prediction = self.student(x, training=False)
            return {"student_loss": self.student_loss_fn(y, y_prediction)}

        def call(self, x):
            return self.student(x)

    teacher, student = (
        classifier(tf),
        keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten(), keras.layers.Dense(3)]),
    )
    start(student)
    distiller = Distiller(student, teacher)
    distiller.compile(
        optimizer=keras.optimizers.Adam(0.01),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
        student_loss_fn=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        distillation_loss_fn=keras.losses.KLDivergence(),
    )
    x, y = images(8), np.arange(8) % 3
    return history(distiller, x, y, epochs=2), distiller.evaluate(x, y, verbose=0, return_dict=True)


class Chain:
    """A walk on five places: right is good in the end."""

    def reset(self):
        self.place = 2
        return self.state()

    def state(self):
        return np.eye(5, dtype="float32")[self.place]

    def step(self, action):
        self.place += 1 if action else -1
        done = self.place in (0, 4)
        return self.state(), float(self.place == 4) - 0.1, done


@parity
def dqn(tf):
    """Deep Q-learning: a replay buffer, a target network, Huber loss, epsilon-greedy actions."""
    keras = tf.keras
    rng = np.random.default_rng(0)

    def network():
        return keras.Sequential([keras.Input((5,)), keras.layers.Dense(8, activation="elu"), keras.layers.Dense(2)])

    model, target = network(), network()
    start(model)
    target.set_weights(model.get_weights())
    optimizer, loss_fn = keras.optimizers.Nadam(learning_rate=1e-2), keras.losses.Huber()
    env, buffer, losses, gamma = Chain(), [], [], 0.95

    def training_step(batch):
        states, actions, rewards, next_states, dones = (np.array(x) for x in zip(*batch))
        best = model.predict(next_states, verbose=0).argmax(axis=1)
        next_q = (target.predict(next_states, verbose=0) * tf.one_hot(best, 2).numpy()).sum(axis=1)
        target_q = (rewards + (1.0 - dones) * gamma * next_q).reshape(-1, 1)
        mask = tf.one_hot(actions, 2)
        with tf.GradientTape() as tape:
            q = tf.reduce_sum(model(states) * mask, axis=1, keepdims=True)
            loss = tf.reduce_mean(loss_fn(target_q, q))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    for episode in range(4):
        state, done = env.reset(), False
        while not done:
            if rng.uniform() < 0.5:
                action = int(rng.integers(2))
            else:
                action = int(np.argmax(model(state[np.newaxis])[0]))
            new, reward, done = env.step(action)
            buffer.append((state, action, reward, new, float(done)))
            state = new
        if len(buffer) >= 6:
            losses.append(training_step([buffer[i] for i in rng.integers(0, len(buffer), 6)]))
        if episode == 2:
            target.set_weights(model.get_weights())
    return losses, model(np.eye(5, dtype="float32"))


@parity
def reinforce(tf):
    """Policy gradients: gradients of each step kept, weighted by discounted and normalised rewards, applied at the end."""
    keras = tf.keras
    model = keras.Sequential(
        [keras.layers.Dense(5, activation="elu", input_shape=(5,)), keras.layers.Dense(1, "sigmoid")]
    )
    start(model)
    optimizer, loss_fn = keras.optimizers.Adam(0.05), keras.losses.binary_crossentropy
    rng, env = np.random.default_rng(0), Chain()

    def play_one_step(obs):
        with tf.GradientTape() as tape:
            left_proba = model(obs[np.newaxis])
            action = tf.constant([[rng.uniform()]], tf.float32) > left_proba
            y_target = tf.constant([[1.0]]) - tf.cast(action, tf.float32)
            loss = tf.reduce_mean(loss_fn(y_target, left_proba))
        grads = tape.gradient(loss, model.trainable_variables)
        obs, reward, done = env.step(int(action[0, 0].numpy()))
        return obs, reward, done, grads, loss

    losses = []
    for _ in range(2):
        all_rewards, all_grads = [], []
        for _ in range(3):
            rewards, grads_of_episode, obs, done = [], [], env.reset(), False
            while not done and len(rewards) < 6:
                obs, reward, done, grads, loss = play_one_step(obs)
                rewards.append(reward)
                grads_of_episode.append(grads)
                losses.append(loss)
            for step in range(len(rewards) - 2, -1, -1):
                rewards[step] += rewards[step + 1] * 0.9
            all_rewards.append(np.array(rewards))
            all_grads.append(grads_of_episode)
        flat = np.concatenate(all_rewards)
        final = [(r - flat.mean()) / (flat.std() + 1e-8) for r in all_rewards]
        mean_grads = []
        for index in range(len(model.trainable_variables)):
            mean_grads.append(
                tf.reduce_mean(
                    [r * all_grads[e][s][index] for e, rewards in enumerate(final) for s, r in enumerate(rewards)],
                    axis=0,
                )
            )
        optimizer.apply_gradients(zip(mean_grads, model.trainable_variables))
    return losses, model.get_weights()


@parity
def actor_critic_in_a_graph(tf):
    """An episode as a loop of the compiled step: the environment behind `numpy_function`, arrays that grow, one tape over all."""
    keras = tf.keras

    class ActorCritic(keras.Model):
        def __init__(self):
            super().__init__()
            self.common = keras.layers.Dense(6, activation="relu")
            self.actor, self.critic = keras.layers.Dense(2), keras.layers.Dense(1)

        def call(self, inputs):
            x = self.common(inputs)
            return self.actor(x), self.critic(x)

    model, env, uniform = ActorCritic(), Chain(), np.random.default_rng(0)
    model(tf.ones((1, 5)))
    start(model)
    optimizer = keras.optimizers.Adam(0.05)
    huber = keras.losses.Huber(reduction=keras.losses.Reduction.SUM if hasattr(keras.losses, "Reduction") else "sum")

    def env_step(action):
        state, reward, done = env.step(action)
        return state.astype(np.float32), np.array(reward, np.float32), np.array(done, np.int32)

    def tf_env_step(action):
        return tf.numpy_function(env_step, [action], [tf.float32, tf.float32, tf.int32])

    def run_episode(initial_state, max_steps):
        action_probs = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        values = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        rewards = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        shape, state = initial_state.shape, initial_state
        for t in tf.range(max_steps):
            logits, value = model(tf.expand_dims(state, 0))
            probs = tf.nn.softmax(logits)
            draw_now = tf.numpy_function(lambda: np.float32(uniform.uniform()), [], tf.float32)
            action = tf.cast(draw_now > probs[0, 0], tf.int32)
            values = values.write(t, tf.squeeze(value))
            action_probs = action_probs.write(t, probs[0, action])
            state, reward, done = tf_env_step(action)
            state.set_shape(shape)
            rewards = rewards.write(t, reward)
            if tf.cast(done, tf.bool):
                break
        return action_probs.stack(), values.stack(), rewards.stack()

    def expected_return(rewards, gamma):
        n = tf.shape(rewards)[0]
        returns = tf.TensorArray(dtype=tf.float32, size=n)
        rewards = tf.cast(rewards[::-1], dtype=tf.float32)
        discounted_sum = tf.constant(0.0)
        for i in tf.range(n):
            discounted_sum = rewards[i] + gamma * discounted_sum
            discounted_sum.set_shape([])
            returns = returns.write(i, discounted_sum)
        return returns.stack()[::-1]

    @tf.function
    def train_step(initial_state, gamma, max_steps):
        with tf.GradientTape() as tape:
            action_probs, values, rewards = run_episode(initial_state, max_steps)
            returns = expected_return(rewards, gamma)
            action_probs, values, returns = [tf.expand_dims(x, 1) for x in [action_probs, values, returns]]
            advantage = returns - values
            actor_loss = -tf.math.reduce_sum(tf.math.log(action_probs) * advantage)
            loss = actor_loss + huber(values, returns)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss, tf.math.reduce_sum(rewards)

    return [train_step(tf.constant(env.reset(), dtype=tf.float32), 0.9, 6) for _ in range(4)], model.get_weights()


@parity
def ddpg(tf):
    """An actor and a critic with target networks that follow slowly, in compiled updates over lists of variables."""
    keras = tf.keras

    def actor():
        inputs = keras.layers.Input(shape=(3,))
        return keras.Model(inputs, keras.layers.Dense(1, "tanh")(keras.layers.Dense(6, "relu")(inputs)) * 2.0)

    def critic():
        s, a = keras.layers.Input(shape=(3,)), keras.layers.Input(shape=(1,))
        both = keras.layers.Concatenate()([keras.layers.Dense(4, "relu")(s), keras.layers.Dense(4, "relu")(a)])
        return keras.Model([s, a], keras.layers.Dense(1)(both))

    actor_model, critic_model, target_actor, target_critic = actor(), critic(), actor(), critic()
    start(actor_model, critic_model)
    target_actor.set_weights(actor_model.get_weights())
    target_critic.set_weights(critic_model.get_weights())
    actor_optimizer, critic_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.02)

    @tf.function
    def update(states, actions, rewards, next_states):
        with tf.GradientTape() as tape:
            target_actions = target_actor(next_states, training=True)
            y = rewards + 0.9 * target_critic([next_states, target_actions], training=True)
            critic_value = critic_model([states, actions], training=True)
            critic_loss = tf.math.reduce_mean(tf.math.square(y - critic_value))
        grads = tape.gradient(critic_loss, critic_model.trainable_variables)
        critic_optimizer.apply_gradients(zip(grads, critic_model.trainable_variables))
        with tf.GradientTape() as tape:
            chosen = actor_model(states, training=True)
            actor_loss = -tf.math.reduce_mean(critic_model([states, chosen], training=True))
        grads = tape.gradient(actor_loss, actor_model.trainable_variables)
        actor_optimizer.apply_gradients(zip(grads, actor_model.trainable_variables))
        return critic_loss, actor_loss

    @tf.function
    def update_target(tau):
        for a, b in zip(target_actor.variables, actor_model.variables):
            a.assign(b * tau + a * (1 - tau))

    def follow(target, original, tau):
        target.set_weights([b * tau + a * (1 - tau) for a, b in zip(target.get_weights(), original.get_weights())])

    found = []
    for i in range(3):
        batch = [tf.convert_to_tensor(draw(4, n) + 0.1 * i) for n in (3, 1, 1, 3)]
        found.append(update(*batch))
        update_target(tf.constant(0.1))
        follow(target_critic, critic_model, 0.1)
    return found, target_actor.get_weights(), target_critic.get_weights()


@parity
def style_transfer_with_a_model(tf):
    """Features of several layers of a Keras model; the image is a variable that an optimizer of Keras's changes."""
    model = classifier(tf, channels=3)
    model.trainable = False
    extractor = tf.keras.Model([model.input], [model.get_layer(n).output for n in ("first", "last")])
    content, style = tf.constant(images(1, channels=3)), tf.constant(images(1, channels=3, seed=1))

    def gram_matrix(t):
        n = tf.cast(tf.shape(t)[1] * tf.shape(t)[2], tf.float32)
        return tf.linalg.einsum("bijc,bijd->bcd", t, t) / n

    style_targets = [gram_matrix(t) for t in extractor(style)]
    content_target = extractor(content)[1]
    image = tf.Variable(content)
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.02, decay_steps=2, decay_rate=0.9)
    optimizer = tf.keras.optimizers.Adam(learning_rate=schedule, beta_1=0.99, epsilon=1e-1)

    @tf.function()
    def train_step(image):
        with tf.GradientTape() as tape:
            outputs = extractor(image)
            loss = tf.add_n([tf.reduce_mean((gram_matrix(o) - t) ** 2) for o, t in zip(outputs, style_targets)])
            loss += 0.1 * tf.reduce_mean((outputs[1] - content_target) ** 2)
            loss += 1e-3 * tf.image.total_variation(image)[0]
        grad = tape.gradient(loss, image)
        optimizer.apply_gradients([(grad, image)])
        image.assign(tf.clip_by_value(image, clip_value_min=0.0, clip_value_max=1.0))
        return loss

    return [train_step(image) for _ in range(4)], image


@parity
def pix2pix(tf):
    """A conditional GAN: a generator with skips, a discriminator of patches, two tapes at once, checkpoints in the loop."""
    L = tf.keras.layers

    def generator():
        inputs = L.Input([8, 8, 1])
        down = L.LeakyReLU()(L.BatchNormalization()(L.Conv2D(3, 4, strides=2, padding="same", use_bias=False)(inputs)))
        up = L.Conv2DTranspose(3, 4, strides=2, padding="same", activation="relu")(down)
        up = L.Concatenate()([up, inputs])
        return tf.keras.Model(inputs, L.Conv2D(1, 3, padding="same", activation="tanh")(up))

    def discriminator():
        one, other = L.Input([8, 8, 1]), L.Input([8, 8, 1])
        x = L.Conv2D(3, 4, strides=2, padding="same")(L.concatenate([one, other]))
        return tf.keras.Model([one, other], L.Conv2D(1, 2)(L.LeakyReLU()(x)))

    G, D = generator(), discriminator()
    start(G, D)
    cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    g_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
    d_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)

    @tf.function
    def train_step(input_image, target):
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            output = G(input_image, training=True)
            real, fake = D([input_image, target], training=True), D([input_image, output], training=True)
            gan_loss = cross_entropy(tf.ones_like(fake), fake)
            l1_loss = tf.reduce_mean(tf.abs(target - output))
            gen_loss = gan_loss + 100 * l1_loss
            disc_loss = cross_entropy(tf.ones_like(real), real) + cross_entropy(tf.zeros_like(fake), fake)
        generator_gradients = gen_tape.gradient(gen_loss, G.trainable_variables)
        discriminator_gradients = disc_tape.gradient(disc_loss, D.trainable_variables)
        g_optimizer.apply_gradients(zip(generator_gradients, G.trainable_variables))
        d_optimizer.apply_gradients(zip(discriminator_gradients, D.trainable_variables))
        return gen_loss, l1_loss, disc_loss

    dataset = tf.data.Dataset.from_tensor_slices((images(4), images(4, seed=1))).batch(2)
    found = []
    for step, (input_image, target) in dataset.repeat().take(3).enumerate():
        found.append((int(step), train_step(input_image, target)))
    return found, G(images(1), training=False)


@parity
def noam_transformer(tf):
    """A transformer block with masks in a custom loop, and the schedule of the paper."""
    keras, L = tf.keras, tf.keras.layers

    class CustomSchedule(keras.optimizers.schedules.LearningRateSchedule):
        def __init__(self, d_model, warmup_steps=4):
            super().__init__()
            self.d_model, self.warmup_steps = tf.cast(d_model, tf.float32), warmup_steps

        def __call__(self, step):
            step = tf.cast(step, dtype=tf.float32)
            return tf.math.rsqrt(self.d_model) * tf.math.minimum(tf.math.rsqrt(step), step * (self.warmup_steps**-1.5))

    def positional_encoding(length, depth):
        depth = depth / 2
        angles = np.arange(length)[:, np.newaxis] / 10000 ** (np.arange(depth)[np.newaxis] / depth)
        return tf.cast(np.concatenate([np.sin(angles), np.cos(angles)], axis=-1), dtype=tf.float32)

    class PositionalEmbedding(L.Layer):
        def __init__(self, vocab_size, d_model):
            super().__init__()
            self.d_model = d_model
            self.embedding = L.Embedding(vocab_size, d_model, mask_zero=True)
            self.pos_encoding = positional_encoding(length=16, depth=d_model)

        def compute_mask(self, *args, **kwargs):
            return self.embedding.compute_mask(*args, **kwargs)

        def call(self, x):
            length = tf.shape(x)[1]
            x = self.embedding(x)
            x *= tf.math.sqrt(tf.cast(self.d_model, tf.float32))
            return x + self.pos_encoding[tf.newaxis, :length, :]

    class Transformer(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = PositionalEmbedding(11, 8)
            self.attention = L.MultiHeadAttention(num_heads=2, key_dim=4)
            self.add, self.norm = L.Add(), L.LayerNormalization()
            self.seq = keras.Sequential([L.Dense(12, activation="relu"), L.Dense(8)])
            self.final = L.Dense(11)

        def call(self, x, training=False):
            x = self.embedding(x)
            attended = self.attention(query=x, value=x, key=x, use_causal_mask=True)
            x = self.norm(self.add([x, attended]))
            x = self.add([x, self.seq(x, training=training)])
            return self.final(x)

    def masked_loss(label, pred):
        mask = label != 0
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")(label, pred)
        mask = tf.cast(mask, dtype=loss.dtype)
        return tf.reduce_sum(loss * mask) / tf.reduce_sum(mask)

    def masked_accuracy(label, pred):
        match = tf.cast(label, tf.int64) == tf.argmax(pred, axis=2)
        mask = label != 0
        return tf.reduce_sum(tf.cast(match & mask, tf.float32)) / tf.reduce_sum(tf.cast(mask, tf.float32))

    model = Transformer()
    optimizer = keras.optimizers.Adam(CustomSchedule(8), beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    x = tf.constant([[1, 4, 5, 6, 2, 0], [1, 7, 8, 2, 0, 0]])
    model(x[:, :-1])
    start(model)

    @tf.function
    def train_step(inp, tar):
        with tf.GradientTape() as tape:
            predictions = model(inp, training=True)
            loss = masked_loss(tar, predictions)
        grads = [
            tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)
        ]  # a row may occur twice
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss, masked_accuracy(tar, predictions)

    return [train_step(x[:, :-1], x[:, 1:]) for _ in range(4)]


@parity
def bahdanau_translation(tf):
    """An encoder and an attention decoder of GRUs, teacher forcing in a Python loop of the step, a checkpoint in between."""
    keras, L = tf.keras, tf.keras.layers

    class Encoder(keras.Model):
        def __init__(self, vocab_size, units, batch_sz):
            super().__init__()
            self.batch_sz, self.enc_units = batch_sz, units
            self.embedding = L.Embedding(vocab_size, 4)
            self.gru = L.GRU(units, return_sequences=True, return_state=True)

        def call(self, x, hidden):
            x = self.embedding(x)
            output, state = self.gru(x, initial_state=hidden)
            return output, state

        def initialize_hidden_state(self):
            return tf.zeros((self.batch_sz, self.enc_units))

    class BahdanauAttention(L.Layer):
        def __init__(self, units):
            super().__init__()
            self.W1, self.W2, self.V = L.Dense(units), L.Dense(units), L.Dense(1)

        def call(self, query, values):
            score = self.V(tf.nn.tanh(self.W1(tf.expand_dims(query, 1)) + self.W2(values)))
            attention_weights = tf.nn.softmax(score, axis=1)
            return tf.reduce_sum(attention_weights * values, axis=1), attention_weights

    class Decoder(keras.Model):
        def __init__(self, vocab_size, units):
            super().__init__()
            self.embedding = L.Embedding(vocab_size, 4)
            self.gru = L.GRU(units, return_sequences=True, return_state=True)
            self.fc, self.attention = L.Dense(vocab_size), BahdanauAttention(units)

        def call(self, x, hidden, enc_output):
            context_vector, attention_weights = self.attention(hidden, enc_output)
            x = tf.concat([tf.expand_dims(context_vector, 1), self.embedding(x)], axis=-1)
            output, state = self.gru(x)
            return self.fc(tf.reshape(output, (-1, output.shape[2]))), state, attention_weights

    encoder, decoder = Encoder(9, 5, 2), Decoder(9, 5)
    optimizer = keras.optimizers.Adam(0.02)
    loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    source, target = tf.constant([[1, 3, 2], [1, 2, 0]]), tf.constant([[1, 6, 2], [1, 2, 0]])
    output, hidden = encoder(source, encoder.initialize_hidden_state())
    decoder(target[:, :1], hidden, output)
    start(encoder, decoder)

    def loss_function(real, pred):
        mask = tf.math.logical_not(tf.math.equal(real, 0))
        loss_ = loss_object(real, pred)
        return tf.reduce_mean(loss_ * tf.cast(mask, dtype=loss_.dtype))

    @tf.function
    def train_step(inp, targ, enc_hidden):
        loss = 0
        with tf.GradientTape() as tape:
            enc_output, enc_hidden = encoder(inp, enc_hidden)
            dec_hidden = enc_hidden
            dec_input = tf.expand_dims([1] * 2, 1)
            for t in range(1, targ.shape[1]):
                predictions, dec_hidden, _ = decoder(dec_input, dec_hidden, enc_output)
                loss += loss_function(targ[:, t], predictions)
                dec_input = tf.expand_dims(targ[:, t], 1)
        batch_loss = loss / int(targ.shape[1])
        variables = encoder.trainable_variables + decoder.trainable_variables
        grads = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]  # a row may occur twice
        optimizer.apply_gradients(zip(grads, variables))
        return batch_loss

    losses = [train_step(source, target, encoder.initialize_hidden_state()) for _ in range(3)]
    enc_out, dec_hidden = encoder(source[:1], tf.zeros((1, 5)))
    dec_input, said = tf.expand_dims([1], 0), []
    for _ in range(2):
        predictions, dec_hidden, attention = decoder(dec_input, dec_hidden, enc_out)
        predicted_id = tf.argmax(predictions[0]).numpy()
        said.append((int(predicted_id), tf.reshape(attention, (-1,)).numpy()))
        dec_input = tf.expand_dims([predicted_id], 0)
    return losses, said


@parity
def vq_vae(tf):
    """A layer that quantises, with losses of its own by `add_loss`, straight through; trained by a custom loop."""
    keras, L = tf.keras, tf.keras.layers

    class VectorQuantizer(L.Layer):
        def __init__(self, num_embeddings, embedding_dim, beta=0.25, **kwargs):
            super().__init__(**kwargs)
            self.embedding_dim, self.num_embeddings, self.beta = embedding_dim, num_embeddings, beta
            self.embeddings = self.add_weight(shape=(embedding_dim, num_embeddings), initializer="zeros", name="codes")

        def call(self, x):
            flattened = tf.reshape(x, [-1, self.embedding_dim])
            distances = (
                tf.reduce_sum(flattened**2, axis=1, keepdims=True)
                + tf.reduce_sum(self.embeddings**2, axis=0)
                - 2 * tf.matmul(flattened, self.embeddings)
            )
            encodings = tf.one_hot(tf.argmin(distances, axis=1), self.num_embeddings)
            quantized = tf.reshape(tf.matmul(encodings, self.embeddings, transpose_b=True), tf.shape(x))
            commitment_loss = tf.reduce_mean((tf.stop_gradient(quantized) - x) ** 2)
            codebook_loss = tf.reduce_mean((quantized - tf.stop_gradient(x)) ** 2)
            self.add_loss(self.beta * commitment_loss + codebook_loss)
            return x + tf.stop_gradient(quantized - x)

    class VQVAETrainer(keras.models.Model):
        def __init__(self, model, variance):
            super().__init__()
            self.vqvae, self.variance = model, variance
            self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
            self.vq_loss_tracker = keras.metrics.Mean(name="vqvae_loss")

        @property
        def metrics(self):
            return [self.total_loss_tracker, self.vq_loss_tracker]

        def train_step(self, x):
            with tf.GradientTape() as tape:
                reconstructions = self.vqvae(x)
                reconstruction_loss = tf.reduce_mean((x - reconstructions) ** 2) / self.variance
                total_loss = reconstruction_loss + sum(self.vqvae.losses)
            grads = tape.gradient(total_loss, self.vqvae.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.vqvae.trainable_variables))
            self.total_loss_tracker.update_state(total_loss)
            self.vq_loss_tracker.update_state(sum(self.vqvae.losses))
            return {m.name: m.result() for m in self.metrics}

    inputs = keras.Input((8, 8, 1))
    x = L.Conv2D(3, 3, activation="relu", strides=2, padding="same")(inputs)
    x = VectorQuantizer(4, 2, name="vector_quantizer")(L.Conv2D(2, 1, padding="same")(x))
    outputs = L.Conv2DTranspose(1, 3, strides=2, padding="same")(x)
    trainer = VQVAETrainer(keras.Model(inputs, outputs), variance=0.1)
    start(trainer.vqvae)
    trainer.compile(optimizer=keras.optimizers.Adam(0.02))
    return history(trainer, images(8), epochs=3)


@parity
def sharpness_aware_minimisation(tf):
    """Two gradients for a step, the weights moved and moved back in `train_step`; a normalisation layer keeps its state."""
    keras = tf.keras

    class SAMModel(keras.Model):
        def __init__(self, model, rho=0.05):
            super().__init__()
            self.inner, self.rho = model, rho

        def train_step(self, data):
            (x, y), e_ws = data, []
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self.inner(x, training=True))
            params = self.inner.trainable_variables
            gradients = tape.gradient(loss, params)
            norm = tf.norm([tf.norm(g) for g in gradients])
            for g, param in zip(gradients, params):
                e_w = g * self.rho / (norm + 1e-12)
                param.assign_add(e_w)
                e_ws.append(e_w)
            with tf.GradientTape() as tape:
                predictions = self.inner(x, training=True)
                loss = self.compute_loss(x, y, predictions)
            sam_gradients = tape.gradient(loss, params)
            for param, e_w in zip(params, e_ws):
                param.assign_sub(e_w)
            self.optimizer.apply_gradients(zip(sam_gradients, params))
            for metric in self.metrics:
                if metric.name != "loss":
                    metric.update_state(y, predictions)
            return {m.name: m.result() for m in self.metrics if m.name != "loss"} | {"sam_loss": loss}

        def call(self, x):
            return self.inner(x)

    L = keras.layers
    inner = keras.Sequential([keras.Input((3,)), L.Dense(5, "relu"), L.BatchNormalization(), L.Dense(1, "sigmoid")])
    start(inner)
    model = SAMModel(inner)
    model.compile(keras.optimizers.SGD(0.2, momentum=0.9, nesterov=True), keras.losses.BinaryCrossentropy())
    return history(model, draw(8, 3), (draw(8, 1) > 0).astype("float32")), inner.get_weights()


@parity
def accumulation_and_moving_averages(tf):
    """Gradients added up over steps in variables of the model, applied by `tf.cond`; averages of weights, evaluated."""
    keras = tf.keras

    class GradientAccumulator(keras.Model):
        def __init__(self, n_gradients, inner):
            super().__init__()
            self.n_gradients = tf.constant(n_gradients, dtype=tf.int32)
            self.n_acum_step = tf.Variable(0, dtype=tf.int32, trainable=False)
            self.inner = inner
            self.gradient_accumulation = [
                tf.Variable(tf.zeros(v.shape, dtype=tf.float32), trainable=False) for v in inner.trainable_variables
            ]

        def train_step(self, data):
            self.n_acum_step.assign_add(1)
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.inner(x, training=True) - y))
            for total, g in zip(self.gradient_accumulation, tape.gradient(loss, self.inner.trainable_variables)):
                total.assign_add(g)
            tf.cond(tf.equal(self.n_acum_step, self.n_gradients), self.apply_accu_gradients, lambda: None)
            return {"loss": loss, "steps": self.n_acum_step}

        def apply_accu_gradients(self):
            self.optimizer.apply_gradients(zip(self.gradient_accumulation, self.inner.trainable_variables))
            self.n_acum_step.assign(0)
            for total in self.gradient_accumulation:
                total.assign(tf.zeros_like(total, dtype=tf.float32))

    inner = keras.Sequential([keras.Input((2,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    start(inner)
    model = GradientAccumulator(2, inner)
    model.compile(keras.optimizers.SGD(0.1))
    losses = history(model, draw(12, 2), draw(12, 1), epochs=2, batch_size=2)
    averaged = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    start(averaged)
    averaged.compile(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2), "mse")
    return losses, inner.get_weights(), history(averaged, draw(12, 2), draw(12, 1)), averaged.get_weights()


@parity
def siamese_network(tf):
    """A triplet loss on embeddings that share weights, a tracker and a layer of distances; nearest neighbours."""
    keras, L = tf.keras, tf.keras.layers

    class DistanceLayer(L.Layer):
        def call(self, anchor, positive, negative):
            return tf.reduce_sum(tf.square(anchor - positive), -1), tf.reduce_sum(tf.square(anchor - negative), -1)

    class SiameseModel(keras.Model):
        def __init__(self, siamese_network, margin=0.5):
            super().__init__()
            self.siamese_network, self.margin = siamese_network, margin
            self.loss_tracker = keras.metrics.Mean(name="loss")

        def call(self, inputs):
            return self.siamese_network(inputs)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = self._compute_loss(data)
            gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
            self.loss_tracker.update_state(loss)
            return {"loss": self.loss_tracker.result()}

        def test_step(self, data):
            self.loss_tracker.update_state(self._compute_loss(data))
            return {"loss": self.loss_tracker.result()}

        def _compute_loss(self, data):
            ap_distance, an_distance = self.siamese_network(data)
            return tf.maximum(ap_distance - an_distance + self.margin, 0.0)

        @property
        def metrics(self):
            return [self.loss_tracker]

    embedding = keras.Sequential([keras.Input((4,)), L.Dense(6, "relu"), L.Dense(3), L.UnitNormalization()])
    start(embedding)
    inputs = [L.Input(name=name, shape=(4,)) for name in ("anchor", "positive", "negative")]
    network = keras.Model(inputs=inputs, outputs=DistanceLayer()(*[embedding(x) for x in inputs]))
    model = SiameseModel(network)
    model.compile(optimizer=keras.optimizers.Adam(0.02))
    anchor = draw(8, 4)
    parts = [tf.data.Dataset.from_tensor_slices(x) for x in (anchor, anchor + 0.1, -anchor)]
    dataset = tf.data.Dataset.zip(tuple(parts)).batch(4, drop_remainder=False).prefetch(2)
    losses = history(model, dataset, batch_size=None, validation_data=dataset)
    a, b = embedding(anchor), embedding(anchor + 0.1)
    return losses, tf.argmax(tf.matmul(a, b, transpose_b=True), axis=1), keras.metrics.CosineSimilarity()(a, b)


@parity
def own_optimizer_and_saving(tf):
    """An optimizer of the user's, regularisers and dropout in a loop by hand, the best weights kept, a checkpoint restored."""
    keras = tf.keras

    class Momentum(keras.optimizers.Optimizer):
        def __init__(self, learning_rate=0.01, momentum=0.9, name="momentum", **kwargs):
            super().__init__(learning_rate=learning_rate, name=name, **kwargs)
            self.momentum = momentum

        def build(self, variables):
            super().build(variables)
            self.speeds = [self.add_variable_from_reference(v, name="speed") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            speed = self.speeds[self._get_variable_index(variable)]
            lr = tf.cast(learning_rate, variable.dtype)
            speed.assign(self.momentum * speed + gradient)
            variable.assign(variable - lr * speed)

    L = keras.layers
    model = keras.Sequential(
        [
            keras.Input((3,)),
            L.Dense(6, "relu", kernel_regularizer=keras.regularizers.l2(0.01), activity_regularizer="l1"),
            L.Dropout(0.0),
            L.Dense(1, kernel_constraint="non_neg"),
        ]
    )
    start(model)
    optimizer = Momentum(0.05)
    x, y = tf.constant(draw(8, 3)), tf.constant(draw(8, 1))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            main = tf.reduce_mean(keras.losses.MSE(y, model(x, training=True)))
            loss = tf.add_n([main, *model.losses])
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss, main

    checkpoint = tf.train.Checkpoint(step=tf.Variable(0), net=model)
    with tempfile.TemporaryDirectory() as folder:
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        found, best = [], math.inf
        for i in range(5):
            loss, main = step(x, y)
            checkpoint.step.assign_add(1)
            if float(main) < best and i < 3:
                best = float(main)
                manager.save()
            found.append(loss)
        checkpoint.restore(manager.latest_checkpoint)
    return found, int(checkpoint.step), model.get_weights(), best
