"""``tf.audio``: sound as WAV files of 16 bits, read and written by Python's ``wave``."""

from __future__ import annotations

import io
import wave
from typing import NamedTuple

import numpy as np

from ..values.conversion import convert_to_tensor
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor
from ..values.types import IntLike, TensorLike
from .table import host, static

_FULL = 1 << 15


class DecodeWav(NamedTuple):
    """What `decode_wav` returns."""

    audio: Tensor
    sample_rate: Tensor


def decode_wav(
    contents: bytes, desired_channels: IntLike = -1, desired_samples: IntLike = -1, name: str | None = None
) -> DecodeWav:
    """The sound in the bytes of a WAV file: float32 of shape (samples, channels) between -1 and 1, and the sampling rate.

    Args:
      contents: bytes, as `tf.io.read_file` returns them.
      desired_channels: as many as these: the last one of the file is repeated, or some are left out; -1 for what the file has.
      desired_samples: as many as these: zeros are added, or some are left out; -1 for what the file has.

    Raises:
      InvalidArgumentError: the bytes are no WAV file of 16 bits.

    >>> import tapejax as tf
    >>> audio, rate = tf.audio.decode_wav(tf.audio.encode_wav([[0.5], [-0.25]], 8000))
    >>> audio.numpy().tolist(), int(rate)
    ([[0.5], [-0.25]], 8000)
    """
    samples, rate = read_wav(contents, int(static(desired_channels)), int(static(desired_samples)))
    return DecodeWav(convert_to_tensor(samples), convert_to_tensor(rate, "int32"))


def read_wav(contents: bytes, channels: int = -1, samples: int = -1) -> tuple[np.ndarray, int]:
    """`decode_wav` in NumPy."""
    data = contents.item() if isinstance(contents, (np.ndarray, np.generic)) else contents
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"contents must be bytes, as tf.io.read_file returns them, got {type(contents).__name__}")
    try:
        with wave.open(io.BytesIO(data), "rb") as file:
            params, bits = file.getparams(), 8 * file.getsampwidth()
            frames = file.readframes(params.nframes)
    except (wave.Error, EOFError) as error:
        raise InvalidArgumentError(f"contents is no WAV file: {error or 'it is too short'}") from error
    if bits != 16:
        raise InvalidArgumentError(f"Can only read 16-bit WAV files, but received {bits}")
    if len(frames) != 2 * params.nframes * params.nchannels:
        raise InvalidArgumentError("contents is no whole WAV file: data too short")
    audio = np.frombuffer(frames, "<i2").reshape(-1, params.nchannels).astype(np.float32) / _FULL
    if channels >= 0:
        audio = audio[:, np.minimum(np.arange(channels), params.nchannels - 1)]
    if samples >= 0:
        audio = np.pad(audio[:samples], [(0, max(samples - len(audio), 0)), (0, 0)])
    return audio, params.framerate


def encode_wav(audio: TensorLike, sample_rate: IntLike, name: str | None = None) -> bytes:
    """The bytes of a WAV file of 16 bits with the sound `audio`, of shape (samples, channels); see `decode_wav`."""
    sound, rate = host(audio, "audio"), int(static(sample_rate))
    if sound.ndim != 2:
        raise InvalidArgumentError(f"audio must be 2-dimensional, got shape {sound.shape}")
    if rate <= 0:
        raise InvalidArgumentError(f"sample_rate must be in (0, 2^32), got: {rate}")
    scaled = np.float32(_FULL) * sound.astype(np.float32)
    whole = np.clip(np.copysign(np.floor(np.abs(scaled) + 0.5), scaled), -_FULL, _FULL - 1)
    with io.BytesIO() as out:
        with wave.open(out, "wb") as file:
            file.setparams((sound.shape[1], 2, rate, 0, "NONE", ""))
            file.writeframes(whole.astype("<i2").tobytes())
        return out.getvalue()
