"""Programs of `tf.distribute`: ``python replicated.py tensorflow|tapejax REPLICAS`` prints what they give, as JSON.

TensorFlow's results are in ``replicated.json``: ``python replicated.py keep``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

KEPT = Path(__file__).with_suffix(".json")
COUNTS = (1, 2, 4)
if sys.argv[1] == "keep":
    results = {
        count: json.loads(
            subprocess.check_output([sys.executable, __file__, "tensorflow", str(count)]).splitlines()[-1]
        )
        for count in COUNTS
    }
    KEPT.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit()

os.environ.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
os.environ["KERAS_BACKEND"] = "tensorflow" if sys.argv[1] == "tensorflow" else "jax"
sys.modules["matplotlib"] = sys.modules["sklearn"] = None  # as in parity/keras_processes.py
COUNT = int(sys.argv[2])

import numpy as np  # noqa: E402

if sys.argv[1] == "tensorflow":
    import tensorflow as tf
else:
    import tapejax as tf

if COUNT > 1:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * COUNT)
RNG = np.random.RandomState(0)
X, Y = RNG.normal(size=(24, 3)).astype("float32"), RNG.normal(size=(24, 1)).astype("float32")
ONES = np.ones((3, 1), "float32")


def mirrored():
    names = [f"CPU:{i}" for i in range(COUNT)]
    return tf.distribute.MirroredStrategy(names, cross_device_ops=tf.distribute.ReductionToOneDevice())


def batches(strategy, rows=24):
    data = tf.data.Dataset.from_tensor_slices((X[:rows], Y[:rows])).batch(8)
    return strategy.experimental_distribute_dataset(data)


def numbers(strategy, value):
    return [x.numpy().tolist() for x in strategy.experimental_local_results(value)]


def gradients_reduced_by_hand():
    """Losses divided by the global batch size; all_reduce of a list of gradients; assign_sub in the replica."""
    strategy, losses = mirrored(), []
    with strategy.scope():
        w, b = tf.Variable(ONES), tf.Variable(0.0)

    @tf.function
    def step(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(x @ w + b - y)) / 8.0
            grads = tape.gradient(loss, [w, b])
            grads = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, grads)
            w.assign_sub(0.1 * grads[0])
            b.assign_sub(0.1 * grads[1])
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, args=(x, y)), axis=None)

    for x, y in batches(strategy):
        losses.append(float(step(x, y)))
    return losses


def gradients_reduced_by_the_optimizer():
    """Means of each replica's loss, divided by the number of replicas; Keras's optimizer adds the gradients."""
    strategy, losses = mirrored(), []
    with strategy.scope():
        w = tf.Variable(ONES)
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w - y)) / strategy.num_replicas_in_sync
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    for x, y in batches(strategy):
        losses.append(float(step(x, y)))
    return losses + w.numpy().ravel().tolist()


def losses_of_rows():
    """Reductions along an axis, local results, and a function that is run from outside."""
    strategy, found = mirrored(), []
    with strategy.scope():
        w = tf.Variable(ONES)

    @tf.function
    def replica(x, y):
        return tf.square(x @ w - y)[:, 0]

    for x, y in batches(strategy, 20):
        rows = strategy.run(replica, args=(x, y))
        found += [float(strategy.reduce("MEAN", rows, axis=0)), float(strategy.reduce("SUM", rows, axis=0))]
        found += [numbers(strategy, rows), strategy.gather(rows, axis=0).numpy().tolist()]
    return found


def batch_normalisation():
    """Each replica normalises by its own rows."""
    strategy, losses = mirrored(), []
    with strategy.scope():
        layers = [tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1, kernel_initializer="ones")]
        model = tf.keras.Sequential([tf.keras.layers.Input((3,)), *layers])
        optimizer = tf.keras.optimizers.Adam(0.1)

    def replica(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / 8.0
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(x, y):
        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    for x, y in batches(strategy):
        losses.append(float(step(x, y)))
    return losses + [np.asarray(v).ravel().tolist() for v in model.variables if "moving" in v.path]


def contexts():
    """Replicas' numbers, values made for each, collectives, merge_call, draws that differ."""
    strategy = mirrored()
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(float(context.replica_id_in_sync_group))
    )

    @tf.function
    def run(values):
        def replica(v):
            context = tf.distribute.get_replica_context()
            own = v + 10.0 * tf.cast(context.replica_id_in_sync_group, tf.float32)
            with tf.GradientTape() as tape:
                tape.watch(v)
                total = context.all_reduce("SUM", v * v)
            together = context.merge_call(lambda strategy, x: strategy.reduce("SUM", x, axis=None), args=(v,))
            return own, context.all_reduce("MEAN", v), tape.gradient(total, v), together - v, tf.random.uniform([4])

        return strategy.run(replica, args=(values,))

    *found, drawn = run(values)
    different = len({tuple(x) for x in numbers(strategy, drawn)})
    return [numbers(strategy, values), *[numbers(strategy, x) for x in found], different]


