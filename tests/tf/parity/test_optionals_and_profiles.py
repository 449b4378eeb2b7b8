"""An iterator's next element or none, and profiles of programs."""

import os
import tempfile

from harness import error_of, parity


@parity
def test_the_next_element_if_there_is_one(tf):
    "The loop of programs that walk two datasets by hand."
    iterator, found = iter(tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0], "n": [1, 2]})), []
    while True:
        element = iterator.get_next_as_optional()
        if not element.has_value():
            break
        found.append(element.get_value())
    return found, element.element_spec["x"].shape, error_of(element.get_value), element.has_value()


@parity
def test_optionals_of_ones_own(tf):
    one, none = tf.experimental.Optional.from_value((1.5, [2])), tf.data.experimental.Optional.empty(tf.TensorSpec([2]))
    specs = one.element_spec[0].dtype.name, one.element_spec[1].shape.as_list(), none.element_spec.shape.as_list()
    return one.has_value(), one.get_value(), specs, none.has_value(), error_of(none.get_value)


@parity
def test_a_profile(tf):
    profiler = tf.profiler.experimental
    with tempfile.TemporaryDirectory() as folder:
        errors = [error_of(profiler.stop)]
        profiler.start(folder)
        errors.append(error_of(profiler.start, folder))
        for i in range(2):
            with profiler.Trace("step", step_num=i, _r=1):
                tf.reduce_sum(tf.ones([2, 2]))
        profiler.stop()
        with profiler.Profile(os.path.join(folder, "more"), profiler.ProfilerOptions(host_tracer_level=3)):
            tf.reduce_sum(tf.ones([2, 2]))
        written = {os.path.splitext(name)[1] for _, _, names in os.walk(folder) for name in names}
        runs = [
            os.path.isdir(os.path.join(folder, *path))
            for path in (["plugins", "profile"], ["more", "plugins", "profile"])
        ]
    return errors, ".pb" in written, runs, tuple(profiler.ProfilerOptions())


@parity
def test_how_a_dataset_is_spread_over_workers(tf):
    policy, options = tf.data.experimental.AutoShardPolicy, tf.data.Options()
    options.experimental_distribute.auto_shard_policy = policy.DATA
    elements = list(tf.data.Dataset.range(4).with_options(options).as_numpy_iterator())
    return elements, {name: int(getattr(policy, name)) for name in ("OFF", "AUTO", "FILE", "DATA", "HINT")}
