#!/bin/bash
# MLX 0.32.4 (CPU): `mx.addmm(c, a, b, alpha, beta)` is beta c + alpha a b. Its reverse-mode derivative has the two factors, its forward-mode
# derivative does not: `mx.jvp` gives that of c + a b, in silence. So any use of forward mode through it is wrong unless both are 1.
#
# Guessed: `mx.jvp` and `mx.vjp` agree away from ties and poles.
# Seen, of 0.5 c + 2 a b at a = 3, b = 5, with respect to c, a, b:
#   reverse [0.5, 10.0, 6.0], forward [1.0, 5.0, 3.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
"$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx


def f(c, a, b):
    return mx.addmm(c, a, b, alpha=2.0, beta=0.5)


at = [mx.array([[x]]) for x in (7.0, 3.0, 5.0)]
assert f(*at).item() == 0.5 * 7 + 2 * 3 * 5
reverse = [g.item() for g in mx.vjp(f, at, [mx.ones((1, 1))])[1]]
forward = []
for i in range(3):
    along = [mx.ones((1, 1)) if i == k else mx.zeros((1, 1)) for k in range(3)]
    forward.append(mx.jvp(f, at, along)[1][0].item())
print(f"reverse {reverse}, forward {forward}")
assert reverse == [0.5, 10.0, 6.0] and forward == [1.0, 5.0, 3.0]
PROGRAM
