"""``python -m benchmarks [NAME ...]``: the same lines under tapejax, TensorFlow and plain JAX, and what PyTorch's users write.

Every pair of workload and system is timed in a process of its own, the systems in turn, on the CPU. The ratios of one
run are worth comparing; milliseconds depend on the machine and on what else it does. Exit status 1 says that tapejax
missed a target or that its loss is not that of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks import libraries, lines, short, start
from benchmarks.torch_workloads import STEPS
from benchmarks.worker import SYSTEMS
from benchmarks.workloads import ON_A_GPU, WORKLOADS

IMPORT = "import"
IMPORT_LIMIT = 150.0  # milliseconds of CPU that tapejax may take over jax.numpy
CAPTURE = "capture"
CAPTURE_LIMIT = 2.0  # microseconds that noting the line may take, per operation
LINES = "lines"  # of code; counted only if named
SHORT = "short"  # whole short programs; run only if named
START = "start"  # scripts from their beginning; run only if named
LIBRARIES = "libraries"  # steps of other libraries; run only if named
# by both clocks: the steps once warm, and the hundred after the first
BOTH = ("cpu", "clock", "cpu_hundred", "clock_hundred")
ROOT = Path(__file__).resolve().parents[1]

TITLES = {
    IMPORT: "tapejax, all of it and its tape alone, is what it adds to jax.numpy",
    CAPTURE: "chain of 400 scalar operations, with and without the line that ran each",
}

Times = dict[str, float]


def main(argv: list[str] | None = None) -> int:
    """Time what is asked for, print tables, and return the exit status."""
    options = _options(argv)
    results: dict[str, Any] = {}
    passed = True
    for name in options.names or (ON_A_GPU if options.gpu else [*WORKLOADS, CAPTURE, IMPORT]):
        if name == LINES:
            results[name] = counts = lines.count_tree(ROOT / "tapejax")
            print(lines.report(counts))
            continue
        if name == SHORT:
            results[name] = short.run_all(rounds=1 if options.quick else 3)
            passed &= short.show(results[name])
            continue
        if name == START:
            results[name] = start.run_all(rounds=1 if options.quick else 3)
            passed &= start.show(results[name])
            continue
        if name == LIBRARIES:
            results[name] = libraries.run_all(rounds=1 if options.quick else 3)
            passed &= libraries.show(results[name])
            continue
        if name == IMPORT:
            results[name] = _import_times(options.systems, repeats=1 if options.quick else 5)
        elif name == CAPTURE:
            found: Any = _worker(CAPTURE, "1" if options.quick else "6")
            results[name] = {"tapejax": found} if isinstance(found, str) else found
        else:
            without = WORKLOADS[name].without | (set() if name in STEPS else {"torch"})
            systems = [system for system in options.systems if system not in without]
            results[name] = _step_times(name, systems, *((1, 0.3) if options.quick else (3, 1.5)), options.cpu)
        passed &= _show(name, results[name])
    if options.json:
        options.json.write_text(json.dumps({"versions": _versions(), "results": results}, indent=2) + "\n")
    if options.plot:
        _plot({name: results[name] for name in results if name in WORKLOADS}, options.plot)
    return 0 if passed else 1


def _options(argv: list[str] | None) -> argparse.Namespace:
    names = [*WORKLOADS, CAPTURE, IMPORT, LINES, SHORT, START, LIBRARIES]
    parser = argparse.ArgumentParser("python -m benchmarks", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which ones (default: all but {LINES}, {SHORT}, {START} and {LIBRARIES}): {', '.join(names)}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to FILE, too")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the workloads, too (needs matplotlib)")
    parser.add_argument(
        "--gpu", action="store_true", help=f"on JAX's default device; by default these: {', '.join(ON_A_GPU)}"
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="count CPU time of all threads: for a machine that does something else as well",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats: rough numbers in less time")
    parser.add_argument(
        "--systems",
        type=lambda text: text.split(","),
        default=list(SYSTEMS),
        metavar="A,B",
        help=f"only these systems (default: {','.join(SYSTEMS)})",
    )
    options = parser.parse_args(argv)
    for given, known in [(options.names, names), (options.systems, list(SYSTEMS))]:
        if unknown := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    if not options.gpu:
        os.environ.update(JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="-1")
    return options


def _worker(*arguments: str) -> Times | str:
    """Run one measurement; returns its numbers, or the last line of the error that ended it."""
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # to import without byte code takes all of them several times as long
    command = [sys.executable, "-m", "benchmarks.worker", *arguments]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def _step_times(name: str, systems: list[str], rounds: int, seconds: float, cpu: bool) -> dict[str, Times | str]:
    """Time the systems in turn, several rounds: what else the machine does then disturbs all of them, not one."""
    how = [str(seconds), *["cpu"] * cpu]
    runs = [{system: _worker(name, system, *how) for system in systems} for _ in range(rounds)]
    return {system: _together([run[system] for run in runs]) for system in systems}


def _together(runs: list[Times | str]) -> Times | str:
    """One row out of several: the median of each number, but of the spread and the slowest step the extremes."""
    good = [run for run in runs if not isinstance(run, str)]
    if len(good) < len(runs):
        return next(run for run in runs if isinstance(run, str))
    kinds: dict[str, Any] = {"low": min, "high": max, "slowest": max}
    return {key: kinds.get(key, statistics.median)([run[key] for run in good]) for key in good[0]}


def _import_times(systems: list[str], repeats: int) -> dict[str, Times | str]:
    times: dict[str, Times | str] = {}
    for module in [
        "jax.numpy",
        *(x for x in ("tapejax", "tapejax.tape", "tensorflow") if x.partition(".")[0] in systems),
    ]:
        _worker(IMPORT, module)  # the first import reads the files from disk
        times[module] = _together([_worker(IMPORT, module) for _ in range(repeats)])
    return times


# ---- the tables


def _show(name: str, times: dict[str, Times | str]) -> bool:
    """Print one workload's table; returns whether tapejax met its targets."""
    title = f"{name}: {TITLES.get(name) or WORKLOADS[name].title}"
    heads = ["ms a step", "10 %", "90 %", "first", "next 100", "slowest", "MiB", "CPU", "clock", "CPU 100", "clock 100"]
    print(f"\n{title}\n  {'system':<12}{''.join(f'{head:>11}' for head in heads)}{'tapejax takes':>24}")
    passed = True
    ours = times.get("tapejax")
    for system, row in times.items():
        if isinstance(row, str):
            print(f"  {system:<12}  failed: {row}")
            passed &= system != "tapejax"
            continue
        cells = "".join(
            f"{_milliseconds(row.get(key)):>11}"
            for key in ("median", "low", "high", "first", "hundred", "slowest", "memory", *BOTH)
        )
        ratio, verdict = "", ""
        if isinstance(ours, dict):
            ratio = _ratios(ours, row) if system != "tapejax" else ""
            verdict, good = _verdict(name, system, ours, row)
            passed &= good
        print(f"  {system:<12}{cells}{ratio:>24}  {verdict}".rstrip(), flush=True)
    return passed


