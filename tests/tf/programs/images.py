"""A user's program: trains a small network for images on several devices, in a loop of its own, and goes on from a checkpoint.

``python images.py tensorflow|tapejax COUNT FOLDER`` prints what it saw, as JSON. TensorFlow's is in ``images.json``, by COUNT.
"""

import json
import os
import sys

LIBRARY, COUNT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.environ.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
os.environ["KERAS_BACKEND"] = "tensorflow" if LIBRARY == "tensorflow" else "jax"

import numpy as np  # noqa: E402

if LIBRARY == "tensorflow":
    import tensorflow as tf
else:
    import tapejax as tf

devices = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * COUNT)
names = [device.name for device in tf.config.list_logical_devices("CPU")]
strategy = tf.distribute.MirroredStrategy(names, cross_device_ops=tf.distribute.ReductionToOneDevice())
found = [f"Number of devices: {strategy.num_replicas_in_sync}"]

GLOBAL_BATCH, EPOCHS, CLASSES = 16, 2, 3
rng = np.random.default_rng(0)
labels = rng.integers(0, CLASSES, 60).astype("int32")  # the last batch has 12 rows, or 5 of the test's 21
images = (rng.normal(size=(60, 8, 8, 1)) * 0.5 + np.sin(labels[:, None, None, None] + np.arange(8)[:, None])).astype(
    "float32"
)
train = tf.data.Dataset.from_tensor_slices((images[:39], labels[:39])).batch(GLOBAL_BATCH)
test = tf.data.Dataset.from_tensor_slices((images[39:], labels[39:])).batch(GLOBAL_BATCH)
train_batches = strategy.experimental_distribute_dataset(train)
test_batches = strategy.experimental_distribute_dataset(test)


def create_model():
    ramp = lambda shape, dtype=None: tf.reshape(tf.linspace(-0.3, 0.4, int(np.prod(shape))), shape)  # noqa: E731
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(4, 3, activation="relu", kernel_initializer=ramp),
            tf.keras.layers.BatchNormalization(momentum=0.8),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(
                8, "relu", kernel_initializer=ramp, kernel_regularizer=tf.keras.regularizers.l2(0.01)
            ),
            tf.keras.layers.Dense(CLASSES, kernel_initializer=ramp),
        ]
    )


with strategy.scope():
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    test_loss = tf.keras.metrics.Mean(name="test_loss")
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")
    test_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="test_accuracy")
    model = create_model()
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.8)
    optimizer = tf.keras.optimizers.Adam(learning_rate=schedule)
    best = tf.Variable(np.inf, name="best", trainable=False)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model, best=best)
manager = tf.train.CheckpointManager(checkpoint, FOLDER, max_to_keep=2)


def compute_loss(labels, predictions, model_losses):
    loss = tf.nn.compute_average_loss(loss_object(labels, predictions), global_batch_size=GLOBAL_BATCH)
    if model_losses:
        loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
    return loss


def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = compute_loss(labels, predictions, model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_accuracy.update_state(labels, predictions)
    return loss


def test_step(inputs):
    images, labels = inputs
    predictions = model(images, training=False)
    test_loss.update_state(loss_object(labels, predictions))
    test_accuracy.update_state(labels, predictions)


@tf.function
def distributed_train_step(dataset_inputs):
    per_replica_losses = strategy.run(train_step, args=(dataset_inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


@tf.function
def distributed_test_step(dataset_inputs):
    return strategy.run(test_step, args=(dataset_inputs,))


for epoch in range(EPOCHS):
    total_loss, num_batches = 0.0, 0
    for x in train_batches:
        total_loss += distributed_train_step(x)
        num_batches += 1
    train_loss = total_loss / num_batches
    for x in test_batches:
        distributed_test_step(x)
    if test_loss.result() < best:
        best.assign(test_loss.result())
        manager.save()
    template = "Epoch {}, Loss: {:.4f}, Accuracy: {:.3f}, Test Loss: {:.4f}, Test Accuracy: {:.3f}"
    values = train_loss, train_accuracy.result() * 100, test_loss.result(), test_accuracy.result() * 100
    found.append(template.format(epoch + 1, *values))
    found += [float(value) for value in values]
    for metric in test_loss, train_accuracy, test_accuracy:
        metric.reset_state()

with strategy.scope():  # as a program that goes on from the last checkpoint
    new_model, new_best = create_model(), tf.Variable(0.0, trainable=False)
    restored = tf.train.Checkpoint(model=new_model, best=new_best)
    restored.restore(manager.latest_checkpoint).expect_partial()
found += [float(new_best.numpy()), len(manager.checkpoints)]
for images, labels in test:  # one device, no strategy
    test_accuracy.update_state(labels, new_model(images, training=False))
found.append(float(test_accuracy.result()))
found.append(np.asarray(new_model(images[:2], training=False)).tolist())
print(json.dumps(found))
