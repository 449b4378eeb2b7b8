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


def result_of(program, tf, folder):
    names = {"tf": tf, "folder": str(folder)}
    folder.mkdir()
    source = compile(re.search(BLOCK, PREAMBLE)[1] + program, PAGE.name, "exec")
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
    program = TASKS[task]["# TensorFlow"]
    with contextlib.chdir(tmp_path):
        if "keras" in program:  # here it may have been loaded on JAX
            program = f"import tensorflow as tf\n{re.search(BLOCK, PREAMBLE)[1]}{program}np.save('result.npy', result)"
            environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
            subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)
            got = [np.load("result.npy")]
        else:
            got = result_of(program, tensorflow, tmp_path / "tensorflow")
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, rtol=1e-5)
