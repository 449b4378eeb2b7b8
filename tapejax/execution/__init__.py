"""How what a tape records is run fast: a plug-in of `tape.runner`, which works without it.

NumPy evaluates what runs a few times (`trial`, `host`), residuals of large calls are kept, sweeps are compiled as one.
"""
