"""Made by .ci/stubs of the live namespace."""

from typing import Any
import jax
import tapejax as tf
from tapejax.tf.values.types import Ignored

from tapejax.tf.ops.config import LogicalDevice as LogicalDevice
from tapejax.tf.ops.config import LogicalDeviceConfiguration as LogicalDeviceConfiguration
from tapejax.tf.ops.config import PhysicalDevice as PhysicalDevice
from tapejax.config import experimental as experimental
def experimental_connect_to_cluster(cluster_spec_or_resolver: Any, job_name: Ignored = 'localhost', task_index: Ignored = 0, protocol: Ignored = None, make_master_device_default: Ignored = True, cluster_device_filters: Ignored = None) -> None:
    """Does nothing, since JAX is connected to the TPUs of a `TPUClusterResolver`.

    Raises:
      ValueError: something else is given: for more than one process use ``jax.distributed.initialize``.
    """
def experimental_functions_run_eagerly() -> bool:
    """Whether `run_functions_eagerly` is in force."""
def experimental_run_functions_eagerly(run_eagerly: object) -> None:
    """Makes every `function` run as the Python function that it decorates, so that it can be debugged; or compile again.

    >>> import tapejax as tf
    >>> @tf.function
    ... def f(x):
    ...     print("value", x.numpy())
    ...     return x
    >>> tf.config.run_functions_eagerly(True)
    >>> _ = f(tf.constant(1.0))
    value 1.0
    >>> tf.config.run_functions_eagerly(False)
    """
from tapejax.config import experimental_functions_run_eagerly as functions_run_eagerly
def get_logical_device_configuration(device: Any) -> Any:
    """What `set_logical_device_configuration` made of the device, or None."""
def get_soft_device_placement() -> Any:
    """The value of this setting; see `set_soft_device_placement`."""
def get_visible_devices(device_type: str | None = None) -> Any:
    """The physical devices that are not hidden by `set_visible_devices`."""
def list_logical_devices(device_type: str | None = None) -> Any:
    """The devices that JAX computes on; several CPUs after `set_logical_device_configuration`."""
def list_physical_devices(device_type: str | None = None) -> Any:
    """The machine's devices of the type 'CPU', 'GPU' or 'TPU', or all. There is one CPU, whatever it is divided into.

    >>> import tapejax as tf
    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
from tapejax.config import optimizer as optimizer
from tapejax.config import experimental_run_functions_eagerly as run_functions_eagerly
def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Divides the CPU into several devices, as many as there are configurations, to try distributed programs with.

    Raises:
      ValueError: the device is not a CPU (JAX does not divide others), or there is no such device.
      RuntimeError: JAX has computed already. This must come first.
    """
def set_soft_device_placement(enabled: Any) -> Any:
    """Whether `tf.device` may name a device that is not there."""
def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hides the devices (of that type) that are not in `devices`: the first one left becomes JAX's default device.

    Raises:
      ValueError: there is no such device.
    """
from tapejax.config import threading as threading
