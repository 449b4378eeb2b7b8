"""Programs of JAX users, as they are without a tape: under one they give the same values, and the gradients of `jax.grad`."""

from __future__ import annotations

import copy
import dataclasses
import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import checkify, io_callback
from jax.experimental.ode import odeint
from jax.experimental.random import stateful_rng
from jax.extend import core as public
from jax.sharding import PartitionSpec as P

import tapejax as tf
from tapejax.jaxprs.fence import Primitive, current_trace

X = jnp.array([0.5, -1.5, 2.0])
ARRAY = jnp.array([3.0, 1.0, 2.0])
MASK, INDEX = np.array([1.0, 0.0, 2.0], "float32"), np.array([0, 2])

# name -> (function of `X`, whether `jax.jit` takes it)
PROGRAMS: dict[str, tuple] = {}


def program(function=None, *, jits=True):
    if function is None:
        return functools.partial(program, jits=jits)
    PROGRAMS[function.__name__] = function, jits
    return function


def with_jvp(function, rule, **options):
    wrapped = jax.custom_jvp(function)
    wrapped.defjvp(rule, **options)
    return wrapped


def with_vjp(function, forward, backward, **options):
    wrapped = jax.custom_vjp(function)
    wrapped.defvjp(forward, backward, **options)
    return wrapped


# ---- calls that return their inputs ---------------------------------------------------------------------------------


@program
def returned_twice(x):
    u, v = jax.jit(lambda x: (x, x))(x)
    return jnp.sum(3 * u + 5 * v**2)


@program
def returned_beside_a_result(x):
    u, v = jax.jit(lambda x: (x, x.sum()))(x)
    return jnp.sum(u * u) * v + x.sum()


@program
def returned_by_a_checkpoint(x):
    u, v = jax.checkpoint(lambda x: (x, x.sum()))(x)
    return (u * v * u).sum()


@program
def returned_by_a_scan(x):
    u, v = lax.scan(lambda c, _: (c, c.sum()), x, None, length=3)
    return (u * v * u).sum()


@program
def donated(x):
    return jax.jit(lambda y: y * 3, donate_argnums=0)(x * 1.0).sum()


# ---- rules, and what their functions close over ---------------------------------------------------------------------


@program
def jvp_over_constants(x):
    f = with_jvp(lambda x: x * jnp.array([1.0, 2.0, 3.0]), lambda p, t: (f(*p), t[0] * 7))
    return f(x).sum()


@program
def jvp_over_numpy(x):
    f = with_jvp(lambda x: x * MASK + x[INDEX].sum(), lambda p, t: (f(*p), t[0] * MASK))
    return f(x).sum()


@program
def vjp_over_constants(x):
    f = with_vjp(lambda x: x * jnp.array([1.0, 2.0, 3.0]) * MASK, lambda x: (f(x), x), lambda x, g: (g * MASK * x,))
    return f(x).sum()


@program
def vjp_over_an_array(x):
    f = with_vjp(lambda x: x * ARRAY, lambda x: (f(x), x), lambda x, g: (g * ARRAY * x,))
    return (f(x) * f(x)).sum()


@program(jits=False)  # nor does JAX differentiate it in jit
def vjp_over_a_random_key(x):
    key = jax.random.key(3)
    f = with_jvp(
        lambda x: x * jax.random.normal(key, (3,)), lambda p, t: (f(*p), t[0] * jax.random.normal(key, (3,)) ** 2)
    )
    return f(x).sum()


@program
def rules_in_rules(x):
    inner = with_vjp(lambda x: x * MASK, lambda x: (inner(x), x), lambda x, g: (g * x * MASK,))
    f = with_jvp(lambda x: inner(x) * jnp.array([1.0, 2.0, 3.0]), lambda p, t: (f(*p), t[0] * inner(p[0])))
    return f(x).sum()


@program
def a_rule_with_ever_other_rules(x):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    @power.defjvp
    def rule(n, primals, tangents):
        (x,), (t,) = primals, tangents
        return power(x, n), t * n * power(x, n - 1)  # without end

    return power(x, 4).sum()


@program
def an_ode(x):
    w = x * 2.0
    return odeint(lambda y, t, k: -y * k * w, jnp.sin(x), jnp.array([0.0, 0.5]), w)[-1].sum()


