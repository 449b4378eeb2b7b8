"""One measurement, in a process of its own: ``python -m benchmarks.worker WORKLOAD SYSTEM SECONDS [cpu]``.

Prints one line of JSON: the loss of the first step; in milliseconds the first step, the mean of the hundred after it, the
median and the tenth and ninetieth percentile of the steps once warm, and the slowest of all; and by how many MiB the process
grew at its peak. With ``cpu`` it counts the CPU time of all threads, which changes less where the machine does something else.
Both clocks run in any case: of each it prints the median of the steps once warm, and the mean of the hundred after the first.
``python -m benchmarks.worker import SYSTEM`` times the import alone, ``python -m benchmarks.worker capture SECONDS`` a
step that notes the lines of the user's code, as all do, and one that does not.
"""

from __future__ import annotations

import importlib
import itertools
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import torch_workloads
from benchmarks.workloads import WORKLOADS, Step

# Seconds before measuring: tapejax compiles an operation once it has come back often enough, PyTorch and XLA fill their pools.
WARM_UP = 2.5


def measure(name: str, system: str, seconds: float, kind: str = "") -> dict[str, float]:
    """Time the workload ``name`` under ``system``, for about ``seconds`` once it is warm."""
    clocks = [time.process_time, time.perf_counter]
    clock = clocks[0] if kind == "cpu" else clocks[1]
    workload = WORKLOADS[name]
    step, wait = SYSTEMS[system](name)
    before = peak_memory()
    numbers = itertools.count()

    def timed(together: int = workload.together) -> tuple[Any, list[float]]:
        started = [clock() for clock in clocks]
        for _ in range(together):
            loss, gradients = step(next(numbers))
        wait(loss, gradients)
        return loss, [1e3 * (clock() - start) / together for clock, start in zip(clocks, started, strict=True)]

    def repeat(seconds: float, least: int, most: int) -> list[list[float]]:
        """The times of steps, by clock."""
        end, times = clock() + seconds, list[list[float]]()
        while len(times) < least or (len(times) < most and clock() < end):
            times.append(timed()[1])
        return [list(by_clock) for by_clock in zip(*times, strict=True)]

    which = clocks.index(clock)
    loss, firsts = timed(1)
    hundreds = repeat(WARM_UP, least=3, most=-(-100 // workload.together))
    warm_up = repeat(WARM_UP, least=3, most=1000)
    both = repeat(seconds, least=5, most=2000)
    first, hundred, times = firsts[which], hundreds[which], both[which]
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    return {
        "loss": float(loss.detach() if hasattr(loss, "detach") else loss),  # PyTorch warns else
        "first": first,
        "hundred": statistics.fmean(hundred),
        "median": statistics.median(times),
        "low": tenths[0],
        "high": tenths[-1],
        "memory": peak_memory() - before,
        "slowest": max(first, *hundred, *warm_up[which], *times),
        "repeats": len(times),
        "cpu": statistics.median(both[0]),
        "clock": statistics.median(both[1]),
        "cpu_hundred": statistics.fmean(hundreds[0]),
        "clock_hundred": statistics.fmean(hundreds[1]),
    }


def peak_memory() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def import_time(system: str) -> dict[str, float]:
    """Import ``system``; of tapejax what it takes beyond ``jax.numpy``, on which it stands, and all of it or the tape alone."""
    if system.startswith("tapejax"):
        importlib.import_module("jax.numpy")
    started, cpu = time.perf_counter(), time.process_time()
    module = importlib.import_module(system)
    if system == "tapejax":
        module.GradientTape  # noqa: B018  # the first name imports all that there is
    return {"median": 1e3 * (time.perf_counter() - started), "cpu": 1e3 * (time.process_time() - cpu)}


def capture_times(seconds: float) -> dict[str, dict[str, float]]:
    """The chain of 400 operations with and without the line of each, in turn; a line's cost in microseconds."""
    import jax

    import tapejax
    from tapejax.tape import active, dispatch

    step, calls = WORKLOADS["chain"].taped(tapejax), dispatch.call_stack
    kinds = {"tapejax": calls, "no lines": lambda skip, block: (None, ())}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    end = time.perf_counter() + seconds
    while len(times["tapejax"]) < 10 or time.perf_counter() < end:
        for kind, active.call_stack in kinds.items():
            dispatch.call_stack = active.call_stack
            started = time.perf_counter()
            jax.block_until_ready(step(0))
            times[kind].append(1e3 * (time.perf_counter() - started))
    active.call_stack = dispatch.call_stack = calls
    found = {kind: {"median": statistics.median(some[3:])} for kind, some in times.items()}
    least = [min(some) for some in times.values()]  # disturbances only add
    found["tapejax"]["line"] = 1e3 * (least[0] - least[1]) / 400
    return found


# ---- how each system builds a step, and waits for its results

Wait = Callable[[Any, Any], Any]


def _tapejax(name: str) -> tuple[Step, Wait]:
    import jax

    import tapejax

    workload = WORKLOADS[name]
    return (workload.tapejax or workload.taped)(tapejax), lambda *results: jax.block_until_ready(results)


def _tensorflow(name: str) -> tuple[Step, Wait]:
    import tensorflow as tf

    # On a CPU an eager operation has ended when it returns; numpy() makes sure without copying large gradients.
    return WORKLOADS[name].taped(tf), lambda loss, gradients: (loss.numpy(), gradients[-1].numpy())


def _tf_function(name: str) -> tuple[Step, Wait]:
    import tensorflow as tf

    step, wait = _tensorflow(name)
    compiled = tf.function(step)
    return lambda i: compiled(0), wait  # a new Python number would be a new trace


def _torch(name: str) -> tuple[Step, Wait]:
    import torch

    on_a_gpu = torch.cuda.is_available()
    if on_a_gpu:
        torch.set_default_device("cuda")
    return torch_workloads.STEPS[name](torch), lambda *results: torch.cuda.synchronize() if on_a_gpu else None


def _jax_grad(name: str) -> tuple[Step, Wait]:
    import jax

    return WORKLOADS[name].functional(lambda f: f), lambda *results: jax.block_until_ready(results)


def _jax_jit(name: str) -> tuple[Step, Wait]:
    import jax

    return WORKLOADS[name].functional(jax.jit), lambda *results: jax.block_until_ready(results)


SYSTEMS: dict[str, Callable[[str], tuple[Step, Wait]]] = {
    "tapejax": _tapejax,
    "tensorflow": _tensorflow,
    "tf.function": _tf_function,
    "torch": _torch,
    "jax.grad": _jax_grad,
    "jax.jit": _jax_jit,
}


if __name__ == "__main__":
    name, system, *seconds = sys.argv[1:]
    if name == "import":
        print(json.dumps(import_time(system)))
    elif name == "capture":
        print(json.dumps(capture_times(float(system))))
    else:
        print(json.dumps(measure(name, system, float(seconds[0]), *seconds[1:])))
