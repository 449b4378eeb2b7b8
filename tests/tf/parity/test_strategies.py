"""tf.distribute with one replica."""

import pytest
from harness import error_of, parity

import tapejax


@parity
def test_a_step_in_a_strategy(tf):
    """Variables made in the scope, a step run by the strategy, its loss reduced, over a dataset."""
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        w = tf.Variable([1.0, 2.0])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(x * w, 1) ** 2, global_batch_size=2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        if loss > 3.0:
            loss = loss * 2.0
        return loss

    @tf.function
    def run(x):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(x,)), axis=None)

    data = tf.data.Dataset.from_tensor_slices([[1.0, 0.5], [0.2, 0.1], [0.4, 1.0], [0.3, 0.3]]).batch(2)
    return [run(x) for x in strategy.experimental_distribute_dataset(data)], w, strategy.num_replicas_in_sync


@parity
def test_reductions(tf):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    x = strategy.run(lambda: tf.constant([1.0, 2.0, 6.0]))
    op = tf.distribute.ReduceOp
    pairs = [(op.SUM, None), (op.MEAN, 0), (op.SUM, 0), ("MEAN", None), ("SUM", 0)]
    return [strategy.reduce(each, x, axis) for each, axis in pairs], strategy.experimental_local_results(x)


@parity
def test_the_current_strategy(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    found = [tf.distribute.has_strategy(), tf.distribute.get_strategy().num_replicas_in_sync]
    with strategy.scope():
        found += [tf.distribute.has_strategy(), tf.distribute.get_strategy() is strategy]
    return [*found, tf.distribute.has_strategy()]


@parity
def test_the_only_replica(tf):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")

    def step():
        context = tf.distribute.get_replica_context()
        return context.num_replicas_in_sync, context.all_reduce("sum", tf.constant(2.0))

    return strategy.run(step)


@parity
def test_a_dataset_from_a_function(tf):
    def make(context):
        size = context.get_per_replica_batch_size(2)
        return tf.data.Dataset.range(4).batch(size)

    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    return list(strategy.distribute_datasets_from_function(make))


@parity
def test_a_reduction_that_is_none(tf):
    return error_of(lambda: tf.distribute.get_strategy().reduce("PROD", tf.ones([2]), axis=0))


@parity
def test_contexts(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])

    def state():
        context = tf.distribute.get_replica_context()
        return [tf.distribute.in_cross_replica_context(), context is None, tf.distribute.has_strategy()]

    found = [state(), strategy.run(state)]
    with strategy.scope():
        found.append(state())
    return [*found, state()]


@parity
def test_options_change_nothing(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2), options)
    run = tf.distribute.RunOptions()
    return [strategy.run(lambda v: v + 1, args=(x,), options=run) for x in data]


@parity
def test_aggregation_with_one_replica(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        variables = [tf.Variable(1.0, aggregation=kind) for kind in tf.VariableAggregation]

    def step(x):
        for v in variables:
            v.assign_add(x)

    strategy.run(step, args=(tf.constant(2.0),))
    return [v.numpy() for v in variables]


def test_what_is_missing_says_what_to_use():
    tf = tapejax
    with pytest.raises(ValueError, match="there is no device '/gpu:7'"):
        tf.distribute.MirroredStrategy(["/gpu:7"])
    with pytest.raises(NotImplementedError, match="MultiWorkerMirroredStrategy"):
        tf.distribute.ParameterServerStrategy(None)
    with pytest.raises(AttributeError, match="experimental_distribute_dataset"):
        tf.distribute.MirroredStrategy(["/cpu:0"]).make_dataset_iterator(None)
    with pytest.raises(AttributeError, match="scope"):
        _ = tf.distribute.experimental_set_strategy
    with pytest.raises(AttributeError, match=r"jax\.distributed\.initialize"):
        _ = tf.distribute.cluster_resolver.SlurmClusterResolver


@parity
def test_a_tpu_if_there_is_one(tf):
    """What notebooks for accelerators begin with, and what it ends in where there is none."""
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
    except ValueError:
        strategy = tf.distribute.get_strategy()
    asked = (
        tf.distribute.cluster_resolver.TPUClusterResolver,
        tf.distribute.cluster_resolver.TPUClusterResolver.connect,
        tf.tpu.experimental.initialize_tpu_system,
        tf.tpu.experimental.shutdown_tpu_system,
        tf.distribute.TPUStrategy,
        tf.distribute.experimental.TPUStrategy,
        lambda: tf.config.experimental_connect_to_cluster(None),
    )
    return strategy.num_replicas_in_sync, [error_of(each) for each in asked]


def test_where_there_is_a_tpu(monkeypatch):
    tf = tapejax
    monkeypatch.setattr("tapejax.tf.ops.config._devices", lambda kind: tapejax.tf.ops.config.jax.devices("cpu"))
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    assert isinstance(strategy, tf.distribute.MirroredStrategy)
    assert resolver.master() == "local" and resolver.num_accelerators()["TPU"] >= 1
    with strategy.scope():
        v = tf.Variable(2.0)
    assert strategy.reduce("SUM", strategy.run(lambda: v * 3.0), axis=None).numpy() == 6
