"""Random programs, some hundred of them: see `tests.core.programs`; ``python -m tests.core.hunt programs`` runs more."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core import programs

some = settings(
    derandomize=not os.environ.get("TAPEJAX_RANDOM"),  # set it to look for new counterexamples
    deadline=None,
    database=None,
    max_examples=int(os.environ.get("TAPEJAX_EXAMPLES", 30)),
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", sorted(set(programs.WHERE)))
@some
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