@program
def closure_convert(x):
    w = x * 2

    def loss(y):
        return jnp.sum(y * w) ** 2

    f, consts = jax.closure_convert(loss, x)

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def g(f, y, *consts):
        return f(y, *consts)

    g.defvjp(lambda f, y, *consts: (f(y, *consts), (y, consts)), lambda f, r, ct: jax.vjp(f, r[0], *r[1])[1](ct), **{})
    return g(f, x, *consts)


@program(jits=False)  # nor does JAX differentiate it in jit
def jvp_over_a_batched_value(x):
    def row(r, s):
        f = with_jvp(lambda y: y * s, lambda p, t: (p[0] * s, t[0] * s * 3))
        return f(2.0 * r)

    return jax.vmap(row)(x, jnp.arange(3.0)).sum()


@program(jits=False)  # nor does JAX differentiate it in jit
def vjp_over_a_batched_value(x):
    def row(r, s):
        f = with_vjp(lambda y: y * s, lambda y: (y * s, y), lambda y, g: (g * y,))
        return f(2.0 * r)

    return jax.vmap(row)(x, jnp.arange(3.0)).sum()


@program
def vjp_with_functions(x):
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
    def f(g, x, n):
        return g(x) * n

    f.defvjp(lambda g, x, n: (g(x) * n, x), lambda g, n, x, ct: (ct * n * jnp.cos(x) * 2,))
    return f(jnp.sin, x, 3).sum()


@program
def jvp_with_functions(x):
    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def f(g, x):
        return g(x)

    f.defjvp(lambda g, p, t: (g(p[0]), t[0] * 3))
    return f(lambda y: jnp.sin(y) * jnp.array([1.0, 2.0, 3.0]), x).sum()


@program
def vjp_with_symbolic_zeros(x):
    f = with_vjp(
        lambda x, y: x * y,
        lambda x, y: (x.value * y.value, (x.value, y.value, y.perturbed)),
        lambda r, g: (g * r[1] * 3, None),
        symbolic_zeros=True,
    )
    return f(x, jnp.full(3, 2.0)).sum()


@program
def jvp_with_symbolic_zeros(x):
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return x * y, tx * y * (1.0 if type(ty) is jax.custom_derivatives.SymbolicZero else 5.0)

    return with_jvp(lambda x, y: x * y, rule, symbolic_zeros=True)(x, jnp.full(3, 2.0)).sum()


@program
def vjp_that_optimizes_remat(x):
    f = with_vjp(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * 2,), optimize_remat=True)
    return f(x).sum() + jax.checkpoint(f)(x).sum()


@program
def vjp_of_an_integer(x):
    f = with_vjp(
        lambda x, i: x[i], lambda x, i: (x[i], (x, i)), lambda r, g: (jnp.zeros_like(r[0]).at[r[1]].set(g * 2), None)
    )
    return f(x, jnp.array(1))


@program
def vjp_of_a_key(x):
    def normal(key):
        return jax.random.normal(key, (3,))

    f = with_vjp(lambda k, x: x * normal(k), lambda k, x: (f(k, x), k), lambda k, g: (None, g * normal(k) * 2))
    return f(jax.random.key(1), x).sum()


@program
def vjp_of_a_dict(x):
    f = with_vjp(
        lambda d: {"o": d["a"] * d["b"], "p": d["a"]},
        lambda d: (f(d), d),
        lambda d, g: ({"a": g["o"] * d["b"] + 2 * g["p"], "b": g["o"] * d["a"]},),
    )
    out = f({"a": x, "b": x * 2})
    return (out["o"] + out["p"]).sum()


@program
def vjp_that_calls_back(x):
    shape = jax.ShapeDtypeStruct((3,), X.dtype)
    f = with_vjp(
        lambda x: jax.pure_callback(np.sin, shape, x, vmap_method="sequential"),
        lambda x: (f(x), x),
        lambda x, g: (g * jnp.cos(x),),
    )
    return f(x).sum()


@program
def custom_gradient_over_constants(x):
    @jax.custom_gradient
    def f(x):
        return jnp.sin(x) * jnp.array([1.0, 2.0, 3.0]), lambda g: g * jnp.cos(x) * 3

    return f(x).sum()


# ---- rules that look at values --------------------------------------------------------------------------------------


@program(jits=False)
def boolean_index_in_the_function(x):
    f = with_jvp(lambda x: jnp.sum(x[x > 0] ** 2), lambda p, t: (f(*p), jnp.sum(2 * p[0] * t[0] * (p[0] > 0))))
    return f(x)


