"""TensorFlow's surface: values, operations, programs, libraries."""
