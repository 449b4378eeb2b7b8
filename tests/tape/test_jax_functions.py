"""The public functions of JAX's modules on watched values: the tape's gradient beside ``jax.grad``.

Values in a block are concrete, and recorded. Wherever code of JAX's treats an array otherwise than a tracer (``isinstance(x,
Tracer)``, ``np.asarray``, ``float``), it loses what a tape watches, in silence. So the functions are taken from the modules, and
their arguments from what they accept: each array among them is a value of its own.
"""

import functools
import importlib
import inspect
import itertools
import pkgutil

import jax
import jax.nn
import jax.numpy as jnp
import jax.scipy
import numpy as np
import pytest

from tapejax import GradientTape, Variable, function
from tapejax.tape import active

MODULES = [f"jax.{name}" for name in "numpy numpy.linalg numpy.fft lax lax.linalg nn image ops random".split()]
MODULES += [module.name for module in pkgutil.walk_packages(jax.scipy.__path__, "jax.scipy.")]

MATRIX = np.float32([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.2]])
# By the letter that a kind of argument has below: from its position to a new one.
KINDS = {
    "s": lambda i: jnp.float32(0.7 - 0.15 * i),
    "v": lambda i: jnp.float32([0.3, 0.6, 0.8]) + np.float32(0.03 * i),
    "m": lambda i: jnp.asarray(MATRIX + np.float32(0.03 * i)),
    "S": lambda i: [KINDS["s"](i + k) for k in range(3)],
    "V": lambda i: [KINDS["v"](i), KINDS["v"](i + 1)],
    "i": lambda i: 1,
    "I": lambda i: np.array([0, 1, 2]),
    "k": lambda i: jax.random.key(0),
}
# Rules that need other arguments than these: as many positional ones as no combination is tried of.
MOST_POSITIONAL = 4
MOST_TRIED = 64  # of these combinations
SLOW = ("betabinom", "truncnorm", "special", "random", "scipy.linalg", "sparse.linalg")  # modules that take XLA seconds
LARGE = 100  # functions of a module, which has several tests then


def functions(module):
    named = sorted(vars(importlib.import_module(module)).items())
    return [(name, fn) for name, fn in named if name[0] != "_" and callable(fn) and not isinstance(fn, type)]


def parts_of(module):
    """Tests of a module: all of its functions, or each n-th of them, from the first, the second ..."""
    count = len(functions(module)) // LARGE + 1
    marks = [pytest.mark.slow] if module.endswith(SLOW) else []
    return [pytest.param(module, slice(i, None, count), marks=marks, id=f"{module}-{i + 1}") for i in range(count)]


def is_float(x):
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating)


def total(outputs):
    """A weighted sum of the floats and complex numbers among `outputs`; None if there are none."""
    terms = []
    for leaf in jax.tree.leaves(outputs):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.inexact):
            parts = [jnp.real(leaf), 2 * jnp.imag(leaf)] if jnp.iscomplexobj(leaf) else [leaf]
            terms += [jnp.sum(x * (1 + np.arange(x.size, dtype=np.float32) % 7).reshape(x.shape)) for x in parts]
    return sum(terms[1:], terms[0]) if terms else None


