"""tf.test.TestCase: absl's, with assertions about tensors."""

import importlib
import sys

import pytest

import tapejax as tf

MODULE = "tapejax.tf.ops.testcase"


def test_without_absl_the_error_names_the_extra(monkeypatch):
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    monkeypatch.setitem(sys.modules, "absl.testing", None)
    with pytest.raises(ImportError, match=r"absl-py, which is not installed: pip install 'tapejax\[testing\]'"):
        importlib.import_module(MODULE)


def test_containers_are_compared_by_absl():
    from absl.testing import absltest

    case = tf.test.TestCase()
    assert isinstance(case, absltest.TestCase)
    with pytest.raises(AssertionError, match="has length of 2"):
        case.assertLen([1, 2], 3)
