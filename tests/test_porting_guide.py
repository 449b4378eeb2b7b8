"""docs/guide.md: the ways to write a task give the same result, TensorFlow's way under TensorFlow, too."""

import contextlib
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
SAVE = "import jax, numpy\nnumpy.savez('result.npz', *jax.tree.leaves(result))"


def result_of(program, tf, folder):
    folder.mkdir()
    if "keras" in program and tf is not None:  # a process has one Keras
        backend = "jax" if tf is tapejax else "tensorflow"
        environment = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": str(PAGE.parents[1]),
        }
        source = f"import {tf.__name__} as tf\n{DATA}{program}{SAVE}"
        subprocess.run([sys.executable, "-c", source], cwd=folder, env=environment, check=True, timeout=300)
        return list(np.load(folder / "result.npz").values())
    names = {"tf": tf, "folder": str(folder)}
    source = compile(DATA + program, PAGE.name, "exec")
    with warnings.catch_warnings():
        if tf is not tapejax:
            warnings.simplefilter("ignore")
        exec(source, names)
    return [np.asarray(x) for x in jax.tree.leaves(names["result"])]


@pytest.mark.parametrize("task", TASKS)
def test_the_ways_agree(task, tmp_path):
    blocks = TASKS[task]
    assert set(blocks) in ({"# TensorFlow", "# tapejax", "# JAX"}, {"# TensorFlow", "# JAX"})
    if "train." in str(blocks):
        pytest.importorskip("orbax.checkpoint")
    if "saved_model" in str(blocks):
        pytest.importorskip("flatbuffers")
    if "keras" in str(blocks):
        pytest.importorskip("keras")
        pytest.importorskip("optax")
    want = result_of(blocks["# JAX"], None, tmp_path / "jax")
    for name in blocks.keys() - {"# JAX"}:
        got = result_of(blocks[name], tapejax, tmp_path / name)
        assert len(got) == len(want)
        for one, other in zip(got, want):
            np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_tensorflow_agrees(task, tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    want = result_of(TASKS[task]["# JAX"], None, tmp_path / "jax")
    with contextlib.chdir(tmp_path):
        got = result_of(TASKS[task]["# TensorFlow"], tensorflow, tmp_path / "tensorflow")
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, rtol=1e-5)
