"""The long hunts: ``python -m tests.tape.hunt twins --count 30000 --seed 0``, ``... programs --count 100000 --seed 0``.

A failure is printed with the seed and the index that make it again (``--only INDEX``), and the hunt goes on; at the end the
failures are counted by kind. The exit status says whether there was any.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")  # both take time for every program
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
# Two devices for the twins that differ in a sharding; code that runs once need not be optimised.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0")

import argparse  # noqa: E402
import collections  # noqa: E402
import gc  # noqa: E402
import random  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterable  # noqa: E402

import jax  # noqa: E402
from jax._src import traceback_util  # noqa: E402

REPORT_EVERY = 200
# JAX's own caches grow without bound in a process that makes new functions all the time; to fill them again takes a minute.
CLEAR_AFTER = 2 << 30  # bytes
# A case takes some hundredths of a second.
TIMEOUT = 60


class TookTooLong(BaseException):
    """Not an Exception: those are caught in many places."""


def _raise(*_: object) -> None:
    raise TookTooLong


def resident() -> int:
    """The memory that this process holds, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hunt(what: str, seed: int, indices: Iterable[int], shown: int, verbose: bool, only: str, first_only: bool) -> int:
    """Runs the cases with these numbers; returns how many failed."""
    if what == "twins":
        from . import twins as cases
    else:
        from . import programs as cases  # type: ignore[no-redef]
    warnings.simplefilter("ignore")
    # JAX walks the whole stack for every exception, also for those that it raises and catches itself
    traceback_util._is_under_reraiser = lambda error: True
    signal.signal(signal.SIGALRM, _raise)
    kinds: collections.Counter = collections.Counter()
    first: dict[str, int] = {}
    counts: collections.Counter = collections.Counter()
    began = time.perf_counter()
    used = time.process_time()
    clear_at = resident() + CLEAR_AFTER
    count = 0
    for count, index in enumerate(indices, 1):
        if first_only and kinds:
            break
        case = cases.generate(random.Random(f"{seed} {index}"), *([only] if only else []))
        if verbose:
            print(f"--- {index}\n{case}", flush=True)
        signal.setitimer(signal.ITIMER_REAL, TIMEOUT)
        try:
            verdict = cases.judge(case)
        except TookTooLong:
            verdict = cases.Verdict("did not come to an end", f"after {TIMEOUT} s")
        except Exception:
            verdict = cases.Verdict("the hunt itself failed", traceback.format_exc())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        counts.update(cases.tally(case, verdict))
        if verdict.kind:
            kind = f"{cases.family(case)}: {verdict.kind}"
            kinds[kind] += 1
            first.setdefault(kind, index)
            if kinds[kind] <= shown:
                print(f"--- seed {seed} index {index}: {kind}\n{case}\n{verdict.detail}\n", flush=True)
        if count % REPORT_EVERY == 0:
            if resident() > clear_at:
                jax.clear_caches()
                gc.collect()
                clear_at = resident() + CLEAR_AFTER
            spent = time.perf_counter() - began
            line = f"{count} {what}, {sum(kinds.values())} failures, {spent:.0f} s, {resident() >> 20} MiB"
            print(line, file=sys.stderr, flush=True)
    spent, used = time.perf_counter() - began, time.process_time() - used
    print(f"{count} {what}, seed {seed}: {sum(kinds.values())} failures, {spent:.0f} s, {used:.0f} s of CPU")
    for name, number in sorted(counts.items()):
        print(f"  {number:7} {name}")
    for kind, number in kinds.most_common():
        print(f"{number:7} x {kind} (first: index {first[kind]})")
    return sum(kinds.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["twins", "programs"])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="the first index")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work")
    parser.add_argument("--only", type=int, help="run one case, in a fresh process")
    parser.add_argument("--shown", type=int, default=2, help="how many failures of a kind are printed in full")
    parser.add_argument("--kind", default="", help="twins that differ in this only; programs that run under this only")
    parser.add_argument("--first", action="store_true", help="stop at the first failure")
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.only is not None:
        return bool(hunt(given.what, given.seed, [given.only], 1, True, given.kind, False))
    if given.jobs == 1:
        indices = range(given.start, given.start + given.count)
        return bool(hunt(given.what, given.seed, indices, given.shown, given.verbose, given.kind, given.first))
    share = -(-given.count // given.jobs)
    starts = range(given.start, given.start + given.count, share)
    command = [
        sys.executable,
        "-m",
        "tests.tape.hunt",
        given.what,
        "--seed",
        str(given.seed),
        "--shown",
        str(given.shown),
    ]
    running = [
        subprocess.Popen([*command, "--start", str(a), "--count", str(min(share, given.start + given.count - a))])
        for a in starts
    ]
    return int(any([process.wait() for process in running]))


if __name__ == "__main__":
    sys.exit(main())
