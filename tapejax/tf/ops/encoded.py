"""Images as files: decoded and encoded by Pillow, which is imported when it is first needed."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..values.conversion import convert_to_tensor
from ..values.dtypes import as_dtype
from ..values.errors import InvalidArgumentError, extra_missing
from ..values.tensor import Tensor
from ..values.types import DTypeLike, IntLike, TensorLike
from . import image as _image
from .table import accepting, host, renamed, static

Picture: TypeAlias = Any  # an image of Pillow's, which need not be installed
_GREY = np.array([9797, 19234, 3737])  # as libpng, which TensorFlow has, weights colours; Pillow rounds
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow() -> ModuleType:
    try:
        import PIL.Image
    except ImportError as error:
        raise extra_missing("reading and writing image files", "Pillow", "images") from error
    return PIL.Image


def _opened(contents: bytes, kinds: tuple[str, ...] | None = None) -> Picture:
    data = contents.item() if isinstance(contents, (np.ndarray, np.generic)) else contents
    if not isinstance(data, (bytes, bytearray)):
        raise TypeError(f"contents must be bytes, as tf.io.read_file returns them, got {type(contents).__name__}")
    pillow = _pillow()
    try:
        return pillow.open(io.BytesIO(data), formats=kinds)
    except pillow.UnidentifiedImageError as error:
        raise InvalidArgumentError(f"contents is no image in a format that is known here: {error}") from error


def _pixels(picture: Picture, channels: IntLike, dtype: DTypeLike) -> np.ndarray:
    count = int(static(channels or 0))
    if count not in (0, *_MODES):
        raise ValueError(f"channels must be 0, 1, 3 or 4, got {channels!r}")
    if picture.mode == "I;16" and count in (0, 1):
        pixels = np.asarray(picture)
    elif count == 1 and picture.format == "PNG" and picture.mode in ("RGB", "RGBA", "P"):
        pixels = (np.asarray(picture.convert("RGB")) @ _GREY >> 15).astype(np.uint8)
    else:
        plain = {"1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}.get(picture.mode, picture.mode)
        pixels = np.asarray(picture.convert(_MODES.get(count, plain)))
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if as_dtype(dtype).name == "uint16" and pixels.dtype == np.uint8:
        return pixels.astype(np.uint16) * 257
    return (pixels >> 8).astype(np.uint8) if pixels.dtype == np.uint16 and as_dtype(dtype).name == "uint8" else pixels


def _converted(pixels: np.ndarray, dtype: DTypeLike) -> Tensor:
    wanted = as_dtype(dtype)
    if wanted.name not in ("uint8", "uint16", "float32"):
        raise ValueError(f"dtype must be tf.uint8, tf.uint16 or tf.float32, got {wanted!r}")
    return _image.convert_image_dtype(convert_to_tensor(pixels), wanted)


def decode_image(contents, channels=None, dtype="uint8", name=None, expand_animations=True) -> Tensor:
    """The pixels in a file's bytes, of any format that Pillow reads: (height, width, channels).

    Args:
      contents: bytes.
      channels: 1 for grey, 3 for RGB, 4 for RGBA; None or 0 for what the file has.
      dtype: uint8, uint16 or float32.
      expand_animations: whether a GIF gives all its frames, (frames, height, width, 3), or its first one.

    Raises:
      InvalidArgumentError: the bytes are no image.
      ImportError: Pillow is not installed.
    """
    picture = _opened(contents)
    if picture.format != "GIF":
        return _converted(_pixels(picture, channels, dtype), dtype)
    frames = _frames(picture)
    return _converted(frames if expand_animations else frames[0], dtype)


def pixels_of(contents: bytes, channels: int) -> np.ndarray:
    """The pixels of an image, or of the first frame of several, in NumPy: uint8, (height, width, channels)."""
    return _pixels(_opened(contents), channels, "uint8")


def _frames(picture: Picture) -> np.ndarray:
    frames = []
    for i in range(getattr(picture, "n_frames", 1)):
        picture.seek(i)
        frames.append(np.asarray(picture.convert("RGB")))
    return np.stack(frames)


def decode_gif(contents: bytes, name: str | None = None) -> Tensor:
    """All frames of a GIF: uint8, (frames, height, width, 3)."""
    return convert_to_tensor(_frames(_opened(contents, ("GIF",))))


def _decoder(name: str, kinds: tuple[str, ...] | None) -> Callable[..., Tensor]:
    def public(contents: bytes, channels: IntLike = 0, dtype: DTypeLike = "uint8", name: str | None = None) -> Tensor:
        return _converted(_pixels(_opened(contents, kinds), channels, dtype), dtype)

    public.__doc__ = f"The pixels of a file of this kind, (height, width, channels): {name.partition('_')[2].upper()}."
    return renamed(name, public)


# As in TensorFlow, the one for PNG reads the other formats, too.
decode_png = _decoder("decode_png", None)
decode_webp = _decoder("decode_webp", ("WEBP",))


def decode_bmp(contents: bytes, channels: IntLike = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP file: uint8, (height, width, channels)."""
    return convert_to_tensor(_pixels(_opened(contents, ("BMP",)), channels, "uint8"))


