"""The harness itself: what it must notice, shown on two made-up systems."""

import json
import types
import warnings

import jax
import numpy as np
import pytest
from harness import compare, differences, error_of
from outcomes import Array, Outcome, from_json, outcome_under_tensorflow, to_json


def check(body, tensorflow, tapejax, **options):
    compare(body, outcome_under_tensorflow(body, tensorflow), tapejax, **options)


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


def tensor(values):
    """As the harness sees a tensor: of neither NumPy's types."""
    return types.SimpleNamespace(shape=values.shape, dtype=values.dtype, numpy=lambda: values)


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


def by_mode(off, on):
    """A system whose value depends on whether 64-bit types are on, as tapejax's do."""

    class System:
        @property
        def value(self):
            return on if jax.config.jax_enable_x64 else off

    return System()


WIDE, NARROW = single_array([1, 2], "int64"), single_array([1, 2], "int32")


def test_both_modes_of_64_bit_types():
    wide = system(value=tensor(WIDE))
    check(give, wide, by_mode(off=tensor(NARROW), on=tensor(WIDE)))
    for off, on in ((WIDE, WIDE), (NARROW, NARROW), (single_array([1, 2], "uint8"), WIDE)):
        with pytest.raises(AssertionError, match=f"64-bit types {'off' if off is not NARROW else 'on'}"):
            check(give, wide, by_mode(off=tensor(off), on=tensor(on)))
    narrow = system(value=tensor(NARROW))
    with pytest.raises(AssertionError, match="64-bit types on"):
        check(give, narrow, by_mode(off=tensor(NARROW), on=tensor(WIDE)))
    check(give, wide, by_mode(off=None, on=tensor(WIDE)), x64_only="a reason")


def test_numpys_own_64_bits_stay_while_64_bit_types_are_off():
    check(give, system(value=WIDE), system(value=WIDE))
    check(give, system(value=WIDE), by_mode(off=NARROW, on=WIDE))
    with pytest.raises(AssertionError, match="64-bit types off"):
        check(give, system(value=NARROW), by_mode(off=WIDE, on=NARROW))


def test_the_names_of_64_bit_types_in_text():
    check(give, system(value=["dtype=int64"]), by_mode(off=["dtype=int32"], on=["dtype=int64"]))
    for off, on in (("int16", "int64"), ("int32", "int32")):
        with pytest.raises(AssertionError, match="int64"):
            check(give, system(value=["dtype=int64"]), by_mode(off=[f"dtype={off}"], on=[f"dtype={on}"]))


def test_which_mode_an_error_came_from():
    class System:
        @property
        def value(self):
            if jax.config.jax_enable_x64:
                raise ValueError("only here")

    with pytest.raises(ValueError) as caught:
        check(give, system(value=None), System())
    assert "64-bit types on" in caught.value.__notes__[0]


def test_what_cannot_be_compared():
    with pytest.raises(TypeError, match="cannot compare"):
        check(give, system(value=object()), system(value=object()))


@pytest.mark.parametrize(
    "value",
    [
        None,
        (1, True, 2.5, float("inf"), 1 + 2j, "text", b"bytes"),
        ("dict", [("a", ("list", []))]),
        error_of(raising(KeyError("no"))),
        Array("tensor", "float32", single_array([[1.0, -0.0]])),
        Array("tensor", "bfloat16", single_array(2.5, "bfloat16")),
        Array("numpy", "string", np.array([[b"a"], [b"bc"]], object)),
        Array("numpy", "bool", np.zeros((0, 2), bool)),
    ],
    ids=repr,
)
def test_what_is_kept_comes_back(value):
    outcome = Outcome(value, "printed", ["warned"])
    again = from_json(json.loads(json.dumps(to_json(outcome))))
    assert repr(again) == repr(outcome)
    assert not differences(outcome, again, 0, 0, x64=True)
