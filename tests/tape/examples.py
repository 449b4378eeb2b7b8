"""How the hunts' pytest files choose their examples."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """The same `count` examples each time; ``TAPEJAX_RANDOM`` looks for new ones, ``TAPEJAX_EXAMPLES`` says how many."""
    return settings(
        derandomize=not os.environ.get("TAPEJAX_RANDOM"),
        deadline=None,
        database=None,
        max_examples=int(os.environ.get("TAPEJAX_EXAMPLES", count)),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