def aggregation():
    """Variables that replicas assign different values; an eager run; `reduce` of no distributed value."""
    strategy, found = mirrored(), []
    with strategy.scope():
        on_read = tf.VariableSynchronization.ON_READ
        total = tf.Variable(0.0, synchronization=on_read, aggregation=tf.VariableAggregation.SUM)
        mean = tf.Variable(0.0, aggregation=tf.VariableAggregation.MEAN)
        first = tf.Variable(0.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        steps = tf.Variable(0)

    def replica(x, y):
        total.assign_add(tf.reduce_sum(x))
        mean.assign(tf.reduce_mean(x))
        first.assign(tf.reduce_min(x))
        steps.assign_add(1)
        return tf.reduce_max(x)

    for x, y in batches(strategy):
        most = strategy.run(replica, args=(x, y))
        found += [numbers(strategy, most), float(mean.numpy()), float(first.numpy())]
        found.append(float(strategy.reduce("MEAN", most, axis=None)))
    return [
        *found,
        float(total.read_value()),
        int(steps.numpy()),
        float(strategy.reduce("MEAN", tf.constant(2.0), axis=None)),
    ]


def datasets_from_a_function():
    """Batches of each replica's, and `get_per_replica_batch_size`."""
    strategy = mirrored()

    def make(context):
        data = tf.data.Dataset.from_tensor_slices(X[:, 0])
        return data.batch(context.get_per_replica_batch_size(8))

    total = lambda x: tf.reduce_sum(x)  # noqa: E731
    data = strategy.distribute_datasets_from_function(make)
    return [numbers(strategy, strategy.run(total, args=(x,))) for x in data]


def iterators():
    """Steps that take an iterator, or a dataset, and draw the batches; the replica's function is a new one each time."""
    strategy, found = mirrored(), []
    with strategy.scope():
        w = tf.Variable(ONES)
        optimizer = tf.keras.optimizers.SGD(0.1)
    data = batches(strategy)

    def run(batch):
        def replica(batch):
            def loss_of(x, y):
                return tf.reduce_sum(tf.square(x @ w - y)) / 8.0

            with tf.GradientTape() as tape:
                loss = loss_of(*batch)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        return strategy.reduce("SUM", strategy.run(replica, args=(batch,)), axis=None)

    @tf.function
    def step(iterator):
        return run(next(iterator))

    @tf.function
    def several(iterator, count):
        total = 0.0
        for _ in tf.range(count):
            total += run(next(iterator))
        return total

    @tf.function
    def epoch(data):
        total = 0.0
        for batch in data:
            total += run(batch)
        return total

    iterator = iter(data)
    found += [float(step(iterator)), float(several(iterator, 2))]
    for function in step, lambda iterator: iterator.get_next():
        try:
            function(iterator)
        except tf.errors.OutOfRangeError:
            found.append("ended")
    found += [float(epoch(data)), float(run(iter(data).get_next()))]
    optional = iter(data).get_next_as_optional()
    return [*found, bool(optional.has_value()), float(run(optional.get_value()))]


def fit():
    strategy = mirrored()
    with strategy.scope():
        hidden = tf.keras.layers.Dense(4, kernel_initializer="ones", activation="tanh")
        model = tf.keras.Sequential(
            [tf.keras.layers.Input((3,)), hidden, tf.keras.layers.Dense(1, kernel_initializer="ones")]
        )
        model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
    return history["loss"] + history["mae"]


def last_batches_of_fewer_rows():
    """Replicas with fewer rows than others, or none: sums, means along an axis, collectives, gradients, aggregation."""
    strategy, found = mirrored(), []
    with strategy.scope():
        w, total = tf.Variable(ONES), tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)
        steps = tf.Variable(0)
        optimizer = tf.keras.optimizers.Adam(0.1)
        optimizer.build([w])

    @tf.function
    def step(x, y):
        def replica(x, y):
            context = tf.distribute.get_replica_context()
            with tf.GradientTape() as tape:
                rows = tf.square(x @ w - y)[:, 0]
                loss = tf.reduce_sum(rows) / 8.0
                everywhere = context.all_reduce("MEAN", loss)
                objective = loss * everywhere
            optimizer.apply_gradients([(tape.gradient(objective, w), w)])
            total.assign(loss)
            steps.assign_add(1)
            number = tf.cast(context.replica_id_in_sync_group, tf.float32)
            return loss, rows, everywhere, context.all_reduce("SUM", number * loss), number

        loss, rows, *others = strategy.run(replica, args=(x, y))
        return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", rows, axis=0), rows, others

    for count in 21, 22, 17, 20:
        for x, y in batches(strategy, count):
            loss, mean, rows, others = step(x, y)
            found += [
                float(loss),
                float(mean),
                numbers(strategy, rows),
                float(total.numpy()),
                w.numpy().ravel().tolist(),
            ]
            found += [[numbers(strategy, value) for value in others], strategy.gather(rows, axis=0).numpy().tolist()]
    return [*found, int(steps.numpy())]


