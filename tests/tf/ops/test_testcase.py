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


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_what_is_printed_is_captured(name):
    class Case(tf.test.TestCase):
        def runTest(self):  # noqa: N802  unittest's name
            with self.captureWritesToStream(getattr(sys, name)) as printed:
                tf.print("x =", tf.constant([1, 2]), output_stream=getattr(sys, name))
            self.assertContainsInOrder(["x =", "[1 2]"], printed.contents())
            with self.captureWritesToStream(getattr(sys, name)) as printed:
                pass
            self.assertEmpty(printed.contents())

    assert Case().run().wasSuccessful()


def test_containers_are_compared_by_absl():
    from absl.testing import absltest

    case = tf.test.TestCase()
    assert isinstance(case, absltest.TestCase)
    with pytest.raises(AssertionError, match="has length of 2"):
        case.assertLen([1, 2], 3)