@program(jits=False)
def range_in_the_function(x):
    def doubled(x, n):
        for _ in range(n):
            x = x * 2
        return x

    f = with_vjp(doubled, lambda x, n: (f(x, n), n), lambda n, g: (g * float(n), None))
    return f(x, jnp.array(3)).sum() + f(x, 2).sum()


@program(jits=False)
def float_in_a_jvp_rule(x):
    f = with_jvp(
        lambda x: jnp.sum(x**2), lambda p, t: (f(*p), jnp.sum((2.0 if float(p[0][0]) > 0 else 3.0) * p[0] * t[0]))
    )
    return f(x) ** 2


@program(jits=False)
def numpy_in_the_backward_function(x):
    f = with_vjp(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, g: (jnp.asarray(np.asarray(g) * np.cos(np.asarray(x))),))
    return (f(x) * 3).sum()


@program(jits=False)
def if_in_the_backward_function(x):
    f = with_vjp(jnp.sin, lambda x: (jnp.sin(x), x), lambda x, g: (g * 2.0 if g.sum() > 0 else -g,))
    return (f(x) * 3).sum()


@program(jits=False)
def if_in_the_forward_function(x):
    f = with_vjp(jnp.sin, lambda x: (jnp.sin(x), x if x[0] > 0 else -x), lambda x, g: (g * x,))
    return (f(x) * 3).sum()


@program(jits=False)
def if_in_a_rule_of_a_rule(x):
    inner = with_vjp(jnp.sin, lambda x: (inner(x), x), lambda x, g: (g * 2.0 if g.sum() > 0 else -g,))
    f = with_jvp(lambda x: inner(x) * 2, lambda p, t: (f(*p), t[0] * inner(p[0])))
    return (f(x) * inner(x)).sum()


python_only = Primitive("python_only")
python_only.def_impl(jnp.sin)
python_only.def_abstract_eval(lambda aval: aval)


@program(jits=False)
def a_primitive_of_python_under_checkpoint(x):
    f = with_vjp(python_only.bind, lambda x: (python_only.bind(x), x), lambda x, g: (g * python_only.bind(x),))
    return jax.checkpoint(lambda x: f(f(x) * x))(x).sum()


# ---- other transformations ------------------------------------------------------------------------------------------


@program
def linearize(x):
    y, tangent = jax.linearize(lambda x: jnp.sin(x) * x, x)
    return (y + tangent(x * 2)).sum()


@program
def linear_transpose(x):
    return jax.linear_transpose(lambda x: x * MASK, x)(x * x)[0].sum()


@program
def linear_call(x):
    return jax.custom_derivatives.linear_call(
        lambda r, x: x * r, lambda r, ct: ct * r, jnp.array([2.0, 1.0, 3.0]), x
    ).sum()


@program
def vjp(x):
    y, pull = jax.vjp(lambda x: jnp.sin(x) * x, x)
    return (pull(y)[0] * x).sum()


@program
def float0_cotangents(x):
    _, pull = jax.vjp(lambda i, x: x * i, jnp.arange(3), x)
    return pull(x)[1].sum()


@program
def jvp_of_a_gradient(x):
    return jax.jvp(jax.grad(lambda x: (jnp.sin(x) ** 2).sum()), (x,), (x,))[1].sum()


@program
def remat_by_policy(x):
    policy = jax.checkpoint_policies.save_only_these_names("a")
    return jax.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.cos(x), "a")).sum(), policy=policy)(x)


@program
def remat_with_a_static_argument(x):
    return jax.checkpoint(lambda x, n: (x**n).sum(), static_argnums=1)(x, 2)


@program
def debugging(x):
    with jax.named_scope("scope"):
        jax.debug.callback(lambda value: None, x)
        return jnp.sin(x).sum()


@program
def checked(x):
    def f(x):
        checkify.check(x.sum() < 100, "too large")
        return jnp.sin(x).sum()

    return checkify.checkify(jax.jit(f), errors=checkify.user_checks)(x)[1]


@program
def custom_root(x):
    def newton(f, y):
        return lax.fori_loop(0, 20, lambda i, y: y - f(y) / (2 * y), y)

    return lax.custom_root(lambda y: y * y - (x[0] + 3), 1.5, newton, lambda g, y: y / g(1.0))


