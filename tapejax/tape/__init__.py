"""The wrapper: what JAX computes is recorded, cut down to a program, and swept."""
