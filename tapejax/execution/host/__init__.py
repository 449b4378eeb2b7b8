"""Programs of JAX's evaluated by NumPy, on the host: what runs a few times is done long before XLA would have compiled it."""