def made_in_a_step_of_fewer_rows():
    """Variables, layers, an optimizer's slots and a metric that are first made where replicas have other rows, or none."""
    strategy, found, made = mirrored(), [], []
    with strategy.scope():
        hidden = tf.keras.layers.Dense(4, "tanh", kernel_initializer="ones")
        model = tf.keras.Sequential([hidden, tf.keras.layers.Dense(1, kernel_initializer="ones")])
        optimizer, seen = tf.keras.optimizers.Adam(0.1), tf.keras.metrics.Mean()

    def replica(x, y):
        if not made:
            made.append(tf.Variable(tf.random.uniform([3, 1]), aggregation=tf.VariableAggregation.SUM))
            made.append(tf.Variable(tf.reduce_sum(x), aggregation=tf.VariableAggregation.MEAN))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(x) - y)) / 8.0
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        seen.update_state(loss)
        made[0].assign(tf.reduce_sum(x, 0)[:, None])
        made[1].assign_add(tf.reduce_sum(x))
        return loss, made[0].read_value()

    @tf.function
    def step(x, y):
        return strategy.run(replica, args=(x, y))

    with strategy.scope():
        for count in 5, 23:
            for x, y in batches(strategy, count):
                loss, total = step(x, y)
                found += [
                    numbers(strategy, loss),
                    numbers(strategy, total),
                    float(made[1].numpy()),
                    float(seen.result()),
                ]
    return [*found, np.asarray(model.trainable_variables[0]).ravel().tolist()]


def tapes_around_run():
    """One device's derivatives. TensorFlow's tape sees nothing of what replicas run, so there the whole batch is computed."""
    strategy, found = mirrored(), []
    with strategy.scope():
        w = tf.Variable(ONES)
    whole = sys.argv[1] == "tensorflow"

    def rows_of(x, y):
        with tf.GradientTape() as tape:
            rows = tf.tanh(x @ w) * y
        return rows, tape.gradient(rows, w)

    def both(x, y):
        if whole:
            rows, inner = rows_of(strategy.gather(x, axis=0), strategy.gather(y, axis=0))
            return tf.reduce_mean(rows**2), tf.reduce_sum(inner**3), tf.reduce_sum(rows) ** 2
        rows, inner = strategy.run(rows_of, args=(x, y))
        square = strategy.run(all_squared, args=(rows,))
        mean = tf.reduce_sum(strategy.reduce("MEAN", strategy.run(tf.square, args=(rows,)), axis=0))
        return mean, tf.reduce_sum(strategy.reduce("SUM", inner, axis=None) ** 3), square

    def all_squared(rows):
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.reduce_sum(rows)) ** 2

    def step(x, y):
        with tf.GradientTape(persistent=True) as tape:
            mean, third, square = both(x, y)
            square = square if whole else strategy.experimental_local_results(square)[-1]
        with tf.autodiff.ForwardAccumulator(w, tf.constant([[1.0], [2.0], [3.0]])) as forward:
            tangent = forward.jvp(both(x, y)[0])
        return [mean, tangent, *[tape.gradient(target, w) for target in (mean, third, square)]]

    for run in step, tf.function(step):
        for count in 24, 21, 5:
            for x, y in [*batches(strategy, count)][-1:]:
                found.append([np.asarray(value).ravel().tolist() for value in run(x, y)])
    return found


