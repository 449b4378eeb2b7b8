"""The harness itself: what it must notice, shown on two made-up systems."""

import types
import warnings

import numpy as np
import pytest
from harness import check, error_of


def system(**names):
    return types.SimpleNamespace(**names)


def raising(error):
    def fail():
        raise error

    return fail


def single_array(values, dtype="float32"):
    return np.array(values, dtype)


SAME = [
    (1.0, 1.0 + 1e-7),
    (float("nan"), float("nan")),
    (None, None),
    ({"a": [1, "text"]}, {"a": [1, "text"]}),
    (single_array([1.0, 2.0]), single_array([1.0, 2.0 + 1e-6])),
    (single_array([1.0], "float16"), single_array([1.001], "float16")),
]

DIFFERENT = [
    (1.0, 1.001),
    (1, 1.0),
    (1, True),
    (None, 0.0),
    (float("nan"), 0.0),
    ([1, 2], (1, 2)),
    ([1, 2], [1, 2, 3]),
    ({"a": 1}, {"b": 1}),
    (single_array([1.0]), single_array([1.001])),
    (single_array([1.0]), single_array(1.0)),
    (single_array([1.0]), single_array([1.0], "float16")),
    (single_array([1], "int32"), single_array([1], "int64")),
    (single_array([1.0]), [1.0]),
]


def give(tf):
    """What the system holds."""
    return tf.value


@pytest.mark.parametrize("expected, actual", SAME)
def test_outcomes_that_agree(expected, actual):
    check(give, system(value=expected), system(value=actual))


@pytest.mark.parametrize("expected, actual", DIFFERENT)
def test_outcomes_that_differ(expected, actual):
    with pytest.raises(AssertionError, match="What the system holds"):
        check(give, system(value=expected), system(value=actual))
    check(give, system(value=expected), system(value=actual), differs="a reason")


def test_a_difference_that_is_gone():
    with pytest.raises(AssertionError, match="no longer differs"):
        check(give, system(value=1), system(value=1), differs="a reason")


def test_printed_text():
    def say(tf):
        print(tf.value)

    check(say, system(value="one"), system(value="one"))
    with pytest.raises(AssertionError, match="printed"):
        check(say, system(value="one"), system(value="two"))


def test_errors_compare_as_an_except_clause_does():
    def fail(tf):
        return error_of(tf.fail)

    lookup, key = system(fail=raising(LookupError("no"))), system(fail=raising(KeyError("no")))
    check(fail, lookup, key)
    for expected, actual in (
        (key, lookup),
        (key, system(fail=lambda: None)),
        (system(fail=lambda: None), key),
    ):
        with pytest.raises(AssertionError):
            check(fail, expected, actual)


def test_hints_in_messages():
    def fail(tf):
        return error_of(tf.fail)

    check(
        fail,
        system(fail=raising(ValueError("wrong"))),
        system(fail=raising(ValueError("cast it"))),
        says="cast",
    )
    with pytest.raises(AssertionError, match="does not say"):
        check(
            fail,
            system(fail=raising(ValueError("cast"))),
            system(fail=raising(ValueError("wrong"))),
            says="cast",
        )


def test_an_error_nobody_asked_for():
    def misspelt(tf):
        return tf.no_such_name

    with pytest.raises(AttributeError):
        check(misspelt, system(), system())


def test_warnings():
    def work(tf):
        return tf.work()

    silent, warning = system(work=lambda: None), system(work=lambda: warnings.warn("careful", stacklevel=1))
    check(work, silent, silent)
    with pytest.raises(AssertionError, match="careful"):
        check(work, silent, warning)
    with pytest.raises(AssertionError, match="gave no warning"):
        check(work, silent, silent, warns=True)


def test_widths():
    wide, narrow = system(value=single_array([1, 2], "int64")), system(value=single_array([1, 2], "int32"))
    check(give, wide, narrow, any_width=True)
    with pytest.raises(AssertionError):
        check(give, wide, system(value=single_array([1, 2], "uint8")), any_width=True)


def test_what_cannot_be_compared():
    with pytest.raises(TypeError, match="cannot compare"):
        check(give, system(value=object()), system(value=object()))
