"""Checkpoints and saved models whose files were changed: a clear error that names them, or what was saved; nothing else.

    python -m tests.tf.programs.mutants --count 10000 --seed 0

A changed file was cut off, has other bits, other bytes in the middle, too much at its end, or the content of another file; or is
missing, empty, a link, a pipe or a directory. Descriptions (JSON) are changed in their meaning as well: absurd sizes, paths that
climb out, values of other types, what is nested too deeply. Half of these have digests that fit, as somebody writes them who
means to deceive; a checkpoint may fail in any way then. Nothing may be executed, take more memory
than `MEMORY`, or longer than `SECONDS`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tapejax as tf

MEMORY = 512 << 20
SECONDS = 20


class Net(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable(np.arange(6, dtype="float32").reshape(2, 3), name="w")
        self.half = tf.Variable(np.ones(2), dtype=tf.bfloat16, trainable=False)
        self.layers = [{"b": tf.Variable(np.arange(3, dtype="int32"))}, (tf.Variable(np.zeros((0, 4), "float32")),)]
        signature = [tf.TensorSpec([2], tf.float32)]
        self.apply = tf.function(
            lambda x: {"y": tf.linalg.matvec(self.w, x, transpose_a=True)}, input_signature=signature
        )

    @property
    def held(self) -> list[Any]:
        return [self.w, self.half, self.layers[0]["b"], self.layers[1][0]]


def content(held: list[Any]) -> list[Any]:
    return [(v.dtype.name, v.numpy().tolist()) for v in held]


# ---- what is loaded -------------------------------------------------------------------------------------------------


def save_checkpoint(folder: Path) -> None:
    tf.train.Checkpoint(net=Net()).write(folder / "ckpt")


def load_checkpoint(folder: Path) -> Any:
    net = Net()
    for v in net.held:
        v.assign(tf.zeros_like(v))
    zeros = content(net.held)
    try:
        tf.train.Checkpoint(net=net).read(folder / "ckpt").expect_partial()
    except BaseException:
        assert content(net.held) == zeros, "half restored"
        raise
    return content(net.held)


def save_model(folder: Path) -> None:
    tf.saved_model.save(Net(), folder / "model")


def load_model(folder: Path) -> Any:
    loaded = tf.saved_model.load(folder / "model")
    found = content([loaded.w, loaded.half, loaded.layers[0]["b"], loaded.layers[1][0]])
    return [*found, loaded.apply(tf.constant([1.0, 2.0]))["y"].numpy().tolist()]


LOADED: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], type[Exception], str]] = {
    "checkpoint": (save_checkpoint, load_checkpoint, tf.errors.OpError, "ckpt"),
    "model": (save_model, load_model, OSError, "model"),
}

# ---- how it is changed ----------------------------------------------------------------------------------------------


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8, 64))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def garble(rng: random.Random, data: bytes) -> bytes:
    begin = rng.randrange(len(data) + 1)
    end = min(len(data), begin + rng.choice((1, 4, 8, 64)))
    return data[:begin] + rng.choice((b"\0", b"\xff", b"\x7f", b"")) * (end - begin) + data[end:]


def append(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.choice((1, 100, 10_000)))


def replace(rng: random.Random, data: bytes) -> bytes:
    return rng.choice((b"", b"\0" * len(data), rng.randbytes(len(data)), pickle.dumps(print), b"[" * 100_000))


BYTES = (cut, flip, flip, flip, garble, garble, append, replace)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def link(to: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        _remove(path)
        path.symlink_to(to)

    return make


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DEVICE, INPUT = link("/dev/zero"), link("/dev/stdin")


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


def longer(path: Path) -> None:
    os.truncate(path, 1 << 42)  # of which nothing lies on the disk


PLACES = (
    _remove,
    pipe,
    folder_instead,
    longer,
    DEVICE,
    INPUT,
    *map(link, ("/etc/passwd", "/nowhere", ".", "../../../../etc/passwd")),
)

# Orbax and TensorStore wait for a pipe, and read whatever a device or a file gives.
IN_CHECKPOINTS = tuple(place for place in PLACES if place not in (pipe, longer, DEVICE, INPUT))

ODD = (
    *(
        -1,
        0,
        1,
        2**31,
        2**63,
        10**18,
        10**30,
        1.5,
        float("nan"),
        True,
        None,
        "",
        "x",
        "../../../etc/passwd",
        "/etc/passwd",
    ),
    *(
        "__class__",
        "__call__",
        "object",
        "float64",
        "bool",
        "O",
        "V100000000",
        "int2",
        "\0",
        "é" * 1000,
        [],
        {},
        [[]],
        [0] * 1000,
    ),
    *([10**12], [2**62, 2**62], [10**6, 10**6, 10**6], {"a": {}}, {"value": 1}, {"spec": [[10**12], "float32", None]}),
)


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def meaning(rng: random.Random, value: Any) -> Any:
    """The JSON value with one of its parts, at any depth, replaced, removed or repeated."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < 0.1:
        return rng.choice((*ODD, nested(900)))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = rng.choice(keys)
    how = rng.random()
    changed = dict(value) if isinstance(value, dict) else list(value)
    if how < 0.08:
        del changed[key]
    elif how < 0.12 and isinstance(changed, list):
        changed.insert(key, changed[rng.randrange(len(changed))])
    elif how < 0.12:
        changed[rng.choice(("../x", "0", "__init__", "é", key + "x"))] = changed.pop(key)
    elif how < 0.2 and isinstance(value[key], int):
        changed[key] = value[key] + rng.choice((-1, 1, 1 << 40))
    else:
        changed[key] = meaning(rng, value[key])
    return changed


