"""``tf.train``: what a checkpoint holds, what restoring says and refuses, which checkpoints a manager keeps."""

import contextlib
import os
import tempfile

import numpy as np
import pytest
from harness import error_of, parity

pytest.importorskip("orbax.checkpoint")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as path:
        yield path


def inside(path, root):
    return None if path is None else path.replace(root, "")


def layer(tf):
    class Dense(tf.Module):
        def __init__(self, value=1.0):
            super().__init__()
            self.w = tf.Variable(tf.ones([2, 2]) * value)
            self.b = tf.Variable(tf.zeros([2]))

    return Dense


def network(tf, value=1.0):
    Dense = layer(tf)
    module = Dense(value)
    module.extra = {"a": tf.Variable(value), "l": [tf.Variable(2 * value), Dense(3 * value)]}
    module.pair = (tf.Variable(7 * value), 3)
    module.text, module.number = "text", 5
    return module


def contents(tf, path):
    """Names and shapes, but for TensorFlow's description of the objects."""
    return [(name, shape) for name, shape in tf.train.list_variables(path) if not name.startswith("_CHECKPOINTABLE")]


@parity
def test_names_and_shapes(tf):
    """Each variable by the shortest way to it, from attributes, dicts, lists and tuples."""
    with folder() as root:
        counter = tf.Variable(3)
        checkpoint = tf.train.Checkpoint(model=network(tf), step=counter, list=[tf.Variable(1.0)], alias=counter)
        path = checkpoint.save(f"{root}/ckpt")
        return contents(tf, path), contents(tf, root), inside(path, root)


@parity
def test_other_things_to_save(tf):
    """A root object, a checkpoint in a checkpoint, attributes assigned later; functions hold nothing."""
    with folder() as root:
        variable = tf.Variable(2.0)
        function = tf.function(lambda x: x * variable)
        function(tf.constant(1.0))
        later = tf.train.Checkpoint(f=function)
        later.v = variable
        return [
            contents(tf, checkpoint.write(f"{root}/{i}"))
            for i, checkpoint in enumerate(
                [
                    tf.train.Checkpoint(network(tf)),
                    tf.train.Checkpoint(network(tf), step=variable),
                    tf.train.Checkpoint(inner=tf.train.Checkpoint(v=variable)),
                    tf.train.Checkpoint(d={"a/b": variable, "c.d": tf.Variable(1)}),
                    later,
                ]
            )
        ]


@parity
def test_restoring(tf):
    """Values and the counter come back, and the status is content."""
    with folder() as root:
        model = network(tf)
        checkpoint = tf.train.Checkpoint(model=model, v=tf.Variable([1, 2]))
        checkpoint.save(f"{root}/ckpt")
        path = checkpoint.save(f"{root}/ckpt")
        for variable in model.variables:
            variable.assign(tf.zeros_like(variable))
        checkpoint.v.assign([0, 0])
        status = checkpoint.restore(path)
        status.assert_consumed().assert_existing_objects_matched().assert_nontrivial_match()
        status.expect_partial()
        again = tf.train.Checkpoint(model=network(tf, 0.0), v=tf.Variable([5, 5]))
        again.restore(path).assert_consumed()
        return (
            [v.numpy() for v in model.variables],
            checkpoint.v.numpy(),
            [v.numpy() for v in again.model.variables],
            int(again.save_counter),
            inside(again.save(f"{root}/ckpt"), root),
        )


@parity
def test_write_and_read(tf):
    """No counter, no state file."""
    with folder() as root:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        path = checkpoint.write(f"{root}/plain")
        checkpoint.v.assign(5.0)
        status = checkpoint.read(path)
        status.assert_existing_objects_matched()
        status.assert_consumed()
        return inside(path, root), checkpoint.v.numpy(), tf.train.latest_checkpoint(root)


@parity
def test_assertions(tf):
    """Saved values that nobody takes; variables that have no saved value; nothing at all."""
    with folder() as root:
        path = tf.train.Checkpoint(model=network(tf), step=tf.Variable(1)).save(f"{root}/ckpt")
        found = []
        for objects in (
            {"model": layer(tf)()},
            {"model": network(tf), "step": tf.Variable(0), "other": tf.Variable(2.0)},
            {"other": tf.Variable(2.0)},
        ):
            checkpoint = tf.train.Checkpoint(**objects)
            status = checkpoint.restore(path)
            found.append(error_of(status.assert_consumed))
            found.append(error_of(status.assert_existing_objects_matched))
            found.append(error_of(status.assert_nontrivial_match))
            status.expect_partial()
        status = checkpoint.restore(None)
        found.append(error_of(status.assert_consumed))
        found.append(error_of(status.assert_existing_objects_matched))
        found.append(error_of(status.assert_nontrivial_match))
        found.append(error_of(status.expect_partial))
        return found


