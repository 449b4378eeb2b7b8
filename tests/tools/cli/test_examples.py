"""The programs in examples/: unmodified on tapejax, and (where it is installed) on TensorFlow with the same losses."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = {"tapejax": ["-m", "tapejax", "run"], "tensorflow": []}


def run_example(system, name, *arguments):
    """Run examples/NAME in a process of its own; returns what it printed."""
    env = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ
    command = [sys.executable, *SYSTEMS[system], f"examples/{name}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    if system == "tapejax":
        assert done.stderr == ""
    return done.stdout


def accuracy(output):
    """The test accuracy, in percent, that the last line of digits.py tells."""
    last = output.splitlines()[-1]
    found = re.fullmatch(r"([\d.]+)% of 359 test images read correctly after [\d.]+ s of training", last)
    assert found, output
    return float(found[1])


@pytest.fixture(scope="module")
def digits_on_tapejax(tmp_path_factory):
    pytest.importorskip("sklearn")
    file = tmp_path_factory.mktemp("digits") / "losses.json"
    output = run_example("tapejax", "digits.py", "--losses", file)
    return output, json.loads(file.read_text())


def test_digits_learns_to_read(digits_on_tapejax):
    output, losses = digits_on_tapejax
    assert accuracy(output) >= 95
    assert len(losses) == 15 * 44 and losses[0] > 2 and np.mean(losses[-44:]) < 0.1


def test_digits_draws_whole_bars_only_where_there_is_no_terminal(digits_on_tapejax):
    *bars, _ = digits_on_tapejax[0].splitlines()
    assert len(bars) == 15 and "\r" not in digits_on_tapejax[0]
    assert all(re.fullmatch(r"epoch [ \d]\d/15 \[={24}\] loss \d\.\d{4}, test accuracy [\d.]+%", bar) for bar in bars)


@pytest.mark.tensorflow
@pytest.mark.slow
def test_digits_has_the_losses_of_tensorflow(digits_on_tapejax, tmp_path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    output = run_example("tensorflow", "digits.py", "--losses", tmp_path / "losses.json")
    assert accuracy(output) >= 95
    theirs = json.loads((tmp_path / "losses.json").read_text())
    np.testing.assert_allclose(digits_on_tapejax[1], theirs, rtol=0, atol=1e-3)


def test_digits_refuses_unknown_options():
    pytest.importorskip("sklearn")
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    command = [sys.executable, "-m", "tapejax", "run", "examples/digits.py", "--epoch-count", "3"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "usage: digits.py" in done.stderr and "--epoch-count" in done.stderr and "Traceback" not in done.stderr
