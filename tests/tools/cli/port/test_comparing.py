"""Losses of a ported program beside the program's."""

import numpy as np
import pytest

from tapejax.tools.cli.port.comparing import _without_chains, compare, compare_last, difference, distance, entries_of


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


@pytest.mark.parametrize(
    "moved, status, said",
    [
        ([[1.0], [2.9]], 0, "this is rounding; another last digit at the beginning makes as much of it"),
        ([[1.0], [2.99]], 1, "this is no rounding"),  # it makes something of it, but not as much
        ([[1.0], [np.nan]], 1, "this is no rounding"),
        ([], 1, "this is no rounding"),  # it did not run
    ],
)
def test_what_another_last_digit_makes_is_rounding(capsys, moved, status, said):
    assert compare("here", [[1.0], [3.0]], "", [(1.0,), (2.0,)], 1e-3, lambda: moved) == status
    assert f"beyond the tolerance from step 1 on: {said}" in capsys.readouterr().out


def test_a_step_before_what_another_last_digit_makes_is_no_rounding(capsys):
    """Of a wrong loss at the first step nothing is excused by what grows afterwards."""
    expected, found, moved = [(1.0,), (2.0,)], [[1.1], [3.0]], [[1.1], [9.0]]
    assert compare("here", found, "", expected, 1e-3, lambda: moved) == 1
    assert "this is no rounding" in capsys.readouterr().out


def test_a_step_without_a_difference_is_not_run_again(capsys):
    def moved():
        raise AssertionError

    assert compare("here", [[1.0]], "", [(1.0,)], 1e-3, moved) == 0
    assert compare_last({"w": np.ones(2)}, {"w": np.ones(2)}, {}, 1e-3, moved) == 0


def test_entries_are_compared_relative_to_their_change_and_integers_exactly():
    begin = np.full(4, 10.0, np.float32)
    assert distance(begin + 1, begin + 1.001, begin) == pytest.approx(1e-3, rel=1e-2)
    assert distance(begin, begin + 1e-4, begin) == pytest.approx(1e-3, rel=1e-2)  # of a hundredth of its size
    assert distance(begin + 1, begin, begin) == pytest.approx(1.0)
    assert distance(np.uint32([1, 1000]), np.uint32([1, 1001]), np.zeros(())) == float("inf")
    assert distance(np.float32([np.nan, np.inf]), np.float32([np.nan, np.inf]), np.zeros(())) == 0.0
    assert distance(np.float32([np.nan, 1.0]), np.float32([0.0, 1.0]), np.zeros(())) == float("inf")
    assert distance(begin, begin[:2], begin) == distance(begin, None, begin) == float("inf")


@pytest.mark.parametrize(
    "last, moved, status, said",
    [
        ({"slow": 2.0}, 2.0, 0, "after the last step, 2 entries; largest difference 0.0e+00: state['a']['w']"),
        ({"slow": 1.0}, 1.01, 1, "  beyond the tolerance: state['slow'], 1.0e+00\n"),
        (
            {"slow": 1.0},
            1.5,
            0,
            "not compared, moved by rounding: state['slow'], 1.0e+00\n",
        ),
        ({"slow": np.inf}, np.nan, 1, "  beyond the tolerance: state['slow'], inf\n"),
        ({}, 5.0, 1, "  beyond the tolerance: state['slow'], inf\n"),
    ],
)
def test_the_entry_that_differs_after_the_last_step_is_named(capsys, last, moved, status, said):
    w = {"w": np.ones(2)}
    trees = {"slow": 2.0, "a": w}, {"slow": 1.0, "a": {"w": np.zeros(2)}}, {"a": w} | last
    expected, begin, theirs = (entries_of({"state": tree}) for tree in trees)
    others = theirs | {"state['slow']": np.asarray(moved)} if last else {}
    assert compare_last(theirs, expected, begin, 1e-3, lambda: others) == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "path, entry",
    {
        "opt_state[0].mu['w']": "opt_state['mu']['w']",
        "opt_state['adam'][1].inner_state[0].count": "opt_state['adam']['count']",
        "params['dense_1']['kernel']": "params['dense_1']['kernel']",
    }.items(),
)
def test_entries_of_optax_s_states_are_named_by_their_fields(path, entry):
    assert _without_chains(path) == entry
