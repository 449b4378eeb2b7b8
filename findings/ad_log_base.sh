#!/bin/bash
# ad 1.5.1: `admath.log(x, base)` takes a base that is an AD number, and its value is right, but the base counts as a constant: the first and the
# second derivative with respect to it are 0, in silence. `log(x) / log(base)` is the same function and has them.
#
# Guessed: one derivative.
# Seen, at x = 8, base = 2, first with respect to x, then first and second to the base:
#   log(x, base) = 3.0: 0.1803, 0.0000, 0.0000
#   log(x) / log(base) = 3.0: 0.1803, -2.1640, 4.2041
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ad==1.5.1
"$folder/venv/bin/python" - <<'PROGRAM'
from ad import adnumber
from ad.admath import log

x, base = adnumber(8.0), adnumber(2.0)
forms = {"log(x, base)": (log(x, base), [0.1803, 0.0, 0.0]), "log(x) / log(base)": (log(x) / log(base), [0.1803, -2.1640, 4.2041])}
for name, (y, seen) in forms.items():
    found = [y.d(x), y.d(base), y.d2(base)]
    print(f"{name} = {y.x:.1f}: {found[0]:.4f}, {found[1]:.4f}, {found[2]:.4f}")
    assert y.x == 3.0 and [round(float(d), 4) for d in found] == seen
PROGRAM
