#!/bin/bash
# MLX 0.32.4 (CPU): the second result of `mx.divmod(a, b)` is the remainder, and has the values of `mx.remainder(a, b)`. Its derivative is 0,
# with respect to either argument and in either mode; that of `mx.remainder` is 1 and minus the whole quotient, as in JAX.
#
# Guessed: the same derivatives.
# Seen, at a = 7.5, b = 2:
#   divmod 1.5 with (0.0, 0.0), forward 0.0; remainder 1.5 with (1.0, -3.0), forward 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
"$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx

a, b, one, zero = (mx.array(x) for x in (7.5, 2.0, 1.0, 0.0))
functions = {"divmod": lambda a, b: mx.divmod(a, b)[1], "remainder": mx.remainder}
seen = {"divmod": ((0.0, 0.0), 0.0), "remainder": ((1.0, -3.0), 1.0)}
for name, f in functions.items():
    reverse = tuple(x.item() for x in mx.grad(f, (0, 1))(a, b))
    forward = mx.jvp(f, [a, b], [one, zero])[1][0].item()
    print(f"{name} {f(a, b).item()} with {reverse}, forward {forward}")
    assert f(a, b).item() == 1.5 and (reverse, forward) == seen[name]
PROGRAM
