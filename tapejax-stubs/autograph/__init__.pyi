"""Made by .ci/stubs of the live namespace."""



from tapejax.autograph import experimental as experimental
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Nothing: there is no AutoGraph whose messages it could set."""
def trace(*args: object) -> None:
    """Prints its arguments, when the function is traced."""
