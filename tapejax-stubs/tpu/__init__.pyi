"""Made by .ci/stubs of the live namespace."""



from tapejax.tpu import experimental as experimental
