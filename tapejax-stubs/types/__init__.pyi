"""Made by .ci/stubs of the live namespace."""



from tapejax.types import experimental as experimental
