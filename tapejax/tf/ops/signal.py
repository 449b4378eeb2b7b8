"""``tf.signal``: Fourier transforms by ``jnp.fft``, windows, frames."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..values.connected import zero_gradient
from ..values.conversion import convert_to_tensor, raw
from ..values.dtypes import requested
from ..values.errors import InvalidArgumentError
from ..values.operations import op
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, DTypeLike, FloatLike, IntLike, IntsLike, TensorLike
from . import array as _array
from . import math as _math
from .table import FLOAT, NUMBER, axis_of, kind_of, operation, renamed, require_kind, shape_of, static, whole

# ---- Fourier transforms ------------------------------------------------------------------------------------


def _fft(x, how, axes, lengths=None):
    if how == "rfftn" and 0 in (lengths or [x.shape[axis] for axis in axes]):
        raise InvalidArgumentError(f"rfft: XLA has no transform of a signal without samples, got {x.shape}")
    out = getattr(jnp.fft, how)(x, lengths, axes)
    return out.astype(jnp.result_type(x.dtype, np.complex64)) if how != "irfftn" else out


def _transform(name: str, count: int, how: str) -> Callable[..., Tensor]:
    """A transform of the last `count` axes; those of real signals may be cut or padded to `fft_length`."""
    complex_doc = f"The {'inverse ' if how.startswith('i') else ''}discrete Fourier transform of the last {count} axes"

    def checked(input: TensorLike, hint: str | None = None) -> Array:
        array = raw(input, dtype_hint=hint)
        require_kind(name, array, "f" if how == "rfftn" else "c", "input")
        if array.ndim < count:
            raise InvalidArgumentError(f"{name}: input must have at least {count} axes, got shape {array.shape}")
        return array

    axes = tuple(range(-count, 0))
    if "rfft" not in how:

        def public(input: TensorLike, name: str | None = None) -> Tensor:
            return op(_fft, checked(input), how=how, axes=axes)

        public.__doc__ = f"{complex_doc}, complex to complex."
        return renamed(name, public)

    def of_real(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> Tensor:
        array = checked(input_tensor, "float32" if how == "rfftn" else "complex64")
        lengths = None if fft_length is None else shape_of(fft_length, "fft_length")
        if lengths is not None and len(lengths) != count:
            raise ValueError(f"fft_length must have {count} elements, got {lengths}")
        return op(_fft, array, how=how, axes=axes, lengths=lengths)

    of_real.__doc__ = f"{complex_doc} of a real signal, of length `fft_length` (by default the signal's own)."
    return renamed(name, of_real)


_NAMES = {1: "fft", 2: "fft2d", 3: "fft3d"}
fft, fft2d, fft3d = (_transform(name, n, "fftn") for n, name in _NAMES.items())
ifft, ifft2d, ifft3d = (_transform("i" + name, n, "ifftn") for n, name in _NAMES.items())
rfft, rfft2d, rfft3d = (_transform("r" + name, n, "rfftn") for n, name in _NAMES.items())
irfft, irfft2d, irfft3d = (_transform("ir" + name, n, "irfftn") for n, name in _NAMES.items())


def fftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> Tensor:
    """The zero frequency moved to the middle."""
    return op(jnp.fft.fftshift, raw(x), axes=static(axes))


def ifftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> Tensor:
    """The zero frequency moved back to the start."""
    return op(jnp.fft.ifftshift, raw(x), axes=static(axes))


# ---- Cosine transforms -------------------------------------------------------------------------------------


@operation("input", FLOAT)
def dct(input, type=2, n: int | None = None, axis=-1, norm: str | None = None):
    """The discrete cosine transform of type 1, 2, 3 or 4 of the last axis.

    Args:
      n: the axis is cut or padded to this length first.
      axis: must be -1.
      norm: None or 'ortho'.

    Raises:
      NotImplementedError: another axis.
      ValueError: another type or norm, or type 1 with 'ortho' or of fewer than two numbers.
    """
    if axis != -1:
        raise NotImplementedError(f"axis must be -1, got {axis}: use tf.transpose around it")
    if norm not in (None, "ortho") or type not in (1, 2, 3, 4):
        raise ValueError(f"type must be 1 to 4, norm None or 'ortho': got {type} and {norm!r}")
    if n is not None and n < 1:
        raise ValueError(f"n should be a positive integer, got {n}")
    from scipy import fft  # type: ignore[import-untyped]  # JAX needs SciPy, too

    x = input[..., :n]
    length = n or x.shape[-1]
    if type == 1 and (norm == "ortho" or length < 2):
        raise ValueError("type 1 has no orthonormal form, and needs two numbers at least")
    matrix = fft.dct(np.eye(length), type, norm=norm)[: x.shape[-1]]  # what is padded are zeros
    return jnp.matmul(x, jnp.asarray(matrix, x.dtype), precision="highest")


def idct(input: TensorLike, type=2, n=None, axis=-1, norm=None, name=None) -> Tensor:
    """The inverse of `dct` of that type, but for a factor unless `norm` is 'ortho'."""
    return dct(input, {2: 3, 3: 2}.get(type, type), n, axis, norm)


# ---- Windows -----------------------------------------------------------------------------------------------


def _window(values: np.ndarray, dtype: DTypeLike) -> Tensor:
    if kind_of(requested(dtype)) != "f":
        raise ValueError(f"dtype must be a floating point type, got {dtype!r}")
    return convert_to_tensor(values.astype(requested(dtype)))


def _raised_cosine(name: str, a: float, b: float) -> Callable[..., Tensor]:
    def window(window_length, periodic=True, dtype="float32", name=None) -> Tensor:
        n = int(whole(window_length, "window_length"))
        last = n if static(periodic) and n % 2 == 0 else max(n - 1, 1)
        return _window(a - b * np.cos(2 * np.pi * np.arange(n) / last) if n > 1 else np.ones(1), dtype)

    window.__doc__ = f"A {name} window; a periodic one of even length lacks its last element."
    return renamed(f"{name.lower()}_window", window)


hann_window, hamming_window = _raised_cosine("Hann", 0.5, 0.5), _raised_cosine("Hamming", 0.54, 0.46)


# ---- Frames ------------------------------------------------------------------------------------------------


@operation("signal")
@zero_gradient  # of no elements: JAX takes it for a constant
def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1):
    """Parts of `frame_length` elements that begin every `frame_step` elements, along a new axis after `axis`.

    `pad_end` fills up frames that reach over the end with `pad_value`, instead of leaving them out.
    """
    x, length, step, axis = signal, frame_length, frame_step, axis_of(axis, signal.ndim)
    if step < 1:
        raise InvalidArgumentError(f"frame_step must be positive, got {step}")
    if pad_end:
        count = -(-x.shape[axis] // step)
        missing = max(0, length + step * (count - 1) - x.shape[axis])
        x = jnp.pad(x, [(0, missing * (i == axis)) for i in range(x.ndim)], constant_values=pad_value)
    else:
        count = max(0, 1 + (x.shape[axis] - length) // step)
    frames = jnp.take(x, np.arange(count)[:, None] * step + np.arange(length), axis)
    return frames.reshape(*x.shape[:axis], count, length, *x.shape[axis + 1 :])  # of an empty axis, `take` is the axis


@operation("signal", NUMBER)
@zero_gradient  # of no elements: JAX takes it for a constant
def overlap_and_add(signal, frame_step: IntLike):
    """One signal out of frames (..., frames, frame_length) that begin `frame_step` elements apart."""
    if signal.ndim < 2:
        raise ValueError(f"signal must have at least two axes, got shape {signal.shape}")
    count, length = signal.shape[-2:]
    places = np.arange(count)[:, None] * frame_step + np.arange(length)
    return jnp.zeros((*signal.shape[:-2], frame_step * (count - 1) + length), signal.dtype).at[..., places].add(signal)


def _fft_size(frame_length: int, fft_length: IntLike | None) -> int:
    """`fft_length`, or else the smallest power of two that holds a frame."""
    return 1 << (frame_length - 1).bit_length() if fft_length is None else int(whole(fft_length, "fft_length"))


def stft(
    signals: TensorLike,
    frame_length: IntLike,
    frame_step: IntLike,
    fft_length: IntLike | None = None,
    window_fn: Callable | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: (..., frames, fft_length // 2 + 1), complex.

    Args:
      signals: real, (..., samples).
      fft_length: by default the smallest power of two that holds a frame.
      window_fn: makes a window of a length and a ``dtype``; None for none.
    """
    length = int(whole(frame_length))
    frames = frame(signals, length, frame_step, pad_end)
    if window_fn is not None:
        frames = op(jnp.multiply, frames, window_fn(length, dtype=frames.dtype))
    return rfft(frames, [_fft_size(length, fft_length)])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None) -> Tensor:
    """The signal of a short-time Fourier transform; for an exact one, `window_fn` is what `inverse_stft_window_fn` makes."""
    length = int(whole(frame_length))
    size = _fft_size(length, fft_length)
    frames = _array.getitem(irfft(convert_to_tensor(stfts), [size]), (..., slice(0, length)))
    if size < length:
        frames = _array.pad(frames, [(0, 0)] * (frames.ndim - 1) + [(0, length - size)])
    if window_fn is not None:
        frames = op(jnp.multiply, frames, window_fn(length, dtype=frames.dtype))
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(frame_step, forward_window_fn: Callable = hann_window, name=None) -> Callable[..., Tensor]:
    """A function that makes the window with which `inverse_stft` undoes `stft` with `forward_window_fn`."""

    def window(frame_length: IntLike, dtype: DTypeLike) -> Tensor:
        length = int(whole(frame_length))
        forward = convert_to_tensor(forward_window_fn(length, dtype=dtype), dtype)
        return _math.divide_no_nan(forward, op(_overlapping, forward, step=int(whole(frame_step))))  # type: ignore[attr-defined]

    return window


