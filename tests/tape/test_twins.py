"""Near twins, some hundred of them: see `tests.tape.twins`; ``python -m tests.tape.hunt twins`` runs as many as one likes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tape import twins
from tests.tape.examples import examples


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("difference", sorted(twins.DIFFERENCES))
@examples(5)  # of two to four programs each
@given(st.randoms(use_true_random=False))
def test_near_twins(difference, rng):
    case = twins.generate(rng, difference)
    verdict = twins.judge(case)
    assert not verdict.kind, f"{verdict.kind}\n{verdict.detail}\n{case}"


def test_the_reference_tells_twins_apart():
    """A pair whose outcomes are alike proves nothing."""
    rng = twins.Chooser(0)
    cases = [twins.generate(rng) for _ in range(20)]
    told = [twins.distinct(case) for case in cases]
    assert sum(told) > 0.8 * len(told)
