"""``python -m benchmarks libraries``: a step of libraries of the JAX ecosystem, under a tape and by ``jax.value_and_grad``.

A warm step is set beside ``jax.value_and_grad`` that is not jitted, in pairs, the first one beside the first of
``jax.jit(jax.value_and_grad)``. CPU milliseconds of all threads are counted, because they change less than those of the clock
when the machine does something else as well. Libraries that are not installed are left out: ``pip install -e '.[libraries]'``.

``python -m benchmarks.libraries NAME`` is one step, in a process of its own; it prints one line of JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.library_steps import CASES

ROOT = Path(__file__).resolve().parents[1]
WARM, FIRST = 1.0, 1.5  # at most these times what JAX takes
WARM_UP, LEAST_PAIRS = 5, 5


def measure(name: str, seconds: float) -> dict[str, float]:
    """Milliseconds of the first and of warm steps, and compilations in a warm one."""
    import jax

    from tapejax import GradientTape  # what it loads belongs to no step

    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **more: compiled.append(event) if "backend_compile" in event else None
    )
    function, x = CASES[name]()

    def taped() -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    def timed(step: Callable[[], Any]) -> float:
        start = time.process_time()
        jax.block_until_ready(step())
        return 1e3 * (time.process_time() - start)

    def counted(step: Callable[[], Any]) -> tuple[float, int]:
        compiled.clear()
        return timed(step), len(compiled)

    def in_pairs(ours: Callable[[], Any], jaxs: Callable[[], Any]) -> dict[str, float]:
        for step in (ours, jaxs) * WARM_UP:
            timed(step)
        until, pairs = time.perf_counter() + seconds, []
        while time.perf_counter() < until or len(pairs) < LEAST_PAIRS:
            pairs.append((counted(ours), counted(jaxs)))
        of = {"warm": [x for x, _ in pairs], "jax warm": [x for _, x in pairs]}
        rows = {name: statistics.median([t for t, _ in times]) for name, times in of.items()}
        rows["ratio"] = statistics.median([x[0] / y[0] for x, y in pairs])
        rows["compiled"], rows["jax compiled"] = [statistics.mean([n for _, n in times]) for times in of.values()]
        return rows

    jitted = jax.jit(jax.value_and_grad(lambda x: function(x)))
    timed(lambda: jitted(x))  # what is imported, traced and compiled once for all
    jax.clear_caches()
    again = jax.jit(jax.value_and_grad(lambda x: function(x)))
    rows = {"jax first": timed(lambda: again(x))}
    jax.clear_caches()
    rows["first"] = timed(taped)
    rows |= in_pairs(taped, lambda: jax.value_and_grad(function)(x))
    return rows


def run_all(rounds: int) -> dict[str, Any]:
    """The rows of every step whose library is installed, the least of each number."""
    found: dict[str, Any] = {}
    for name in CASES:
        if importlib.util.find_spec(name.partition("_")[0]) is not None:
            runs = [_run(name) for _ in range(rounds)]
            failed = [run for run in runs if isinstance(run, str)]
            found[name] = failed[0] if failed else {key: min(run[key] for run in runs) for key in runs[0]}
    return found


def _run(name: str) -> dict[str, float] | str:
    env = {"JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "TAPEJAX_COMPILATION_CACHE": "off"} | os.environ
    command = [sys.executable, "-m", "benchmarks.libraries", name]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    row: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return row


def show(found: dict[str, Any]) -> bool:
    """Prints the table; returns whether tapejax met its targets."""
    print(
        "\nlibraries: CPU milliseconds of a step under a tape, and of jax.value_and_grad (warm: not jitted; first: jitted)"
    )
    heads = ["warm", "JAX", "", "compiled", "JAX", "first", "JAX", ""]
    print(f"  {'step':<38}{''.join(f'{head:>10}' for head in heads)}")
    passed = True
    for name, row in found.items():
        if isinstance(row, str):
            print(f"  {name:<38}  failed: {row}")
            passed = False
            continue
        warm, first = row["ratio"], row["first"] / row["jax first"]
        good = warm <= WARM and first <= FIRST and row["compiled"] < 0.1  # one that came back often enough is compiled
        passed &= good
        numbers = [f"{row['warm']:.2f}", f"{row['jax warm']:.2f}", f"{warm:.2f} x"]
        numbers += [f"{row['compiled']:.1f}", f"{row['jax compiled']:.1f}"]
        numbers += [f"{row['first']:.0f}", f"{row['jax first']:.0f}", f"{first:.2f} x"]
        print(f"  {name:<38}{''.join(f'{number:>10}' for number in numbers)}  {'pass' if good else 'FAIL'}")
    return passed


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], 1.0)))
