"""What runs ahead is to the last bit what operations give that are compiled alone: XLA rewrites nothing across them.

Each block has one operation, many times: with each pair of a few numbers that XLA has rules for. So has each chain of several
operations that XLA would fold, reassociate or drop if it saw them together.
"""

import functools
import inspect
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import speculation, trial

pytestmark = pytest.mark.skipif(
    bool(jax.config.jax_debug_nans or jax.config.jax_disable_jit or jax.config.jax_numpy_rank_promotion == "raise"),
    reason="no operation runs before it arrives, or numbers are refused",
)
NUMBERS = [0.0, -0.0, 1.0, -1.0, 3.0, 41.0, 1e-25, 2e38, np.inf, np.nan]
POINTS = [0.0, -0.0, 1.0, 41.0, 82.0, 0.05, -0.23, 1e-30, 1e38, -np.inf]


def differentiable(fn):
    """Whether JAX differentiates `fn`, of an array of floats, and the result is one of the same shape."""

    def there_and_back(x):
        y, pull_back = jax.vjp(fn, x)
        pull_back(y)
        return y

    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return jax.eval_shape(there_and_back, x) == x
    except Exception:
        return False


def operations(*forms):
    """JAX's functions of arrays, by name, in those of the `forms` in which they are differentiable."""
    found = {}
    filtering = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")  # of a thousand errors, in each process that collects this file
    for module in (jnp, jax.nn, jax.lax):
        for name in sorted(set(dir(module)) - NO_OPERATIONS):
            fn = getattr(module, name)
            if not name.startswith("_") and callable(fn) and not inspect.isclass(fn) and name not in found:
                possible = [form for form in forms if differentiable(form(fn, 0.5))]
                found |= {name: (fn, possible)} if possible else {}
    jax.config.update("jax_traceback_filtering", filtering)
    return found


# They give their operand, or zeros, and run nothing.
NO_OPERATIONS = set(
    "array asarray atleast_1d block empty_like from_dlpack full_like ones_like zeros_like stage transpose".split()
)
# Their other operand is an axis, a distance or an integer exponent, or they ask for values.
NO_NUMBERS = set("cumlogsumexp cummax cummin cumprod cumsum histogram_bin_edges integer_pow roll".split())
# It makes a function with a rule at each call, which is another operation each time.
NEVER_AHEAD = {"sinc"}
if jax.__version_info__ >= (0, 11):
    NEVER_AHEAD.add("i0")  # its rule has a rule of its own, and so on without end
# Of a product of two reciprocal roots XLA's cheap passes gave another last digit ahead than alone, on one CPU.
TWO_ROOTS = {"acosh", "arccosh"}
# XLA's cheap passes, by which tests compile, round its loop's last digit as other operations stand around it.
ROUNDED = {"digamma", "polygamma"}
CHAINS = {
    "two factors": lambda x, c, d: (x * c) * d,
    "two divisors": lambda x, c, d: (x / c) / d,
    "there and back": lambda x, c, d: (x * c) / c,
    "plus and minus": lambda x, c, d: (x + c) - c,
    "minus itself": lambda x, c, d: (x - x) + c,
    "over itself": lambda x, c, d: (x / x) * c,
    "sums of products": lambda x, c, d: x * c + x * d,
    "fused multiply and add": lambda x, c, d: x * c + d,
    "exp of log": lambda x, c, d: jnp.exp(jnp.log(x)) + c,
    "log of exp": lambda x, c, d: jnp.log(jnp.exp(x)) + c,
    "product of exps": lambda x, c, d: jnp.exp(x) * jnp.exp(jnp.multiply(x, c)),
    "over exp": lambda x, c, d: jnp.divide(c, jnp.exp(x)),
    "root of square": lambda x, c, d: jnp.sqrt(jnp.square(x)) * c,
    "square of root": lambda x, c, d: jnp.square(jnp.sqrt(x)) * c,
    "twice negative": lambda x, c, d: jnp.negative(-x) + c,
    "reciprocals": lambda x, c, d: jnp.reciprocal(jnp.reciprocal(x)) * c,
    "powers": lambda x, c, d: jnp.power(jnp.power(x, 2.0), c),
    "less precise and back, bfloat16": lambda x, c, d: x.astype(jnp.bfloat16).astype(jnp.float32) * c,
    "less precise and back, float16": lambda x, c, d: x.astype(jnp.float16).astype(jnp.float32) * c,
    "integers and back": lambda x, c, d: jnp.clip(x, -9.0, 9.0).astype(jnp.int32).astype(jnp.float32) * c + x,
    "copies": lambda x, c, d: jnp.copy(jnp.copy(x)) + c,
    "a stopped copy": lambda x, c, d: jax.lax.stop_gradient(x) * c + x,
    "sum of a broadcast": lambda x, c, d: jnp.sum(jnp.broadcast_to(jnp.add(x[0], c), (7,))) * x,
    "largest of a broadcast": lambda x, c, d: jnp.max(jnp.broadcast_to(jnp.add(x[0], c), (7,))) * x,
    "equal branches": lambda x, c, d: jnp.where(x > 0, x * c, x * c),
    "branches by a number": lambda x, c, d: jnp.where(jnp.greater(x, c), x, jnp.multiply(x, d)),
    "largest of one": lambda x, c, d: jnp.maximum(jnp.maximum(x, x), c),
    "clamped twice": lambda x, c, d: jnp.minimum(jnp.maximum(jnp.maximum(x, 0.0), 0.0), 6.0) * c,
    "turned twice": lambda x, c, d: jnp.reshape(jnp.reshape(x, (2, 5)).T.T, (10,)) + c,
    "parts put together": lambda x, c, d: jnp.concatenate([x[:4], x[4:]]) + c,
    "product of matrices": lambda x, c, d: jnp.matmul(jnp.matmul(x, jnp.full((10, 10), 0.1)), jnp.ones((10, 10))) * c,
    "a zero that is added": lambda x, c, d: (x + 0.0) * c,
    "a one": lambda x, c, d: (x * 1.0) / 1.0 + c,
    "angle": lambda x, c, d: jnp.arctan2(x + 0.0, c),
    "steps": lambda x, c, d: jnp.floor(jnp.divide(x, c)) * x,
    "remainders": lambda x, c, d: jnp.remainder(jnp.remainder(x, 41.0), 3.0) + c,
    "softmax": lambda x, c, d: jax.nn.softmax(x) / c,
    "tf steps": lambda x, c, d: tf.floor(tf.convert_to_tensor(x) / c)._array * x,
}
UNARY = operations(lambda fn, c: fn)
BINARY = operations(lambda fn, c: lambda x: fn(x, c), lambda fn, c: lambda x: fn(c, x))


