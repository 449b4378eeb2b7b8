#!/bin/bash
# MLX 0.32.4 (CPU): a function that `mx.custom_function` gave a rule for reverse mode loses it in silence as soon as another transformation
# is applied to it. `mx.jvp` differentiates the body, where JAX raises a TypeError; under `mx.vmap` reverse mode differentiates
# the body as well, where JAX uses the rule. The `vmap` of the gradient uses the rule: the order of the two decides.
#
# Guessed: an error from `mx.jvp`, and the rule in either order.
# Seen, of x^2 at 3 and 4 with a rule that says 100:
#   grad 100.0, jvp 6.0; vmap of grad [100.0, 100.0], grad of vmap [6.0, 8.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
"$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx


@mx.custom_function
def square(x):
    return x * x


@square.vjp
def rule(primals, cotangent, output):
    return 100 * cotangent


x = mx.array([3.0, 4.0])
gradient = mx.grad(square)(x[0]).item()
forward = mx.jvp(square, [x[0]], [mx.array(1.0)])[1][0].item()
outside = mx.vmap(mx.grad(square))(x).tolist()
inside = mx.grad(lambda x: mx.vmap(square)(x).sum())(x).tolist()
print(f"grad {gradient}, jvp {forward}; vmap of grad {outside}, grad of vmap {inside}")
assert (gradient, forward, outside, inside) == (100.0, 6.0, [100.0, 100.0], [6.0, 8.0])
PROGRAM
