"""Made by .ci/stubs of the live namespace."""



from tapejax.profiler import experimental as experimental
