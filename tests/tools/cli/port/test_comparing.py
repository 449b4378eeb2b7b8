"""Losses of a ported program beside the program's."""

import numpy as np
import pytest

from tapejax.tools.cli.port.comparing import compare, difference


def test_losses_are_compared_relative_to_their_size():
    assert difference((1.0, 2.0), (1.0, 2.002), 0.0) == pytest.approx(1e-3)
    assert difference((1e-9,), (2e-9,), 1e-3) < 1e-5
    assert difference((np.nan,), (1.0,), 0.1) == float("inf") and difference((np.inf,), (np.inf,), 0.1) == 0.0


@pytest.mark.parametrize("losses, status", [((3.0, 2.0, 0.02), 1), ((3.0, -2.0, 0.02), 0)])
def test_a_loss_that_has_both_signs_is_compared_with_the_largest(capsys, losses, status):
    found = [[x] for x in losses[:2]] + [[losses[2] + 3e-5]]
    assert compare("here", found, "", [(x,) for x in losses], 1e-4) == status


@pytest.mark.parametrize(
    "losses, error, status, said",
    [
        ([[1.0], [2.0]], "", 0, "2 of 2 steps; largest difference 0.0e+00"),
        ([[1.0]], "", 1, "1 of 2 steps"),
        ([[1.0], [3.0]], "", 1, "beyond the tolerance from step 1 on: this is no rounding"),
        ([], "Traceback", 1, "  Traceback"),
    ],
)
def test_the_status_says_whether_losses_are_the_same(capsys, losses, error, status, said):
    assert compare("here", losses, error, [(1.0,), (2.0,)], 1e-3) == status
    assert said in capsys.readouterr().out