# How a JPEG file is decoded, for TensorFlow's sake: Pillow decides.
_JPEG = {"fancy_upscaling": True, "try_recover_truncated": False, "acceptable_fraction": 1, "dct_method": ""}


@accepting(" ".join(_JPEG) + " name", **_JPEG)
def decode_jpeg(contents: bytes, channels: IntLike = 0, ratio: int = 1) -> Tensor:
    """The pixels of a JPEG file: uint8, (height, width, channels). `ratio` makes it smaller, by 1, 2, 4 or 8.

    `fancy_upscaling`, `try_recover_truncated`, `acceptable_fraction` and `dct_method` are taken for TensorFlow's sake.
    """
    if ratio not in (1, 2, 4, 8):
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    picture = _opened(contents)
    if ratio > 1:
        picture.draft(None, tuple(-(-n // ratio) for n in picture.size))
    return convert_to_tensor(_pixels(picture, channels, "uint8"))


def is_jpeg(contents: bytes, name: str | None = None) -> Tensor:
    """Whether the bytes begin as a JPEG file does."""
    return convert_to_tensor(bytes(contents[:3]) == b"\xff\xd8\xff")


def _encoded(image: TensorLike, kind: str, **options: Any) -> bytes:
    pixels = host(image, "image")
    if pixels.ndim != 3 or pixels.shape[-1] not in _MODES or pixels.dtype not in (np.uint8, np.uint16):
        raise InvalidArgumentError(
            f"image must be uint8 of shape (height, width, 1, 3 or 4), got {pixels.dtype} of shape {pixels.shape}: use "
            "tf.image.convert_image_dtype(image, tf.uint8) for floats"
        )
    file = io.BytesIO()
    flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    _pillow().fromarray(flat).save(file, kind, **options)
    return file.getvalue()


def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> bytes:
    """The bytes of a PNG file with the pixels, uint8 of shape (height, width, channels)."""
    return _encoded(image, "PNG", **({} if compression < 0 else {"compress_level": int(compression)}))


def encode_jpeg(
    image: TensorLike,
    format: str = "",
    quality: IntLike = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> bytes:
    """The bytes of a JPEG file with the pixels, uint8 of shape (height, width, 1 or 3).

    Args:
      quality: from 0 to 100.
      progressive, optimize_size, chroma_downsampling: how it is compressed.
      x_density, y_density, density_unit: pixels for each inch or cm, as noted in the file.
      format, xmp_metadata: taken for TensorFlow's sake.
    """
    dpi = tuple(round(density * (2.54 if density_unit == "cm" else 1)) for density in (x_density, y_density))
    how = {"progressive": progressive, "optimize": optimize_size, "subsampling": 2 if chroma_downsampling else 0}
    return _encoded(image, "JPEG", quality=int(static(quality, "quality")), dpi=dpi, **how)
