"""The table of `docs/jax.md`: what JAX added, on a tape beside `jax.grad`. Rows about several devices: `sharded_jax.py`."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sharded_jax
from jax import lax
from jax.experimental import hijax

from tapejax import GradientTape

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "jax.md").read_text(encoding="utf-8")
ROWS = {row[0]: row[1:] for row in re.findall(r"(?m)^\| (.+?) \| (0\.[\d.]+) \| (recorded|refused) \|(.*)\|$", PAGE)}
FEATURES: dict[str, list] = {}


def feature(title):
    """Enters a function of an array of three into the row of that title."""

    def enter(function):
        FEATURES.setdefault(title, []).append(function)
        return function

    return enter


# ---- values that change in place ------------------------------------------------------------------------------------


def scaled(x):
    ref = jax.new_ref(x)
    ref[...] *= 2
    return ref[...] * x


def frozen(x):
    ref = jax.new_ref(jnp.zeros_like(x))
    ref[1:] = jnp.sin(x[1:])
    jax.ref.addupdate(ref, (0,), x[0] ** 2)
    return jax.freeze(ref) ** 2


def swapped(x):
    ref = jax.new_ref(x)
    return jax.ref.swap(ref, ..., 3 * x) * ref[...]


def carried_round_a_loop(x):
    ref = jax.new_ref(jnp.zeros_like(x))

    def step(carry, _):
        ref[...] += carry
        return carry * x, None

    return lax.scan(step, x, length=3)[0] * ref[...]


def in_a_branch(x):
    ref = jax.new_ref(jnp.zeros_like(x))

    def sine():
        ref[...] = jnp.sin(x)

    lax.cond(x[0] > 0, sine, lambda: None)
    return ref[...]


def through_arguments(x):
    ref = jax.new_ref(jnp.zeros_like(x))
    jax.jit(lambda ref, x: ref.__setitem__(..., x**2))(ref, x)
    return jax.jit(lambda ref: 2 * ref[...])(ref)


def tripled(x):
    f = jax.custom_vjp(scaled)
    f.defvjp(lambda x: (scaled(x), x), lambda x, g: (3 * g * x,))
    return f(x)


def backward_into_a_ref(x):
    _, pull_back = jax.vjp(lambda x: jnp.sin(x) * x, x)
    ref = jax.new_ref(x)
    pull_back.with_refs(ref)(jnp.ones_like(x))
    return ref[...] ** 2


MADE = (scaled, frozen, swapped, carried_round_a_loop, in_a_branch, through_arguments)
for f in MADE:
    feature("`jax.new_ref`, `freeze`, `swap` in a jitted function")(jax.jit(f))
    feature("`jax.new_ref`, `freeze`, `swap` in the block")(f)
for f in (scaled, swapped):
    feature("`jax.new_ref` in a body of `scan`, `cond`, `checkpoint` or a rule")(
        lambda x, f=f: lax.scan(lambda c, _: (f(c), None), x, length=2)[0]
    )
    feature("`jax.new_ref` in a body of `scan`, `cond`, `checkpoint` or a rule")(
        lambda x, f=f: lax.cond(x[0] > 0, f, jnp.sin, jax.checkpoint(f)(x))
    )
feature("`jax.new_ref` in a body of `scan`, `cond`, `checkpoint` or a rule")(tripled)
feature("`jax.new_ref` under `vmap`, `grad` or `vjp` in the block")(jax.vmap(lambda x: jax.new_ref(x)[...] * x))
feature("`jax.new_ref` under `vmap`, `grad` or `vjp` in the block")(jax.grad(lambda x: jnp.sum(scaled(x))))
feature("`jax.vjp(...).with_refs` in a jitted function")(jax.jit(backward_into_a_ref))
feature("`jax.vjp(...).with_refs` in the block")(backward_into_a_ref)


@feature("a Ref from outside, read in the block")
def read_outside(x):
    return OUTSIDE[jax.config.jax_enable_x64][...] * x**2


feature("a Ref from outside, in a jitted function")(jax.jit(read_outside))


OUTSIDE = {False: jax.new_ref(jnp.arange(3, dtype=jnp.float32))}
with jax.enable_x64(True):
    OUTSIDE[True] = jax.new_ref(jnp.arange(3, dtype=jnp.float64))


@feature("a Ref that only a custom rule writes")
def put_aside(x):
    f = jax.custom_vjp(lambda ref, x: 2 * x)

    def backward(ref, g):
        ref[...] = g
        return None, 7 * g

    f.defvjp(lambda ref, x: (2 * x, ref), backward)
    return f(jax.new_ref(jnp.zeros_like(x)), x**2)


@feature("`jax.empty_ref`, `free_ref` in a jitted function")
@jax.jit
def empty(x):
    ref = jax.empty_ref(jax.typeof(x))
    ref[...] = x * x
    y = ref[...]
    jax.free_ref(ref)
    return y


# ---- rules ----------------------------------------------------------------------------------------------------------


def doubled_sine(define, *rules, **options):
    """A function whose rule is not what calculus says, so that one sees which was used."""

    def f(x):
        sine = jax.custom_vjp(jnp.sin)
        getattr(sine, define)(*rules, **options)
        return sine(x)

    return f


def sine_and_residual(x):
    return jnp.sin(x), x


@feature("`jax.ad.DontWant`, `GradValue`")
def unwanted(x):
    _, pull_back = jax.vjp(lambda x, y: jnp.sin(x) * y, x, x * 2)
    return pull_back.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(x)[0]


def logging(x, g):
    return (2 * g * jnp.cos(x),), {"cotangent": g * x}


feature("`custom_vjp.defvjp_with_logs`")(doubled_sine("defvjp_with_logs", sine_and_residual, logging))


@feature("`custom_vjp.defvjp_with_logs`")
def logs_are_read(x):
    _, pull_back = jax.vjp(doubled_sine("defvjp_with_logs", sine_and_residual, logging), x)
    (gradient,), logs = pull_back.with_logs(x)
    return gradient * logs["cotangent"]


@feature("`custom_gradient(with_logs=True)`")
def logged(x):
    return jax.custom_gradient(lambda x: (jnp.sin(x), lambda g: (5 * g * x, {"cotangent": g})), with_logs=True)(x)


def accumulate(x, g, accumulator):
    accumulator.accum(2 * g * jnp.cos(x))


feature("`custom_vjp.defvjp_with_accums`")(doubled_sine("defvjp_with_accums", sine_and_residual, accumulate))


@feature("`custom_gradient(with_accums=...)`")
def accumulated(x):
    def f(x):
        return jnp.sin(x), lambda g, accumulator: accumulator.accum(5 * g * x)

    return jax.custom_gradient(f, with_accums=hijax.ValAccum)(x)


REMAT = sine_and_residual, lambda x, _: (jnp.sin(x), jnp.cos(x)), lambda c, g: (5 * g * c,)


@feature("`custom_vjp.defremat`")
def rematerialised(x):
    f = jax.custom_vjp(jnp.sin)
    f.defvjp(sine_and_residual, lambda x, g: (2 * g * jnp.cos(x),))
    f.defremat(*REMAT)
    return f(x) + jax.checkpoint(f)(x)


def with_new_rules(f):
    """`f` where ``jax_custom_vjp3`` and ``jax_remat3`` are on: a Python flag each, of JAX's own thread of settings."""

    def run(x):
        before = [getattr(jax.config, name) for name in FLAGS]
        try:
            for name in FLAGS:
                jax.config.update(name, True)
            return f(x)
        finally:
            for name, value in zip(FLAGS, before, strict=True):
                jax.config.update(name, value)

    return run


