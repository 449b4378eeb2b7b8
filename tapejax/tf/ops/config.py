"""Devices and settings: TensorFlow's names for JAX's devices and flags."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jaxlib

from ..._version import __version__
from ...jaxprs import fence
from ...jaxprs.cache import memoised
from ..values.settings import settings
from .table import renamed

_KINDS = {"cpu": "CPU", "gpu": "GPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}


class PhysicalDevice(NamedTuple):
    """A device of the machine."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that JAX computes on."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """A part of a physical device. For the CPU all of its arguments are left out."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


# ---- Which devices there are -------------------------------------------------------------------------------


def _devices(kind: str) -> list[jax.Device]:
    if kind != "CPU" and not _may_have_accelerators():
        return []
    try:
        return jax.local_devices(backend={"CPU": "cpu", "GPU": "gpu", "TPU": "tpu"}[kind])
    except (RuntimeError, KeyError):
        return []


@memoised(1)
def _may_have_accelerators() -> bool:
    """Whether JAX could find other devices than CPUs. Calling JAX itself would initialise it, and fix the number of CPUs."""
    plugins = importlib.metadata.entry_points(group="jax_plugins")
    return bool(plugins) or any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The machine's devices of the type 'CPU', 'GPU' or 'TPU', or all. There is one CPU, whatever it is divided into.

    >>> import tapejax as tf
    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    kinds = ("CPU", "GPU", "TPU") if device_type is None else (device_type,)
    # Listing JAX's CPUs would initialise it, and fix their number.
    counts = {kind: 1 if kind == "CPU" else len(_devices(kind)) for kind in kinds}
    return [PhysicalDevice(f"/physical_device:{kind}:{i}", kind) for kind in kinds for i in range(counts[kind])]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """The devices that JAX computes on; several CPUs after `set_logical_device_configuration`."""
    kinds = ("CPU", "GPU", "TPU") if device_type is None else (device_type,)
    visible = settings["visible_devices"]
    hidden = {kind for kind in kinds if visible is not None and not any(d.device_type == kind for d in visible)}
    seen = [kind for kind in kinds if kind not in hidden]
    return [LogicalDevice(f"/device:{kind}:{i}", kind) for kind in seen for i in range(len(_devices(kind)))]


# What was set, by the name of the setting; that of one device by the name and the device.


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The physical devices that are not hidden by `set_visible_devices`."""
    devices = list_physical_devices() if (visible := settings["visible_devices"]) is None else visible
    return [device for device in devices if device_type in (None, device.device_type)]


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hides the devices (of that type) that are not in `devices`: the first one left becomes JAX's default device.

    Raises:
      ValueError: there is no such device.
    """
    asked = (
        list(devices) if isinstance(devices, (list, tuple)) and not isinstance(devices, PhysicalDevice) else [devices]
    )
    for device in asked:
        _require_device(device)
        if device_type not in (None, device.device_type):
            raise ValueError(f"Unrecognized device: {device!r} is no {device_type}")
    others = [] if device_type is None else [d for d in get_visible_devices() if d.device_type != device_type]
    visible = settings["visible_devices"] = [*others, *asked]
    best = next((d for kind in ("TPU", "GPU", "CPU") for d in visible if d.device_type == kind), None)
    there = list_physical_devices()
    if best is not None and (best.device_type != there[-1].device_type or best.name.rpartition(":")[2] != "0"):
        jax.config.update("jax_default_device", _devices(best.device_type)[int(best.name.rpartition(":")[2])])


def _require_device(device: PhysicalDevice) -> None:
    if not isinstance(device, PhysicalDevice) or device not in list_physical_devices(device.device_type):
        raise ValueError(f"Unrecognized device: {device!r}")


def get_logical_device_configuration(device: PhysicalDevice) -> list[LogicalDeviceConfiguration] | None:
    """What `set_logical_device_configuration` made of the device, or None."""
    _require_device(device)
    return settings.get(("parts", device))


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Iterable[LogicalDeviceConfiguration]
) -> None:
    """Divides the CPU into several devices, as many as there are configurations, to try distributed programs with.

    Raises:
      ValueError: the device is not a CPU (JAX does not divide others), or there is no such device.
      RuntimeError: JAX has computed already. This must come first.
    """
    _require_device(device)
    parts = list(logical_devices)
    if device.device_type != "CPU":
        raise ValueError(f"JAX does not divide a {device.device_type}: limit it by XLA_PYTHON_CLIENT_MEM_FRACTION")
    if any(part.memory_limit is not None for part in parts):
        raise ValueError("Setting memory limit on CPU virtual devices is currently not supported")
    if settings.get(("parts", device)) == parts:
        return
    try:
        jax.config.update("jax_num_cpu_devices", len(parts))
    except RuntimeError as error:
        raise RuntimeError(f"Virtual devices cannot be modified after being initialized. {error}") from error
    settings["parts", device] = parts


# ---- Memory ------------------------------------------------------------------------------------------------


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Whether JAX allocates the GPU's memory as it is needed, instead of three quarters at the start. Before JAX computes.

    Raises:
      ValueError: the device is not a GPU.
    """
    _require_device(device)
    if device.device_type == "CPU":
        raise ValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false" if enable else "true"
    settings["memory_growth", device] = bool(enable)


