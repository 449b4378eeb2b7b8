"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, AxisLike, IntLike, IntsLike, FloatLike

def dct(input: TensorLike, type: Any = 2, n: int | None = None, axis: Any = -1, norm: str | None = None, name: str | None = None) -> tf.Tensor:
    """The discrete cosine transform of type 1, 2, 3 or 4 of the last axis.

    Args:
      n: the axis is cut or padded to this length first.
      axis: must be -1.
      norm: None or 'ortho'.

    Raises:
      NotImplementedError: another axis.
      ValueError: another type or norm, or type 1 with 'ortho' or of fewer than two numbers.
    """
def fft(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 1 axes, complex to complex."""
def fft2d(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 2 axes, complex to complex."""
def fft3d(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 3 axes, complex to complex."""
def fftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> tf.Tensor:
    """The zero frequency moved to the middle."""
def frame(signal: TensorLike, frame_length: Any, frame_step: Any, pad_end: Any = False, pad_value: Any = 0, axis: Any = -1, name: str | None = None) -> tf.Tensor:
    """Parts of `frame_length` elements that begin every `frame_step` elements, along a new axis after `axis`.

    `pad_end` fills up frames that reach over the end with `pad_value`, instead of leaving them out.
    """
def hamming_window(window_length: Any, periodic: Any = True, dtype: Any = 'float32', name: str | None = None) -> tf.Tensor:
    """A Hamming window; a periodic one of even length lacks its last element."""
def hann_window(window_length: Any, periodic: Any = True, dtype: Any = 'float32', name: str | None = None) -> tf.Tensor:
    """A Hann window; a periodic one of even length lacks its last element."""
def idct(input: TensorLike, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, name: str | None = None) -> tf.Tensor:
    """The inverse of `dct` of that type, but for a factor unless `norm` is 'ortho'."""
def ifft(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 1 axes, complex to complex."""
def ifft2d(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 2 axes, complex to complex."""
def ifft3d(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 3 axes, complex to complex."""
def ifftshift(x: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> tf.Tensor:
    """The zero frequency moved back to the start."""
def inverse_stft(stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any = None, window_fn: Any = ..., name: str | None = None) -> tf.Tensor:
    """The signal of a short-time Fourier transform; for an exact one, `window_fn` is what `inverse_stft_window_fn` makes."""
def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Callable[..., Any] = ..., name: str | None = None) -> Callable[..., tf.Tensor]:
    """A function that makes the window with which `inverse_stft` undoes `stft` with `forward_window_fn`."""
def irfft(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 1 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def irfft2d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 2 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def irfft3d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The inverse discrete Fourier transform of the last 3 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def linear_to_mel_weight_matrix(num_mel_bins: IntLike = 20, num_spectrogram_bins: IntLike = 129, sample_rate: FloatLike = 8000, lower_edge_hertz: FloatLike = 125.0, upper_edge_hertz: FloatLike = 3800.0, dtype: DTypeLike = 'float32', name: str | None = None) -> tf.Tensor:
    """A matrix (num_spectrogram_bins, num_mel_bins) that turns a spectrogram into one of equally spaced mels.

    Raises:
      ValueError: the edges are not in order, or beyond half the sample rate.
    """
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> tf.Tensor:
    """The mel-frequency cepstral coefficients of log mel spectrograms."""
def overlap_and_add(signal: TensorLike, frame_step: IntLike, name: str | None = None) -> tf.Tensor:
    """One signal out of frames (..., frames, frame_length) that begin `frame_step` elements apart."""
def rfft(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 1 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def rfft2d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 2 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def rfft3d(input_tensor: TensorLike, fft_length: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The discrete Fourier transform of the last 3 axes of a real signal, of length `fft_length` (by default the signal's own)."""
def stft(signals: TensorLike, frame_length: IntLike, frame_step: IntLike, fft_length: IntLike | None = None, window_fn: Callable[..., Any] | None = ..., pad_end: bool = False, name: str | None = None) -> tf.Tensor:
    """The short-time Fourier transform: (..., frames, fft_length // 2 + 1), complex.

    Args:
      signals: real, (..., samples).
      fft_length: by default the smallest power of two that holds a frame.
      window_fn: makes a window of a length and a ``dtype``; None for none.
    """
