"""Tapes over eight devices, in a process of their own: JAX decides how many CPUs it has when it starts."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("width", ["32", "64"])
def test_eight_devices(width):
    here = pathlib.Path(__file__).parent
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": "8",
        "PYTHONPATH": os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, here / "sharded_jax.py", width], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "tape inside"
