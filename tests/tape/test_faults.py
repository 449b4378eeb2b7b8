"""Whatever is raised, wherever: JAX's trace is as it was, nothing is left over, and the next tape is right. See `faults`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tape import faults

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", faults.PROGRAMS)
def test_random_calls(name):
    faults.expected(name)
    wrong = faults.random_calls(name, 5, seed=1)
    assert not wrong, wrong[:10]


@pytest.mark.slow
@pytest.mark.parametrize("name", faults.PROGRAMS)
def test_every_call(name):
    faults.expected(name)
    count, wrong = faults.every_call(name)
    assert count > 200 and not wrong, wrong[:10]


def run(*arguments):
    command = [sys.executable, "-W", "ignore", "-m", "tests.tape.faults", *map(str, arguments)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr


def test_interrupts():
    run("--interrupts", 40, "--program", "both_entrances", "--program", "in_and_out")


@pytest.mark.slow
def test_thousands_of_interrupts():
    run("--interrupts", 5000)
