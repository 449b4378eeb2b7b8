"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf

from tapejax.tf.ops.config import LogicalDeviceConfiguration as VirtualDeviceConfiguration
def enable_op_determinism() -> None:
    """Makes XLA choose deterministic algorithms on a GPU, as it does on a CPU. Before JAX computes."""
def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether matrix products on a GPU may be rounded to TensorFloat-32: ``jax_default_matmul_precision``."""
def get_device_details(device: Any) -> dict[str, Any]:
    """``device_name``, and for a GPU of NVIDIA's ``compute_capability``; nothing for a CPU."""
def get_memory_growth(device: Any) -> bool:
    """The value given to `set_memory_growth`. Raises KeyError for a CPU."""
def get_memory_info(device: str) -> dict[str, int]:
    """``{"current": bytes, "peak": bytes}`` of a device such as ``"GPU:0"``; zeros where JAX does not count.

    Raises:
      ValueError: there is no such device.
    """
from tapejax.config import get_logical_device_configuration as get_virtual_device_configuration
from tapejax.config import get_visible_devices as get_visible_devices
from tapejax.config import list_logical_devices as list_logical_devices
from tapejax.config import list_physical_devices as list_physical_devices
def set_memory_growth(device: Any, enable: bool) -> None:
    """Whether JAX allocates the GPU's memory as it is needed, instead of three quarters at the start. Before JAX computes.

    Raises:
      ValueError: the device is not a GPU.
    """
from tapejax.config import set_logical_device_configuration as set_virtual_device_configuration
from tapejax.config import set_visible_devices as set_visible_devices
def tensor_float_32_execution_enabled() -> bool:
    """Whether matrix products on a GPU may be rounded to TensorFloat-32."""
