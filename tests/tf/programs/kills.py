"""Programs that are killed (SIGKILL) while they save: the last checkpoint or model that was complete loads, and nothing else.

    python -m tests.tf.programs.kills --count 1000 --seed 0

Each run is a fork of this process, made before JAX starts its backend. It loads what the run before left, says what it found,
and saves state after state until it is killed, at a random time after it began to save. All that a state holds is one number,
in variables of several sizes and in the program of a function, so that parts of two states would be seen.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import orbax.checkpoint  # noqa: F401  before the forks
from jax import export  # noqa: F401  likewise

import tapejax as tf

SHAPES = ((), (1000,), (64, 64))


def variables(number: int) -> list[Any]:
    return [tf.Variable(np.full(shape, number, "float32")) for shape in SHAPES]


def number_in(held: list[Any]) -> int:
    """The number that all of them hold."""
    found = {float(x) for v in held for x in np.unique(v.numpy())}
    if len(found) != 1:
        raise AssertionError(f"parts of several states: {sorted(found)}")
    return int(found.pop())


# Each gives the number that was loaded (0: there was nothing), then a function that saves a number.


def managed(folder: str) -> Iterator[Any]:
    held, step = variables(0), tf.Variable(0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(held=held, step=step), folder, max_to_keep=2)
    if path := manager.restore_or_initialize():
        for kept in manager.checkpoints:  # what the state file names is there, and whole
            tf.train.load_checkpoint(kept)
        assert tf.train.latest_checkpoint(folder) == path
    number = number_in(held)
    assert int(step) == number
    yield number

    def save(number: int) -> None:
        for v in (*held, step):
            v.assign(tf.cast(tf.fill(v.shape, number), v.dtype))
        manager.save()

    yield save


def written(folder: str) -> Iterator[Any]:
    """The same name every time."""
    held, prefix = variables(0), os.path.join(folder, "state")
    checkpoint = tf.train.Checkpoint(held=held)
    try:
        checkpoint.read(prefix).assert_consumed()
    except tf.errors.NotFoundError:
        pass
    yield number_in(held)

    def save(number: int) -> None:
        for v in held:
            v.assign(tf.fill(v.shape, float(number)))
        checkpoint.write(prefix)

    yield save


def model(folder: str) -> Iterator[Any]:
    folder = os.path.join(folder, "model")
    try:
        loaded = tf.saved_model.load(folder)
    except FileNotFoundError:
        yield 0
    else:
        number = number_in(loaded.held)
        assert loaded.program(tf.constant(1.0)).numpy() == 2 * number + 1
        yield number

    def save(number: int) -> None:
        module = tf.Module()
        module.held = variables(number)
        signature = [tf.TensorSpec([], tf.float32)]
        module.program = tf.function(lambda x: x + float(number) + module.held[0], input_signature=signature)
        tf.saved_model.save(module, folder)

    yield save


KINDS: dict[str, Callable[[str], Iterator[Any]]] = {"managed": managed, "written": written, "model": model}


def child(kind: str, folder: str, say: int) -> None:
    def tell(*words: Any) -> None:
        os.write(say, (" ".join(map(str, words)) + "\n").encode())

    try:
        steps = KINDS[kind](folder)
        number = next(steps)
        tell("loaded", number)
        save = next(steps)
        while True:
            number += 1
            tell("saving", number)
            begin = time.perf_counter()
            save(number)
            tell("saved", number, time.perf_counter() - begin)
    except BaseException:
        tell("failed", repr(traceback.format_exc()))


def killed(kind: str, folder: str, delay: float | None) -> list[list[str]]:
    """Runs a program until `delay` seconds after it began to save, or until it has saved once; what it said."""
    heard, say = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(heard)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        # Compiled programs come from the first run; those that are killed write none.
        jax.config.update("jax_compilation_cache_dir", os.path.join(folder, "compiled"))
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0 if delay is None else 1e9)
        child(kind, os.path.join(folder, "saved"), say)
        os._exit(0)
    os.close(say)
    text = b""
    try:
        while (b"saved" if delay is None else b"saving") not in text and (more := os.read(heard, 65536)):
            text += more
        time.sleep(delay or 0.0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    while more := os.read(heard, 65536):
        text += more
    os.close(heard)
    return [line.split(" ", 2) for line in text.decode().splitlines()]


def hunt(kind: str, count: int, seed: int) -> tuple[int, list[str]]:
    """Kills `count` runs of one kind: how many of them in the middle of a save; and what was wrong."""
    rng, inside, wrong = random.Random(f"{kind} {seed}"), 0, []
    folder = tempfile.mkdtemp()
    try:
        longest, least, most = 0.0, 0, 0
        for i in range(-2, count):  # the first two fill the cache, and say how long it takes
            said = killed(kind, folder, 1.2 * rng.random() * longest if i >= 0 else None)
            for word, *what in said:
                if word == "failed":
                    wrong.append(f"{kind}, run {i}: {' '.join(what)}")
                    continue
                number = int(what[0])
                if word == "loaded" and not least <= number <= most:
                    wrong.append(f"{kind}, run {i}: loaded {number}, not one from {least} to {most}")
                if word != "saving":
                    least = number
                if word == "saved" and i < 0:
                    longest = float(what[1])
                most = number
            inside += i >= 0 and said[-1][0] == "saving"
        return inside, wrong
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many are killed, of all kinds together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only these")
    given = parser.parse_args()
    chosen = given.kind or list(KINDS)
    every: list[str] = []
    for kind in chosen:
        begin = time.perf_counter()
        inside, wrong = hunt(kind, given.count // len(chosen), given.seed)
        every += wrong
        print(
            f"{kind}: {given.count // len(chosen)} killed, {inside} while saving, {len(wrong)} wrong, seed {given.seed}, "
            f"{time.perf_counter() - begin:.0f} s",
            flush=True,
        )
    for what in every[:20]:
        print("WRONG", what)
    sys.exit(bool(every))


if __name__ == "__main__":
    main()
