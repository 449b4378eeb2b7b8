"""The version of this package, and of the TensorFlow whose behaviour it keeps."""

__version__ = "0.1.0"
TENSORFLOW = "2.21.0"