def _restamped(folder: Path) -> None:
    """Digests that fit."""
    for file in folder.rglob("saved_model.json"):
        manifest = json.loads(file.read_bytes())
        if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict):
            for name in manifest["files"]:
                if (path := file.parent / name).is_file() and path.stat().st_size < MEMORY:
                    data = path.read_bytes()
                    manifest["files"][name] = hashlib.sha256(data).hexdigest()
            file.write_text(json.dumps(_sealed(manifest)))
    for file in folder.rglob("objects/metadata"):
        objects = json.loads(file.read_bytes())
        if isinstance(objects, dict):
            file.write_text(json.dumps(_sealed(objects)))


def _sealed(description: dict[str, Any]) -> dict[str, Any]:
    content = {name: x for name, x in description.items() if name != "sha256"}
    return content | {"sha256": hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()}


def mutate(rng: random.Random, folder: Path) -> tuple[str, bool]:
    """Changes one file: how, in words; and whether it was done to deceive, with digests that fit."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = rng.choice(files)
    described = [path for path in files if path.name in ("saved_model.json", "metadata", "_METADATA")]
    kind, deceiving = rng.random(), rng.random() < 0.5
    if kind < 0.35:
        file = rng.choice(described)
        file.write_text(json.dumps(meaning(rng, json.loads(file.read_bytes()))))
        how = "meaning"
    elif kind < 0.45:
        change = rng.choice(PLACES if (folder / "model").exists() else IN_CHECKPOINTS)
        change(file)
        how, deceiving = change.__name__, False
    elif kind < 0.5 and len(files) > 1:
        other = rng.choice(files)
        file.write_bytes(other.read_bytes())
        how = f"as {other.relative_to(folder)}"
    else:
        alter = rng.choice(BYTES)
        file.write_bytes(alter(rng, file.read_bytes()))
        how = alter.__name__
    if deceiving:
        try:
            _restamped(folder)
        except (ValueError, OSError, RecursionError):
            deceiving = False
    return f"{file.relative_to(folder)}: {how}{', restamped' if deceiving else ''}", deceiving


# ---- trying it ------------------------------------------------------------------------------------------------------


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a pickle would be executed")


def tried(kind: str, folder: Path, expected: Any, deceiving: bool) -> str:
    """What is wrong with how the changed files are loaded."""
    _, load, error_class, name = LOADED[kind]
    try:
        found = load(folder)
    except error_class as error:
        return "" if str(folder / name) in str(error) else f"names no file: {error!r}"
    except Exception as error:
        # What was written to deceive may be a checkpoint or model like others, for another program.
        return (
            ""
            if deceiving and (kind == "checkpoint" or _is_of_the_program(error))
            else f"{type(error).__name__}: {error}"
        )
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:500]}"
    return "" if found == expected or deceiving else f"other values: {found}"


def _is_of_the_program(error: BaseException) -> bool:
    """Whether the error was raised after loading, by what the program makes of it; or says that a shape differs."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_name not in ("load", "read"):
        trace = trace.tb_next
    return trace is None or "incompatible" in str(error)


