"""Wrong answers to the exercises of notebooks 9 and 10, as `exercises.WRONG` has them: beside the right answer, its changes."""

from __future__ import annotations


def changed(right, *changes):
    """`right` with the first text of each pair replaced by the second: a wrong answer each."""
    wrong = []
    for old, new in changes:
        assert old in right, f"{old!r} is not in the answer"
        wrong.append(right.replace(old, new))
    return wrong


KEPLER = """
def rule(upstream, x, m, e):
    by_x, by_m, by_e = by_tape(kepler, x, m, e)
    return -upstream * by_m / by_x, -upstream * by_e / by_x"""

FIXED_POINT = """
def backward(g, kept, upstream):
    x, parameters = kept
    _, pull = jax.vjp(g, x, parameters)
    w = settle(lambda w: upstream + pull(w)[0], upstream)
    return jnp.zeros_like(x), pull(w)[1]"""

HYPERGRADIENT = """
def hypergradient(inner, outer, w, rho):
    by_w, by_rho = jax.grad(outer, (0, 1))(w, rho)
    q = jnp.linalg.solve(jax.hessian(inner)(w, rho), by_w)
    mixed = jax.jacobian(jax.grad(inner), 1)(w, rho)
    return by_rho - q @ mixed"""

ADJOINT = """
def adjoint_rates(f, y, adjoint, theta):
    _, pull = jax.vjp(f, y, theta)
    by_y, by_theta = pull(adjoint)
    return -by_y, -by_theta"""

SURROGATE = """
def surrogate(mu, x, cost):
    x, cost = tf.stop_gradient(x), tf.stop_gradient(cost)
    baseline = (jnp.sum(cost) - cost) / (len(cost) - 1)
    log_p = -0.5 * jnp.sum((x - mu) ** 2, axis=1) / sigma**2
    return jnp.mean((cost - baseline) * log_p)"""

ROOT = """
def small_root(b, c):
    return -2.0 * c / (b + jnp.sqrt(b**2 - 4.0 * c))"""

AGREES = """
def agrees(f, gradient, x):
    rng = np.random.default_rng(0)
    for _ in range(3):
        v = rng.normal(size=x.shape)
        step = 1e-5
        quotient = (f(x + step * v) - f(x - step * v)) / (2 * step)
        slope = gradient(x) @ v
        if abs(quotient - slope) > 1e-4 * max(abs(quotient), abs(slope)):
            return False
    return True"""

SMOOTHED = """
def smoothed_gradient(f, x, sigma, noise):
    def pair(row):
        return (f(x + sigma * row) - f(x - sigma * row)) / (2 * sigma) * row

    return jnp.mean(jax.vmap(pair)(noise), axis=0)"""

PARTS = """
def parts(x, tag):
    if isinstance(x, Tagged) and x.tag == tag:
        return x.value, x.tangent
    return x, 0.0"""