def _ratios(ours: Times, theirs: Times) -> str:
    """Of the steps once warm, and in brackets of the hundred steps after the first."""
    early = f" ({ours['hundred'] / theirs['hundred']:.3g} x)" if "hundred" in ours and "hundred" in theirs else ""
    return f"{ours['median'] / theirs['median']:.3g} x{early}"


def _verdict(name: str, system: str, ours: Times, theirs: Times) -> tuple[str, bool]:
    """What the row of ``system`` says of tapejax: its target, if there is one, and that the losses agree."""
    checks: list[tuple[str, bool]] = []
    if name == IMPORT:
        if system == "tapejax":
            checks.append((f"at most {IMPORT_LIMIT:g} ms of CPU", ours["cpu"] <= IMPORT_LIMIT))
    elif name == CAPTURE:
        if system == "tapejax":
            cost = f"a line costs {ours['line']:.2f} us, at most {CAPTURE_LIMIT:g} us"
            checks.append((cost, ours["line"] <= CAPTURE_LIMIT))
    else:
        workload = WORKLOADS[name]
        for target in workload.targets:
            if target.system == system:
                limit = target.limit * theirs["median"] + target.plus
                more = f" + {1e3 * target.plus:g} us" if target.plus else ""
                checks.append((f"at most {target.limit:.3g} x{more}", ours["median"] <= limit))
        for target in workload.first:
            if target.system == system:
                limit = target.limit * theirs["first"]
                checks.append((f"first step at most {target.limit:.3g} x", ours["first"] <= limit))
        if workload.memory and workload.memory.system == system:
            limit = workload.memory.limit * theirs["memory"]
            checks.append((f"memory at most {workload.memory.limit:.3g} x", ours["memory"] <= limit))
        if system == "tapejax" and workload.slowest_step is not None:
            limit = workload.slowest_step
            checks.append((f"no step over {limit:g} s", ours["slowest"] <= 1e3 * limit))
        if abs(ours["loss"] - theirs["loss"]) > 1e-3 * abs(theirs["loss"]):
            checks.append((f"same loss ({ours['loss']:.6g}, {theirs['loss']:.6g})", False))
    text = ", ".join(f"{what}: {'pass' if good else 'FAIL'}" for what, good in checks)
    return text, all(good for _, good in checks)


def _plot(results: dict[str, dict[str, Times | str]], file: Path) -> None:
    """Milliseconds a step, a row for each workload, on a logarithmic axis; bars: the tenth to the ninetieth percentile."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.45 * len(results)), layout="constrained")
    for number, system in enumerate(SYSTEMS):
        rows = [
            (place + 0.1 * (number - len(SYSTEMS) / 2), row)
            for place, times in enumerate(results.values())
            if isinstance(row := times.get(system), dict)
        ]
        if rows:
            medians = [row["median"] for _, row in rows]
            spread = [[row["median"] - row["low"] for _, row in rows], [row["high"] - row["median"] for _, row in rows]]
            marker = "D" if system == "tapejax" else "o"
            axes.errorbar(medians, [y for y, _ in rows], xerr=spread, fmt=marker, label=system, markersize=5)
    axes.set(xscale="log", xlabel="milliseconds a step", title=", ".join(f"{k} {v}" for k, v in _versions().items()))
    axes.set_yticks(range(len(results)), list(results))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.title.set_fontsize("small")
    axes.legend()
    figure.savefig(file)


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}" if value < 10 else f"{value:,.1f}"


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "cpus": str(os.cpu_count())}
    for package in ("tapejax", "jax", "tensorflow", "tensorflow-cpu", "torch"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    sys.exit(main())