def parameters_of(function):
    """The kinds of arguments to try in the place of those that it needs, and the names of those that it may have."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return [], []
    needed = [p.name for p in parameters if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) and not needed:
        needed = ["x", "y"]
    if len(needed) > MOST_POSITIONAL:
        return [], []
    kinds = ["k" if name == "key" else "svmSViI" if len(needed) < 4 else "svmi" for name in needed]
    optional = [p.name for p in parameters if p.default is not p.empty and p.kind is not p.VAR_KEYWORD]
    return sorted(itertools.product(*kinds), key=lambda kinds: len(set(kinds)))[:MOST_TRIED], optional


def calls(function):
    """The calls of a function that JAX can trace: one with what it needs, and one more for each argument that it may have."""
    tried, optional = parameters_of(function)
    kinds = next((kinds for kinds in tried if Call(function, kinds).is_possible()), None)
    if kinds is not None:
        yield Call(function, kinds)
        yield from filter(Call.is_possible, [Call(function, kinds, [(name, "s")]) for name in optional])


class Call:
    """A call of `function`, as one of the floats among its arguments."""

    def __init__(self, function, kinds, optional=()):
        args = [KINDS[kind](i) for i, kind in enumerate(kinds)]
        self.leaves, self.tree = jax.tree.flatten((args, {name: KINDS[kind](1) for name, kind in optional}))
        self.positions = [i for i, x in enumerate(self.leaves) if is_float(x)]
        self.function = function

    @property
    def values(self):
        return [self.leaves[i] for i in self.positions]

    def __call__(self, *values):
        leaves = list(self.leaves)
        for i, x in zip(self.positions, values, strict=True):
            leaves[i] = x
        args, kwargs = jax.tree.unflatten(self.tree, leaves)
        return total(self.function(*args, **kwargs))

    def is_possible(self):
        try:
            return bool(self.positions) and jax.eval_shape(self, *self.values) is not None
        except Exception:
            return False


def lost(call):
    """What the tape gives and what ``jax.grad`` gives, if they differ."""
    values = call.values
    try:  # by the runner's operations, which are not compiled
        expected = active.alone((), jax.grad(call, tuple(range(len(values)))), *values)
    except Exception:  # JAX has no derivative of it, or needs values
        return None
    with GradientTape() as tape:
        tape.watch(values)
        y = call(*values)
    got = tape.gradient(y, values)
    same = [
        np.allclose(0 if a is None else a, b, 1e-3, 1e-4, equal_nan=True) for a, b in zip(got, expected, strict=True)
    ]
    return None if all(same) else (got, expected)


@pytest.fixture
def unfiltered():
    """JAX does not filter tracebacks: of the thousand errors in search of arguments, that took most of the time."""
    filtering = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", filtering)


@pytest.mark.usefixtures("unfiltered")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("module", "part"), [part for module in MODULES for part in parts_of(module)])
def test_no_watched_argument_is_lost(module, part):
    found = [(name, *what) for name, fn in functions(module)[part] for what in filter(None, map(lost, calls(fn)))]
    assert found == []


x, c = jnp.float32(0.7), jnp.float32(0.4)


@pytest.mark.skipif(not hasattr(jax.lax, "polynomial"), reason="JAX 0.12 has it")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "fn",
    [
        lambda x, c: jax.lax.polynomial(x, [1.0, c, 3.0]),
        lambda x, c: c * jax.lax.polynomial(x, [1.0, c, 3.0]),
        lambda x, c: jax.lax.polynomial(x, [1.0, x, 3.0]) + c,
        lambda x, c: jax.lax.polynomial(c, [x * x, c, 3]),
        lambda x, c: jax.jit(jax.lax.polynomial)(x, [1.0, c, 3.0]),
        lambda x, c: jax.lax.scan(lambda s, _: (jax.lax.polynomial(s, [0.1, c, 0.3]), None), x, None, length=2)[0],
    ],
)
def test_a_scalar_coefficient_is_an_argument(fn, wide):
    with jax.enable_x64(wide):
        values = [jnp.asarray(v, jnp.float64 if wide else jnp.float32) for v in (0.7, 0.4)]
        with GradientTape() as tape:
            tape.watch(values)
            y = fn(*values)
        assert jax.typeof(y) == jax.typeof(fn(*values))
        np.testing.assert_allclose(tape.gradient(y, values), jax.grad(fn, (0, 1))(*values), 1e-6)


@pytest.mark.skipif(not hasattr(jax.lax, "polynomial"), reason="JAX 0.12 has it")
def test_a_coefficient_may_be_a_variable():
    coefficient = Variable(0.4)
    with GradientTape() as tape:
        y = jax.lax.polynomial(jnp.float32(0.7), [1.0, coefficient, 3.0])
    np.testing.assert_allclose(tape.gradient(y, coefficient), 0.7, 1e-6)


def test_what_a_rule_holds_constant_has_no_gradient():
    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def product(x, c):
        return x * c

    product.defjvp(lambda c, primals, tangents: (product(primals[0], c), tangents[0] * c))
    with GradientTape() as tape:
        tape.watch([x, c])
        y = product(x, c)
    gradient = tape.gradient(y, [x, c])
    assert gradient[0] == jax.grad(product)(x, c) and gradient[1] is None


@pytest.mark.parametrize("fn", [lambda x, *, c: x * c, lambda x: x * c], ids=["attribute", "closure"])
def test_a_composite_is_refused_by_name(fn):
    attributes = {"c": c} if inspect.getfullargspec(fn).kwonlyargs else {}
    with GradientTape(persistent=True) as tape:
        tape.watch([x, c])
        y = jax.lax.composite(fn, "my.scale")(x, **attributes)
    assert y == x * c
    for source in (x, c):
        with pytest.raises(LookupError, match="my.scale"):
            tape.gradient(y, source)


@pytest.mark.parametrize("name", "max min amax amin nanmax nanmin ptp".split())
@pytest.mark.parametrize("wide", [False, True])
def test_the_greatest_complex_number(name, wide):
    with jax.enable_x64(wide):
        z = jnp.array([1 + 1j, 2 + 3j, 2 - 1j], complex if wide else "complex64")
        fn = getattr(jnp, name)
        with GradientTape() as tape:
            tape.watch(z)
            y = fn(z)
            real = jnp.real(y)
        assert y == fn(z)
        np.testing.assert_allclose(tape.gradient(real, z), np.conj(jax.grad(lambda z: jnp.real(fn(z)))(z)))


@pytest.mark.skipif(not hasattr(jax.custom_vjp, "defvjp_with_logs"), reason="JAX 0.12 has it")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "logs",
    [lambda x: {"c": x}, lambda x: {"b": (x, None), "a": {"c": 2 * x}}, lambda x: None],
    ids=["dict", "deep", "none"],
)
@pytest.mark.parametrize("within", ["jit", "scan", "cond", "checkpoint", "function", "direct"])
def test_a_rule_with_logs(within, logs, wide):
    fn = jax.custom_vjp(jnp.sin)
    fn.defvjp_with_logs(lambda x: (jnp.sin(x), x), lambda x, ct: ((ct * jnp.cos(x),), logs(ct)))
    call = {
        "jit": jax.jit(fn),
        "scan": lambda x: jax.lax.scan(lambda c, _: (fn(c), None), x, None, length=3)[0],
        "cond": lambda x: jax.lax.cond(x > 0, fn, jnp.cos, x),
        "checkpoint": jax.checkpoint(fn),
        "function": function(fn),
        "direct": fn,
    }[within]
    with jax.enable_x64(wide):
        x = jnp.asarray(1.0)
        for _ in range(3):
            with GradientTape() as tape:
                tape.watch(x)
                y = call(x)
            np.testing.assert_allclose(tape.gradient(y, x), jax.grad(fn if within == "function" else call)(x), 1e-6)


# docs/jax.md, "Why is it zero?": by a value at which `jax.grad` raises (None here) or gives 0, what the tape gives.
AS_NUMPY = {
    "from_dlpack": (lambda x: jnp.from_dlpack(x), 1.0, None, None),
    "ord": (lambda p: jnp.linalg.vector_norm(jnp.array([3.0, 4.0]), ord=[p]), 3.0, None, None),
    "a scalar ord": (lambda p: jnp.linalg.vector_norm(jnp.array([3.0, 4.0]), ord=p), 3.0, None, -0.30388284),
    "by ord, a vector": (lambda x: jnp.linalg.vector_norm(x * jnp.ones(2), ord=[2.0]), 3.0, 2**0.5, 2**0.5),
    "start": (lambda x: jnp.arange(x, 4.0, 1.0), 1.0, 0.0, 3.0),
    "step": (lambda x: jnp.arange(1.0, 4.0, x), 1.0, 0.0, 3.0),
    "end": (lambda x: jnp.arange(x), 4.0, 0.0, None),
    "r_": (lambda x: jnp.r_[x:4.0], 1.0, 0.0, 3.0),
    "r_ of a number of elements": (lambda x: jnp.r_[x:4.0:5j], 1.0, 0.0, 2.5),
    "elements of r_": (lambda x: jnp.r_[x, 4.0], 1.0, 1.0, 1.0),
    "mgrid": (lambda x: jnp.mgrid[x:4.0], 1.0, 0.0, 3.0),
    "ogrid": (lambda x: jnp.ogrid[x:4.0], 1.0, 0.0, 3.0),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", AS_NUMPY)
def test_a_value_that_jax_wants_as_numpys(name, wide):
    """A row of the page goes when the answers become one."""
    fn, at, of_jax, of_tape = AS_NUMPY[name]
    with jax.enable_x64(wide):
        x = jnp.asarray(at, jnp.float64 if wide else jnp.float32)
        if of_jax is None:
            with pytest.raises(TypeError):
                jax.grad(lambda x: jnp.sum(fn(x)))(x)
        else:
            np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(fn(x)))(x), of_jax, 1e-6)
        with GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(fn(x))
        gradient = tape.gradient(y, x)
        assert (gradient is None) == (of_tape is None)
        if of_tape is not None:
            np.testing.assert_allclose(gradient, of_tape, 1e-5)
            step = 1e-2  # the number of elements stays
            np.testing.assert_allclose(gradient, (jnp.sum(fn(x + step)) - jnp.sum(fn(x))) / step, 2e-2, 2e-2)
