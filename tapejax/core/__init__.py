"""The tape on JAX: it imports `jax` and `numpy`, and nothing of TensorFlow. ARCHITECTURE.md has the order in which to read it."""

import jax as _public

try:
    from . import _jax as _jax
except (AttributeError, ImportError) as error:
    error.add_note(
        f"JAX {_public.__version__} has moved or renamed something that tapejax needs beyond JAX's public interface. Write "
        "where it is now at the line of tapejax/core/_jax.py above; tests/core/test_fence.py then says whether it is the same."
    )
    raise
