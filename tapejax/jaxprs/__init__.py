"""What a tape must know of JAX's programs: it imports `jax` and `numpy`, and knows no tape."""

import jax as _public

try:
    from . import fence as fence
except (AttributeError, ImportError) as error:
    refusal = ImportError(str(error))  # for an AttributeError would say that tapejax lacks the name that was asked for
    refusal.add_note(
        f"JAX {_public.__version__} has moved or renamed something that tapejax needs beyond JAX's public interface. Write "
        "where it is now at the line of tapejax/jaxprs/fence.py above; tests/jaxprs/test_fence.py says whether it is the same."
    )
    raise refusal from error
