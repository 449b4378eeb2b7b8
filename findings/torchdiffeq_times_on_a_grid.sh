#!/bin/bash
# torchdiffeq 0.2.5, PyTorch 2.13.0: `odeint` is differentiable with respect to the times of its output. A method of fixed steps with a `step_size`
# gives the derivative 0 at a time that falls on the grid, and the wrong one at the first time, in silence: the solution there is
# copied, and the grid counts as a constant. Between two grid points the derivative is the slope of a straight line. `odeint_adjoint` of the same
# method has the derivatives, and so do adaptive methods, and fixed steps without `step_size`. A time of observation that
# is fitted does not move.
#
# Guessed: the slope of the solution at each time, whatever the method.
# Seen, of y(1) - y(0.5) for y' = -y, y(0) = 1, started at time 0, with respect to the times 0, 0.5, 1:
#   rk4, step 0.125: value -0.2387, derivative 0.3679 0.0000 -0.3679
#   rk4, step 0.15: value -0.2401, derivative -0.2242 0.5921 -0.3679
#   rk4, a step to each time: value -0.2386, derivative -0.2376 0.6042 -0.3666
#   dopri5: value -0.2387, derivative -0.2387 0.6065 -0.3679
#   rk4, step 0.125, adjoint: value -0.2387, derivative -0.2387 0.6065 -0.3679
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torchdiffeq==0.2.5 torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import torch
from torchdiffeq import odeint, odeint_adjoint


class Decay(torch.nn.Module):
    def forward(self, time, y):
        return -y


cases = {
    "rk4, step 0.125": (odeint, "rk4", {"step_size": 0.125}, (0.3679, 0.0, -0.3679)),
    "rk4, step 0.15": (odeint, "rk4", {"step_size": 0.15}, (-0.2242, 0.5921, -0.3679)),
    "rk4, a step to each time": (odeint, "rk4", {}, (-0.2376, 0.6042, -0.3666)),
    "dopri5": (odeint, "dopri5", {}, (-0.2387, 0.6065, -0.3679)),
    "rk4, step 0.125, adjoint": (odeint_adjoint, "rk4", {"step_size": 0.125}, (-0.2387, 0.6065, -0.3679)),
}
for name, (solve, method, options, seen) in cases.items():
    times = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = solve(Decay(), torch.tensor(1.0, dtype=torch.float64), times, method=method, options=options)
    (derivative,) = torch.autograd.grad(y[2] - y[1], times)
    print(f"{name}: value {y[2] - y[1]:.4f}, derivative", *(f"{number:.4f}" for number in derivative))
    np.testing.assert_allclose(derivative, seen, atol=2e-4)
PROGRAM