def bits(tree):
    return [None if x is None else (x.dtype, x.shape, np.asarray(x).tobytes()) for x in tree]


def in_a_block(applications, at):
    """What each of the `applications` gives of an array of its own, and its gradient, in each of four steps."""
    results, xs = [], [jnp.array(at, jnp.float32) for _ in applications]
    for _ in range(4):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            ys = [application(x) for application, x in zip(applications, xs, strict=True)]
        results.append(bits([*ys, *tape.gradient(ys, xs)]))
    return results


def check(monkeypatch, applications, at=POINTS, units=0):
    """How many plans held of blocks with the `applications`, whose results may differ by so many `units` in the last place."""
    monkeypatch.setattr(trial, "enabled", False)  # compiled from the first run on
    held, answer = [], speculation.FollowedBlock.answer
    monkeypatch.setattr(speculation.FollowedBlock, "answer", lambda *args: held.append(answer(*args)) or held[-1])
    results = {}
    for early in (None, True):  # without plans, and with plans from the second sighting on
        monkeypatch.setattr(speculation, "early", early)
        speculation._plans.clear()
        speculation._sightings.clear()
        results[early] = in_a_block(applications, at)
    speculation._plans.clear()
    speculation.begun = False
    alone, ahead = results[None][2:], results[True][2:]  # of both the first steps may compile pullbacks one by one
    if units and ahead != alone:
        for x, y in zip(itertools.chain(*alone), itertools.chain(*ahead), strict=True):
            if x != y:
                assert x[:2] == y[:2]
                np.testing.assert_array_max_ulp(
                    *[np.frombuffer(bits, dtype) for dtype, _, bits in (x, y)], maxulp=units
                )
    else:
        assert ahead == alone
    return sum(x is not None for x in held)


LONG = {"igammac": [pytest.mark.slow]}  # 17 s, in XLA


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LONG.get(name, [])) for name in sorted(BINARY.keys() - NO_NUMBERS)]
)
def test_each_operation_with_a_number(name, monkeypatch, no_shadow):
    fn, forms = BINARY[name]
    assert check(monkeypatch, [form(fn, c) for c in NUMBERS for form in forms])


@pytest.mark.parametrize("name", sorted(UNARY.keys() - ROUNDED))
def test_each_operation(name, monkeypatch, no_shadow, request):
    fn, _ = UNARY[name]
    units = 2 if name in TWO_ROOTS and not request.config.getoption("optimized") else 0
    held = check(monkeypatch, [fn, lambda x: jnp.add(fn(jnp.add(x, 0.0)), 0.0), lambda x: fn(fn(x))], units=units)
    assert held or name in NEVER_AHEAD


@pytest.mark.parametrize("name", CHAINS)
def test_each_chain(name, monkeypatch, no_shadow):
    fn, pairs = CHAINS[name], itertools.islice(itertools.product(NUMBERS, NUMBERS), 0, None, 7)
    assert check(monkeypatch, [functools.partial(fn, c=c, d=d) for c, d in pairs])