def batch(kind: str, seed: int, numbers: range, say: int, whole: Path, expected: Any) -> None:
    for name in ("load", "loads", "Unpickler"):
        setattr(pickle, name, refuse)
    folder = Path(tempfile.mkdtemp())
    try:
        shutil.copytree(whole, folder, dirs_exist_ok=True)
        assert not (wrong := tried(kind, folder, expected, False)), wrong  # which starts JAX, too
        own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        for number in numbers:
            rng = random.Random(f"{kind} {seed} {number}")
            shutil.rmtree(folder)
            shutil.copytree(whole, folder)
            how, deceiving = mutate(rng, folder)
            os.write(say, f"{number} {how}\n".encode())
            resource.setrlimit(resource.RLIMIT_AS, (own + (4 << 30), resource.RLIM_INFINITY))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            signal.alarm(SECONDS)  # which ends this process
            wrong = tried(kind, folder, expected, deceiving)
            signal.alarm(0)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if (grown := (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10) > MEMORY:
                wrong += f" took {grown >> 20} MiB"
            os.write(say, f"done {json.dumps(wrong)}\n".encode())
    finally:
        shutil.rmtree(folder)


def forked(work: Callable[[int], None]) -> tuple[list[str], int]:
    """What `work(file to write to)` says, line by line, and how it ended, in a process of its own."""
    heard, say = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(heard)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        try:
            work(say)
        except BaseException as error:
            os.write(say, f"failed {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(say)
    with open(heard, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    return lines, os.waitpid(pid, 0)[1]


def hunt(kind: str, count: int, seed: int, first: int = 0) -> list[str]:
    """Loads `count` changed copies; what is wrong with how they are loaded."""
    whole = Path(tempfile.mkdtemp())
    try:
        save, load, _, _ = LOADED[kind]

        def prepare(say: int) -> None:
            save(whole)
            os.write(say, json.dumps(load(whole)).encode())

        (found,), _ = forked(prepare)
        expected = [tuple(x) if x and isinstance(x[0], str) else x for x in json.loads(found)]
        wrong, next_one = [], first
        while next_one < first + count:
            numbers = range(next_one, min(next_one + 100, first + count))
            lines, status = forked(lambda say, numbers=numbers: batch(kind, seed, numbers, say, whole, expected))  # type: ignore[misc]
            how = ""
            for word, said in (line.split(" ", 1) for line in lines):
                if word == "failed":
                    raise RuntimeError(said)
                if word != "done":
                    next_one, how = int(word) + 1, said
                elif what := json.loads(said):
                    wrong.append(f"{kind} {next_one - 1}, {how}: {what}")
            if status:
                wrong.append(f"{kind} {next_one - 1}, {how}: ended by signal {status & 127}")
        return wrong
    finally:
        shutil.rmtree(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many changed copies, of both kinds together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first one, to see it again")
    parser.add_argument("--kind", action="append", choices=list(LOADED), help="only these")
    given = parser.parse_args()
    chosen, every = given.kind or list(LOADED), []
    for kind in chosen:
        begin = time.perf_counter()
        count = given.count // len(chosen)
        wrong = hunt(kind, count, given.seed, given.first)
        every += wrong
        print(
            f"{kind}: {count} changed, {len(wrong)} wrong, seed {given.seed}, {time.perf_counter() - begin:.0f} s",
            flush=True,
        )
    for what in every[:40]:
        print("WRONG", what[:600])
    sys.exit(bool(every))


if __name__ == "__main__":
    main()