def _overlapping(window, step):
    """At each place of the window the sum of the squares of all that lie over it, where one begins every `step` places."""
    (length,) = window.shape
    count = -(-length // step)
    sums = jnp.pad(window**2, (0, count * step - length)).reshape(count, step).sum(0)
    return jnp.tile(sums, count)[:length]


# ---- Speech ------------------------------------------------------------------------------------------------


def linear_to_mel_weight_matrix(
    num_mel_bins: IntLike = 20,
    num_spectrogram_bins: IntLike = 129,
    sample_rate: FloatLike = 8000,
    lower_edge_hertz: FloatLike = 125.0,
    upper_edge_hertz: FloatLike = 3800.0,
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> Tensor:
    """A matrix (num_spectrogram_bins, num_mel_bins) that turns a spectrogram into one of equally spaced mels.

    Raises:
      ValueError: the edges are not in order, or beyond half the sample rate.
    """
    mels, bins, rate = int(whole(num_mel_bins)), int(whole(num_spectrogram_bins)), float(static(sample_rate))
    low, high = float(static(lower_edge_hertz)), float(static(upper_edge_hertz))
    if not 0 <= low < high <= rate / 2:
        raise ValueError(f"0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2 fails: {low}, {high}, {rate}")

    def mel(hertz):
        return 1127 * np.log1p(hertz / 700)

    centres = mel(np.linspace(0, rate / 2, bins)[1:])[:, None]
    edges = np.linspace(mel(low), mel(high), mels + 2)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    weights = np.minimum((centres - left) / (middle - left), (right - centres) / (right - middle))
    return _window(np.pad(np.maximum(0, weights), [(1, 0), (0, 0)]), dtype)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """The mel-frequency cepstral coefficients of log mel spectrograms."""
    array = raw(log_mel_spectrograms)
    if not array.shape or array.shape[-1] == 0:
        raise ValueError(f"there must be one mel bin or more, got shape {array.shape}")
    return op(jnp.multiply, dct(array), float(np.sqrt(1 / (2 * array.shape[-1]))))