@program
def linear_solve_of_a_jitted_function(x):
    a = jnp.eye(3) * 3 + jnp.outer(x, x)
    return lax.custom_linear_solve(jax.jit(lambda v: a @ v), x, lambda _, b: jnp.linalg.solve(a, b), symmetric=True)[0]


@program
def linear_solve_with_more_results(x):
    a = jax.jit(lambda v: (jnp.eye(3) * 3 + jnp.outer(x, x)) @ v)

    def solve(matvec, b):
        return lax.fori_loop(0, 40, lambda i, y: y + 0.1 * (b - matvec(y)), jnp.zeros(3)), b.sum()

    return lax.custom_linear_solve(a, x, solve, solve, has_aux=True)[0].sum()


@program
def associative_scan(x):
    return lax.associative_scan(operator.mul, x).sum()


@program
def mapped(x):
    return lax.map(lambda r: r * jnp.sin(r) * x, x).sum()


@program
def scan_of_a_closure(x):
    f = jax.jit(lambda c: c * (x * 2))
    return lax.scan(lambda c, _: (f(c), c.sum()), x, None, length=3)[0].sum()


@program
def checkpoint_of_a_closure(x):
    w = x * 2
    f = jax.jit(lambda c: jnp.sin(c * w))
    return jax.checkpoint(f)(x).sum() + jax.checkpoint(lambda c: f(c * w))(x).sum()


