"""What was set for the whole process: by the functions of ``tf.config``, and by others of their kind."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

# Those of one device are under its name and the device.
settings: dict[Hashable, Any] = {
    "global_step": None,  # of `tf.compat.v1.train`
    "promote_dtypes": False,  # after `tf.experimental.numpy.experimental_enable_numpy_behavior`
    "run_functions_eagerly": False,
    "tensor_float_32": True,
    "visible_devices": None,
}
