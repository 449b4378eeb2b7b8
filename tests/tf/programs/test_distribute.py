"""Programs of `tf.distribute` on one device, on two and on four: TensorFlow's results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PROGRAMS = Path(__file__).with_name("replicated.py")
KEPT = json.loads(PROGRAMS.with_suffix(".json").read_text(encoding="utf-8"))
ROOT = Path(__file__).resolve().parents[3]


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, list) else [x]


@pytest.mark.processes
@pytest.mark.parametrize("count", ["1", "2", "4"])
def test_programs(count):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("XLA_FLAGS", None)  # may ask for another number of devices
    command = [sys.executable, str(PROGRAMS), "tapejax", count]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == list(KEPT[count])
    for name, expected in KEPT[count].items():
        assert len(flat(found[name])) == len(flat(expected)), name
        np.testing.assert_allclose(flat(found[name]), flat(expected), rtol=2e-5, atol=1e-6, err_msg=name)
