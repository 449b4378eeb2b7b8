"""Values with TensorFlow's behaviour: `Tensor`, `Variable`, conversion, dtypes, nested structures, errors. No arithmetic."""