FLAGS = "jax_custom_vjp3", "jax_remat3"
feature("`jax_custom_vjp3`, `jax_remat3`")(with_new_rules(doubled_sine("defremat", *REMAT)))
feature("`jax_custom_vjp3`, `jax_remat3`")(with_new_rules(jax.checkpoint(doubled_sine("defremat", *REMAT))))


@feature("`defvjp(generic_batching=True)`")
def shared(x):
    f = jax.custom_vjp(lambda w, x: (2 * w, w * x))
    f.defvjp(
        lambda w, x: (f(w, x), (w, x)),
        lambda saved, g: (2 * g[0] + saved[1] * g[1], saved[0] * g[1]),
        generic_batching=True,
    )
    shared, each = jax.vmap(f, (None, 0), (None, 0))(x[0], x)
    return shared + each


# ---- types of the user ----------------------------------------------------------------------------------------------


class Halves:
    """A value that is no array."""

    def __init__(self, doubled):
        self.doubled = doubled


class HalvesType(hijax.HiType):
    def __init__(self, inner):
        self.inner = inner

    def __eq__(self, other):
        return type(self) is type(other) and self.inner == other.inner

    def __hash__(self):
        return hash((type(self), self.inner))

    def to_tangent_aval(self):
        return self.inner

    def lo_ty(self):
        return [self.inner]

    def lower_val(self, halves):
        return [halves.doubled]

    def raise_val(self, doubled):
        return Halves(doubled)