@parity(says="other")
def test_a_missing_variable_is_named(tf):
    with folder() as root:
        path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(f"{root}/ckpt")
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0), other_one=tf.Variable(1.0, name="other_one"))
        return error_of(checkpoint.restore(path).assert_existing_objects_matched)


@parity
def test_later_objects(tf):
    """What comes into being after the restoration gets its value then."""
    with folder() as root:
        path = tf.train.Checkpoint(model=network(tf), step=tf.Variable(9)).save(f"{root}/ckpt")
        checkpoint = tf.train.Checkpoint()
        status = checkpoint.restore(path)
        checkpoint.step = tf.Variable(0)
        checkpoint.model = tf.Module()
        checkpoint.model.w = tf.Variable(tf.zeros([2, 2]))
        before = error_of(status.assert_consumed)
        checkpoint.model.b = tf.Variable([4.0, 4.0])
        checkpoint.model.pair = (tf.Variable(0.0),)
        checkpoint.model.extra = network(tf, 0.0).extra
        status.expect_partial()
        return before, [v.numpy() for v in checkpoint.model.variables], checkpoint.step.numpy()


@parity
def test_variables_of_the_first_call(tf):
    """Those that a module makes when it is called, eagerly and in a function."""

    class Lazy(tf.Module):
        def __call__(self, x):
            if not hasattr(self, "w"):
                self.w = tf.Variable(tf.zeros([2, 2]))
            return x @ self.w

    x = tf.constant([[1.0, 2.0]])
    with folder() as root:
        first = Lazy()
        first(x)
        first.w.assign([[1.0, 2.0], [3.0, 4.0]])
        path = tf.train.Checkpoint(net=first).save(f"{root}/ckpt")
        eager, compiled = Lazy(), Lazy()
        tf.train.Checkpoint(net=eager).restore(path)  # nobody keeps the checkpoint
        tf.train.Checkpoint(net=compiled).restore(path)
        return eager(x), tf.function(compiled.__call__)(x)


@parity
def test_one_variable_under_two_names(tf):
    """It is saved once, and found under either name."""
    with folder() as root:
        variable = tf.Variable(3.0)
        path = tf.train.Checkpoint(a=variable, b=variable).save(f"{root}/ckpt")
        one, other = tf.Variable(0.0), tf.Variable(0.0)
        tf.train.Checkpoint(a=one).restore(path).assert_consumed()
        tf.train.Checkpoint(b=other).restore(path).assert_consumed()
        return contents(tf, path), one.numpy(), other.numpy()


@parity
def test_what_does_not_fit(tf):
    """Another shape; a path that is none."""
    with folder() as root:
        path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(f"{root}/ckpt")
        other = tf.train.Checkpoint(v=tf.Variable([5.0, 5.0, 5.0]))
        return (
            error_of(lambda: other.restore(path)),
            other.v.numpy(),
            error_of(lambda: other.restore(f"{root}/nothing-1")),
            error_of(lambda: other.restore(root)),
        )


@parity(x64_only="float64 is float32 otherwise, and there is no other dtype to refuse")
def test_another_dtype(tf):
    with folder() as root:
        path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(f"{root}/ckpt")
        other = tf.train.Checkpoint(v=tf.Variable([5.0, 5.0], dtype=tf.float64))
        return error_of(lambda: other.restore(path)), other.v.numpy(), other.save_counter.dtype


@parity
def test_dtypes(tf):
    with folder() as root:
        dtypes = [tf.float32, tf.float16, tf.bfloat16, tf.int32, tf.uint8, tf.bool, tf.complex64]
        variables = [tf.Variable(tf.cast([0, 1, 1], dtype)) for dtype in dtypes]
        checkpoint = tf.train.Checkpoint(v=variables, empty=tf.Variable(tf.zeros([0, 3])))
        path = checkpoint.save(f"{root}/ckpt")
        for variable in variables:
            variable.assign(tf.zeros_like(variable))
        checkpoint.restore(path).assert_consumed()
        reader = tf.train.load_checkpoint(path)
        kinds = {k: v for k, v in reader.get_variable_to_dtype_map().items() if k.startswith("v/")}
        return [v.read_value() for v in variables], dict(sorted(kinds.items())), contents(tf, path)


@parity
def test_what_cannot_be_saved(tf):
    """Numbers, arrays, tensors, strings and plain functions have no state."""
    values = [3, np.ones(2), tf.constant(1.0), "text", lambda: 1, object()]
    with folder() as root:
        return [error_of(lambda value=value: tf.train.Checkpoint(a=value)) for value in values], [
            error_of(lambda: tf.train.Checkpoint(3)),
            error_of(lambda: tf.train.Checkpoint(d={1: tf.Variable(1.0)}).save(f"{root}/ckpt")),
        ]


