"""`python -m tapejax check` of programs that use Keras."""

from __future__ import annotations

from pathlib import Path

import pytest

from tapejax.__main__ import main
from tapejax.tools.cli.check import check

ROOT = Path(__file__).resolve().parents[4]

PROGRAM = """
import tensorflow as tf
from tensorflow import keras as k
from tensorflow.keras.layers import Dense, NoSuchLayer
import tensorflow.keras.backend as K
class Mine(k.layers.Layer):
    def build(self, shape):
        self.dense = Dense(3, kernel_regularizer=k.regularizers.L2(0.1))
tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
k.optimizers.NoSuchOptimizer(); K.epsilon()
"""


def test_keras_names_are_looked_up_in_keras(capsys):
    assert [[str(use.line), use.name, use.status] for use in check(PROGRAM).uses] == [
        ["3", "tf.keras", "supported"],
        ["4", "tf.keras.layers.Dense", "supported"],
        ["4", "tf.keras.layers.NoSuchLayer", "missing"],
        ["5", "tf.keras.backend", "supported"],
        ["6", "tf.keras.layers.Layer", "supported"],
        ["8", "tf.keras.layers.Dense", "supported"],
        ["8", "tf.keras.regularizers.L2", "supported"],
        ["9", "tf.keras.losses.SparseCategoricalCrossentropy", "supported"],
        ["10", "tf.keras.optimizers.NoSuchOptimizer", "missing"],
        ["10", "tf.keras.backend.epsilon", "supported"],
    ]
    assert capsys.readouterr() == ("", "")


def test_the_examples_lack_nothing(capsys):
    pytest.importorskip("grain")
    assert main(["check", str(ROOT / "examples")]) == 0
    out = capsys.readouterr().out
    assert " missing" not in out and "unchecked" not in out