hijax.register_hitype(Halves, lambda halves: HalvesType(jax.typeof(halves.doubled)))


class Operation(getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive):
    def __init__(self, given, taken):
        self.in_avals, self.out_aval, self.params = (given,), taken, {}
        super().__init__()

    def vjp_fwd(self, _, x):
        return self(x), None


class Double(Operation):
    def expand(self, x):
        return Halves(2 * x)

    def vjp_bwd_retval(self, _, g):
        return (3 * g,)  # not what calculus says, to see that it is this rule


class Halve(Operation):
    def expand(self, halves):
        return halves.doubled / 2

    def vjp_bwd_retval(self, _, g):
        return (5 * g,)


def double(x):
    return Double(jax.typeof(x), HalvesType(jax.typeof(x)))(x)


def halve(halves, like):
    return Halve(HalvesType(jax.typeof(like)), jax.typeof(like))(halves)


@feature("`hijax` types and operations")
def there_and_back(x):
    return halve(double(jnp.sin(x)), x) ** 2


@feature("`hijax` types and operations")
def between_jitted_functions(x):
    return jax.jit(halve)(jax.jit(double)(jnp.sin(x)), x) ** 2


@feature("`hijax` types and operations")
def closed_over(x):
    halves = double(jnp.sin(x))
    return jax.jit(lambda x: halve(halves, x) * x)(x)


@feature("`hijax` types and operations")
def used_in_a_loop_and_a_branch(x):
    halves = double(jnp.sin(x))
    y = lax.scan(lambda c, _: (c * halve(halves, x), None), x, length=2)[0]
    return lax.cond(x[0] > 0, lambda y: halve(double(y), y), jnp.sin, y)


# ---- functions ------------------------------------------------------------------------------------------------------

feature("`vmap(sum_match=True)`")(lambda x: jax.vmap(jnp.sin, out_axes=None, sum_match=True)(x) * x)
for f in (lax.tanh, lax.exp, lax.log, lax.sin):
    accuracy = lax.AccuracyMode.HIGHEST if f in (lax.tanh, lax.log) else lax.Tolerance(1e-3, 1e-3, 2)
    feature("`lax.tanh(accuracy=...)` and its kin")(lambda x, f=f, a=accuracy: f(x, accuracy=a))
feature("`jnp.minmax`, `jnp.top_k`")(lambda x: jnp.prod(jnp.stack(jnp.minmax(x))) * jnp.top_k(x * x, 2)[0])
feature("`lax.log2`, `stack`, `unstack`")(lambda x: sum(lax.unstack(lax.log2(lax.stack([x, x**2], 1)))))


@feature("`scipy.linalg.eigh(a, b)`")
def eigenvalues_of_a_pair(x):
    values, vectors = jax.scipy.linalg.eigh(jnp.outer(x, x) + jnp.diag(x + 1), jnp.diag(x + 2))
    return values**2 * vectors[0] ** 2


