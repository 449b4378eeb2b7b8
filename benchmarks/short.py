"""``python -m benchmarks short``: the CPU time of whole short programs, imports left out, under TensorFlow and tapejax.

The programs are the files in ``programs/``. Each runs in a process of its own, under TensorFlow as it is and under tapejax as
``tapejax run`` runs it: cold, and once more with JAX's compilation cache as the first run left it. CPU seconds of all
threads are counted, because they change less than seconds of the clock when the machine does something else as well.

``python -m benchmarks.short NAME SYSTEM`` is one such run; it prints one line of JSON.
"""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = tuple(sorted(path.stem for path in FOLDER.glob("*.py")))
SYSTEMS = ("tensorflow", "tapejax", "warm")
LIMITS = {"tapejax": (1.5, 3.0), "warm": (1.0, None)}  # times TensorFlow's: of the sum, and of any one program


# ---- one run


def measure(name: str, system: str) -> dict[str, Any]:
    """Runs one program; its CPU seconds, what it printed, and the seconds of each of JAX's compiles by name."""
    program = FOLDER / f"{name}.py"
    compiles: dict[str, list[float]] = collections.defaultdict(list)
    phases: dict[str, float] = collections.defaultdict(float)
    run = _prepare(system, _needs_keras(program), compiles, phases)
    output = io.StringIO()
    start, clock = time.process_time(), time.perf_counter()
    with contextlib.redirect_stdout(output):
        status = run(program)
    seconds, clock = time.process_time() - start, time.perf_counter() - clock
    if status:
        raise SystemExit(f"{name} ended with status {status}")
    return {"seconds": seconds, "clock": clock, "output": output.getvalue(), "compiles": compiles, "phases": phases}


def _needs_keras(program: Path) -> bool:
    return any(f"tf.{name}" in program.read_text() for name in ("keras", "initializers", "optimizers"))


def _prepare(system: str, keras: bool, compiles: Any, phases: Any) -> Any:
    """What runs a program, with all that it imports imported."""
    if system == "tensorflow":
        import tensorflow as tf

        if keras:
            tf.keras.Sequential  # noqa: B018  # imported at the first look
        return lambda program: runpy.run_path(str(program)) and 0
    if keras:
        os.environ["KERAS_BACKEND"] = "jax"
        import keras  # noqa: F401
    import jax
    import scipy.linalg  # noqa: F401  # JAX imports it at the first call of LAPACK

    import tapejax
    from tapejax.tools.cli import runner

    tapejax.data, tapejax.random, tapejax.keras if keras else None  # noqa: B018

    def listen(event: str, duration: float, **about: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            phases[event.rpartition("/")[2]] += duration
            if event.endswith("backend_compile_duration"):
                compiles[str(about.get("fun_name", "?"))].append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return runner.run


# ---- all runs


def run_all(rounds: int, names: tuple[str, ...] = PROGRAMS) -> dict[str, dict[str, Any]]:
    """The least CPU seconds of every program under every system, the systems in turn."""
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for _ in range(rounds):
        for name in names:
            with tempfile.TemporaryDirectory() as cache:
                for system in SYSTEMS:
                    row = _run(name, system, cache)
                    rows = found[name].get(system, row), row
                    # one that failed is what is reported
                    found[name][system] = min(rows, key=lambda row: row["seconds"] if isinstance(row, dict) else -1)
    return found


def _run(name: str, system: str, cache: str) -> dict[str, Any] | str:
    env = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"} | os.environ
    env["TAPEJAX_COMPILATION_CACHE"] = cache if system == "warm" else "off"
    if system == "warm":  # what an earlier run leaves is made first
        _process(name, "tapejax", env)
    return _process(name, system, env)


def _process(name: str, system: str, env: dict[str, str]) -> dict[str, Any] | str:
    command = [sys.executable, "-m", "benchmarks.short", name, system]
    done = subprocess.run(command, env=env, cwd=FOLDER.parents[1], capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def show(found: dict[str, dict[str, Any]]) -> bool:
    """Prints the table; returns whether tapejax met its targets."""
    print("\nshort: CPU seconds of whole programs, imports left out")
    print(
        f"  {'program':<22}{'TensorFlow':>11}{'tapejax':>9}{'':>8}{'warm':>8}{'':>8}   compiles (seconds of the clock)"
    )
    passed = True
    sums: dict[str, float] = collections.defaultdict(float)
    for name, rows in found.items():
        failed = {system: row for system, row in rows.items() if isinstance(row, str)}
        if failed:
            print(f"  {name:<22}  failed: {failed}")
            passed = False
            continue
        seconds = {system: row["seconds"] for system, row in rows.items()}
        for system in seconds:
            sums[system] += seconds[system]
        durations = [each for some in rows["tapejax"]["compiles"].values() for each in some]
        worst = LIMITS["tapejax"][1]
        assert worst is not None
        passed &= seconds["tapejax"] <= worst * seconds["tensorflow"]
        print(_line(name, seconds) + f"   {len(durations):4} ({sum(durations):.2f})")
    if sums:
        print(_line("sum", sums))
        passed &= all(sums[system] <= limit * sums["tensorflow"] for system, (limit, _) in LIMITS.items())
    return passed


def _line(name: str, seconds: dict[str, float]) -> str:
    cells = f"  {name:<22}{seconds['tensorflow']:>11.2f}"
    for system, width in (("tapejax", 9), ("warm", 8)):
        ratio = f"{seconds[system] / seconds['tensorflow']:.2f} x"
        cells += f"{seconds[system]:>{width}.2f}{ratio:>8}"
    return cells


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
