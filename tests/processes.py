"""Programs that a test runs in processes of their own. None of them outlives the test."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 200  # after which they count as hung


def start(*command, paths=(), devices=None, **variables):
    """Python with this command line, on CPUs; it finds this checkout and the folders `paths` of it.

    `variables`: of the environment. How many devices there are, the program says itself or `devices` do; XLA's other flags are
    those of the tests.
    """
    flags = re.sub(r"--xla_force_host_platform_device_count=\S+", "", os.environ.get("XLA_FLAGS", ""))
    flags += f" --xla_force_host_platform_device_count={devices}" if devices else ""
    folders = [*[str(ROOT / path) for path in ("", *paths)], os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(folders), "XLA_FLAGS": flags}
    command = [sys.executable, *map(str, command)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment | variables, stdout=pipe, stderr=pipe, text=True)


def finish(*processes, codes=(0,)):
    """What each printed. One waits for ever for another that died: all are killed if one is not done in time."""
    late = None
    try:
        printed = [process.communicate(timeout=SECONDS) for process in processes]
    except subprocess.TimeoutExpired as error:
        late = error
        for process in processes:
            process.kill()
        printed = [process.communicate() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, (out, err) in zip(processes, printed, strict=True):
        assert late is None and process.returncode in codes, f"{late or process.returncode}\n{out}{err[-4000:]}"
    return [out for out, _ in printed]


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]