WRONG = {
    "9_gradients_without_a_formula/kepler-check": (
        "",
        [
            *changed(
                KEPLER,
                ("-upstream", "upstream"),
                ("-upstream *", "-1.0 *"),  # the upstream cotangent left out
                (" / by_x", ""),
                (" / by_x", " * by_x"),
                ("by_m / by_x, -upstream * by_e", "by_e / by_x, -upstream * by_m"),
                ("by_tape(kepler, x, m, e)", "1 + e * jnp.cos(x), -1.0, -jnp.sin(x)"),
                ("return -upstream * by_m / by_x, -upstream * by_e / by_x", "return -upstream * by_m / by_x"),
            ),
            "def rule(upstream, x, m, e): return by_tape(kepler, x, m, e)[1:]",
            "rule = (1.0, 2.0)",
        ],
    ),
    "9_gradients_without_a_formula/fixed-check": (
        "",
        [
            *changed(
                FIXED_POINT,
                ("settle(lambda w: upstream + pull(w)[0], upstream)", "upstream"),  # one step of the iteration only
                ("settle(lambda w: upstream + pull(w)[0], upstream)", "upstream + pull(upstream)[0]"),
                ("upstream + pull(w)[0]", "pull(w)[0]"),
                ("upstream + pull(w)[0]", "upstream - pull(w)[0]"),
                ("upstream + pull(w)[0]", "upstream + jax.jvp(lambda x: g(x, parameters), (x,), (w,))[1]"),
                ("jnp.zeros_like(x), pull(w)[1]", "pull(w)"),  # the start does not change where it ends
                ("jnp.zeros_like(x), pull(w)[1]", "pull(w)[1], jnp.zeros_like(x)"),
                ("jnp.zeros_like(x), pull(w)[1]", "pull(w)[1]"),
                ("jnp.zeros_like(x), pull(w)[1]", "jnp.zeros_like(x), w"),
            ),
            "backward = jax.vjp",
            "backward = by_fixed_point(x, upstream, 10)",
        ],
    ),
    "9_gradients_without_a_formula/hyper-check": (
        "",
        [
            *changed(
                HYPERGRADIENT,
                ("by_rho - q @ mixed", "by_rho + q @ mixed"),
                ("by_rho - q @ mixed", "-q @ mixed"),  # what the outer loss has of rho itself is missing
                ("by_rho - q @ mixed", "by_rho"),  # as if w did not move
                ("by_rho - q @ mixed", "by_rho - jax.grad(inner, 1)(w, rho)"),
                ("jnp.linalg.solve(jax.hessian(inner)(w, rho), by_w)", "by_w"),
                ("jnp.linalg.solve(jax.hessian(inner)(w, rho), by_w)", "jax.hessian(inner)(w, rho) @ by_w"),
                ("jnp.linalg.solve(jax.hessian(inner)(w, rho), by_w)", "by_w / jnp.diag(jax.hessian(inner)(w, rho))"),
                ("jnp.linalg.solve(jax.hessian(inner)(w, rho)", "jnp.linalg.solve(jax.hessian(outer)(w, rho)"),
                ("return by_rho - q @ mixed", "return q"),
            ),
            "hypergradient = jnp.array([0.1, 0.2])",
        ],
    ),
    "9_gradients_without_a_formula/adjoint-check": (
        "",
        [
            *changed(
                ADJOINT,
                ("return -by_y, -by_theta", "return by_y, by_theta"),
                ("return -by_y, -by_theta", "return -by_y, by_theta"),
                ("return -by_y, -by_theta", "return -by_theta, -by_y"),
                ("return -by_y, -by_theta", "return -by_y"),
                ("pull(adjoint)", "pull(jnp.ones_like(y))"),
                ("return -by_y, -by_theta", "return -jax.jvp(lambda y: f(y, theta), (y,), (adjoint,))[1], -by_theta"),
                ("return -by_y, -by_theta", "return -jnp.sum(jax.jacobian(f)(y, theta), axis=0) * adjoint, -by_theta"),
            ),
            "adjoint_rates = 'backward'",
        ],
    ),
    "9_gradients_without_a_formula/score-check": (
        "",
        [
            *changed(
                SURROGATE,
                ("x, cost = tf.stop_gradient(x), tf.stop_gradient(cost)", "x = tf.stop_gradient(x)"),
                ("x, cost = tf.stop_gradient(x), tf.stop_gradient(cost)", "cost = tf.stop_gradient(cost)"),
                ("(jnp.sum(cost) - cost) / (len(cost) - 1)", "jnp.mean(cost)"),  # a bias
                ("(jnp.sum(cost) - cost) / (len(cost) - 1)", "0.0"),
                ("(cost - baseline)", "(cost + baseline)"),
                ("-0.5 *", "0.5 *"),
                (" / sigma**2", ""),
                ("jnp.mean((cost", "jnp.sum((cost"),
                ("jnp.mean((cost - baseline) * log_p)", "(cost - baseline) * log_p"),
            ),
            "def surrogate(mu, x, cost): return jnp.mean(cost)",  # the pathwise gradient
            "surrogate = 0.0",
        ],
    ),
    "10_when_gradients_lie/log-check": (
        "log_one_minus_exp",
        [
            "lambda x: jnp.log(1.0 - jnp.exp(x))",
            "lambda x: jnp.log1p(-jnp.exp(x))",
            "lambda x: jnp.log(-jnp.expm1(x))",  # 0 far from zero
            "lambda x: jnp.log(jnp.maximum(1.0 - jnp.exp(x), 1e-7))",
            "lambda x: jnp.log(-x)",  # right near 0
            "lambda x: -jnp.exp(x)",  # right far from it
            "lambda x: jnp.where(x > -0.7, jnp.log(-jnp.expm1(x)), jnp.log1p(-jnp.exp(x)))",  # NaN from the branch not taken
            "lambda x: tf.stop_gradient(jnp.log(-jnp.expm1(x)))",
            "lambda x: np.log(-np.expm1(np.asarray(x)))",
            "lambda x: jnp.sum(jnp.log(-jnp.expm1(x)))",
            "jnp.log(-jnp.expm1(-1.0))",
        ],
    ),
    "10_when_gradients_lie/root-check": (
        "",
        [
            *changed(
                ROOT,
                ("-2.0 * c / (b + jnp.sqrt(b**2 - 4.0 * c))", "0.5 * (-b + jnp.sqrt(b**2 - 4.0 * c))"),  # cancels
                ("-2.0 * c / (b + jnp.sqrt(b**2 - 4.0 * c))", "-c / b"),
                ("-2.0 * c", "2.0 * c"),
                ("(b + jnp", "(b - jnp"),  # the large root, and it cancels
                ("-2.0 * c", "-c"),
                ("jnp.sqrt(b**2 - 4.0 * c)", "b"),
                ("-2.0 * c / (b + jnp.sqrt(b**2 - 4.0 * c))", "0.5 * (-b - jnp.sqrt(b**2 - 4.0 * c))"),
                ("(b + jnp.sqrt(b**2 - 4.0 * c))", "(float(b) + np.sqrt(float(b) ** 2 - 4.0 * float(c)))"),
            ),
            "small_root = -1e-4",
        ],
    ),
    "10_when_gradients_lie/check-check": (
        "",
        [
            *changed(
                AGREES,
                ("step = 1e-5", "step = 1e-15"),
                ("step = 1e-5", "step = 1.0"),
                ("1e-4 * max(abs(quotient), abs(slope))", "1e-4"),  # an absolute tolerance
                ("1e-4 * max(abs(quotient), abs(slope))", "1e-14 * abs(slope)"),
                ("1e-4 * max(abs(quotient), abs(slope))", "0.05 * max(abs(quotient), abs(slope))"),
                ("v = rng.normal(size=x.shape)", "v = np.ones(x.shape)"),  # does not see an order
                ("v = rng.normal(size=x.shape)", "v = np.eye(len(x))[0]"),
                ("abs(quotient - slope)", "abs(abs(quotient) - abs(slope))"),
                (" / (2 * step)", " / step"),
                ("return True", "return None"),
            ),
            "def agrees(f, gradient, x): return True",
            "def agrees(f, gradient, x): return bool(np.isfinite(gradient(x)).all())",
            "agrees = True",
        ],
    ),
    "10_when_gradients_lie/seven-check": (
        "square_with_seven",
        [
            "lambda x: x**2",
            "lambda x: x**2 + 7.0 * x",
            "lambda x: x**2 + 7.0 * x - 7.0 * x",
            "lambda x: x**2 + (x - (tf.nn.relu(x) - tf.nn.relu(-x)))",  # one, not seven
            "lambda x: x**2 - 7.0 * (x - (tf.nn.relu(x) - tf.nn.relu(-x)))",
            "lambda x: x**2 + 7.0 * (x - tf.stop_gradient(x))",  # everywhere
            "lambda x: jnp.where(x == 0.0, 7.0, x**2)",
            "lambda x: jnp.where(x == 0.0, 7.0, 2.0 * x)",
            "7.0",
        ],
    ),
    "10_when_gradients_lie/smooth-check": (
        "",
        [
            *changed(
                SMOOTHED,
                ("(2 * sigma) * row", "(2 * sigma)"),
                ("(2 * sigma)", "2"),
                ("(2 * sigma)", "sigma"),
                ("- f(x - sigma * row)", "- f(x)"),  # one side, and the divisor of two
                (" - f(x - sigma * row)", " + f(x - sigma * row)"),
                ("jnp.mean", "jnp.sum"),
                (", axis=0)", ")"),
                ("sigma * row)", "row)"),
            ),
            "def smoothed_gradient(f, x, sigma, noise): return jax.grad(f)(x)",
            "smoothed_gradient = lambda f, x, s, noise: jnp.mean(jax.vmap(lambda e: jax.grad(f)(x + s * e))(noise), axis=0)",
            "smoothed_gradient = jnp.zeros(3)",
        ],
    ),
    "10_when_gradients_lie/tags-check": (
        "",
        [
            *changed(
                PARTS,
                (" and x.tag == tag", ""),  # the confusion
                ("x.tag == tag", "x.tag != tag"),
                ("return x, 0.0", "return getattr(x, 'value', x), 0.0"),  # the other derivative's tangent is lost
                ("return x, 0.0", "return x, 1.0"),
                ("x.value, x.tangent", "x.tangent, x.value"),
                ("return x, 0.0", "return x"),
                ("return x.value, x.tangent", "return x.value, 1.0"),
            ),
            "parts = Tagged(1.0, 1.0, 1)",
        ],
    ),
}
