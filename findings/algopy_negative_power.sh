#!/bin/bash
# AlgoPy 0.7.2, NumPy 2.4.6: reverse mode through `x**-1` or `x**-2`, with the exponent a negative Python integer, gives a gradient and a
# Hessian of zeros, in silence. The value is right, so is forward mode, and so is reverse mode of `x**-1.0` and of `1 / x`. An inverse
# square law has no gradient, and an optimizer stops where it starts.
#
# Guessed: both modes agree, as they do for positive exponents.
# Seen, of the sum over [2, 4], reverse and forward:
#   x**-1: [0.0, 0.0] and [-0.25, -0.0625]
#   x**-2: [0.0, 0.0] and [-0.25, -0.03125]
#   x**-1.0: [-0.25, -0.0625] and [-0.25, -0.0625]
#   1 / x: [-0.25, -0.0625] and [-0.25, -0.0625]
#   x**3: [12.0, 48.0] and [12.0, 48.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check algopy==0.7.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import algopy
import numpy as np

x = np.array([2.0, 4.0])
cases = {
    "x**-1": (lambda x: x**-1, [0.0, 0.0], [-0.25, -0.0625]),
    "x**-2": (lambda x: x**-2, [0.0, 0.0], [-0.25, -0.03125]),
    "x**-1.0": (lambda x: x**-1.0, [-0.25, -0.0625], [-0.25, -0.0625]),
    "1 / x": (lambda x: 1 / x, [-0.25, -0.0625], [-0.25, -0.0625]),
    "x**3": (lambda x: x**3, [12.0, 48.0], [12.0, 48.0]),
}
for name, (f, reverse_seen, forward_seen) in cases.items():
    graph = algopy.CGraph()
    source = algopy.Function(x)
    target = algopy.sum(f(source))
    graph.trace_off()
    graph.independentFunctionList, graph.dependentFunctionList = [source], [target]
    assert np.isclose(target.x, f(x).sum())
    reverse = graph.gradient(x)
    forward = algopy.UTPM.extract_jacobian(algopy.sum(f(algopy.UTPM.init_jacobian(x))))
    print(f"{name}: {reverse.tolist()} and {forward.tolist()}")
    np.testing.assert_allclose(reverse, reverse_seen)
    np.testing.assert_allclose(forward, forward_seen)
    assert graph.hessian(x).any() == reverse.any()
PROGRAM