# ---- the tests ------------------------------------------------------------------------------------------------------


def by_a_tape(f):
    def gradient(x):
        with GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return gradient


def by_jax(f):
    return jax.grad(lambda x: jnp.sum(f(x)))


def ways(f):
    """The derivatives of `f` by a tape, each beside JAX's."""
    return {
        "a tape": (by_a_tape(f), by_jax(f)),
        "a tape around jit": (by_a_tape(jax.jit(f)), by_jax(jax.jit(f))),
        "jit around a tape": (jax.jit(by_a_tape(f)), jax.jit(by_jax(f))),
        "nested tapes": (by_a_tape(by_a_tape(f)), by_jax(by_jax(f))),
    }


def attempt(f, x):
    try:
        return f(x)
    except Exception as error:
        return error


# Refused where a jitted function is around it, too.
OUTSIDE_OF_JIT = "a Ref from outside, read in the block", "a Ref from outside, in a jitted function"
CASES = [(title, f) for title, functions in FEATURES.items() for f in functions]
VERSIONS = {title: tuple(map(int, row[0].split("."))) for title, row in ROWS.items()}


@pytest.mark.parametrize("wide", [False, True], ids=["32", "64"])
@pytest.mark.parametrize(("title", "f"), CASES, ids=[f"{title}-{i}" for i, (title, _) in enumerate(CASES)])
def test_a_feature_on_a_tape(title, f, wide):
    with jax.enable_x64(wide):
        x = jnp.array([0.5, 1.5, 2.5], jnp.float64 if wide else jnp.float32)
        if jax.__version_info__ < VERSIONS[title]:
            with pytest.raises((AttributeError, TypeError, NotImplementedError)):
                f(x)
            return
        refused = ROWS[title][1] == "refused"
        for way, (tape, right) in ways(f).items():
            if refused if way != "a tape around jit" else title in OUTSIDE_OF_JIT:
                with pytest.raises(LookupError, match="Ref"):
                    tape(x)
                continue
            wanted = attempt(right, x)
            if isinstance(wanted, Exception):  # JAX 0.10 has no second derivative of some programs with Refs
                assert isinstance(attempt(tape, x), Exception), (way, wanted)
                continue
            for _ in range(2):
                found = tape(x)
                assert found.dtype == wanted.dtype == x.dtype
                np.testing.assert_allclose(found, wanted, *([1e-9] if wide else [1e-4]) * 2, err_msg=way)


def test_each_row_is_tested():
    lines = PAGE.partition("| feature |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(lines) == len(ROWS) and {*ROWS} == {*FEATURES, *sharded_jax.FEATURES}
    assert not {*FEATURES} & {*sharded_jax.FEATURES}


def test_a_function_of_a_tape_does_not_touch_a_ref():
    ref, x = jax.new_ref(jnp.ones(3)), jnp.arange(3.0)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        ref[...] *= x
        y = jnp.sum(ref[...])
    assert "Ref: float32[3]" in str(tape) and "jitted function" in str(tape.explain(y, x))
    with pytest.raises(LookupError, match="make, write and read it in a function under jax.jit"):
        tape.as_function(y, x)(x)
    np.testing.assert_array_equal(ref[...], x)


@pytest.mark.parametrize("rule", [jax.custom_jvp, jax.custom_vjp])
def test_a_rule_has_no_part_for_a_value_of_the_users_that_it_closes_over(rule):
    x = jnp.array([0.5, 1.5, 2.5])

    def f(x):
        halves = double(jnp.sin(x))
        g = rule(lambda x: halve(halves, x) * x)
        if rule is jax.custom_jvp:
            g.defjvp(lambda primals, tangents: (g(*primals), 2 * tangents[0]))
        else:
            g.defvjp(lambda x: (g(x), None), lambda _, ct: (2 * ct,))
        return g(x)

    assert isinstance(attempt(by_jax(f), x), Exception)
    with pytest.raises(LookupError, match="closes over"):
        by_a_tape(f)(x)