@program
def shard_map_over_constants(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    f = jax.shard_map(lambda x: x * jnp.array([1.0, 2.0, 3.0]) * MASK, mesh=mesh, in_specs=P(), out_specs=P())
    return f(x).sum()


@program
def shard_map_of_a_jitted_closure(x):
    mesh, total = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,)), jnp.sum(x**2)
    inner = jax.jit(lambda row: jnp.sin(row * total))
    f = jax.shard_map(lambda x: inner(x) * lax.psum(inner(x), "i"), mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    return f(x).sum() + jax.jit(f)(x * 2).sum()


@program
def shardings_of_a_closure(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, w = jax.NamedSharding(mesh, P("i")), x * 2
    inner = jax.jit(lambda x: x * w, in_shardings=rows, out_shardings=rows)
    return inner(x).sum() + jax.jit(lambda x: inner(x) * w)(x).sum()


@program
def reference_in_jit(x):
    def f(x):
        ref = jax.new_ref(x)
        ref[...] = ref[...] * 2
        return ref[...].sum()

    return jax.jit(f)(x)


@program
def exported(x):
    shape = jax.ShapeDtypeStruct((3,), X.dtype)
    return jax.export.export(jax.jit(lambda x: jnp.sin(x) * x))(shape).call(x).sum()


# ---- values and settings --------------------------------------------------------------------------------------------


@program
def keys(x):
    first, second = jax.random.split(jax.random.key(0))
    drawn = jax.jit(lambda k, x: (x * jax.random.uniform(k, (3,))).sum())(second, x)
    return (x * jax.random.normal(first, (3,))).sum() + drawn


@program(jits=False)
def keys_compared(x):
    first, second = jax.random.split(jax.random.key(0))
    answers = [first == second, first != second, jax.jit(operator.eq)(first, first)]
    assert [(answer.shape, answer.tolist()) for answer in answers] == [((), False), ((), True), ((), True)]
    return jnp.where(first == second, x, 2 * x).sum()


@program
def keys_of_another_shape(x):
    key = jnp.squeeze(jax.random.key(3)).reshape(1).squeeze().T
    return (x * jax.random.uniform(key, (3,))).sum()


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Scaled:
    array: jax.Array
    factor: int = dataclasses.field(metadata={"static": True})


@program
def static_leaves(x):
    scaled = jax.jit(lambda s: Scaled(s.array * s.factor, s.factor + 1))(Scaled(x, 2))
    return (scaled.array * scaled.factor).sum() + jax.jit(lambda x, n: x**n, static_argnums=1)(x, 3).sum()


@program
def integers_and_booleans(x):
    f = jax.jit(lambda x, i, b: (jnp.where(b, x * i, x), i + 1, ~b))
    y, i, b = f(x, jnp.arange(3), x > 0)
    return (y * i * b).sum()


@program
def empty_arrays(x):
    return jnp.concatenate([x[:0], x, jnp.zeros(0)]).sum() + jax.jit(lambda x: jnp.sin(x[:0]).sum())(x)


@program
def copies(x):
    new = copy.copy(x) * 2 + copy.deepcopy(x) * 3 + x.copy() * 4 + jnp.array(x) * 5 + jnp.array([x, x]).sum(0)
    return new.sum()


@program
def moved(x):
    here = jax.devices()[0]
    return (jax.device_put(x) * 2 + jax.device_put(x, here) * 3 + jax.device_put({"a": x * x})["a"]).sum()


@program
def waited_for(x):
    return jax.block_until_ready(x * 2).sum()


@program
def taken_apart(x):
    a, b, c = x
    return a * b + sum(x) * c + jnp.stack(list(x)).prod()


@program
def converted(x):
    return x.astype(jnp.bfloat16).astype("float32").sum() + x.astype("complex64").real.sum()


@program(jits=False)
def without_jit(x):
    with jax.disable_jit():
        return jax.jit(lambda x: jnp.sin(x) * x)(x).sum()


@program(jits=False)
def in_64_bits(x):
    with jax.enable_x64(True):
        return (jnp.sin(x.astype("float64")) * np.float64(2)).sum()


@program
def settings(x):
    with jax.default_matmul_precision("highest"), jax.numpy_rank_promotion("raise"), jax.checking_leaks():
        y = x @ x + jax.jit(lambda y: jnp.cos(y))(x).sum()
    with jax.debug_nans(True), jax.default_device(jax.devices()[0]):
        return y + jnp.sin(x).sum()


# ---- all of them ----------------------------------------------------------------------------------------------------


def by_tape(function, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y, tape.gradient(y, x)


def assert_same(found, expected):
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5, atol=1e-5), found, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_without_a_tape(name):
    function, _ = PROGRAMS[name]
    assert_same(by_tape(function)[0], function(X))
    expected = jax.value_and_grad(function)(X)
    trace = current_trace()
    for _ in range(2):  # the second time it may be recognised
        assert_same(by_tape(function), expected)
    assert current_trace() is trace


def long(name):
    return pytest.param(name, marks=pytest.mark.slow) if name == "an_ode" else name


@pytest.mark.parametrize("name", [long(name) for name, (_, jits) in PROGRAMS.items() if jits])
def test_as_without_a_tape_in_jit(name):
    function, _ = PROGRAMS[name]
    expected = jax.value_and_grad(jax.jit(function))(X)
    assert_same(by_tape(jax.jit(function)), expected)
    assert_same(jax.jit(lambda x: by_tape(function, x))(X), expected)


SECOND = [
    "jvp_over_numpy",
    "vjp_over_an_array",
    "rules_in_rules",
    "an_ode",
    "closure_convert",
    "vjp_over_a_batched_value",
    "numpy_in_the_backward_function",
    "if_in_a_rule_of_a_rule",
    "linear_solve_of_a_jitted_function",
]


@pytest.mark.parametrize("name", [long(name) for name in SECOND])
def test_second_derivative(name):
    """As far as `jax.grad` gives one."""
    function, _ = PROGRAMS[name]

    def first(x):
        return by_tape(function, x)[1].sum()

    try:
        expected = jax.grad(lambda x: jax.grad(function)(x).sum())(X)
    except Exception as error:
        with pytest.raises(type(error)):
            by_tape(first)
    else:
        found = by_tape(first)[1]
        assert_same(jnp.zeros(3) if found is None else found, expected)


# ---- what is returned unchanged -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [jax.jit, jax.checkpoint])
def test_outputs_are_values_of_their_own(transform):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        u, v = transform(lambda x: (x, x))(X)
        y = jnp.sum(3 * u + 5 * v)
    for source, expected in ((u, 3.0), (v, 5.0), (X, 8.0)):
        np.testing.assert_allclose(tape.gradient(y, source), expected)


def test_donating_one_output_leaves_the_others():
    call = jax.jit(lambda p: (p, p, p.sum()))
    with tf.GradientTape():
        parameters, average, _ = call(X * 1)
    jax.jit(lambda p: p * 2, donate_argnums=0)(parameters)
    assert parameters.is_deleted() and not average.is_deleted()


def test_shardings_and_donation_are_kept():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, w = jax.NamedSharding(mesh, P("i")), X * 2
    for function in (lambda x: (x, x * 2), lambda x: (x, x * w)):
        call, given = jax.jit(function, out_shardings=rows, donate_argnums=0), X * 1
        with tf.GradientTape():
            outputs = call(given)
        assert [y.sharding for y in outputs] == [rows, rows] and given.is_deleted()


# ---- what JAX does not differentiate --------------------------------------------------------------------------------


def test_compiled_ahead_of_time():
    """It runs as without a tape, and raises where gradient would have to pass: JAX cannot transform it either."""
    compiled = jax.jit(lambda x, w: {"y": jnp.sin(x) * w}).lower(X, X).compile()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        constant = compiled(ARRAY, ARRAY)["y"]
        y = X * constant
        z = y * compiled(y, ARRAY)["y"]
    assert_same(z, y * jnp.sin(y) * ARRAY)
    assert_same(tape.gradient(y, X), constant)
    with pytest.raises(TypeError, match="ahead of time"):
        tape.gradient(z, X)
    with pytest.raises(TypeError, match="ahead of time"):
        tape.jacobian(z, X)
    with pytest.raises(TypeError):
        jax.grad(lambda x: compiled(x, x)["y"].sum())(X)
    assert "compiled" in str(tape.explain(z, X))


def closing_over_jvp(w):
    return with_jvp(lambda y: y * w, lambda p, t: (p[0] * w, t[0] * w))


def closing_over_vjp(w):
    return with_vjp(lambda y: y * w, lambda y: (y * w, None), lambda _, g: (g * w,))


def closing_over_jitted(w):
    return with_jvp(jax.jit(lambda y: y * w), lambda p, t: (p[0] * w, t[0] * w))


@pytest.mark.parametrize("make", [closing_over_jvp, closing_over_vjp, closing_over_jitted])
@pytest.mark.parametrize("jit", [False, True])
def test_rules_are_for_arguments(make, jit):
    """JAX raises where a function with a rule closes over a value that is differentiated. So does a tape, but for that value."""

    def function(x, w):
        f = make(w)
        return (jax.jit(lambda y: f(y)) if jit else f)(x).sum()

    with pytest.raises(Exception):  # noqa: B017  # one of several
        jax.grad(function, 1)(X, ARRAY)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([X, ARRAY])
        y = function(X, ARRAY * 1)
    assert_same(tape.gradient(y, X), ARRAY)
    with pytest.raises(LookupError, match="closes over"):
        tape.gradient(y, ARRAY)


@pytest.mark.parametrize("make", [closing_over_jvp, closing_over_vjp])
def test_a_rule_whose_function_reads_a_variable(make):
    """As with an array that it closes over: no gradient, and no `None`, which would say that there is no connection."""
    scale = tf.Variable(3.0)
    f = make(scale)

    for value in (3.0, 5.0):
        scale.assign(value)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            y = f(X)
        assert_same(y, X * value)
        assert_same(tape.gradient(y, X), jnp.full(3, value))
        with pytest.raises(LookupError, match="closes over"):
            tape.gradient(y, scale)

    @jax.jit
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    with pytest.raises(RuntimeError, match="baked"):
        step(X)


def sine_by_jvp(scale):
    return with_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0] * jnp.cos(*p) * scale))


