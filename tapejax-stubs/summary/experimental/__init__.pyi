"""Made by .ci/stubs of the live namespace."""

import contextlib
from tapejax.tf.values.types import IntLike, Ignored

def get_step() -> IntLike | None:
    """The step of summaries that say none: as `set_step`, or ``writer.as_default(step)``, was given it."""
def set_step(step: IntLike | None) -> None:
    """Sets the step of this thread's summaries that say none; None takes it back. A Variable is read at each summary."""
def summary_scope(name: str | None, default_name: str = 'summary', values: Ignored = None) -> contextlib.AbstractContextManager[tuple[str, str]]:
    """A context for a kind of summary of your own: gives its tag, with the name scopes around it, and a scope's name."""
