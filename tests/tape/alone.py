"""What tapes answer for plain JAX programs; as a program, printed without the rest of tapejax, which cannot be imported there.

python tests/tape/alone.py NAME ...
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import plain_jax


class Blocked:
    """A finder for which all of tapejax but the wrapper is missing."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith(("tapejax._everything", "tapejax.execution", "tapejax.tf", "tapejax.tools")):
            raise ImportError(f"{name} is blocked")


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
# The gradient of each does not depend on the input, so the second is None, and not zeros.
LINEAR = {
    "linear": lambda x: 2 * x,
    "linear lax": jax.lax.neg,
    "linear jit": jax.jit(lambda x: 2 * x),
    "linear scan": lambda x: jax.lax.scan(lambda c, _: (2 * c, None), x, None, 3)[0],
    "linear custom_vjp": doubled,
    "linear custom_vjp in jit": jax.jit(doubled),
    "linear checkpoint": jax.checkpoint(lambda x: 2 * x),
}


def taped(tapes, function, arguments):
    """The gradient of the gradient of ... of the sum of all that `function` returns: as many tapes as `tapes`, one in another."""
    from tapejax.tape import GradientTape

    with GradientTape() as tape:
        tape.watch(arguments)
        outputs = function(*arguments) if tapes == 1 else taped(tapes - 1, function, arguments)
        parts = [x for x in jax.tree.leaves(outputs) if jnp.issubdtype(x.dtype, jnp.inexact)]
        target = sum(jnp.sum(x.real) for x in parts)
    return tape.gradient(target, arguments) if parts else None


def outcome(tapes, function, arguments):
    """The gradients as lists of real and imaginary parts, each None as None; or the error's name."""
    try:
        results = taped(tapes, function, arguments)
    except Exception as error:
        return type(error).__name__
    leaves = jax.tree.leaves(results, is_leaf=lambda x: x is None)
    return [None if x is None else np.asarray(x).astype(complex).ravel().view(float).tolist() for x in leaves]


def answers(names):
    """{name: the outcomes at first, second and, of linear ones, third order}."""
    found = {}
    for name in names:
        if name in LINEAR:
            found[name] = [outcome(n, LINEAR[name], (jnp.array([1.0, 2.0]),)) for n in (1, 2, 3)]
        else:
            case = plain_jax.CASES[name]
            found[name] = [outcome(n, case.function, case.arguments()) for n in (1, 2)[: 1 + case.twice]]
    return found


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocked())
    print(json.dumps(answers(sys.argv[1:])))