def sine_by_forward(scale):
    return with_vjp(jnp.sin, lambda x: (jnp.sin(x), jnp.cos(x) * scale), lambda r, g: (g * r,))


def sine_by_backward(scale):
    return with_vjp(jnp.sin, lambda x: (jnp.sin(x), x), lambda r, g: (g * jnp.cos(r) * scale,))


def in_a_tape(transform, f, scale):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = transform(f)(X)
    return tape.gradient(y, X)


def in_an_accumulator(transform, f, scale):
    with tf.autodiff.ForwardAccumulator(X, jnp.ones(3)) as accumulator:
        y = transform(f)(X)
    return accumulator.jvp(y)


@pytest.mark.parametrize(
    "transform", [lambda f: f, jax.vmap, jax.jit, jax.checkpoint], ids=["", "vmap", "jit", "checkpoint"]
)
@pytest.mark.parametrize("derivative", [in_a_tape, in_an_accumulator])
@pytest.mark.parametrize("make", [sine_by_jvp, sine_by_forward, sine_by_backward])
def test_what_a_rule_alone_closes_over(make, derivative, transform):
    """A derivative depends on it, so that a second one reaches it: it was None."""
    for scale in map(jnp.array, (3.0, 5.0, 3.0)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([X, scale])
            slope = derivative(transform, make(scale), scale)
        assert_same(slope, jnp.cos(X) * scale)
        assert_same(tape.gradient(slope, [X, scale]), [-jnp.sin(X) * scale, jnp.sum(jnp.cos(X))])
        assert_same(tape.jacobian(slope, scale), jnp.cos(X))
        with tf.autodiff.ForwardAccumulator(scale, jnp.array(2.0)) as accumulator:
            slope = derivative(transform, make(scale), scale)
        assert_same(accumulator.jvp(slope), 2 * jnp.cos(X))


@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap], ids=["", "vmap"])
@pytest.mark.parametrize("derivative", [in_a_tape, in_an_accumulator])
@pytest.mark.parametrize("make", [sine_by_jvp, sine_by_forward, sine_by_backward])
def test_a_variable_that_a_rule_alone_reads(make, derivative, transform):
    """Derivatives are taken here and now, also where that traces the rule; of a variable in a jitted function they are not."""
    scale = tf.Variable(3.0)
    f = make(scale)
    for value in (3.0, 5.0, 3.0):
        scale.assign(value)
        with tf.GradientTape() as tape:
            slope = derivative(transform, f, scale)
        assert_same(slope, jnp.cos(X) * value)
        assert_same(tape.gradient(slope, scale)._array, jnp.sum(jnp.cos(X)))
    inner = jax.jit(
        with_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0] * jnp.cos(*p) * scale))
    )  # JAX keeps what it traces of it
    for value in (3.0, 5.0):
        scale.assign(value)
        assert_same(
            derivative(lambda f: f, with_jvp(inner, lambda p, t: jax.jvp(inner, p, t)), scale), jnp.cos(X) * value
        )
        with pytest.raises(RuntimeError, match="baked"):
            derivative(transform, inner, scale)


