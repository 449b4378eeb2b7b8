"""Functions of ``tf.math`` and ``tf.nn`` and operators by dtypes and kinds of operands, beside TensorFlow: see `sweep`.

By default one case in 150 runs, and float32 tensors of every row; `slow` runs all.
"""

import inspect
import zlib

import kept
import pytest
import sweep

MODES = pytest.mark.parametrize("x64", [True, False], ids=["64-bit types on", "64-bit types off"])
ROWS = pytest.mark.parametrize("row", list(sweep.ROWS))


def is_quick(case):
    return (case.dtype == "float32" and set(case.form) == {"t"} and case.x64) or is_in_sample(case)


def is_in_sample(case):
    return zlib.crc32(str(case).encode()) % 150 == 0


def check(row, x64, chosen):
    found = [sweep.compare(case) for case in sweep.cases([row], x64) if chosen(case)]
    wrong = [str(one) for one in found if not one.agrees and not one.difference]
    assert not wrong, f"{len(wrong)} of {len(found)} cases differ:\n" + "\n".join(wrong)


@MODES
@ROWS
def test_values_dtypes_gradients_and_refusals_are_tensorflows(row, x64):
    check(row, x64, is_quick)


@pytest.mark.slow
@MODES
@ROWS
def test_every_case(row, x64):
    check(row, x64, lambda case: not is_quick(case))


@pytest.mark.parametrize("difference", sweep.DIFFERENCES, ids=lambda one: one.reason)
def test_what_differs_on_purpose_still_differs(difference):
    found = sweep.compare(difference.witness)
    assert not found.agrees, f"agrees with TensorFlow now: take the difference away\n{found}"
    assert difference.is_this(found), f"the witness is of another kind\n{found}"


def test_every_function_has_a_row():
    import tapejax

    rows = {name.partition(" ")[0] for name in sweep.ROWS} | set(sweep.OTHER_NAMES) | set(sweep.NOT_SWEPT)
    for module in ("math", "math.special", "nn"):
        for name in dir(sweep.find(tapejax, module)):
            function = sweep.find(tapejax, f"{module}.{name}")
            if inspect.isroutine(function):
                assert f"{module}.{name}" in rows, "add a row to sweep.py"
    for name, other in sweep.OTHER_NAMES.items():
        assert sweep.find(tapejax, name) is sweep.find(tapejax, other), name


def test_the_file_of_tensorflows_outcomes_has_every_case():
    assert all(case.expected is not None for case in sweep.asked(sweep.ROWS))


@pytest.mark.tensorflow
@pytest.mark.skipif("kept.mode == 'kept'", reason="asks TensorFlow: pytest --tensorflow=fresh")
@pytest.mark.filterwarnings("ignore:Casting complex values:Warning")  # of NumPy, once TensorFlow asks it
def test_the_kept_outcomes_are_tensorflows():
    """A sample is computed anew; ``--tensorflow=keep`` computes all and keeps them."""
    import tensorflow

    if kept.mode == "keep":
        sweep.write()
    if tensorflow.__version__ != sweep.kept()["tensorflow"]:
        pytest.skip("another version of TensorFlow was asked")
    for case in filter(is_in_sample, sweep.asked()):
        got, error = sweep.outcome(tensorflow, *case[:3])
        assert sweep.agrees(case.expected, got, error, False), f"{case}: kept {case.expected}, now {sweep.rounded(got)}"
