"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, PathLike

from tapejax.image import decode_bmp as decode_bmp
from tapejax.image import decode_gif as decode_gif
from tapejax.image import decode_image as decode_image
from tapejax.image import decode_jpeg as decode_jpeg
from tapejax.image import decode_png as decode_png
def decode_raw(input_bytes: Any, out_type: Any, little_endian: Any = True, fixed_length: Any = None, name: str | None = None) -> tf.Tensor:
    """The numbers that bytes stand for: a vector, or a row for each of a list of bytes.

    Args:
      out_type: the numbers' dtype.
      little_endian: the order of each number's bytes.
      fixed_length: how many bytes to use: what is longer is cut, what is shorter filled up with zeros.

    Raises:
      InvalidArgumentError: the number of bytes is not a multiple of the dtype's size.
    """
from tapejax.image import decode_webp as decode_webp
from tapejax.image import encode_jpeg as encode_jpeg
from tapejax.image import encode_png as encode_png
from tapejax.io import gfile as gfile
from tapejax.image import is_jpeg as is_jpeg
def matching_files(pattern: PathLike | list[PathLike] | tuple[PathLike, ...], name: str | None = None) -> list[bytes]:
    """The files whose path matches a pattern (or one of several), in order."""
def parse_tensor(serialized: bytes, out_type: DTypeLike, name: str | None = None) -> tf.Tensor:
    """The tensor of dtype `out_type` that `serialize_tensor` wrote.

    Raises:
      InvalidArgumentError: these are no such bytes, or it has another dtype.
    """
def read_file(filename: PathLike, name: str | None = None) -> bytes:
    """What is in a file. Raises NotFoundError where there is none."""
def serialize_tensor(tensor: TensorLike, name: str | None = None) -> bytes:
    """A tensor as bytes, which `parse_tensor` reads: in NumPy's format, not TensorFlow's.

    >>> import tapejax as tf
    >>> print(tf.io.parse_tensor(tf.io.serialize_tensor([1.0, 2.0]), tf.float32).numpy())
    [1. 2.]
    """
def write_file(filename: PathLike, contents: str | bytes, name: str | None = None) -> None:
    """Writes text or bytes to a file, in folders that are made where they are missing."""
