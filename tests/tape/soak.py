"""Many tapes, and many threads with tapes, functions, variables, custom rules and nested tapes, for a long time.

The threads share functions that assign, too: no update is lost, and no random number comes twice.

    python -m tests.tape.soak --count 1000000
    python -m tests.tape.soak --minutes 20 --threads 16

Memory, the number of Python's objects and what the caches hold stay where they are after a tenth of the way (of the threads,
memory after a fifth); every answer is compared with one that was computed before, in peace.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import gc
import random
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tapejax as tf
from tests.tape import faults

X = jnp.asarray([0.5, -1.0, 2.0])


def memory() -> int:
    """The bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def caches() -> int:
    """How many things tapejax remembers between tapes."""
    found = 0
    for module in [m for name, m in list(sys.modules.items()) if name.startswith("tapejax")]:
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                found += value.cache_info().currsize
            elif type(value).__module__.startswith(("tapejax", "weakref", "collections", "builtins")):
                found += len(value) if isinstance(value, (dict, set)) or type(value).__name__ == "Cache" else 0
    return found


def state(running: bool = False) -> tuple[int, int, int, int]:
    """Bytes, objects (while threads run, blocks of memory), live arrays, and how much is cached."""
    gc.collect()
    # get_objects() also hands out tuples that another thread has not filled yet, which then ends in a SystemError there
    objects = sys.getallocatedblocks() if running else len(gc.get_objects())
    return memory(), objects, len(jax.live_arrays()), caches()


V = tf.Variable([1.0, 2.0, 3.0])


def step(k: float) -> Any:
    x = X * k
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(jax.nn.relu(x) * 2.0) + tf.reduce_sum(tf.sin(x) * V)
    return tape.gradient(y, [x, V])


def tapes(count: int) -> list[str]:
    """`count` tapes, one after the other."""
    ks = [float(k) for k in np.linspace(0.5, 2.0, 16, dtype="float32")]
    expected = [[np.asarray(g) for g in step(k)] for k in ks]
    wrong, before, begin = [], None, time.perf_counter()
    for i in range(count):
        found = step(ks[i % 16])
        if not all(np.array_equal(np.asarray(a), b) for a, b in zip(found, expected[i % 16])):
            wrong.append(f"tape {i}: {found}, not {expected[i % 16]}")
        if i + 1 in (count // 10, count // 2, count):
            now = state()
            before = before or now
            took = time.perf_counter() - begin
            print(f"{i + 1} tapes, {took:.0f} s: {now[0] >> 20} MiB, objects, arrays, cached: {now[1:]}", flush=True)
    assert before is not None
    if now[0] - before[0] > 32 << 20:
        wrong.append(f"memory grew from {before[0] >> 20} to {now[0] >> 20} MiB")
    if any(b - a > 100 for a, b in zip(before[1:], now[1:])):
        wrong.append(f"objects, arrays, cached: {before[1:]} became {now[1:]}")
    return wrong


def threads(minutes: float, count: int, seed: int) -> list[str]:
    """`count` threads that run the programs of `faults`, share a counter and a function, for so many minutes."""
    names = list(faults.PROGRAMS)
    expected = {name: faults.expected(name) for name in names}
    counter, weight = tf.Variable(0, trainable=False), tf.Variable([1.0, 2.0, 3.0])
    shared = tf.function(lambda x: tf.reduce_sum(tf.sin(x) * weight))
    sines = np.sin(np.asarray(X))
    account, moved, drawn = (
        tf.Variable(0, trainable=False),
        tf.Variable(0, trainable=False),
        [set() for _ in range(count)],
    )
    generator = tf.random.Generator.from_seed(seed)

    @tf.function
    def transfer(amount):
        account.assign_sub(amount)
        moved.assign_add(amount)
        return generator.uniform_full_int([2], "uint32")

    end, wrong, runs, failed = time.monotonic() + 60 * minutes, [], [0] * count, threading.Event()

    def work(number: int) -> None:
        rng = random.Random(f"{seed} {number}")
        try:
            while time.monotonic() < end and not failed.is_set():
                name = rng.choice(names)
                found = faults.answer(faults.PROGRAMS[name])
                if len(found) != len(expected[name]) or not all(
                    np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True) for a, b in zip(found, expected[name])
                ):
                    raise AssertionError(f"{name} gives {found}, not {expected[name]}")
                with tf.GradientTape() as tape:
                    y = shared(X)
                np.testing.assert_allclose(tape.gradient(y, weight), sines, rtol=1e-5)
                counter.assign_add(1)
                for _ in range(10):
                    drawn[number].add(transfer(tf.constant(rng.randint(1, 5))).numpy().tobytes())
                faults._variables.clear()  # what is kept is to be tapejax's
                runs[number] += 1
        except BaseException as error:
            wrong.append(f"thread {number}, after {runs[number]} runs: {type(error).__name__}: {str(error)[:500]}")
            failed.set()

    workers = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(count)]
    for worker in workers:
        worker.start()
    begin, seen = time.monotonic(), []
    for part in (0.2, 0.4, 0.6, 0.8):  # while they run: what is under way is seen, too
        while time.monotonic() < begin + part * 60 * minutes and not failed.is_set():
            time.sleep(0.2)
        seen.append(state(running=True))
        print(f"after {part:.0%}, {sum(runs)} runs: {seen[-1][0] >> 20} MiB, {seen[-1][1:]}", flush=True)
    before = seen[0]
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()) + 300)
    if stuck := sum(worker.is_alive() for worker in workers):
        faulthandler.dump_traceback()
        wrong.append(f"{stuck} threads do not come back")
    now = state(running=True)
    print(
        f"{count} threads, {sum(runs)} runs: {before[0] >> 20} to {now[0] >> 20} MiB, {before[1:]} to {now[1:]}",
        flush=True,
    )
    if now[0] - before[0] > 128 << 20:
        wrong.append(f"memory grew from {before[0] >> 20} to {now[0] >> 20} MiB")
    if not wrong and int(counter) != sum(runs):
        wrong.append(f"the shared counter is {int(counter)} after {sum(runs)} additions")
    if not wrong and int(account) != -int(moved):
        wrong.append(f"{-int(account)} was taken from the account, {int(moved)} has come")
    if (times := 10 * sum(runs) - len(set().union(*drawn))) and not wrong:
        wrong.append(f"{times} of {10 * sum(runs)} random numbers came more than once")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=0, help="tapes, one after the other")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long the threads run")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = tapes(given.count) if given.count else []
    wrong += threads(given.minutes, given.threads, given.seed) if given.minutes else []
    for what in wrong[:20]:
        print("WRONG", what[:800])
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
