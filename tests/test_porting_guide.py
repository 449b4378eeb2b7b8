"""docs/guide.md: the ways to write a task give the same result, TensorFlow's way under TensorFlow, too."""

import contextlib
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import tapejax

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide.md"
PREAMBLE, *TASKS = re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))
BLOCK = r"(?s)```python\n(.*?)```"
TASKS = {text.partition("\n")[0]: re.findall(BLOCK, text) for text in TASKS}
TASKS = {
    task: dict(zip((block.partition("\n")[0] for block in blocks), blocks)) for task, blocks in TASKS.items() if blocks
}


DATA = re.search(BLOCK, PREAMBLE)[1]
# A process has one Keras, and to import it takes seconds: all tasks that need it run in one.
IN_ONE_PROCESS = """
import json, sys
import jax, numpy
sys.modules["matplotlib"] = sys.modules["sklearn"] = None  # as in parity/keras_processes.py
for task, program in json.load(sys.stdin).items():
    names = {}
    exec(program, names)
    numpy.savez(f"{task}.npz", *jax.tree.leaves(names["result"]))
"""


@pytest.fixture(scope="module")
def with_keras(tmp_path_factory):
    """with_keras(tf) runs all blocks that say `tf.keras`; returns {block: results}."""

    @functools.cache
    def with_keras(tf):
        folder = tmp_path_factory.mktemp("keras")
        names = "# TensorFlow", *["# tapejax"] * (tf is tapejax)
        blocks = [task[name] for task in TASKS.values() for name in names if "keras" in task.get(name, "")]
        programs = {i: f"import {tf.__name__} as tf\n{DATA}{block}" for i, block in enumerate(blocks)}
        environment = os.environ | {
            "KERAS_BACKEND": "jax" if tf is tapejax else "tensorflow",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": str(PAGE.parents[1]),
        }
        command, given = [sys.executable, "-c", IN_ONE_PROCESS], json.dumps(programs)
        subprocess.run(command, cwd=folder, env=environment, input=given, text=True, check=True, timeout=300)
        return {block: list(np.load(folder / f"{i}.npz").values()) for i, block in enumerate(blocks)}

    return with_keras


def result_of(program, tf, folder, with_keras):
    folder.mkdir()
    if "keras" in program and tf is not None:
        return with_keras(tf)[program]
    names = {"tf": tf, "folder": str(folder)}
    source = compile(DATA + program, PAGE.name, "exec")
    with warnings.catch_warnings():
        if tf is not tapejax:
            warnings.simplefilter("ignore")
        exec(source, names)
    return [np.asarray(x) for x in jax.tree.leaves(names["result"])]


@pytest.mark.parametrize("task", TASKS)
def test_the_ways_agree(task, tmp_path, with_keras):
    blocks = TASKS[task]
    assert set(blocks) in ({"# TensorFlow", "# tapejax", "# JAX"}, {"# TensorFlow", "# JAX"})
    if "train." in str(blocks):
        pytest.importorskip("orbax.checkpoint")
    if "saved_model" in str(blocks):
        pytest.importorskip("flatbuffers")
    if "keras" in str(blocks):
        if importlib.util.find_spec("keras") is None:  # to import it would load TensorFlow, 600 MB, into this process
            pytest.skip("Keras is not installed")
        pytest.importorskip("optax")
    want = result_of(blocks["# JAX"], None, tmp_path / "jax", with_keras)
    for name in blocks.keys() - {"# JAX"}:
        got = result_of(blocks[name], tapejax, tmp_path / name, with_keras)
        assert len(got) == len(want)
        for one, other in zip(got, want):
            np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_tensorflow_agrees(task, tmp_path, with_keras):
    tensorflow = pytest.importorskip("tensorflow")
    want = result_of(TASKS[task]["# JAX"], None, tmp_path / "jax", with_keras)
    with contextlib.chdir(tmp_path):
        got = result_of(TASKS[task]["# TensorFlow"], tensorflow, tmp_path / "tensorflow", with_keras)
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, rtol=1e-5)