def keras_losses():
    """Keras's objects for losses divide by the number of replicas; those of metrics add up what all replicas saw."""
    strategy, found = mirrored(), []
    with strategy.scope():
        w = tf.Variable(ONES)
        mean_squared = tf.keras.losses.MeanSquaredError()
        precision, mean = tf.keras.metrics.Precision(thresholds=0.1), tf.keras.metrics.Mean()
        optimizer = tf.keras.optimizers.SGD(0.1)

    @tf.function
    def step(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                loss = mean_squared(y, x @ w)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            precision.update_state(tf.cast(y > 0.0, tf.float32), tf.sigmoid(x @ w))
            mean.update_state(loss)
            return loss

        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    for x, y in batches(strategy, 23):
        found += [float(step(x, y)), float(precision.result()), float(mean.result())]
    return found


def classifier(strategy, *layers):
    with strategy.scope():
        dense = tf.keras.layers.Dense(4, "tanh", kernel_initializer="ones", kernel_regularizer="l2")
        last = tf.keras.layers.Dense(1, "sigmoid", kernel_initializer="ones")
        model = tf.keras.Sequential([*layers, dense, last])
        metrics = ["mae", tf.keras.metrics.Precision(name="precision"), tf.keras.metrics.AUC(name="auc")]
        model.compile(tf.keras.optimizers.Adam(0.1), "binary_crossentropy", metrics=metrics)
    return model


def fit_of_fewer_rows():
    """Batch normalisation, a regularizer, metrics, and a last batch that does not divide."""
    strategy = mirrored()
    with strategy.scope():
        normalisation = tf.keras.layers.BatchNormalization()
    model = classifier(strategy, tf.keras.layers.Input((3,)), normalisation)
    labels = (Y > 0).astype("float32")
    history = model.fit(X[:23], labels[:23], batch_size=8, epochs=3, shuffle=False, verbose=0).history
    return [history[name] for name in sorted(history)] + [np.asarray(v).ravel().tolist() for v in model.variables]


def fit_and_evaluate():
    """A model that is built by `fit`, weights of samples, validation data, `evaluate`, `predict`, a dataset."""
    model = classifier(mirrored())
    labels = (Y > 0).astype("float32")
    weights = np.linspace(0.5, 1.5, 24).astype("float32")
    validation = X[:15], labels[:15]
    history = model.fit(
        X, labels, sample_weight=weights, batch_size=8, epochs=2, shuffle=False, verbose=0, validation_data=validation
    ).history
    found = [history[name] for name in sorted(history)]
    data = tf.data.Dataset.from_tensor_slices((X[:22], labels[:22])).batch(8)
    found += [model.fit(data, verbose=0).history["loss"], model.evaluate(data, verbose=0)]
    return [*found, model.predict(X[:7], batch_size=4, verbose=0).tolist()]


PROGRAMS = (
    gradients_reduced_by_hand,
    gradients_reduced_by_the_optimizer,
    losses_of_rows,
    batch_normalisation,
    contexts,
    aggregation,
    datasets_from_a_function,
    iterators,
    fit,
    last_batches_of_fewer_rows,
    made_in_a_step_of_fewer_rows,
    tapes_around_run,
    keras_losses,
    fit_of_fewer_rows,
    fit_and_evaluate,
)
if len(sys.argv) > 3:
    PROGRAMS = tuple(program for program in PROGRAMS if program.__name__ in sys.argv[3:])
if COUNT == 1:  # TensorFlow's merge_call fails: "destinations can not be empty"
    PROGRAMS = tuple(program for program in PROGRAMS if program is not contexts)
print(json.dumps({program.__name__: program() for program in PROGRAMS}))
