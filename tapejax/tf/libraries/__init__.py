"""Keras and its adapter, and what is needed of other libraries' variables."""
