"""``python -m benchmarks start``: the CPU time of a script from its beginning, under tapejax, TensorFlow and PyTorch.

Each run is a process of its own, the systems in turn; PyTorch runs with one thread and with all, and the faster counts, since
threads that wait for small operations spin. CPU seconds of all threads, from the start of Python.

``python -m benchmarks.start WORKLOAD SYSTEM STEP,STEP`` is one such run; it prints one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.torch_workloads import STEPS
from benchmarks.workloads import WORKLOADS

SYSTEMS = {"tapejax": "tapejax", "tensorflow": "tensorflow", "torch": "torch", "torch, one thread": "torch"}
# Of each workload the steps at which the clock is read, and the last one that TensorFlow does.
READ = {"small-mlp": ((1, 100, 1500), 100), "rnn": ((60,), 0)}
# What is compared: the workload, from which reading to which, and the most that tapejax takes of the others' time.
ROWS = {
    "a script: import, 100 steps of the small MLP": ("small-mlp", None, "100", {"torch": 0.65, "tensorflow": 0.22}),
    "steps 2 to 100 of the small MLP": ("small-mlp", "1", "100", {"tensorflow": 0.2}),
    "the first 1,500 steps of the small MLP": ("small-mlp", "import", "1500", {"torch": 1.8}),
    "60 steps of the RNN": ("rnn", "import", "60", {"torch": 1.5}),
}

Times = dict[str, float]


def measure(name: str, system: str, reads: list[int]) -> Times:
    """CPU seconds when all is imported, and after each of the steps `reads`."""
    module = importlib.import_module(SYSTEMS[system])
    if SYSTEMS[system] != "torch":
        module.GradientTape  # noqa: B018  # the first name imports all that there is
    elif system != "torch":
        module.set_num_threads(1)
    found = {"import": time.process_time()}
    step = STEPS[name](module) if SYSTEMS[system] == "torch" else WORKLOADS[name].taped(module)
    for i in range(max(reads)):
        loss, _ = step(i)
        float(loss.detach() if SYSTEMS[system] == "torch" else loss)  # waits for it
        if i + 1 in reads:
            found[str(i + 1)] = time.process_time()
    return found


def run_all(rounds: int) -> dict[str, dict[str, Times]]:
    """The medians of every workload under every system."""
    found: dict[str, dict[str, Times]] = {}
    for name, (reads, of_tensorflow) in READ.items():
        runs: dict[str, list[Times]] = {}
        for _ in range(rounds):
            for system in SYSTEMS:
                wanted = [i for i in reads if system != "tensorflow" or i <= of_tensorflow]
                if wanted:
                    runs.setdefault(system, []).append(_process(name, system, wanted))
        found[name] = {
            system: {key: statistics.median([run[key] for run in some]) for key in some[0]}
            for system, some in runs.items()
        }
    return found


def _process(name: str, system: str, reads: list[int]) -> Times:
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "benchmarks.start", name, system, ",".join(map(str, reads))]
    done = subprocess.run(
        command, env=env, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True
    )
    times: Times = json.loads(done.stdout.strip().splitlines()[-1])
    return times


def show(found: dict[str, dict[str, Times]]) -> bool:
    """Prints the table; returns whether tapejax met its targets."""
    print(f"\nstart: CPU seconds\n  {'':<46}{'tapejax':>9}{'TensorFlow':>12}{'PyTorch':>9}")
    passed = True
    for title, (name, start, end, limits) in ROWS.items():
        spent = {
            system: times[end] - (times[start] if start else 0) for system, times in found[name].items() if end in times
        }
        spent["torch"] = min(spent["torch"], spent.pop("torch, one thread"))
        ratios = {system: spent["tapejax"] / spent[system] for system in limits}
        verdicts = [
            f"{ratios[system]:.2f} of {system}, at most {limit}: {'pass' if ratios[system] <= limit else 'FAIL'}"
            for system, limit in limits.items()
        ]
        passed &= all(ratios[system] <= limit for system, limit in limits.items())
        cells = "".join(
            f"{spent[system]:>{width}.2f}" if system in spent else " " * width
            for system, width in (("tapejax", 9), ("tensorflow", 12), ("torch", 9))
        )
        print(f"  {title:<46}{cells}  {'; '.join(verdicts)}")
    return passed


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], [int(x) for x in sys.argv[3].split(",")])))