@pytest.mark.parametrize("make", [with_jvp, with_vjp])
def test_what_a_function_that_looks_at_values_closes_over(make):
    """Its rule is for its arguments. As where the function can be traced: it was None."""

    def scaled(factor, looks):
        rules = {
            with_jvp: [lambda p, t: (jnp.sin(*p) * factor, t[0] * jnp.cos(*p) * factor)],
            with_vjp: [lambda x: (jnp.sin(x) * factor, x), lambda r, g: (g * jnp.cos(r) * factor,)],
        }
        return make(lambda x: jnp.sin(x) * factor if not looks or x > 0 else jnp.zeros(()), *rules[make])

    for factor in (jnp.array(3.0), tf.Variable(3.0)):
        for looks in (False, True):
            x = jnp.array(1.0)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x] if isinstance(factor, tf.Variable) else [x, factor])
                y = scaled(factor, looks)(x)
                z = y + factor
            assert_same(y, jnp.sin(x) * 3.0)
            assert_same(tape.gradient(y, x), jnp.cos(x) * 3.0)
            assert_same(tape.jacobian(y, x), jnp.cos(x) * 3.0)
            for target in (y, z):
                with pytest.raises(LookupError, match="closes over"):
                    tape.gradient(target, factor)


def test_a_variable_that_is_read_in_shard_map():
    scale, doubled = tf.Variable(3.0), tf.function(lambda x: x * scale * 2.0)
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))

    def body(x):
        return jnp.sin(x * scale.value()._array) + doubled(x)

    spread = jax.shard_map(body, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for value in (3.0, 5.0):
        scale.assign(value)
        with tf.GradientTape() as tape:
            y = spread(X)
        found = tape.gradient(y, scale)
        assert_same(found._array, jnp.sum(X * jnp.cos(X * value) + 2 * X))


def by_custom_vmap(x):
    f = jax.custom_batching.custom_vmap(lambda x: x * 2)
    f.def_vmap(lambda size, batched, x: (x * 2, batched[0]))
    return (f(x) * jax.vmap(f)(x)).sum()


def by_sequential_vmap(x):
    f = jax.custom_batching.sequential_vmap(jnp.sin)
    return jax.vmap(f)(x).sum() + f(x).sum()


def by_while_loop(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1].sum()


def by_callback(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), x.dtype), x).sum()


def by_primitive(x):
    return python_only.bind(x).sum()


@pytest.mark.parametrize("function", [by_custom_vmap, by_sequential_vmap, by_while_loop, by_callback, by_primitive])
def test_without_a_gradient(function):
    """It runs forward, and raises where its gradient is asked for, as `jax.grad` does."""
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = function(X)
    assert_same(y, function(X))
    with pytest.raises((ValueError, NotImplementedError)):
        jax.grad(function)(X)
    with pytest.raises(LookupError):
        tape.gradient(y, X)


