"""Which programs are compiled in a block."""

import contextlib

import jax


@contextlib.contextmanager
def compiles():
    """Yields a list to which the name of each program is added that XLA compiles in the block."""
    found = []

    def listen(event, _, **about):
        if event.endswith("backend_compile_duration"):
            found.append(about.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
