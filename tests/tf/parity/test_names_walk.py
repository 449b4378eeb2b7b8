"""Every public name of real TensorFlow is here, with TensorFlow's arguments, or says what to use instead."""

import inspect
import re
import types

import pytest
from harness import import_tapejax, import_tensorflow, tensorflows
from outcomes import Outcome

pytestmark = pytest.mark.tensorflow

MODULES = """
    autodiff autograph autograph.experimental bitwise config config.experimental config.optimizer config.threading debugging
    debugging.experimental distribute distribute.cluster_resolver distribute.coordinator distribute.experimental
    distribute.experimental.coordinator distribute.experimental.partitioners distribute.experimental.rpc dtypes errors
    experimental experimental.dlpack experimental.numpy experimental.numpy.random image io
    io.gfile linalg linalg.experimental math math.special nest nn nn.experimental random random.experimental signal sysconfig
    test test.experimental types types.experimental version
""".split()
# What a module of ours is for each of TensorFlow's is shown by other tests: data, keras, saved_model, train.


def find(root, path):
    for part in filter(None, path.split(".")):
        root = getattr(root, part)
    return root


# Keras's, which is one thing or the other in a process: where TensorFlow is, ours would refuse.
KERAS = {"initializers", "keras", "losses", "metrics", "optimizers"}


def public(module):
    return [name for name in dir(module) if not name.startswith("_") and name not in KERAS]


def names_of_tensorflow(module):
    return tensorflows(lambda: Outcome(public(find(import_tensorflow(), module)), "", [])).value


@pytest.mark.parametrize("module", ["", *MODULES])
def test_every_name_is_there_or_says_what_to_use(module):
    silent = []
    for name in names_of_tensorflow(module):
        path = f"{module}.{name}".lstrip(".")
        try:
            find(import_tapejax(), path)
        except AttributeError as error:
            if ": use " not in str(error):
                silent.append(path)
    assert not silent


def strategys_objects(tf):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    data = tf.distribute.DistributedDataset(lambda: iter([]), lambda: 0)
    return {
        "Strategy": strategy,
        "StrategyExtended": strategy.extended,
        "ReplicaContext": tf.distribute.get_replica_context(),
        "InputContext": tf.distribute.InputContext(),
        "DistributedDataset": data,
        "DistributedIterator": iter(data),
        "cluster_resolver.TFConfigClusterResolver": tf.distribute.cluster_resolver.TFConfigClusterResolver(),
    }


@pytest.mark.parametrize("kind", [*strategys_objects(import_tapejax())])
def test_every_attribute_of_a_strategys_objects_is_there_or_says_what_to_use(kind):
    ours = strategys_objects(import_tapejax())[kind]
    for name in names_of_tensorflow(f"distribute.{kind}"):
        try:
            getattr(ours, name)
        except AttributeError as error:
            assert ": use " in str(error)


def parameters(fn):
    """Names and defaults. A default that is a function or a marker of no value stands for anything."""
    found = []
    for p in inspect.signature(fn).parameters.values():
        if p.kind is not p.VAR_KEYWORD:
            known = p.default is None or isinstance(p.default, (bool, int, float, str))
            default = p.default if known else getattr(p.default, "name", re.sub(" at 0x.*", "", str(p.default)))
            found.append((p.name, ANYTHING if callable(p.default) and p.default is not p.empty else default))
    return found


ANYTHING = "(anything)"


def signatures_of_tensorflow():
    """{path: parameters} of the functions written in Python."""
    found = {}
    for module in ["", *MODULES]:
        if module.startswith(("experimental.numpy", "dtypes")):  # jnp's own signatures; the same objects as elsewhere
            continue
        namespace = find(import_tensorflow(), module)
        for name in public(namespace):
            function = getattr(namespace, name)
            if callable(function) and not isinstance(function, (type, types.ModuleType)):
                try:
                    found[f"{module}.{name}".lstrip(".")] = parameters(function)
                except ValueError:  # written in C++
                    continue
    return Outcome([*found.items()], "", [])


def test_arguments_have_tensorflows_names_order_and_defaults():
    found = []
    for path, want in tensorflows(signatures_of_tensorflow).value:
        try:
            ours = find(import_tapejax(), path)
        except AttributeError:
            continue
        if isinstance(ours, type) or path in ACCEPTS_MORE:
            continue
        if any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(ours).parameters.values()):
            continue
        want = [p for p in want if p[0] != "dim"]  # l2_normalize's old name for axis
        got = parameters(ours)
        if [name for name, _ in want] != [name for name, _ in got]:
            found.append(f"{path}: {[name for name, _ in want]} there, {[name for name, _ in got]} here")
            continue
        for (name, there), (_, here) in zip(want, got):
            if name != "name" and there not in (here, ANYTHING) and (path, name) not in OTHER_DEFAULTS:
                found.append(f"{path}({name}): {there!r} there, {here!r} here")
    assert not found, "\n".join(found)


# Where TensorFlow hides its arguments behind **kwargs or a wrapper.
ACCEPTS_MORE = {
    "meshgrid",
    "math.reduce_std",
    "nest.map_structure",
    "get_logger",
}
LOOP_OPTIONS = (
    "parallel_iterations swap_memory maximum_iterations shape_invariants".split()
)  # an object that says "not given"
OTHER_DEFAULTS = {
    *(("autograph.experimental.set_loop_options", name) for name in LOOP_OPTIONS),
    ("custom_gradient", "f"),
    ("numpy_function", "func"),
    ("numpy_function", "inp"),
    ("numpy_function", "Tout"),
    ("py_function", "func"),
    ("py_function", "inp"),
    ("py_function", "Tout"),
}
