"""Random programs, some hundred of them: see `tests.tape.programs`; ``python -m tests.tape.hunt programs`` runs more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tape import programs
from tests.tape.examples import examples


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", sorted(set(programs.WHERE)))
@examples(30)
@given(st.randoms(use_true_random=False))
def test_random_programs(where, rng):
    case = programs.generate(rng, where)
    verdict = programs.judge(case)
    assert not verdict.kind, f"{verdict.kind}\n{verdict.detail}\n{case}"


@pytest.mark.parametrize("name", sorted(programs.TRANSFORMED))
def test_every_transformation_means_what_the_reference_says(name):
    """On a tape of its own, from values that are watched."""
    for blocks in ((3, 4), (7, 2)):
        f, g = (programs.FORWARD[i] for i in blocks)
        step = programs.Instruction("block", (name, f, g), (0, 1, 2))
        case = programs.Program((step,), 0, "gradient", "", "", 1, (0,), False, False)
        verdict = programs.judge(case)
        assert not verdict.kind, f"{verdict.detail}\n{case}"
