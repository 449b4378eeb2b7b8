"""The programs of `docs/devices.md`: on eight CPU devices, and one in two processes."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "devices.md"
SECONDS = 200  # after which a program counts as hung


def start(devices, *command):
    environment = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    command = [sys.executable, *map(str, command)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(*processes, codes=(0,)):
    try:
        printed = [process.communicate(timeout=SECONDS) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (out, err) in zip(processes, printed, strict=True):
        assert process.returncode in codes, out + err[-4000:]
    return [out for out, _ in printed]


def test_programs_on_eight_devices():
    pytest.importorskip("keras")
    pytest.importorskip("orbax.checkpoint")
    program = "import test_pages; test_pages.test_the_programs_of_a_page_run(test_pages.DEVICES); print('ran')"
    assert finish(start(8, "-c", program))[0].endswith("ran\n")


def test_the_program_of_two_processes(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    program = tmp_path / "two_processes.py"
    program.write_text(re.search(rf'```python title="{program.name}"\n(.*?)```', PAGE.read_text(), re.DOTALL)[1])
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        coordinator = f"localhost:{probe.getsockname()[1]}"
    each = [start(4, program, process, coordinator, tmp_path / "kept" / "w") for process in (0, 1)]
    first, second = (out.splitlines()[-1] for out in finish(*each))
    assert first == second and first.startswith("8 devices, loss ") and first.endswith("w P('data',)")


def test_a_warm_step_compiles_nothing():
    """Of data-parallel training on eight devices; `python -m benchmarks.devices` compares their times as well."""
    (printed,) = finish(start(8, "-m", "benchmarks.devices"), codes=(0, 1))  # 1: the machine was busy, and a step slow
    assert printed.splitlines()[-1] == "compiled while warm: 0"
