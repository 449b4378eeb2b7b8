"""The programs of `docs/devices.md`: on eight CPU devices, and one in two processes; a program as a user of JAX writes it."""

import json
import re

import numpy as np
import pytest

from tests import processes
from tests.processes import ROOT, finish, free_port

PAGE = ROOT / "docs" / "devices.md"


def start(devices, *command):
    return processes.start(*command, paths=["tests"], devices=devices)


def test_programs_on_eight_devices():
    pytest.importorskip("keras")
    pytest.importorskip("orbax.checkpoint")
    program = "import test_pages; test_pages.test_the_programs_of_a_page_run(test_pages.DEVICES); print('ran')"
    assert finish(start(8, "-c", program))[0].endswith("ran\n")


def test_the_program_of_two_processes(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    program = tmp_path / "two_processes.py"
    program.write_text(re.search(rf'```python title="{program.name}"\n(.*?)```', PAGE.read_text(), re.DOTALL)[1])
    coordinator = f"localhost:{free_port()}"
    each = [start(4, program, process, coordinator, tmp_path / "kept" / "w") for process in (0, 1)]
    first, second = (out.splitlines()[-1] for out in finish(*each))
    assert first == second and first.startswith("8 devices, loss ") and first.endswith("w P('data',)")


def test_a_warm_step_compiles_nothing():
    """Of data-parallel training on eight devices; `python -m benchmarks.devices` compares their times as well."""
    (printed,) = finish(start(8, "-m", "benchmarks.devices", "--quick"), codes=(0, 1))  # 1: a step was slow
    assert printed.splitlines()[-1] == "compiled while warm: 0"


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.slow), 8])
def test_training_with_optax(count):
    """Data parallel and fully sharded, on one device and on several: by a tape as by `jax.grad`."""
    pytest.importorskip("optax")
    programs = [start(devices, "tests/sharded_training.py") for devices in (1, count)]
    expected = None
    for printed in finish(*programs):
        for losses in json.loads(printed).values():
            expected = losses if expected is None else expected
            np.testing.assert_allclose(losses, expected, rtol=1e-4)
