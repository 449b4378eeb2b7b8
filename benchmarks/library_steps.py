"""Steps over libraries of the JAX ecosystem: ``CASES[name]()`` gives a function of one array, and the array.

Each case imports its library, whose name it begins with, so that the others need not be there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = tuple[Callable[[Any], Any], Any]
CASES: dict[str, Callable[[], Step]] = {}
MATRIX = np.array([[4.0, 1.0, 0.5, 0.2], [1.0, 3.0, 0.2, 0.1], [0.5, 0.2, 5.0, 0.3], [0.2, 0.1, 0.3, 4.0]], np.float32)
VECTOR = np.arange(1.0, 5.0, dtype=np.float32)


def case(make: Callable[[], Step]) -> Callable[[], Step]:
    CASES[make.__name__] = make
    return make


# ---- lineax, optimistix, diffrax


def _linear(name: str, positive: bool, *arguments: Any) -> Callable[[], Step]:
    def make() -> Step:
        import lineax as lx

        solver = getattr(lx, name)(*arguments)

        def loss(a: Any) -> Any:
            operator = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag if positive else ())
            return jnp.sum(lx.linear_solve(operator, jnp.asarray(VECTOR), solver).value ** 2)

        return loss, jnp.asarray(MATRIX)

    return make


for _name, _positive, _tolerances in (
    ("LU", False, ()),
    ("QR", False, ()),
    ("SVD", False, ()),
    ("Cholesky", True, ()),
    ("CG", True, (1e-5, 1e-5)),
    ("GMRES", False, (1e-5, 1e-5)),
):
    CASES[f"lineax_{_name}"] = _linear(_name, _positive, *_tolerances)


@case
def optimistix_root_find() -> Step:
    import optimistix as optx

    def loss(a: Any) -> Any:
        solver = optx.Newton(rtol=1e-5, atol=1e-5)
        return jnp.sum(optx.root_find(lambda y, a: jnp.tanh(a @ y) - y + 0.3, solver, jnp.zeros(4), a).value)

    return loss, jnp.asarray(MATRIX * 0.1)


@case
def optimistix_root_find_of_one_function() -> Step:
    import optimistix as optx

    def fn(y: Any, a: Any) -> Any:
        return jnp.tanh(a @ y) - y + 0.3

    def loss(a: Any) -> Any:
        return jnp.sum(optx.root_find(fn, optx.Newton(rtol=1e-5, atol=1e-5), jnp.zeros(4), a).value)

    return loss, jnp.asarray(MATRIX * 0.1)


@case
def optimistix_least_squares() -> Step:
    import optimistix as optx

    def fn(y: Any, a: Any) -> Any:
        return a @ y - VECTOR

    def loss(a: Any) -> Any:
        solver = optx.LevenbergMarquardt(rtol=1e-5, atol=1e-5)
        return jnp.sum(optx.least_squares(fn, solver, jnp.zeros(4), a).value)

    return loss, jnp.asarray(MATRIX)


@case
def optimistix_minimise() -> Step:
    import optimistix as optx

    def fn(y: Any, a: Any) -> Any:
        return jnp.sum((a @ y - VECTOR) ** 2)

    def loss(a: Any) -> Any:
        return jnp.sum(optx.minimise(fn, optx.BFGS(rtol=1e-5, atol=1e-5), jnp.zeros(4), a).value)

    return loss, jnp.asarray(MATRIX)


@case
def optimistix_fixed_point() -> Step:
    import optimistix as optx

    def fn(y: Any, a: Any) -> Any:
        return jnp.tanh(a @ y) + 0.1

    def loss(a: Any) -> Any:
        solver = optx.FixedPointIteration(rtol=1e-5, atol=1e-5)
        return jnp.sum(optx.fixed_point(fn, solver, jnp.zeros(4), a).value)

    return loss, jnp.asarray(MATRIX * 0.1)


def _ode(adjoint: str) -> Callable[[], Step]:
    def make() -> Step:
        import diffrax

        term = diffrax.ODETerm(lambda t, y, a: -a @ y)
        options: dict[str, Any] = {
            "adjoint": getattr(diffrax, adjoint)(),
            "stepsize_controller": diffrax.PIDController(rtol=1e-3, atol=1e-4),
            "max_steps": 256,
        }

        def loss(a: Any) -> Any:
            y0 = jnp.asarray(VECTOR)
            return jnp.sum(diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, args=a, **options).ys ** 2)

        return loss, jnp.asarray(MATRIX * 0.3)

    return make


for _name in ("RecursiveCheckpointAdjoint", "DirectAdjoint", "BacksolveAdjoint"):
    CASES[f"diffrax_{_name}"] = _ode(_name)


# ---- distrax, rlax


@case
def distrax_normal() -> Step:
    import distrax

    def loss(p: Any) -> Any:
        return jnp.sum(distrax.MultivariateNormalDiag(p[0], jnp.exp(p[1])).log_prob(VECTOR[:3]))

    return loss, jnp.full((2, 3), 0.3)


@case
def distrax_categorical() -> Step:
    import distrax

    def loss(logits: Any) -> Any:
        found = distrax.Categorical(logits=logits)
        return found.entropy() + found.log_prob(1)

    return loss, jnp.asarray(VECTOR)


@case
def distrax_flow() -> Step:
    import distrax

    def loss(p: Any) -> Any:
        flow = distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(p[0], p[1])])
        base = distrax.Normal(jnp.zeros(3), jnp.ones(3))
        return jnp.sum(distrax.Transformed(base, flow).log_prob(jnp.array([0.1, 0.2, 0.3])))

    return loss, jnp.full((2, 3), 0.3)


@case
def distrax_divergence_jitted() -> Step:
    import distrax

    def loss(p: Any) -> Any:
        uniform = distrax.Categorical(probs=jnp.full(4, 0.25))
        return distrax.Categorical(probs=jax.nn.softmax(p)).kl_divergence(uniform)

    return jax.jit(loss), jnp.asarray(VECTOR)


@case
def rlax_td_lambda() -> Step:
    import rlax

    def loss(v: Any) -> Any:
        return jnp.sum(
            rlax.td_lambda(v[:-1], jnp.ones_like(v[1:]), 0.9 * jnp.ones_like(v[1:]), v[1:], jnp.asarray(0.9, v.dtype))
            ** 2
        )

    return loss, jnp.asarray(VECTOR)


@case
def rlax_vtrace() -> Step:
    import rlax

    def loss(v: Any) -> Any:
        ones = jnp.ones(3)
        return rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], ones, ones * 0.9, ones).errors.sum()

    return loss, jnp.asarray(VECTOR)


def _policy(v: Any) -> Any:
    import rlax

    ones = jnp.ones(1)
    return rlax.entropy_loss(v[None], ones) + rlax.policy_gradient_loss(v[None], jnp.array([1]), ones, ones)


@case
def rlax_policy() -> Step:
    return _policy, jnp.asarray(VECTOR)


@case
def rlax_policy_jitted() -> Step:
    return jax.jit(_policy), jnp.asarray(VECTOR)


# ---- ott


def _transport(x: Any) -> Any:
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    geometry = pointcloud.PointCloud(x, jnp.sin(jnp.arange(12.0)).reshape(6, 2), epsilon=0.1)
    return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(geometry))


@case
def ott_cost() -> Step:
    return lambda x: _transport(x).reg_ot_cost, jnp.cos(jnp.arange(10.0)).reshape(5, 2)


@case
def ott_cost_jitted() -> Step:
    return jax.jit(lambda x: _transport(x).reg_ot_cost), jnp.cos(jnp.arange(10.0)).reshape(5, 2)


@case
def ott_plan() -> Step:
    """Its backward pass solves a linear system by lineax, over functions that are new at each call."""
    return lambda x: jnp.sum(_transport(x).matrix ** 2), jnp.cos(jnp.arange(10.0)).reshape(5, 2)


@case
def ott_plan_jitted() -> Step:
    return jax.jit(lambda x: jnp.sum(_transport(x).matrix ** 2)), jnp.cos(jnp.arange(10.0)).reshape(5, 2)


# ---- jaxopt


def _jaxopt(name: str, rounds: int) -> Callable[[], Step]:
    def make() -> Step:
        import jaxopt

        solver = getattr(jaxopt, name)(lambda y, a: jnp.sum((a @ y - VECTOR) ** 2), maxiter=rounds)
        return lambda a: jnp.sum(solver.run(jnp.zeros(4), a).params), jnp.asarray(MATRIX)

    return make


CASES["jaxopt_GradientDescent"] = _jaxopt("GradientDescent", 50)
CASES["jaxopt_LBFGS"] = _jaxopt("LBFGS", 20)


# ---- Equinox's internals


def _loop(kind: str) -> Callable[[Any], Any]:
    import equinox.internal as eqxi

    def loss(x: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, jnp.sin(c[1]) * x

        return eqxi.while_loop(lambda c: c[0] < 5, body, (0, x), kind=kind, max_steps=8)[1].sum()

    return loss


@case
def equinox_checkpointed_while() -> Step:
    return _loop("checkpointed"), jnp.asarray(VECTOR)


@case
def equinox_checkpointed_while_jitted() -> Step:
    return jax.jit(_loop("checkpointed")), jnp.asarray(VECTOR)


@case
def equinox_bounded_while() -> Step:
    return _loop("bounded"), jnp.asarray(VECTOR)


@case
def equinox_checkpointed_scan() -> Step:
    import equinox.internal as eqxi

    def loss(x: Any) -> Any:
        return eqxi.scan(lambda c, i: (jnp.sin(c) * x, c), x, jnp.arange(5), kind="checkpointed")[0].sum()

    return loss, jnp.asarray(VECTOR)


def _filtered() -> Callable[[Any], Any]:
    import equinox as eqx

    @eqx.filter_custom_jvp
    def scaled(x: Any, y: Any) -> Any:
        return x * jnp.sin(y)

    @scaled.def_jvp
    def _(primals: Any, tangents: Any) -> Any:
        (x, y), (dx, dy) = primals, tangents
        dx, dy = jnp.zeros_like(x) if dx is None else dx, jnp.zeros_like(y) if dy is None else dy
        return scaled(x, y), dx * jnp.sin(y) + dy * x * jnp.cos(y)

    return lambda x: scaled(x, jnp.cos(x)).sum()


@case
def equinox_filter_custom_jvp() -> Step:
    return _filtered(), jnp.asarray(VECTOR)


@case
def equinox_filter_custom_jvp_jitted() -> Step:
    return jax.jit(_filtered()), jnp.asarray(VECTOR)


@case
def equinox_nondifferentiable() -> Step:
    import equinox.internal as eqxi

    f = jax.jit(lambda x, n: jnp.sum(jnp.sin(x) * eqxi.nondifferentiable(n)))
    return lambda x: f(x, jnp.ones(4)), jnp.asarray(VECTOR)
