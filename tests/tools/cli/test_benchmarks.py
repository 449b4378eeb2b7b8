"""The benchmarks time programs that do the same: each workload's two faces give the same loss and gradients."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import tapejax
from benchmarks import lines, start
from benchmarks.__main__ import main
from benchmarks.workloads import WORKLOADS, Target, Workload, functional_deep, taped_deep, words


def arrays(result):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


SMALLER = {"deep-mlp": Workload("", taped_deep(4, 8, 3), functional_deep(4, 8, 3))}


@pytest.mark.parametrize(
    "name", [name for name in WORKLOADS if name != "keras"]
)  # which tests/tf/libraries/keras_on_jax has
def test_tapejax_computes_what_jax_computes(name):
    workload = (WORKLOADS | SMALLER)[name]
    ours = (workload.tapejax or workload.taped)(tapejax)
    theirs = workload.functional(jax.jit)
    for i in range(2):
        (loss, gradients), (expected, expected_gradients) = ours(i), theirs(i)
        np.testing.assert_allclose(float(loss), float(expected), rtol=1e-3)
        if name not in (
            "train-mlp",
            "function",
            "function-waited",
        ):  # there the hand-written step returns new weights in place of gradients
            for one, other in zip(arrays(gradients), arrays(expected_gradients), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_the_changing_program_changes_and_is_always_the_same():
    programs = [tuple(words(i)) for i in range(50)]
    assert len(set(programs)) == 50 and programs == [tuple(words(i)) for i in range(50)]
    assert all(20 <= len(program) <= 30 for program in programs)


def test_unknown_names_are_refused(capsys):
    for arguments in (["no-such-workload"], ["chain", "--systems", "tapejax,theano"]):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == 2
        assert "unknown: " in capsys.readouterr().err


def test_scripts_are_compared_from_their_beginning(capsys):
    "With PyTorch by the faster of one thread and all, steps without what came before them."
    ours, theirs = ({"import": x, "1": 1.1 * x, "100": 1.2 * x, "1500": 3 * x, "60": 2 * x} for x in (1.0, 6.0))
    others = dict.fromkeys(("tensorflow", "torch", "torch, one thread"), theirs)
    found = {name: {"tapejax": ours} | others for name in start.READ}
    assert start.show(found) and "FAIL" not in capsys.readouterr().out
    found["small-mlp"]["torch, one thread"] = theirs | {"1500": 7.0}
    assert not start.show(found)
    (failed,) = [line for line in capsys.readouterr().out.splitlines() if "FAIL" in line]
    assert "1,500 steps" in failed and "2.00 of torch, at most 1.8: FAIL" in failed


def test_a_step_is_measured_from_its_beginning():
    found = start.measure("small-mlp", "tapejax", [1, 3])
    assert 0 < found["import"] < found["1"] < found["3"]


def test_a_run_from_a_shell(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "chain", "--quick", "--systems", "tapejax,jax.jit"]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "b.json")], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "chain: chain of 400 scalar operations" in done.stdout and "jax.jit" in done.stdout
    results = json.loads((tmp_path / "b.json").read_text())["results"]
    assert results["chain"]["tapejax"]["median"] > 0


def test_a_missed_target_and_a_wrong_loss_fail(monkeypatch, capsys):
    from benchmarks import __main__ as program

    workload = Workload(
        "a title",
        lambda tf: None,
        lambda jit: None,
        targets=(Target("tensorflow", 0.5),),
        first=(Target("jax.jit", 2),),
        slowest_step=1,
    )
    monkeypatch.setitem(program.WORKLOADS, "made-up", workload)
    good = {"loss": 1.0, "first": 9.0, "median": 1.0, "slowest": 9.0, "repeats": 5}
    cases = [
        (good, good | {"median": 4.0}, True, "at most 0.5 x: pass"),
        (good, good | {"median": 1.5}, False, "at most 0.5 x: FAIL"),
        (good, good | {"median": 4.0, "loss": 2.0}, False, "same loss (1, 2): FAIL"),
        (good | {"slowest": 1e4}, good | {"median": 4.0}, False, "no step over 1 s: FAIL"),
        ("ValueError: broken", good, False, "failed: ValueError: broken"),
    ]
    for ours, theirs, passed, text in cases:
        assert program._show("made-up", {"tapejax": ours, "tensorflow": theirs}) is passed
        assert text in capsys.readouterr().out
    for first, passed in [(5.0, True), (4.0, False)]:
        assert program._show("made-up", {"tapejax": good, "jax.jit": good | {"first": first}}) is passed
        assert f"first step at most 2 x: {'pass' if passed else 'FAIL'}" in capsys.readouterr().out


def test_lines_of_code_are_neither_blank_nor_comment_nor_docstring(tmp_path):
    source = '''"""A module.

With a docstring."""
# a comment

import os  # beside code

class Ä: "a docstring beside code"

def f(x):
    # a comment
    "one" " docstring"
    "no docstring"
    text = """
a string

with a blank line"""
    return [
        x,  # 3 more

        os,
    ]
'''
    assert lines.count(source) == 11
    assert lines.count("") == lines.count("# nothing\n") == 0
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(source)
    (tmp_path / "b.py").write_text("x = 1\n")
    counts = lines.count_tree(tmp_path)
    assert counts == {"b.py": 1, "room/a.py": 11}
    words = lines.report(counts).split()
    assert words == "1 b.py 1 in ., 1 files 11 room/a.py 11 in room, 1 files 12 in all, 2 files".split()


def test_lines_of_this_package(capsys):
    assert main(["lines"]) == 0
    assert "minimal.py" in capsys.readouterr().out
