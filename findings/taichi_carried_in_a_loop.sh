#!/bin/bash
# Taichi 1.7.4 (CPU): a local variable that is carried through a loop of a kernel, `s = ti.tanh(s * v[i])`, has a wrong gradient, in silence, where
# the rule of the function needs the function's own result (`tanh`, `exp`, `rsqrt`) or compares two values (`max`, `min`). Only the last entry
# is right: the results look like those of the last pass, used for all. `sin`, `sqrt` and an `if` in place of the maximum are right, and
# so is everything in a loop that `ti.static` unrolls. A recurrent network in a kernel does not learn what it should; a
# maximum over a loop gives its gradient to no entry, or to one that is not the largest.
#
# Guessed: a loop has the gradient of the loop written out.
# Seen, from s = 1.1 over v = [1, 0.5, 2, 0.7], in a loop and unrolled:
#   tanh(s * v): [0.3529, 0.6242, 0.1801, 0.5276] and [0.1146, 0.4644, 0.1289, 0.5276]
#   exp(-s * v): [0.4601, -0.3167, 0.4581, -0.1617] and [0.0351, -0.0638, 0.0958, -0.1617]
#   max(s, v): [0.0, 0.0, 0.0, 0.0] and [0.0, 0.0, 1.0, 0.0]
#   sin(s * v): [0.1769, 0.6318, 0.1693, 0.6545] and [0.1769, 0.6318, 0.1693, 0.6545]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check taichi==1.7.4 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, log_level=ti.ERROR, offline_cache=False)
v = ti.field(ti.f64, shape=4, needs_grad=True)
y = ti.field(ti.f64, shape=(), needs_grad=True)


@ti.func
def step(s, x, which: ti.template()):
    if ti.static(which == "tanh(s * v)"):
        s = ti.tanh(s * x)
    elif ti.static(which == "exp(-s * v)"):
        s = ti.exp(-s * x)
    elif ti.static(which == "max(s, v)"):
        s = ti.max(s, x)
    else:
        s = ti.sin(s * x)
    return s


@ti.kernel
def loop(which: ti.template()):
    for _ in range(1):  # Taichi wants a kernel that is one loop; what it carries is inside
        s = 1.1
        for i in range(4):
            s = step(s, v[i], which)
        y[None] += s


@ti.kernel
def unrolled(which: ti.template()):
    for _ in range(1):
        s = 1.1
        for i in ti.static(range(4)):
            s = step(s, v[i], which)
        y[None] += s


def value(kernel, which, at):
    v.from_numpy(at)
    y[None] = 0.0
    kernel(which)
    return y[None]


def gradient(kernel, which, at):
    value(kernel, which, at)
    v.grad.fill(0.0)
    y.grad[None] = 1.0
    kernel.grad(which)
    return v.grad.to_numpy().round(4).tolist()


at, h = np.array([1.0, 0.5, 2.0, 0.7]), 1e-6
seen = {
    "tanh(s * v)": [0.3529, 0.6242, 0.1801, 0.5276],
    "exp(-s * v)": [0.4601, -0.3167, 0.4581, -0.1617],
    "max(s, v)": [0.0, 0.0, 0.0, 0.0],
    "sin(s * v)": [0.1769, 0.6318, 0.1693, 0.6545],
}
for which, in_loop in seen.items():
    quotient = [(value(loop, which, at + h * e) - value(loop, which, at - h * e)) / (2 * h) for e in np.eye(4)]
    assert np.isclose(value(loop, which, at), value(unrolled, which, at))
    found = [gradient(kernel, which, at) for kernel in (loop, unrolled)]
    print(f"{which}: {found[0]} and {found[1]}")
    np.testing.assert_allclose(found[0], in_loop, atol=2e-4)
    np.testing.assert_allclose(found[1], quotient, atol=2e-4)
    assert np.allclose(in_loop, quotient, atol=1e-3) == which.startswith("sin")
PROGRAM
"$folder/venv/bin/python" "$folder/program.py"