def get_memory_growth(device: PhysicalDevice) -> bool:
    """The value given to `set_memory_growth`. Raises KeyError for a CPU."""
    if device.device_type == "CPU":
        raise KeyError(device)
    return settings.get(("memory_growth", device), False)


def get_memory_info(device: str) -> dict[str, int]:
    """``{"current": bytes, "peak": bytes}`` of a device such as ``"GPU:0"``; zeros where JAX does not count.

    Raises:
      ValueError: there is no such device.
    """
    kind, number = _parsed(device)
    devices = _devices(kind or "")
    if kind is None or number >= len(devices):
        raise ValueError(f"No matching devices found for {device!r}")
    stats = devices[number].memory_stats() or {}
    return {"current": stats.get("bytes_in_use", 0), "peak": stats.get("peak_bytes_in_use", 0)}


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """``device_name``, and for a GPU of NVIDIA's ``compute_capability``; nothing for a CPU."""
    _require_device(device)
    if device.device_type == "CPU":
        return {}
    there = _devices(device.device_type)[int(device.name.rpartition(":")[2])]
    details: dict[str, Any] = {"device_name": there.device_kind}
    if capability := getattr(there, "compute_capability", None):
        details["compute_capability"] = tuple(int(part) for part in str(capability).split("."))
    return details


# ---- Where things are computed -----------------------------------------------------------------------------


def _parsed(spec: str) -> tuple[str | None, int]:
    """The type and the number in ``"/job:localhost/device:GPU:1"``, ``"/GPU:1"``, ``"gpu"``; None for no type."""
    if not isinstance(spec, str):
        raise ValueError(f"Expecting a string device name. Got {type(spec)}({spec})")
    kind, number = None, 0
    for part in filter(None, spec.split("/")):
        words = part.split(":")
        if words[0] in ("job", "replica", "task", "host"):
            continue
        words = words[1:] if words[0] == "device" else words
        if words[0].upper() not in ("CPU", "GPU", "TPU", "XLA_CPU", "XLA_GPU"):
            raise ValueError(f"Unknown attribute {words[0]!r} is encountered while parsing the device spec: {spec!r}.")
        kind = words[0].upper().removeprefix("XLA_")
        number = int(words[1]) if len(words) > 1 and words[1] != "*" else 0
    return kind, number


def device_of(name: str) -> jax.Device:
    """JAX's device of that name.

    Raises:
      ValueError: there is none.
    """
    kind, number = _parsed(name)
    devices = [] if kind is None else _devices(kind)
    if number >= len(devices):
        raise ValueError(f"there is no device {name!r}: {[d.name for d in list_logical_devices()]}")
    return devices[number]


def device(device_name: str | None) -> contextlib.AbstractContextManager[None]:
    """A context whose new tensors lie on that device: ``jax.default_device``.

    Where there is no such device, JAX's default one is used, unless `config.set_soft_device_placement` forbids it.

    Args:
      device_name: such as ``"/GPU:0"``, ``"CPU:0"`` or ``"/job:localhost/device:GPU:1"``; None for the default.

    Raises:
      ValueError: the name is none.

    >>> import tapejax as tf
    >>> with tf.device("/CPU:0"):
    ...     print(tf.constant(1.0).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """
    kind, number = (None, 0) if device_name is None else _parsed(device_name)
    return _on(kind, number, device_name)


@contextlib.contextmanager
def _on(kind: str | None, number: int, name: str | None) -> Iterator[None]:
    devices = [] if kind is None else _devices(kind)
    if kind is not None and number >= len(devices) and not settings["soft_device_placement"]:
        raise RuntimeError(f"there is no device {name!r}: {[d.name for d in list_logical_devices()]}")
    with jax.default_device(devices[number]) if number < len(devices) else contextlib.nullcontext():
        yield


# ---- Settings ----------------------------------------------------------------------------------------------

