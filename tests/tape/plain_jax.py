"""A table of plain JAX programs: every construct that a tape must be able to record, none of which knows of tapes.

`CASES` maps a name to a `Case`: a function, the shapes of its arguments (drawn from [0.5, 1.5]) and what is special about
it. The function returns an array or a pytree of arrays; its gradient is that of the sum of all their elements.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import io_callback


class Case(NamedTuple):
    """One program. `shapes` may be a pytree of shapes (as lists) and NumPy arrays, per argument."""

    name: str
    function: Callable
    shapes: tuple[Any, ...]
    staged: bool = True  # may it run under jax.jit? Not where Python looks at values
    twice: bool = True  # may it be differentiated twice?
    tolerance: float = 1e-5

    def arguments(self) -> tuple[Any, ...]:
        """The arguments, always the same ones."""
        random = np.random.default_rng(0)

        def draw(shape: Any) -> Any:
            if isinstance(shape, np.ndarray):
                return jnp.asarray(shape)
            return jnp.asarray(random.uniform(0.5, 1.5, shape), FLOAT)

        return jax.tree.map(draw, self.shapes, is_leaf=lambda s: isinstance(s, list))


# The tests also run with 64-bit types on (`.ci/matrix x64`).
FLOAT = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32

CASES: dict[str, Case] = {}


def a_third(which, condition=lambda case: True):
    """Parametrizes a test by the cases: a third of them by default, all with ``-m ""``.

    For tests that look at the cases in a further way; `which` (0, 1 or 2) spreads the thirds over these tests.
    """
    chosen = [name for name, case in CASES.items() if condition(case)]
    marks = [[] if i % 3 == which else pytest.mark.slow for i in range(len(chosen))]
    params = [pytest.param(CASES[name], id=name, marks=mark) for name, mark in zip(chosen, marks)]
    return pytest.mark.parametrize("case", params)


def case(*shapes: Any, **special: Any) -> Callable:
    """Adds the decorated function to the table, once for these arguments."""

    def add(function: Callable) -> Callable:
        name = function.__name__.strip("_")
        assert name not in CASES, name
        CASES[name] = Case(name, function, shapes, **special)
        return function

    return add


def cases(*shapes: Any, **functions: Callable) -> None:
    """Adds one-liners that take arguments of the same shapes."""
    for name, function in functions.items():
        assert name not in CASES, name
        CASES[name] = Case(name, function, shapes)


def special(name: str, **fields: Any) -> None:
    CASES[name] = CASES[name]._replace(**fields)


S: list[int] = []  # a scalar's shape

# ---- jnp ------------------------------------------------------------------------------------------------------------

cases(
    [3],
    identity=lambda x: x,
    copy=lambda x: +x,
    as_array=lambda x: jnp.asarray(x),
    python_operators=lambda x: (2 * x**3 - x / 3 + (1 - x)) @ x,
    compare_and_pick=lambda x: x * (x > 1.0),
    where_nan_branch=lambda x: jnp.where(x > 5.0, jnp.sqrt(x - 5.0), x),
    where_safe=lambda x: jnp.where(x > 1.0, jnp.log(jnp.where(x > 1.0, x, 1.0)), -x),
    maximum_of_equals=lambda x: jnp.maximum(x, x[::-1]),
    clip=lambda x: jnp.clip(x, 0.8, 1.2),
    cumsum=jnp.cumsum,
    cumprod=jnp.cumprod,
    sort=lambda x: jnp.sort(x) * jnp.arange(3.0),
    argsort_and_take=lambda x: x[jnp.argsort(-x)] * jnp.arange(3.0),
    median=jnp.median,
    prod=jnp.prod,
    std=jnp.std,
    norm=jnp.linalg.norm,
    polyval=lambda x: jnp.polyval(x, x),
    interp=lambda x: jnp.interp(x, jnp.arange(4.0), jnp.arange(4.0) ** 2),
    pad=lambda x: jnp.pad(x, (1, 2), mode="reflect"),
    roll=lambda x: jnp.roll(x, 1) * x,
    integer_powers=lambda x: x ** jnp.arange(3),
    floor=jnp.floor,
    stop_gradient=lambda x: lax.stop_gradient(x) * x,
    through_integers=lambda x: x * x.astype(jnp.int32),
    index_by_integers=lambda x: x[jnp.array([2, 0, 0])] * x,
    index_by_mask=lambda x: jnp.sum(x, where=x > 1.0),
    numpy_detour=lambda x: x * np.asarray([1.0, 2.0, 3.0], FLOAT),
    in_place_set=lambda x: x.at[1].set(x[0] * 3.0),
    in_place_add=lambda x: x.at[jnp.array([0, 0, 2])].add(x),
    in_place_multiply=lambda x: x.at[0].multiply(x[1]),
    in_place_max=lambda x: x.at[0].max(x[1]),
    out_of_bounds=lambda x: x.at[jnp.array([1, 7])].get(mode="fill", fill_value=0.0),
    many_outputs=lambda x: (x, x * 2, {"a": jnp.sin(x), "b": [x.sum(), jnp.zeros(2)]}),
    repeated_output=lambda x: [x, x],
    split=lambda x: jnp.split(jnp.tile(x, 2), 2)[1] * x,
    unpack=lambda x: (lambda a, b, c: a * b - c)(*x),
    loop_in_python=lambda x: functools.reduce(lambda a, b: a * b, [x + i for i in range(4)]),
    zero_size=lambda x: jnp.concatenate([x[:0], x]).sum() + x[:0].sum(),
    half=lambda x: (x.astype(jnp.float16) ** 2).astype(FLOAT),
    brain=lambda x: jnp.tanh(x.astype(jnp.bfloat16)),
    complex_product=lambda x: jnp.abs((x + 1j * x[::-1]) * jnp.exp(1j * x)),
    complex_parts=lambda x: jnp.real(lax.complex(x, 2 * x) ** 2) + jnp.angle(lax.complex(x, x * x)),
    fft=lambda x: jnp.abs(jnp.fft.fft(x * jnp.arange(1.0, 4.0))),
    rfft_back=lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * 2.0, 3),
    debug_print=lambda x: [jax.debug.print("{}", x, ordered=False), x * 2][1],
    named_scope=lambda x: jax.named_scope("scope")(jnp.sin)(x),
    named_call=lambda x: jax.named_call(jnp.sin, name="named")(x),
    special_functions=lambda x: jax.scipy.special.gammaln(x) + jax.scipy.special.erf(x),
    optimization_barrier=lambda x: lax.optimization_barrier(x * 2) * x,
    weak_type=lambda x: jnp.sum(x * jnp.asarray(2.0)) * 3,
    array_methods=lambda x: x.reshape(3, 1).T.ravel().mean().astype(FLOAT) * x.max(),
    piecewise=lambda x: jnp.piecewise(x, [x < 1.0], [jnp.sin, jnp.cos]),
    select=lambda x: jnp.select([x < 0.8, x < 1.2], [x, x**2], x**3),
    vectorize=lambda x: jnp.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, x),
    apply_along_axis=lambda x: jnp.apply_along_axis(jnp.cumsum, 0, x),
    eager_constant=lambda x: x * _at_compile_time(),
)
special("half", tolerance=1e-3)
special("brain", tolerance=3e-2)


def _at_compile_time():
    with jax.ensure_compile_time_eval():
        return jnp.sum(jnp.arange(3.0))


cases(
    S,
    scalar_chain=lambda x: jnp.sin(x) * x + jnp.exp(-x),
    python_scalars=lambda x: 2.0 * x + 1 - x / 3,
    power=lambda x: x**x,
    broadcast=lambda x: x * jnp.ones((2, 3)),
)
cases(
    [3, 3],
    [3, 3],
    matmul=lambda a, b: a @ b,
    einsum=lambda a, b: jnp.einsum("ij,kj->ik", a, b),
    tensordot=lambda a, b: jnp.tensordot(a, b, 2),
    outer=lambda a, b: jnp.outer(a, b) * 0.1,
    kron=jnp.kron,
    stack=lambda a, b: jnp.stack([a, b]) ** 2,
    concatenate=lambda a, b: jnp.concatenate([a, 2 * b], 1) ** 2,
    solve=lambda a, b: jnp.linalg.solve(a + 3 * jnp.eye(3), b),
    inverse=lambda a, b: jnp.linalg.inv(a + 3 * jnp.eye(3)) @ b,
    determinant=lambda a, b: jnp.linalg.det(a) + jnp.linalg.slogdet(b + 3 * jnp.eye(3))[1],
    cholesky=lambda a, b: jnp.linalg.cholesky(a @ a.T + jnp.eye(3)) @ b,
    triangular_solve=lambda a, b: jax.scipy.linalg.solve_triangular(jnp.tril(a), b, lower=True),
    eigh=lambda a, b: jnp.linalg.eigh(a + a.T)[0] * b,
    eigenvectors=lambda a, b: jnp.abs(jnp.linalg.eigh(a + a.T + jnp.diag(jnp.arange(3.0)))[1]) @ b,
    singular_values=lambda a, b: jnp.linalg.svd(a, compute_uv=False) @ b,
    qr=lambda a, b: jnp.abs(jnp.linalg.qr(a)[1]) @ b,
    expm=lambda a, b: jax.scipy.linalg.expm(a * 0.1) @ b,
    unused_argument=lambda a, b: a * 2,
    tree_arithmetic=lambda a, b: jax.tree.map(jnp.multiply, {"x": a, "y": [b]}, {"x": b, "y": [a]}),
)
special("eigenvectors", tolerance=1e-3)
special("singular_values", tolerance=1e-3)
special("eigh", tolerance=1e-3)
special("qr", tolerance=1e-3)


@case({"w": [3, 4], "b": [4]}, [2, 3])
def _pytree_arguments(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


@case([0, 3], [3])
def _empty_arrays(x, y):
    return x @ y, y


@case([4], np.array([2, 0, 1], np.int32))
def _integer_argument(x, i):
    return x[i] * i


# ---- jax.nn ---------------------------------------------------------------------------------------------------------

cases(
    [3, 4],
    relu=lambda x: jax.nn.relu(x - 1.0),
    relu6=lambda x: jax.nn.relu6(7 * x - 1.0),
    gelu=jax.nn.gelu,
    selu=lambda x: jax.nn.selu(x - 1.0),
    softplus=jax.nn.softplus,
    silu=jax.nn.silu,
    sigmoid=jax.nn.sigmoid,
    softmax=lambda x: jax.nn.softmax(x) * jnp.arange(4.0),
    log_softmax=lambda x: jax.nn.log_softmax(x) * jnp.arange(4.0),
    logsumexp=lambda x: jax.nn.logsumexp(x, axis=1),
    one_hot=lambda x: jax.nn.one_hot(jnp.argmax(x, 1), 4) * x,
    standardize=lambda x: jax.nn.standardize(x) * jnp.arange(4.0),
    attention=lambda x: jax.nn.dot_product_attention(*[x[:, None]] * 3, is_causal=True),
    glu=jax.nn.glu,
    top_k=lambda x: lax.top_k(x, 2)[0] * jnp.arange(2.0),
    sort_with_key=lambda x: lax.sort([x, x * 2], dimension=1, num_keys=1)[1] * jnp.arange(4.0),
    dynamic_slice=lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0]) // 2, 1), (2, 2)),
    dynamic_update=lambda x: lax.dynamic_update_slice(x, x[:2, :2] ** 2, (1, 1)),
    gather_rows=lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1) * jnp.arange(4.0),
    scatter_rows=lambda x: jnp.zeros((5, 4)).at[jnp.array([1, 1, 3])].add(x) ** 2,
    segment_sum=lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0]), 2) ** 2,
    reduce_window=lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
    associative_scan=lambda x: lax.associative_scan(jnp.multiply, x),
    reduce=lambda x: lax.reduce(x, 0.0, lax.add, (1,)),
    lax_primitives=lambda x: lax.mul(lax.rsqrt(x), lax.expand_dims(lax.integer_pow(x[:, 0], 3), (1,))),
    map=lambda x: lax.map(lambda row: jnp.sin(row) * row.sum(), x),
    map_batched=lambda x: lax.map(lambda row: jnp.sin(row) * row.sum(), x, batch_size=2),
)


@case([1, 6, 6, 2], [3, 3, 2, 4])
def _convolution(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2


@case([1, 4, 4, 1])
def _resize(x):
    return jax.image.resize(x, (1, 8, 8, 1), "bilinear") ** 2


# ---- control flow ---------------------------------------------------------------------------------------------------


@case([5, 3], [3])
def _scan(xs, w):
    def step(carry, x):
        carry = jnp.tanh(carry * w + x)  # closes over w
        return carry, carry.sum()

    return lax.scan(step, jnp.zeros(3), xs)


@case([5, 3], [3])
def _scan_of_trees(xs, w):
    def step(carry, x):
        state = {"h": jnp.tanh(carry["h"] + x["a"]), "n": carry["n"] + 1}
        return state, (state["h"] * x["b"],)

    return lax.scan(step, {"h": w, "n": 0}, {"a": xs, "b": 2 * xs})[0]["h"], w


@case([5, 3], [3])
def _scan_in_reverse(xs, w):
    return lax.scan(lambda c, x: (c * x, c + x), w, xs, reverse=True, unroll=2)


@case([3])
def _scan_without_xs(w):
    return lax.scan(lambda c, _: (jnp.sin(c) * w, None), w, None, length=4)[0]


@case([4, 3], [3])
def _scan_in_scan(xs, w):
    def row(carry, x):
        def element(c, e):
            return c * e + w.sum() * 0.1, c

        inner, _ = lax.scan(element, carry, x)
        return inner, inner

    return lax.scan(row, 1.0, xs)


@case([3])
def _scan_carrying_what_it_was_given(w):
    # one carry comes out as it went in, another output is the carry itself
    return lax.scan(lambda c, _: ((c[0], c[1] * c[0]), c[0]), (w, w), None, length=3)


@case([3], [3])
def _cond_true(x, y):
    return lax.cond(x.sum() > 0, lambda: x * y, lambda: y)


@case([3], [3])
def _cond_false(x, y):
    return lax.cond(x.sum() < 0, lambda a: a * y, lambda a: jnp.sin(a) * 2, x)


@case([3], [3])
def _cond_in_scan(x, y):
    def step(c, e):
        return lax.cond(e > 1.0, lambda: c * y, lambda: c + x), e

    return lax.scan(step, x, y)


@case([3])
def _switch(x):
    return lax.switch(jnp.int32(1), [jnp.sin, lambda v: v**3, lambda v: v * 0], x)


@case([3])
def _select_n(x):
    return lax.select_n(x > 1.0, x, x**2)


@case([3], [3])
def _fori_loop(x, w):
    return lax.fori_loop(0, 4, lambda i, c: c * w + i, x)


@case([3])
def _while_loop_beside_the_gradient(x):
    # forward only: the loop counts, on what carries no gradient
    n = lax.while_loop(lambda n: n < 3, lambda n: n + 1, 0)
    return x * n


@case([3], twice=False)
def _while_loop_cut_off(x):
    doubled = lax.while_loop(lambda c: c.sum() < 100.0, lambda c: 2 * c, lax.stop_gradient(x))
    return x * doubled


@case([3])
def _custom_root(x):
    def solve(f, start):
        return lax.fori_loop(0, 20, lambda _, y: y - f(y) / (2 * y), start)

    return lax.custom_root(lambda y: y**2 - x, x, solve, lambda g, y: y / g(jnp.ones_like(y)))


@case([3, 3], [3])
def _custom_linear_solve(a, b):
    matrix = a @ a.T + 3 * jnp.eye(3)

    def solve(matvec, b):
        return jnp.linalg.solve(matrix, b)

    return lax.custom_linear_solve(lambda v: matrix @ v, b, solve, symmetric=True)


@case([3, 3], [3])
def _conjugate_gradient(a, b):
    matrix = a @ a.T + 3 * jnp.eye(3)
    return jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, maxiter=20)[0]


special("conjugate_gradient", tolerance=1e-3)


@case([3])
def _python_if(x):
    return jnp.sin(x) if x.sum() > 0 else x


special("python_if", staged=False)

# ---- jit ------------------------------------------------------------------------------------------------------------

_jitted = jax.jit(lambda x: jnp.sin(x) * x)
_jitted_identity = jax.jit(lambda x: x)
_jitted_twice = jax.jit(lambda x: _jitted(_jitted(x)))
_jitted_tree = jax.jit(lambda x: {"double": 2 * x, "same": x, "count": 3, "ints": jnp.arange(3)})


@functools.partial(jax.jit, static_argnames="power")
def _jitted_static(x, power):
    return x**power


@functools.partial(jax.jit, static_argnums=0)
def _jitted_static_function(f, x):
    return f(x) * 2


cases(
    [3],
    jit=_jitted,
    jit_identity=lambda x: _jitted_identity(x) * x,
    jit_nested=_jitted_twice,
    jit_tree=_jitted_tree,
    jit_static=lambda x: _jitted_static(x, power=3) + _jitted_static(x, 2),
    jit_static_function=lambda x: _jitted_static_function(jnp.sin, x),
    jit_inline=lambda x: jax.jit(lambda v: v * 2, inline=True)(x),
    jit_fresh_lambda=lambda x: jax.jit(lambda v: v * 2)(x),
    jit_of_jit_of_jit=lambda x: jax.jit(jax.jit(jax.jit(jnp.sin)))(x),
    jit_of_grad=lambda x: jax.jit(jax.grad(lambda v: jnp.sum(v**3)))(x),
    jit_closing_over=lambda x: jax.jit(lambda: x * 2)(),
    jit_closing_over_deep=lambda x: jax.jit(lambda: jax.jit(lambda: jax.jit(lambda: x * x)())() * 2)(),
    jit_closing_over_and_given=lambda x: jax.jit(lambda v: jax.jit(lambda w: w * x)(v) + x)(x),
    jit_in_scan_closing_over=lambda x: lax.scan(lambda c, _: (jax.jit(lambda: c * x)(), c), x, None, length=3),
    jit_of_scan_closing_over=lambda x: jax.jit(lambda: lax.scan(lambda c, e: (c * x, e * c), x, x))(),
    jit_of_cond_closing_over=lambda x: jax.jit(lambda p: lax.cond(p, lambda: x * x, lambda: x))(True),
    jit_of_loop_closing_over=lambda x: jax.jit(lambda: lax.fori_loop(0, 3, lambda i, c: c * x, x))(),
    jit_in_cond_closing_over=lambda x: lax.cond(x[0] > 0, lambda: jax.jit(lambda: x * x)(), lambda: x),
    jit_in_checkpoint_closing_over=lambda x: jax.checkpoint(lambda: jax.jit(lambda: jnp.sin(x) * x)())(),
    jit_of_checkpoint_closing_over=lambda x: jax.jit(lambda: jax.checkpoint(lambda: jnp.sin(x) * x)())(),
    jit_of_vmap_closing_over=lambda x: jax.jit(lambda: jax.vmap(lambda e: e * x)(x))(),
    jit_of_custom_jvp_closing_over=lambda x: jax.jit(lambda: jax.nn.relu(x - 1.0) * x)(),
    jit_in_scan_in_jit_closing_over=lambda x: jax.jit(
        lambda: lax.scan(lambda c, _: (jax.jit(lambda v: v * x)(c), None), x, None, length=2)[0]
    )(),
    jit_closing_over_numpy=lambda x: jax.jit(lambda v: v * np.arange(3.0, dtype=FLOAT))(x),
    jit_partial=lambda x: jax.jit(functools.partial(jnp.multiply, x))(x),
    jit_of_solve_closing_over=lambda x: jax.jit(lambda: jnp.linalg.solve(jnp.diag(x), x * x))(),
)


@case([3])
def _jit_closing_over_many(x):
    a, b = jnp.sin(x), jnp.cos(x)
    return jax.jit(lambda v: v * a + jax.jit(lambda: b * a)())(x)


@case([3])
def _jit_closing_over_in_while(x):
    limit = lax.stop_gradient(x)
    n = jax.jit(lambda: lax.while_loop(lambda n: n < limit.sum(), lambda n: n + limit[0], 0.0))()
    return x * n


# ---- transformations inside the block -------------------------------------------------------------------------------


def _cube(x):
    return jnp.sum(x**3)


cases(
    [3],
    vmap=lambda x: jax.vmap(jnp.sin)(x),
    vmap_closing_over=lambda x: jax.vmap(lambda e: e * x)(jnp.arange(3.0)),
    vmap_axes=lambda x: jax.vmap(lambda a, b: a * b, (1, None), 1)(jnp.outer(x, x), x),
    vmap_of_cond=lambda x: jax.vmap(lambda e: lax.cond(e > 1.0, jnp.sin, jnp.cos, e))(x),
    vmap_of_jit=jax.vmap(jax.jit(lambda e: e**2)),
    vmap_of_relu=lambda x: jax.vmap(jax.nn.relu)(x - 1.0),
    vmap_with_names=lambda x: jax.vmap(lambda e: e * lax.psum(e, "i"), axis_name="i")(x),
    grad=lambda x: jax.grad(_cube)(x),
    grad_closing_over=lambda x: jax.grad(lambda w: jnp.sum(w**2 * x))(x * 2),
    grad_of_grad=lambda x: jax.grad(lambda v: jax.grad(_cube)(v) @ v)(x),
    value_and_grad=lambda x: jax.value_and_grad(_cube)(x),
    grad_of_relu=lambda x: jax.grad(lambda v: jnp.sum(jax.nn.softplus(v) ** 2))(x),
    jvp=lambda x: jax.jvp(jnp.sin, (x,), (x**2,)),
    vjp=lambda x: jax.vjp(jnp.sin, x)[1](x**2),
    vjp_kept=lambda x: (lambda out, back: (out, back(out), back(2 * out)))(*jax.vjp(lambda v: v**2, x)),
    linearize=lambda x: jax.linearize(jnp.sin, x)[1](x),
    jacobian=jax.jacobian(lambda x: x**2 * x[0]),
    jacfwd=jax.jacfwd(lambda x: x**2 * x[0]),
    hessian=jax.hessian(_cube),
    hessian_vector=lambda x: jax.jvp(jax.grad(_cube), (x,), (x,))[1],
    linear_transpose=lambda x: jax.linear_transpose(lambda v: v * 3.0, x)(x),
    closure_convert=lambda x: (lambda f, consts: f(x, *consts))(*jax.closure_convert(lambda v: v * x, x)),
    eval_shape=lambda x: x * len(jax.eval_shape(jnp.sin, x).shape),
    per_example_gradients=lambda x: jax.vmap(jax.grad(lambda w, e: jnp.sum(w * e) ** 2), (None, 0))(x, x),
)

# ---- custom rules ---------------------------------------------------------------------------------------------------


def _plain(x):
    return x**2


def _custom_jvp_over(f, factor):
    """A custom_jvp over `f` whose derivative is wrong on purpose: `factor` of what it is."""
    wrapped = jax.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: (wrapped(*primals), factor * primals[0] * tangents[0]))
    return wrapped


_rule_2, _rule_5 = _custom_jvp_over(_plain, 2.0), _custom_jvp_over(_plain, 5.0)


def _custom_vjp_over(f, factor):
    wrapped = jax.custom_vjp(f)
    wrapped.defvjp(lambda x: (wrapped(x), x), lambda x, g: (factor * x * g,))
    return wrapped


_back_2, _back_5 = _custom_vjp_over(_plain, 2.0), _custom_vjp_over(_plain, 5.0)

cases(
    [3],
    custom_jvp=_rule_2,
    custom_jvps_over_one_function=lambda x: _rule_2(x) * _rule_5(x) + _rule_2(x),
    custom_jvp_fresh=lambda x: _custom_jvp_over(_plain, 7.0)(x) * _custom_jvp_over(_plain, 3.0)(x),
    custom_jvp_fresh_lambda=lambda x: _custom_jvp_over(lambda v: v**2 + 1, 4.0)(x),
    custom_jvp_in_jit=jax.jit(lambda x: _rule_2(x) + _rule_5(x)),
    custom_jvp_in_scan=lambda x: lax.scan(lambda c, _: (_rule_5(c) * 0.1, _rule_2(c)), x, None, length=2),
    custom_jvp_in_vmap=jax.vmap(lambda x: _rule_5(x) * 2),
    custom_jvp_of_jit=_custom_jvp_over(jax.jit(_plain), 9.0),
    custom_vjp=_back_2,
    custom_vjps_over_one_function=lambda x: _back_2(x) * _back_5(x) + _back_2(x),
    custom_vjp_fresh=lambda x: _custom_vjp_over(_plain, 7.0)(x) * _custom_vjp_over(_plain, 3.0)(x),
    custom_vjp_fresh_lambda=lambda x: _custom_vjp_over(lambda v: v**2 + 1, 4.0)(x),
    custom_vjp_in_jit=jax.jit(lambda x: _back_2(x) + _back_5(x)),
    custom_vjp_in_scan=lambda x: lax.scan(lambda c, _: (_back_5(c) * 0.1, _back_2(c)), x, None, length=2),
    custom_vjp_in_vmap=jax.vmap(lambda x: _back_5(x) * 2),
    custom_gradient=lambda x: jax.custom_gradient(lambda v: (v**2, lambda g: (g * 11.0 * v,)))(x),
    clip_gradient=lambda x: _clipped(0.1)(x) * 3,
)


def _clipped(bound):
    @jax.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -bound, bound),))
    return identity


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _apply_twice(f, x):
    return f(f(x))


@_apply_twice.defjvp
def _(f, primals, tangents):
    return _apply_twice(f, *primals), 3.0 * f(primals[0]) * tangents[0]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 2))
def _scale_gradient(f, x, factor):
    return f(x)


_scale_gradient.defvjp(
    lambda f, x, factor: (_scale_gradient(f, x, factor), x),
    lambda f, factor, x, g: (jax.vjp(f, x)[1](g)[0] * factor,),
)

cases(
    [3],
    custom_jvp_nondiff=lambda x: _apply_twice(jnp.sin, x) + _apply_twice(jnp.cos, x),
    custom_vjp_nondiff=lambda x: _scale_gradient(jnp.sin, x, 2.0) + _scale_gradient(jnp.sin, x, 3.0),
    custom_vjp_nondiff_lambda=lambda x: _scale_gradient(lambda v: v * 2, x, 2.0),
)


@jax.custom_vjp
def _structured(inputs, scale):
    return {"sum": inputs["a"] + inputs["b"][0], "product": (inputs["a"] * scale,)}


_structured.defvjp(
    lambda inputs, scale: (_structured(inputs, scale), (inputs, scale)),
    lambda saved, g: (
        {"a": g["sum"] * 2 + g["product"][0] * saved[1], "b": [g["sum"] * 3]},
        jnp.sum(g["product"][0] * saved[0]["a"]) * 4,
    ),
)


@case([3], [3], S)
def _custom_vjp_structured(a, b, scale):
    return _structured({"a": a, "b": [b]}, scale)


@jax.custom_vjp
def _with_residuals(x, y):
    return jnp.sin(x) * y


def _with_residuals_fwd(x, y):
    return _with_residuals(x, y), (jnp.cos(x), jnp.sin(x), y)


_with_residuals.defvjp(_with_residuals_fwd, lambda saved, g: (saved[0] * saved[2] * g, saved[1] * g))


@case([3], [3])
def _custom_vjp_with_residuals(x, y):
    return _with_residuals(x, y)


@case([3], [3])
def _custom_vjp_one_argument_constant(x, y):
    return _with_residuals(lax.stop_gradient(x), y)


@jax.custom_vjp
def _with_integers(x, i):
    return x[i] * 2


_with_integers.defvjp(
    lambda x, i: (_with_integers(x, i), (x, i)),
    lambda saved, g: (jnp.zeros_like(saved[0]).at[saved[1]].add(g * 5), None),
)


@case([3], np.array([2, 0], np.int32))
def _custom_vjp_with_integers(x, i):
    return _with_integers(x, i)


@case([3], [3])
def _custom_vjp_with_constant_closed_over_by_rule(x, y):
    # the rule reads an array that the primal function does not
    @jax.custom_vjp
    def f(v):
        return v * 2

    weights = lax.stop_gradient(y)
    f.defvjp(lambda v: (f(v), None), lambda _, g: (g * weights,))
    return f(x) * y


@case([3], twice=False)
def _custom_jvp_none_tangent(x):
    f = jax.custom_jvp(lambda v, w: v * w)
    f.defjvps(lambda t, out, v, w: 2 * t * w, None)
    return f(x, x)


# ---- checkpoint -----------------------------------------------------------------------------------------------------


def _block(x, w):
    return jnp.tanh(jnp.sin(x @ w) @ w)


cases(
    [2, 3],
    [3, 3],
    checkpoint=jax.checkpoint(_block),
    checkpoint_fresh=lambda x, w: jax.checkpoint(lambda v: _block(v, w) * 2)(x),
    checkpoint_policy=jax.checkpoint(_block, policy=jax.checkpoint_policies.dots_saveable),
    checkpoint_nothing=jax.checkpoint(_block, policy=jax.checkpoint_policies.nothing_saveable, prevent_cse=False),
    checkpoint_nested=jax.checkpoint(lambda x, w: jax.checkpoint(_block)(_block(x, w), w)),
    checkpoint_in_jit=jax.jit(jax.checkpoint(_block)),
    checkpoint_in_scan=lambda x, w: lax.scan(jax.checkpoint(lambda c, e: (_block(c, w), e)), x, None, length=2)[0],
    checkpoint_closing_over=lambda x, w: jax.checkpoint(lambda: _block(x, w))(),
    checkpoint_of_relu=jax.checkpoint(lambda x, w: jax.nn.relu(x @ w - 1.0)),
    checkpoint_names=jax.checkpoint(
        lambda x, w: checkpoint_name(jnp.sin(x @ w), "kept") ** 2,
        policy=jax.checkpoint_policies.save_only_these_names("kept"),
    ),
)
CASES["checkpoint_static"] = Case(
    "checkpoint_static", lambda x: jax.checkpoint(lambda v, n: v**n, static_argnums=1)(x, 3), ([3],)
)

# ---- random numbers -------------------------------------------------------------------------------------------------


@case([3])
def _random_key_in_the_block(x):
    key = jax.random.key(0)
    one, two = jax.random.split(key)
    return x * jax.random.normal(one, (3,)) + jax.random.uniform(two, (3,))


@case([3])
def _random_raw_key(x):
    return x * jax.random.normal(jax.random.PRNGKey(0), (3,))


@case([3])
def _random_gamma(x):  # differentiable with respect to its parameter
    return jax.random.gamma(jax.random.key(1), x)


special("random_gamma", twice=False, tolerance=1e-4)


@case([3])
def _random_keys_in_scan(x):
    def step(carry, key):
        return carry * jax.random.normal(key, (3,)), jax.random.key_data(key)[0].astype(FLOAT)

    return lax.scan(step, x, jax.random.split(jax.random.key(2), 3))[0]


@case([3])
def _random_keys_vmapped(x):
    return jax.vmap(lambda key, e: jax.random.normal(key) * e)(jax.random.split(jax.random.key(3), 3), x)


@case([3])
def _random_choice_and_permutation(x):
    key = jax.random.fold_in(jax.random.key(4), 7)
    return jax.random.permutation(key, x) * x + jax.random.choice(key, x, (3,))


@case([3])
def _random_key_closed_over(x):
    key = jax.random.key(5)
    return jax.jit(lambda v: v * jax.random.normal(key, (3,)))(x)


@case([3])
def _dropout(x):
    keep = jax.random.bernoulli(jax.random.key(6), 0.5, x.shape)
    return jnp.where(keep, x / 0.5, 0.0)


# ---- sundries -------------------------------------------------------------------------------------------------------


@case([3])
def _io_callback_beside_the_gradient(x):
    seen = []
    io_callback(lambda v: seen.append(v), None, lax.stop_gradient(x))
    return x * 2


@case([3])
def _debug_callback(x):
    jax.debug.callback(lambda v: None, x)
    return x * 2


@case([3])
def _pure_callback_beside_the_gradient(x):
    shape = jax.ShapeDtypeStruct((3,), FLOAT)
    return x * jax.pure_callback(lambda v: np.asarray(v) * 2, shape, lax.stop_gradient(x))


@case([3], [3])
def _constants_of_many_kinds(x, y):
    return x * True + y * np.float32(2) + FLOAT(1) * 3 + np.arange(3, dtype=FLOAT) * y + [*x][0]


@case([2, 3], np.arange(3))
def _matmul_with_integers(x, i):
    return x @ i


@case([3])
def _device_put(x):
    return jax.device_put(x * 2) * jax.device_put(x, jax.devices()[0])


@case([3])
def _linear_loop_of_dots(x):
    w = jnp.eye(3)
    for _ in range(3):
        w = w @ jnp.diag(x)
    return w


@case([3])
def _array_iteration(x):
    total = 0.0
    for i, e in enumerate(x):
        total += e * i
    return total


@case([4, 2])
def _neural_network_of_layers(x):
    def layer(w, v):
        return jax.nn.relu(v @ w - 0.1)

    weights = [jnp.full((2, 2), 0.5), jnp.full((2, 2), 0.3)]
    return functools.reduce(lambda v, w: layer(w, v), weights, x)
