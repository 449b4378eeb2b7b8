"""The whole programs in examples/: unmodified on TensorFlow and on tapejax, with the same losses from the same weights."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import tensorflows
from outcomes import Outcome

ROOT = Path(__file__).resolve().parents[3]

# What a program needs besides NumPy.
PROGRAMS = {
    "regression": (),
    "mlp": (),
    "adversarial": ("keras",),
    "integrated_gradients": ("keras",),
    "physics_informed": ("keras",),
    "vae": ("keras",),
    "gan": ("keras",),
    "actor_critic": ("keras",),
    "convolutional": ("keras", "grain"),
}

# Several programs in one process: importing TensorFlow or Keras takes longer than most of them.
ON_TENSORFLOW = """
import runpy, sys
for program in sys.argv[1:]:
    print(f"# {program}", flush=True)
    runpy.run_path(program, run_name="__main__")
"""
ON_TAPEJAX = """
import sys
from tapejax.tools.cli import runner
for program in sys.argv[1:]:
    print(f"# {program}", flush=True)
    if runner.run(program) != 0:
        sys.exit(1)
"""


def installed(*packages):
    return all(importlib.util.find_spec(package) is not None for package in packages)


def start(*arguments):
    settings = {
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "KERAS_BACKEND": "tensorflow",
    }
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    return out, err


def by_program(text):
    """{program: what it printed} of a run of several."""
    return dict(re.findall(r"^# (\S+)\n((?:(?!# ).*\n)*)", text, re.MULTILINE))


NUMBER = re.compile(r"-?\d+(?:\.(\d*))?")


def differing_lines(expected, actual):
    """Pairs of lines that differ in their words, or in a number by more than rounding explains."""
    expected, actual = expected.splitlines(), actual.splitlines()
    if len(expected) != len(actual):
        return [(f"{len(expected)} lines", f"{len(actual)} lines")]
    return [(want, got) for want, got in zip(expected, actual) if not same(want, got)]


def same(want, got):
    if " ".join(NUMBER.sub("#", want).split()) != " ".join(NUMBER.sub("#", got).split()):
        return False
    # Two units of the last digit that is shown, and two in a thousand for what many steps make of float32's rounding.
    return all(
        abs(float(one[0]) - float(other[0]))
        <= 2 * 10.0 ** -len(one[1] or "") * bool(one[1]) + 2e-3 * abs(float(one[0]))
        for one, other in zip(NUMBER.finditer(want), NUMBER.finditer(got), strict=True)
    )


def losses(printed):
    return [float(loss) for loss in re.findall(r"loss +(\d+\.\d+)", printed)]


@pytest.mark.parametrize("program", [name for name, packages in PROGRAMS.items() if not packages])
def test_a_program_runs_from_a_shell(program):
    out, err = output(start("-m", "tapejax", "run", f"examples/{program}.py"))
    assert err == ""
    assert losses(out)[-1] < losses(out)[0] / 10


@pytest.mark.tensorflow
@pytest.mark.skipif(not installed("keras", "grain"), reason="needs Keras and Grain")
def test_the_programs_have_the_losses_of_tensorflow():
    paths = [f"examples/{name}.py" for name in PROGRAMS]
    on_tapejax = start("-c", ON_TAPEJAX, *paths)
    expected = tensorflows(lambda: Outcome(None, output(start("-c", ON_TENSORFLOW, *paths))[0], []), *paths).printed
    actual, warnings = output(on_tapejax)
    assert warnings == ""
    expected, actual = by_program(expected), by_program(actual)
    assert list(expected) == list(actual) == paths
    assert all(len(NUMBER.findall(printed)) > 10 for printed in expected.values())
    differing = {path: differing_lines(expected[path], actual[path]) for path in paths}
    assert not any(differing.values()), differing


def test_lines_are_compared_by_words_and_numbers():
    assert not differing_lines("loss 0.1234  step 3\n", "loss 0.1235 step 3\n")
    assert not differing_lines("loss 812.5\n", "loss 813.5\n")
    assert differing_lines("loss 0.1234\n", "loss 0.1240\n")
    assert differing_lines("loss 0.1234\n", "cost 0.1234\n")
    assert differing_lines("step 3\n", "step 4\n")
    assert differing_lines("loss 0.1\n", "loss 0.1\nloss 0.1\n")
    assert differing_lines("loss 0.5\n", "loss nan\n")