def test_an_error_in_a_rule_is_the_users():
    """A rule that fails does so where it is needed: not when the function is called, and as it came."""

    def fail(x, g):
        raise KeyError("mine")

    f = with_vjp(jnp.sin, lambda x: (jnp.sin(x), x), fail)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    with pytest.raises(KeyError, match="mine"):
        tape.gradient(y, X)

    def body(x):
        raise KeyError("body")

    with tf.GradientTape(), pytest.raises(KeyError, match="body"):
        with_vjp(body, body, body)(X)


# ---- meshes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
def test_a_mesh_set_inside(kind):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(getattr(jax.sharding.AxisType, kind),))

    def program(x):
        with jax.set_mesh(mesh):
            assert jax.sharding.get_mesh() == mesh
            x = jax.device_put(x, P("i"))
            return jax.jit(lambda x: jnp.sin(x) * 2)(x).sum()

    value, gradient = by_tape(program)
    assert_same((value, gradient), (program(X), 2 * jnp.cos(X)))

    with pytest.raises(ValueError, match="outside"), tf.GradientTape():
        jax.jit(program)(X)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_program_that_asks_the_host_is_not_run_again_for_its_gradient(ordered):
    asked = []

    def ask():
        asked.append(1)
        return np.float32(len(asked))

    x = jnp.float32(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax.jit(lambda x: x**2 * io_callback(ask, jax.ShapeDtypeStruct((), np.float32), ordered=ordered))(x)
        gradient = tape.gradient(y, x)
    assert float(y) == 9.0 and float(gradient) == 6.0
    with pytest.raises(LookupError, match="asks Python for something as it runs"):
        outer.gradient(gradient, x)
    assert asked == [1]


def test_a_program_that_asks_the_host_and_closes_over_what_is_watched():
    x, scale = jnp.arange(3.0), jnp.array([2.0, 3.0, 4.0])

    def f(x):
        asked = io_callback(lambda v: np.float32(5.0), jax.ShapeDtypeStruct((), np.float32), lax.stop_gradient(x))
        return jnp.sum(x * scale) * asked, jnp.argmax(x)

    with tf.GradientTape() as tape:
        tape.watch([x, scale])
        y, _ = jax.jit(f)(x)
    assert_same(tape.gradient(y, [x, scale]), [5 * scale, 5 * x])


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, jax.vmap, tf.function])
def test_a_custom_gradient_of_what_jax_cannot_differentiate(transform):
    """The rule stands for the loop: the loop's own derivative, which JAX does not have, is not asked for."""

    @tf.custom_gradient
    def doubled(x):
        return lax.while_loop(lambda y: jnp.sum(y) < 10, lambda y: y * 2, x), lambda dy: dy * 3

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = doubled(x) ** 2
        return tape.gradient(y, x)

    found = transform(gradient)(jnp.array([[2.0, 1.0]]))
    np.testing.assert_array_equal(found, [[48.0, 24.0]])


@pytest.mark.parametrize("kind", ["jit", "vmap"])
def test_which_transformations_jax_finds_around(kind):
    """Those that there are without a tape, wherever the tape was begun."""
    asked = getattr(public, f"unsafe_am_i_under_a_{kind}_DO_NOT_USE")
    under = {"jit": jax.jit, "vmap": jax.vmap}[kind]
    seen = []

    def ask(x):
        with tf.GradientTape():
            seen.append(asked())
        return x

    ask(X)
    under(ask)(X)
    with tf.GradientTape():
        under(lambda x: ask(x))(X)
    assert seen == [False, True, True]


def test_a_stateful_generator_without_a_seed():
    """It gets one where values are known; in a program under construction it has to be given one."""
    drawn = []
    with tf.GradientTape() as tape:
        x = jnp.copy(X)
        tape.watch(x)
        drawn += [stateful_rng().normal(size=3) for _ in range(2)]
        y = x * drawn[0] * drawn[1]
        with pytest.raises(TypeError, match="seed"):
            jax.jit(lambda: stateful_rng().normal())()
    assert not jnp.array_equal(*drawn)
    assert jnp.array_equal(tape.gradient(y, x), drawn[0] * drawn[1])
