"""Every public name of real TensorFlow is here, with TensorFlow's arguments, or says what to use instead."""

import inspect
import types

import pytest
from harness import import_tapejax, import_tensorflow

pytestmark = pytest.mark.tensorflow

MODULES = """
    autodiff autograph autograph.experimental bitwise config config.experimental config.optimizer config.threading debugging
    debugging.experimental dtypes errors experimental experimental.dlpack experimental.numpy experimental.numpy.random image io
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


@pytest.mark.parametrize("module", ["", *MODULES])
def test_every_name_is_there_or_says_what_to_use(module):
    tensorflow, tapejax = import_tensorflow(), import_tapejax()
    silent = []
    for name in public(find(tensorflow, module)):
        path = f"{module}.{name}".lstrip(".")
        try:
            find(tapejax, path)
        except AttributeError as error:
            if ": use " not in str(error):
                silent.append(path)
    assert not silent


def parameters(fn):
    return [p for p in inspect.signature(fn).parameters.values() if p.kind is not p.VAR_KEYWORD]


def functions(tensorflow, tapejax):
    for module in ["", *MODULES]:
        if module.startswith(("experimental.numpy", "dtypes")):  # jnp's own signatures; the same objects as elsewhere
            continue
        theirs = find(tensorflow, module)
        for name in public(theirs):
            path = f"{module}.{name}".lstrip(".")
            try:
                ours = find(tapejax, path)
            except AttributeError:
                continue
            one = getattr(theirs, name)
            if callable(one) and not isinstance(one, (type, types.ModuleType)) and not isinstance(ours, type):
                yield path, one, ours


def same_default(want, got):
    if want is got or want == got or callable(want):
        return True
    return getattr(want, "name", want) == got or str(want) == str(got)  # tf.float32 is "float32" in our signatures


def test_arguments_have_tensorflows_names_order_and_defaults():
    differences = []
    for path, one, ours in functions(import_tensorflow(), import_tapejax()):
        try:
            want = [p for p in parameters(one) if p.name not in ("dim",)]  # l2_normalize's old name for axis
        except ValueError:  # written in C++
            continue
        got = parameters(ours)
        if path in ACCEPTS_MORE or any(p.kind is p.VAR_POSITIONAL for p in got):
            continue
        if [p.name for p in want] != [p.name for p in got]:
            differences.append(f"{path}: {[p.name for p in want]} there, {[p.name for p in got]} here")
            continue
        for a, b in zip(want, got):
            if a.name != "name" and not same_default(a.default, b.default) and (path, a.name) not in OTHER_DEFAULTS:
                differences.append(f"{path}({a.name}): {a.default!r} there, {b.default!r} here")
    assert not differences, "\n".join(differences)


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
