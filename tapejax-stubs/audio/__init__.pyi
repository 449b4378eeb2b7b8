"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, IntLike

def decode_wav(contents: bytes, desired_channels: IntLike = -1, desired_samples: IntLike = -1, name: str | None = None) -> Any:
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
def encode_wav(audio: TensorLike, sample_rate: IntLike, name: str | None = None) -> bytes:
    """The bytes of a WAV file of 16 bits with the sound `audio`, of shape (samples, channels); see `decode_wav`."""
