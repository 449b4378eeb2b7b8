"""Programs of `tf.distribute.MultiWorkerMirroredStrategy`, run by two processes of a ``TF_CONFIG``.

``python workers.py tensorflow|tapejax FOLDER`` is what each process runs: it prints what the programs give, as JSON. TensorFlow's
results are in ``workers.json``: ``python -m tests.tf.programs.workers keep``.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

KEPT = Path(__file__).with_suffix(".json")


def both(library, **variables):
    """What the two processes print, in order."""
    from tests.processes import finish, free_port, start

    addresses = [f"localhost:{free_port()}" for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        command, tasks = (__file__, library, f"{folder}/checkpoints"), [{"type": "worker", "index": i} for i in (0, 1)]
        settings = [json.dumps({"cluster": {"worker": addresses}, "task": task}) for task in tasks]
        printed = finish(*[start(*command, TF_CONFIG=setting, **variables) for setting in settings])
    return [json.loads(out.splitlines()[-1]) for out in printed]


def main(library, folder):
    os.environ.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    os.environ["KERAS_BACKEND"] = "tensorflow" if library == "tensorflow" else "jax"
    sys.modules["matplotlib"] = sys.modules["sklearn"] = None  # as in parity/keras_processes.py
    import numpy as np

    if library == "tensorflow":
        import tensorflow as tf
    else:
        import tapejax as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rng = np.random.RandomState(0)
    X, Y = rng.normal(size=(24, 3)).astype("float32"), rng.normal(size=(24, 1)).astype("float32")

    def local(value):
        return [x.numpy().tolist() for x in strategy.experimental_local_results(value)]

    def sequential(*layers):
        return tf.keras.Sequential([tf.keras.layers.Input((3,)), *layers])

    def dense(units, activation=None):
        return tf.keras.layers.Dense(units, activation, kernel_initializer="ones")

    def losses_of_rows():
        """Gradients reduced by hand, batches that do not divide, local results, `gather`, values of each replica."""
        found = [strategy.num_replicas_in_sync]
        with strategy.scope():
            w = tf.Variable(np.ones((3, 1), "float32"))
            random = tf.Variable(np.random.default_rng().normal(size=3))  # all have the first one's
            on_read = tf.VariableSynchronization.ON_READ
            total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM, synchronization=on_read)

        @tf.function
        def step(x, y):
            def replica(x, y):
                context = tf.distribute.get_replica_context()
                with tf.GradientTape() as tape:
                    rows = tf.square(x @ w - y)[:, 0]
                    loss = tf.reduce_sum(rows) / 8.0
                w.assign_sub(0.1 * context.all_reduce("SUM", tape.gradient(loss, w)))
                total.assign_add(loss)
                return loss, rows, context.replica_id_in_sync_group

            loss, *others = strategy.run(replica, args=(x, y))
            return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", others[0], axis=0), *others

        for count in 24, 21, 17:
            data = tf.data.Dataset.from_tensor_slices((X[:count], Y[:count])).batch(8)
            for x, y in strategy.experimental_distribute_dataset(data):
                loss, mean, rows, numbers = step(x, y)
                found += [float(loss), float(mean), local(x), local(rows), local(numbers)]
                found.append(strategy.gather(rows, axis=0).numpy().tolist())
        values = strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(float(context.replica_id_in_sync_group))
        )
        found += [local(values), float(strategy.reduce("SUM", values, axis=None).numpy())]
        of_all = strategy.run(lambda: tf.distribute.get_replica_context().all_gather(random[None], axis=0))
        of_all = local(of_all)[0]
        return [*found, of_all[0] == of_all[1], w.numpy().ravel().tolist(), float(total.read_value())]

    def epochs_with_checkpoints():
        """A step that takes an iterator; a pipeline for each worker; each writes checkpoints where the others do not."""
        with strategy.scope():
            data = strategy.distribute_datasets_from_function(
                lambda context: (
                    tf.data.Dataset.from_tensor_slices((X, Y))
                    .shard(context.num_input_pipelines, context.input_pipeline_id)
                    .batch(context.get_per_replica_batch_size(8))
                    .repeat()
                )
            )
            model = sequential(dense(4, "tanh"), dense(1))
            optimizer = tf.keras.optimizers.Adam(0.05)
            seen = tf.keras.metrics.MeanAbsoluteError()

        @tf.function
        def step(iterator):
            def replica(batch):
                x, y = batch
                with tf.GradientTape() as tape:
                    predicted = model(x, training=True)
                    rows = tf.reduce_sum(tf.square(predicted - y), 1)
                    loss = tf.nn.compute_average_loss(rows, global_batch_size=8)
                weights = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
                seen.update_state(y, predicted)
                return loss

            return strategy.reduce("SUM", strategy.run(replica, args=(next(iterator),)), axis=None)

        resolver = strategy.cluster_resolver
        kind, number, cluster = resolver.task_type, resolver.task_id, resolver.cluster_spec().as_dict()
        chief = kind is None or kind == "chief" or (kind == "worker" and number == 0 and "chief" not in cluster)
        own = folder if chief else f"{folder}/of_worker_{number}"
        epoch, done = tf.Variable(0, name="epoch"), tf.Variable(0, name="step")
        checkpoint = tf.train.Checkpoint(model=model, epoch=epoch, done=done)
        manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=1)
        found = [kind, number, chief, len(cluster["worker"])]
        while epoch.numpy() < 3:
            iterator = iter(data)
            while done.numpy() < 3:
                found.append(float(step(iterator)))
                done.assign_add(1)
            found.append(float(seen.result()))
            seen.reset_state()
            epoch.assign_add(1)
            done.assign(0)
            manager.save()
            if not chief:
                shutil.rmtree(own)
        weights = [np.asarray(v) for v in model.trainable_variables]
        for v in model.trainable_variables:
            v.assign(v * 0.0)
        epoch.assign(0)
        checkpoint.restore(tf.train.latest_checkpoint(folder))
        restored = [(np.asarray(v) == w).all() for v, w in zip(model.trainable_variables, weights, strict=True)]
        return [*found, bool(np.all(restored)), int(epoch), float(step(iter(data)))]

    def compiled(*layers):
        """A model as Keras 3.15 can train it with TensorFlow: its own `fit` fails with this strategy, in two places."""
        with strategy.scope():
            model = sequential(*layers)
            model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
        if library == "tensorflow":
            from keras.src.backend.tensorflow import trainer

            def reduced(values, strategy, reduction):
                if reduction == "concat":
                    return tf.nest.map_structure(lambda x: strategy.gather(x, axis=0), values)
                return tf.nest.map_structure(lambda x: strategy.reduce("MEAN", x, axis=None), values)

            trainer.reduce_per_replica = reduced  # Keras's asks for the mean of numbers along an axis
            with strategy.scope():
                model._symbolic_build(data_batch=(X[:8], Y[:8], None))
            model._maybe_symbolic_build = lambda **_: None  # Keras's reduces a tuple, which this strategy does not take
        return model

    def fit():
        """Batch normalisation in `fit`, over arrays with a last batch of fewer rows; `evaluate` and `predict`; a dataset."""
        model = compiled(dense(4, "tanh"), tf.keras.layers.BatchNormalization(), dense(1))
        history = model.fit(X[:22], Y[:22], batch_size=8, epochs=2, shuffle=False, verbose=0).history
        found = [history["loss"], history["mae"], *[np.asarray(v).tolist() for v in model.trainable_variables]]
        model = compiled(dense(4, "tanh"), dense(1))
        data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
        found += [model.fit(data, epochs=2, verbose=0).history["loss"], model.evaluate(data, verbose=0)]
        return [*found, model.predict(X[:7], batch_size=4, verbose=0).tolist()]

    programs = losses_of_rows, epochs_with_checkpoints, fit
    print(json.dumps({program.__name__: program() for program in programs}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        KEPT.write_text(json.dumps(both("tensorflow"), indent=1) + "\n")
    else:
        main(*sys.argv[1:])