@parity
def test_looking_into_one(tf):
    with folder() as root:
        path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(f"{root}/ckpt")
        name = "v/.ATTRIBUTES/VARIABLE_VALUE"
        reader = tf.train.load_checkpoint(root)
        return (
            tf.train.load_variable(path, name),
            reader.get_tensor(name),
            reader.has_tensor(name),
            reader.has_tensor("w"),
            reader.get_variable_to_shape_map()[name],
            error_of(lambda: tf.train.load_variable(path, "w")),
            error_of(lambda: tf.train.list_variables(f"{root}/nothing")),
        )


@parity
def test_latest_checkpoint(tf):
    """None for a directory that is empty or not there; the last one that was saved, not written."""
    with folder() as root:
        found = [tf.train.latest_checkpoint(root), tf.train.latest_checkpoint(f"{root}/none")]
        found.append(tf.train.get_checkpoint_state(root))
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        for _ in range(2):
            checkpoint.save(f"{root}/deep/er/ckpt")
            found.append(inside(tf.train.latest_checkpoint(f"{root}/deep/er"), root))
        checkpoint.write(f"{root}/deep/er/other")
        found.append(inside(tf.train.latest_checkpoint(f"{root}/deep/er"), root))
        state = tf.train.get_checkpoint_state(f"{root}/deep/er")
        found.append(inside(state.model_checkpoint_path, root))
        found.append([inside(path, root) for path in state.all_model_checkpoint_paths])
        return found


def seen(manager, root):
    return [inside(path, root) for path in manager.checkpoints], inside(manager.latest_checkpoint, root)


@parity
def test_manager(tf):
    """Numbers go up, the oldest are deleted; another run goes on where this one stopped."""
    with folder() as root:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(0.0))
        manager = tf.train.CheckpointManager(checkpoint, f"{root}/m", max_to_keep=2)
        found = [seen(manager, root), manager.restore_or_initialize(), os.path.exists(f"{root}/m")]
        for _ in range(4):
            checkpoint.v.assign_add(1.0)
            found.append(inside(manager.save(), root))
            found.append(seen(manager, root))
        gone = error_of(lambda: checkpoint.restore(f"{root}/m/ckpt-1"))
        again = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(0.0)), f"{root}/m", max_to_keep=2)
        found.append(seen(again, root))
        found.append(inside(again.restore_or_initialize(), root))
        found.append((again.checkpoint.v.numpy(), int(again.checkpoint.save_counter)))
        found.append(inside(again.save(), root))
        found.append(seen(again, root))
        return found, gone, inside(manager.directory, root), manager.checkpoint is checkpoint


@parity
def test_manager_keeps_all_under_another_name(tf):
    with folder() as root:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(0.0))
        manager = tf.train.CheckpointManager(checkpoint, root, max_to_keep=None, checkpoint_name="model")
        found = [inside(manager.save(), root) for _ in range(3)]
        found.append(inside(manager.save(checkpoint_number=50), root))
        found.append(inside(manager.save(checkpoint_number=tf.Variable(7)), root))
        return found, seen(manager, root), int(checkpoint.save_counter)


@parity
def test_manager_starts(tf):
    """What `init_fn` is for, and what is refused."""
    with folder() as root:
        checkpoint = tf.train.Checkpoint(v=tf.Variable(0.0))
        manager = tf.train.CheckpointManager(
            checkpoint, f"{root}/m", max_to_keep=1, init_fn=lambda: checkpoint.v.assign(8.0)
        )
        first = manager.restore_or_initialize(), checkpoint.v.numpy()
        manager.save()
        checkpoint.v.assign(0.0)
        return (
            first,
            inside(manager.restore_or_initialize(), root),
            checkpoint.v.numpy(),
            error_of(lambda: tf.train.CheckpointManager(checkpoint, root, max_to_keep=0)),
            error_of(lambda: tf.train.CheckpointManager(checkpoint, root, max_to_keep=-1)),
            error_of(lambda: tf.train.CheckpointManager(checkpoint, root)),
        )


@parity
def test_a_generator_of_random_numbers(tf):
    with folder() as root:
        generator = tf.random.Generator.from_seed(1)
        checkpoint = tf.train.Checkpoint(generator=generator)
        path = checkpoint.save(f"{root}/ckpt")
        first = generator.normal([3])
        checkpoint.restore(path).assert_consumed()
        return bool(tf.reduce_all(generator.normal([3]) == first)), contents(tf, path)


@parity
def test_where_an_iterator_is(tf):
    with folder() as root:
        dataset = tf.data.Dataset.range(10).batch(2)
        iterator = iter(dataset)
        next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).save(f"{root}/ckpt")
        next(iterator)
        other = iter(dataset)
        tf.train.Checkpoint(iterator=other).restore(path).assert_consumed()
        return [[int(x) for x in batch] for batch in other]