_OPTIONS = {"disable_model_pruning": False, "disable_meta_optimizer": False}
_THREADS = "Remembered only: XLA has a thread for each core; ``taskset`` gives it fewer."
# name: its first value, what is kept of the argument of `set_...`, what it does
_KEPT: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "soft_device_placement": (True, lambda enabled: bool(enabled), "Whether `tf.device` may name a device that is not there."),
    "jit": ("", lambda enabled: "autoclustering" if enabled in (True, "autoclustering") else "", "Remembered only."),
    "experimental_options": (_OPTIONS, lambda options: settings["experimental_options"] | dict(options), "Remembered only."),
    "log_device_placement": (False, lambda enabled: bool(enabled), "Remembered only: ``x.device`` says where an array is."),
    "inter_op_parallelism_threads": (0, lambda num_threads: int(num_threads), _THREADS),
    "intra_op_parallelism_threads": (0, lambda num_threads: int(num_threads), _THREADS),
}  # fmt: skip


def _accessors(name: str, first: Any, kept: Callable[[Any], Any], doc: str) -> dict[str, Callable]:
    """The functions ``get_...`` and ``set_...`` of a setting."""

    @functools.wraps(kept)
    def put(*args: Any, **kwargs: Any) -> None:
        settings[name] = kept(*args, **kwargs)

    def get() -> Any:
        value = settings[name]
        return dict(value) if isinstance(value, dict) else value

    settings[name], put.__doc__, get.__doc__ = first, doc, f"The value of this setting; see `set_{name}`."
    return {f"set_{name}": renamed(f"set_{name}", put), f"get_{name}": renamed(f"get_{name}", get)}


for _name, _row in _KEPT.items():
    globals().update(_accessors(_name, *_row))


def tensor_float_32_execution_enabled() -> bool:
    """Whether matrix products on a GPU may be rounded to TensorFloat-32."""
    return settings["tensor_float_32"]


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Whether matrix products on a GPU may be rounded to TensorFloat-32: ``jax_default_matmul_precision``."""
    settings["tensor_float_32"] = bool(enabled)
    jax.config.update("jax_default_matmul_precision", None if enabled else "highest")


def enable_op_determinism() -> None:
    """Makes XLA choose deterministic algorithms on a GPU, as it does on a CPU. Before JAX computes."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_gpu_deterministic_ops" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()


# ---- What was built ----------------------------------------------------------------------------------------


def is_built_with_cuda() -> bool:
    """Whether there is a GPU of NVIDIA's that JAX computes on."""
    return _platform("cuda")


def is_built_with_rocm() -> bool:
    """Whether there is a GPU of AMD's that JAX computes on."""
    return _platform("rocm")


def _platform(word: str) -> bool:
    return any(word in d.client.platform_version.lower() for d in _devices("GPU"))


def is_built_with_gpu_support() -> bool:
    """Whether there is a GPU that JAX computes on."""
    return bool(_devices("GPU"))


def is_built_with_xla() -> bool:
    """True."""
    return True


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether there is a GPU (of NVIDIA's, with at least that compute capability)."""
    least = tuple(min_cuda_compute_capability or ())
    capabilities = [get_device_details(gpu).get("compute_capability", ()) for gpu in list_physical_devices("GPU")]
    return any(capability >= least for capability in capabilities) and (not cuda_only or is_built_with_cuda())


def gpu_device_name() -> str:
    """``"/device:GPU:0"``, or nothing where there is no GPU."""
    return next((d.name for d in list_logical_devices("GPU")), "")


def get_build_info() -> dict[str, Any]:
    """What JAX was built for."""
    return {"is_cuda_build": is_built_with_cuda(), "is_rocm_build": is_built_with_rocm(), "is_tensorrt_build": False}


# ---- Debugging ---------------------------------------------------------------------------------------------


def enable_traceback_filtering() -> None:
    """Leaves JAX's own lines out of tracebacks, as by default."""
    jax.config.update("jax_traceback_filtering", "auto")


def disable_traceback_filtering() -> None:
    """Shows JAX's own lines in tracebacks."""
    jax.config.update("jax_traceback_filtering", "off")


def is_traceback_filtering_enabled() -> bool:
    """Whether JAX's own lines are left out of tracebacks."""
    return fence.settings.jax_traceback_filtering != "off"


# ---- Versions ----------------------------------------------------------------------------------------------


# What `tf.version` has
VERSION, GIT_VERSION = __version__, f"v{__version__}"
COMPILER_VERSION = f"XLA of jaxlib {jaxlib.__version__}"
