"""Images: tensors of shape (height, width, channels), or batches of them; integers count from 0 to their largest value,
floats from 0 to 1."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values.connected import zero_gradient
from ..values.conversion import convert_to_tensor, raw
from ..values.dtypes import as_dtype, requested
from ..values.errors import InvalidArgumentError
from ..values.operations import arrays_of, op
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, FloatLike, IntLike, ShapeLike, TensorLike
from . import array as _array
from . import random as _random
from .math import _abs, _maximum, _minimum, _sum
from .registry import opaque
from .table import ANY, FLOAT, INTEGER, host, kind_of, known, operation, renamed, require_kind, shape_of, static, whole

_LAYOUT = ("NHWC", "HWIO", "NHWC")  # of images, filters and results, for JAX's convolutions

# ---- Types -------------------------------------------------------------------------------------------------


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """`image` in another dtype, its values scaled from one range to the other.

    Args:
      image: integers from 0 to their dtype's maximum, or floats from 0 to 1.
      dtype: the dtype wanted.
      saturate: whether what lies outside the new range is moved to its limits.

    Raises:
      AttributeError: `dtype` is neither an integer nor a floating point dtype.

    >>> import tapejax as tf
    >>> print(tf.image.convert_image_dtype(tf.constant([0, 255], tf.uint8), tf.float32).numpy())
    [0. 1.]
    """
    array, wanted = raw(image), as_dtype(dtype)
    if not (wanted.is_floating or wanted.is_integer):
        raise AttributeError("dtype must be either floating point or integer")
    target = requested(wanted)
    if array.dtype == target:
        return image if type(image) is Tensor else Tensor(array)
    if kind_of(array.dtype) in "iu" and wanted.is_integer:
        old, new = (int(np.iinfo(d).max) + 1 for d in (array.dtype, target))
        if old > new:
            return _cast(op(_floor_divide, array, old // new), target, saturate)
        return op(jnp.multiply, _cast(array, target, saturate), new // old)
    if kind_of(array.dtype) in "iu":
        return op(jnp.multiply, _array.cast(array, target), 1.0 / int(np.iinfo(array.dtype).max))
    if wanted.is_integer:
        return _cast(op(jnp.multiply, array, int(np.iinfo(target).max) + 0.5), target, saturate)
    return _array.cast(array, target)


def _floor_divide(x, y):
    return x // y


def _cast(x: TensorLike, dtype: np.dtype, saturate: bool) -> Tensor:
    return _array.saturate_cast(x, dtype) if saturate else _array.cast(x, dtype)


def _as_float(image: TensorLike) -> Tensor:
    """Floats stay what they are if they are short; all else becomes float32."""
    return convert_image_dtype(image, "float16" if raw(image).dtype == np.float16 else "float32")


def _adjusted(image: TensorLike, kernel: Callable, *values: TensorLike) -> Tensor:
    """`kernel` of the image as floats, and the result in the image's own dtype."""
    array = raw(image)
    floats = _as_float(array)
    parameters = [x if isinstance(x, (int, float)) else _array.cast(x, floats.dtype) for x in values]
    return convert_image_dtype(op(kernel, floats, *parameters), array.dtype, saturate=True)


def _image(images: TensorLike, least: int = 3, most: int = 99) -> Array:
    """Raises ValueError unless it has (height, width, channels), with a batch before them or not."""
    array = raw(images)
    if not least <= array.ndim <= most:
        wanted = f"{least} to {most} axes" if most < 99 else "at least three axes"
        raise ValueError(f"images must have {wanted}, (batch,) height, width, channels: got shape {array.shape}")
    return array


# ---- Sizes -------------------------------------------------------------------------------------------------


class ResizeMethod:
    """The methods of `resize`, by name."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"  # by number, too
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def _keys(x):
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(radius):
    return lambda x: np.where(x < radius, np.sinc(x) * np.sinc(x / radius), 0)


def _mitchell(x):
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


# name: the weight of a pixel at a distance
_METHODS: dict[str, Callable | None] = {
    "bilinear": lambda x: np.maximum(1 - x, 0), "gaussian": lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0),
    "nearest": None, "bicubic": _keys, "lanczos3": _lanczos(3), "lanczos5": _lanczos(5), "area": None,
    "mitchellcubic": _mitchell,
}  # fmt: skip
_NUMBERED = ("bilinear", "nearest", "bicubic", "area")


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None) -> Tensor:
    """Images of another size: float32, but for method 'nearest', which keeps the dtype.

    Args:
      images: (batch, height, width, channels) or (height, width, channels).
      size: the new height and width.
      method: one of `ResizeMethod`.
      preserve_aspect_ratio: whether `size` is only an upper bound.
      antialias: whether what is made smaller is smoothed first.

    Raises:
      ValueError: `images` has another rank, `size` is not two integers, or an unknown `method`.

    >>> import tapejax as tf
    >>> print(tf.image.resize([[[0.0], [1.0]]], (1, 4)).numpy().ravel())
    [0.   0.25 0.75 1.  ]
    """
    array = _image(images, 3, 4)
    name = _NUMBERED[method] if isinstance(method, int) and method in range(len(_NUMBERED)) else method
    if not isinstance(name, str) or name not in _METHODS:
        raise ValueError(f"Resize method is not implemented: {method!r}. Use one of {', '.join(_METHODS)}")
    sizes = host(size, "size")
    if sizes.shape != (2,):
        raise ValueError(f"'size' must be a 1-D int32 Tensor of 2 elements: new_height, new_width. Got {size!r}")
    if sizes.dtype.kind not in "iu":
        raise InvalidArgumentError(f"size must be integers, got {size!r}")
    height, width = (int(n) for n in sizes)
    if preserve_aspect_ratio:
        scale = min(np.float32(height / array.shape[-3]), np.float32(width / array.shape[-2]))
        height, width = (int(np.round(np.float32(n) * scale)) for n in array.shape[-3:-1])
    if height < 1 or width < 1:
        raise InvalidArgumentError(f"resize: output dimensions must be positive, got {(height, width)}")
    if name != "nearest":
        array = _array.cast(array, "float32")._array
    if (height, width) == array.shape[-3:-1] and name not in ("gaussian", "mitchellcubic"):  # these blur all the same
        return images if type(images) is Tensor and images._array is array else Tensor(array)
    return op(_resize, array, size=(height, width), method=name, antialias=bool(antialias))


@zero_gradient  # of no elements: JAX takes it for a constant
def _resize(x, size, method, antialias):
    if method == "nearest":
        return jax.image.resize(x, (*x.shape[:-3], *size, x.shape[-1]), "nearest")
    by_rows, by_columns = _matrices(x.shape, size, method, antialias)
    return jnp.einsum("...hwc,hi,wj->...ijc", x, by_rows, by_columns, precision="highest")


def resized(x: np.ndarray, size: Sequence[int], method: str) -> np.ndarray:
    """What `resize` computes of one image, by NumPy: for images from files, which each have a size of their own."""
    if method == "nearest":
        for axis, new in enumerate(size):
            x = x.take(((np.arange(new) + 0.5) * (x.shape[axis] / new)).astype(int), axis)
        return x
    x = np.asarray(x, np.float32)
    if tuple(size) == x.shape[:2] and method not in ("gaussian", "mitchellcubic"):
        return x
    by_rows, by_columns = _matrices(x.shape, size, method, False)
    return by_columns.T @ (by_rows.T @ x.reshape(len(x), -1)).reshape(len(by_rows.T), *x.shape[1:])


def _matrices(shape, size, method, antialias):
    """How much of each old row goes into each new one, and of each old column."""
    pairs = zip(shape[-3:-1], size, strict=True)
    return [_areas(*pair) if method == "area" else _weights(*pair, _METHODS[method], antialias) for pair in pairs]


def _weights(old, new, window, antialias):
    scale = new / old
    reach = max(1 / scale, 1) if antialias else 1
    centre = (np.arange(new) + 0.5) / scale - 0.5
    if window is _keys and not antialias:  # TensorFlow looks the weights up in a table
        centre = np.rint(centre * 1024) / 1024
    weight = window(np.abs(np.arange(old)[:, None] - centre) / reach)
    return (weight / weight.sum(0)).astype(np.float32)


def _areas(old, new):
    """The part of each old row that lies within each new one."""
    start = np.arange(new) * (old / new)
    end = start + old / new
    overlap = np.minimum(np.arange(1, old + 1)[:, None], end) - np.maximum(np.arange(old)[:, None], start)
    return (np.clip(overlap, 0, None) * (new / old)).astype(np.float32)


def crop_to_bounding_box(image: TensorLike, offset_height, offset_width, target_height, target_width) -> Tensor:
    """The part of the images of the target's size that begins at the offset.

    Raises:
      ValueError: the part does not lie within the images.
    """
    array = _image(image)
    top, left, height, width = (int(whole(n)) for n in (offset_height, offset_width, target_height, target_width))
    _require(top >= 0 and left >= 0, f"offset_height and offset_width must be >= 0, got {top}, {left}")
    _require(height > 0 and width > 0, f"target_height and target_width must be > 0, got {height}, {width}")
    bottom, right = top + height, left + width
    inside = bottom <= array.shape[-3] and right <= array.shape[-2]
    _require(inside, f"offset + target must be <= image size, got {bottom} and {right}, image {array.shape}")
    return _array.getitem(array, (..., slice(top, bottom), slice(left, right), slice(None)))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def pad_to_bounding_box(image: TensorLike, offset_height, offset_width, target_height, target_width) -> Tensor:
    """The images put into zeros of the target's size, at the offset.

    Raises:
      ValueError: they do not fit in.
    """
    array = _image(image)
    top, left, height, width = (int(whole(n)) for n in (offset_height, offset_width, target_height, target_width))
    bottom, right = height - top - array.shape[-3], width - left - array.shape[-2]
    _require(top >= 0 and left >= 0, f"offset_height and offset_width must be >= 0, got {top}, {left}")
    _require(bottom >= 0 and right >= 0, f"image size must be <= target - offset, got {array.shape}, {height}, {width}")
    return _array.pad(array, [(0, 0)] * (array.ndim - 3) + [(top, bottom), (left, right), (0, 0)])


def resize_with_crop_or_pad(image: TensorLike, target_height: IntLike, target_width: IntLike) -> Tensor:
    """The middle of the images, cropped or padded with zeros to the target's size."""
    array = _image(image)
    target = int(whole(target_height)), int(whole(target_width))
    _require(min(target) > 0, f"target_height and target_width must be > 0, got {target}")
    spare = [wanted - there for wanted, there in zip(target, array.shape[-3:-1], strict=True)]
    kept = [min(wanted, there) for wanted, there in zip(target, array.shape[-3:-1], strict=True)]
    cropped = crop_to_bounding_box(array, *(max(-s // 2, 0) for s in spare), *kept)
    return pad_to_bounding_box(cropped, max(spare[0] // 2, 0), max(spare[1] // 2, 0), *target)


def resize_with_pad(image: TensorLike, target_height, target_width, method="bilinear", antialias=False) -> Tensor:
    """The images resized, their proportions kept, and padded with zeros to the target's size."""
    array = _image(image, 3, 4)
    target = int(whole(target_height)), int(whole(target_width))
    _require(min(target) > 0, f"target_height and target_width must be > 0, got {target}")
    sizes, spare = sizes_with_pad(array.shape[-3:-1], target)
    return pad_to_bounding_box(resize(array, sizes, method, antialias=antialias), spare[0], spare[1], *target)


def sizes_with_pad(sizes: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
    """The largest sizes of the same proportions within the target's, and what is to be added before them."""
    ratio = max(np.float64(size) / wanted for size, wanted in zip(sizes, target, strict=True))
    spare = [max(int((wanted - size / ratio) / 2), 0) for size, wanted in zip(sizes, target, strict=True)]
    return [int(size / ratio) for size in sizes], spare


def central_crop(image: TensorLike, central_fraction: FloatLike) -> Tensor:
    """The middle of the images, `central_fraction` of each side.

    Raises:
      ValueError: the fraction is not in (0, 1].
    """
    array, fraction = _image(image, 3, 4), float(static(central_fraction, "central_fraction"))
    if not 0 < fraction <= 1:
        raise ValueError(f"central_fraction must be within (0, 1], got {fraction}")
    start = [int((n - n * fraction) / 2) for n in array.shape[-3:-1]]
    size = [n - 2 * s for n, s in zip(array.shape[-3:-1], start, strict=True)]
    return crop_to_bounding_box(array, *start, *size)


def extract_patches(images: TensorLike, sizes, strides, rates, padding: str, name=None) -> Tensor:
    """The window of pixels around each place, flattened into the channels.

    Args:
      images: (batch, height, width, channels).
      sizes, strides, rates: of the window, as ``[1, rows, columns, 1]``.
      padding: 'SAME' or 'VALID'.
    """
    array = _image(images, 4, 4)
    middle = {}
    for argument, value in (("sizes", sizes), ("strides", strides), ("rates", rates)):
        four = shape_of(value, argument)
        if len(four) != 4 or four[0] != 1 or four[3] != 1:
            raise InvalidArgumentError(f"{argument} must be [1, rows, columns, 1], got {value!r}")
        middle[argument] = four[1:3]
    return op(_extract_patches, array, padding=str(padding).upper(), **middle)


@zero_gradient  # of no elements, as above
def _extract_patches(x, sizes, strides, rates, padding):
    # By indices. JAX's own function is a convolution with ones and zeros, which would spread infinities and NaN.
    reach = [(size - 1) * rate + 1 for size, rate in zip(sizes, rates, strict=True)]
    pads = lax.padtype_to_pads(x.shape[1:3], reach, strides, padding)
    x = jnp.pad(x, [(0, 0), *pads, (0, 0)])
    rows, columns = (
        np.arange(0, length - whole + 1, stride)[:, None] + np.arange(size) * rate
        for length, whole, stride, size, rate in zip(x.shape[1:3], reach, strides, sizes, rates, strict=True)
    )
    patches = x[:, rows[:, None, :, None], columns[:, None]]  # (batch, *places, *sizes, channels)
    return patches.reshape(*patches.shape[:3], np.prod(patches.shape[3:]))


@operation("image boxes box_indices", f"{ANY} {ANY} {INTEGER}", agree=False)
def crop_and_resize(image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0):
    """Parts of images, all resized to `crop_size`: float32, a row for each box.

    Args:
      image: (batch, height, width, channels).
      boxes: rows of (y1, x1, y2, x2), in which 1 is the last row or column.
      box_indices: which image each box belongs to.
      method: 'bilinear' or 'nearest', whose gradient with respect to the boxes is that of 'bilinear', as in TensorFlow.
      extrapolation_value: what lies outside the image.
    """
    if method not in ("bilinear", "nearest"):
        raise InvalidArgumentError(f"method must be 'bilinear' or 'nearest', got {method!r}")
    images, size = _image(image, 4, 4).astype(jnp.float32), shape_of(crop_size, "crop_size")

    def places(start, end, old, new):
        if new == 1:
            return jnp.full(1, 0.5 * (start + end) * (old - 1))  # of the boxes' dtype, also with 64-bit types on
        return start * (old - 1) + jnp.arange(new) * ((end - start) * ((old - 1) / (new - 1)))

    def crop(method, images, box, i):
        height, width = images.shape[1:3]
        y, x = places(box[0], box[2], height, size[0]), places(box[1], box[3], width, size[1])
        within = ((y >= 0) & (y <= height - 1))[:, None] & ((x >= 0) & (x <= width - 1))
        if method == "nearest":
            y, x = jnp.floor(y + 0.5), jnp.floor(x + 0.5)  # half up, not to even
        corners, parts = zip(_neighbours(y, height), _neighbours(x, width), strict=True)
        pixels = images[i, corners[0][:, None, :, None], corners[1][:, None]]  # (2, 2, *size, channels)
        for part in (parts[0][:, None, None], parts[1][:, None]):
            pixels = pixels[0] * (1 - part) + pixels[1] * part
        return jnp.where(within[..., None], pixels, extrapolation_value)

    bilinear, nearest = (
        jax.vmap(functools.partial(crop, kind), in_axes=(None, 0, 0)) for kind in ("bilinear", "nearest")
    )
    if method == "bilinear":
        return bilinear(images, boxes, box_indices)
    by_image = jax.custom_jvp(nearest)
    by_image.defjvps(
        lambda tangent, _, x, *at: jax.jvp(lambda x: nearest(x, *at), [x], [tangent])[1],
        lambda tangent, _, x, box, i: jax.jvp(lambda box: bilinear(x, box, i), [box], [tangent])[1],
        None,
    )
    return by_image(images, boxes, box_indices)


def _neighbours(places, length):
    """The rows before and after each place, and how far it is from the first: on a row both are that row."""
    low = jnp.floor(places)
    return jnp.clip(jnp.stack([low, jnp.ceil(places)]), 0, length - 1).astype(jnp.int32), places - low


# ---- Turning -----------------------------------------------------------------------------------------------


def flip_left_right(image: TensorLike) -> Tensor:
    """The images mirrored, left to right."""
    return _array.reverse(_image(image), [-2])


def flip_up_down(image: TensorLike) -> Tensor:
    """The images mirrored, upside down."""
    return _array.reverse(_image(image), [-3])


def rot90(image: TensorLike, k: IntLike = 1, name: str | None = None) -> Tensor:
    """The images turned `k` times by 90 degrees, counter-clockwise."""
    return op(jnp.rot90, _image(image, 3, 4), k=int(whole(k, "k")) % 4, axes=(-3, -2))


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Height and width exchanged."""
    return op(jnp.swapaxes, _image(image, 3, 4), axis1=-3, axis2=-2)


# ---- Colours -----------------------------------------------------------------------------------------------


def _channels(images: TensorLike, count: int) -> Array:
    array = raw(images)
    if not array.ndim or array.shape[-1] != count:
        raise ValueError(f"the last axis of images must have {count} channels, got shape {array.shape}")
    return array


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """How bright each pixel is: one channel, in the images' dtype."""
    array = raw(images)
    return convert_image_dtype(op(_rgb_to_grayscale, _as_float(array)), array.dtype)


def _rgb_to_grayscale(x):
    return jnp.sum(x * jnp.asarray([0.2989, 0.5870, 0.1140], x.dtype), -1, keepdims=True)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel three times."""
    array = _channels(images, 1)
    return _array.tile(array, [1] * (array.ndim - 1) + [3])


def _rgb_to_hsv(rgb):
    r, g, b = jnp.moveaxis(rgb, -1, 0)
    value, low = _maximum(_maximum(r, g), b), _minimum(b, _minimum(g, r))  # of equals one gets the gradient
    spread = value - low
    saturation = jnp.where(value > 0, spread / jnp.where(value > 0, value, 1), 0)
    return jnp.stack([_hue(r, g, b, value, spread, 1), saturation, value], -1)


def _hue(r, g, b, value, spread, circle):
    """The hue, where all the way round is `circle`."""
    sixth = circle / jnp.where(spread > 0, 6 * spread, 1)
    hue = jnp.where(g == value, (b - r) * sixth + circle / 3, (r - g) * sixth + circle * 2 / 3)
    hue = jnp.where(r == value, (g - b) * sixth, hue)
    return jnp.where(spread > 0, jnp.where(hue < 0, hue + circle, hue), 0)


def _rgb_to_hsv_flat_at_zero(rgb):
    # TensorFlow's saturation has slope 0 with respect to a channel that is 0, the end of the range
    held = _rgb_to_hsv(jnp.where(rgb > 0, rgb, lax.stop_gradient(rgb)))
    return _rgb_to_hsv(rgb).at[..., 1].set(held[..., 1])


renamed("rgb_to_hsv", _rgb_to_hsv_flat_at_zero)


def _hsv_to_rgb(hsv):
    hue, saturation, value = (part[..., None] for part in jnp.moveaxis(hsv, -1, 0))
    return ((1 - saturation) + saturation * _pure(6 * hue)) * value


def _pure(sixths):
    """Red, green and blue of a hue's colour of full saturation and value."""
    distance = jnp.abs(sixths - jnp.asarray([3, 2, 4], sixths.dtype))
    return jnp.clip(jnp.asarray([-1, 2, 2], sixths.dtype) + jnp.asarray([1, -1, -1], sixths.dtype) * distance, 0, 1)


def _each_pixel(kernel: Callable, images: TensorLike) -> Tensor:
    return _floating(kernel, _channels(images, 3))


def _floating(kernel: Callable, array: Array) -> Tensor:
    require_kind(kernel.__name__.strip("_"), array, FLOAT)
    return op(kernel, array)


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Hue, saturation and value of each pixel, from 0 to 1. Takes floats."""
    return _each_pixel(_rgb_to_hsv_flat_at_zero, images)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Red, green and blue of pixels given by hue, saturation and value. Takes floats."""
    return _each_pixel(_hsv_to_rgb, images)


# The weight of each channel in each of the new ones. The standard's matrix for YIQ and its inverse are rounded, each by itself.
_SPACES: dict[str, list[list[float]]] = {
    "rgb_to_yiq": [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]],
    "yiq_to_rgb": [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]],
    "rgb_to_yuv": [
        [0.299, -0.14714119, 0.61497538],
        [0.587, -0.28886916, -0.51496512],
        [0.114, 0.43601035, -0.10001026],
    ],
    "yuv_to_rgb": [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]],
}


def _linear(name: str, matrix: list[list[float]]) -> Callable[..., Tensor]:
    def kernel(x):
        return jnp.einsum("...c,cd->...d", x, jnp.asarray(matrix, x.dtype), precision="highest")

    def public(images: TensorLike) -> Tensor:
        return _each_pixel(renamed(name, kernel), images)

    public.__doc__ = f"Each pixel's colour changed as the name says: {name.replace('_', ' ')}. Takes floats."
    return renamed(name, public)


rgb_to_yiq, yiq_to_rgb, rgb_to_yuv, yuv_to_rgb = (_linear(name, matrix) for name, matrix in _SPACES.items())


def _adjust_brightness(x, delta):
    return x + delta


@opaque("AdjustContrastv2")
def _adjust_contrast(images: Array, contrast_factor: Array) -> Array:
    mean = jnp.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


def _adjust_gamma(x, gamma, gain):
    return gain * x**gamma


# Integers are cut, not rounded, when they are floats no more: what keeps its value has to keep it to the last bit.
def _adjust_hue(x, delta):
    value, low = jnp.max(x, -1, keepdims=True), jnp.min(x, -1, keepdims=True)
    hue = _hue(*jnp.split(x, 3, -1), value, value - low, 6)
    return low + (value - low) * _pure((hue + 6 * delta) % 6)


def _adjust_saturation(x, factor):
    _, saturation, value = jnp.split(_rgb_to_hsv(x), 3, -1)
    spread = jnp.clip(saturation * factor, 0, 1) * value
    hue = _hue(*jnp.split(x, 3, -1), value, value - jnp.min(x, -1, keepdims=True), 6)
    return value - spread + spread * _pure(hue)


def adjust_brightness(image: TensorLike, delta: FloatLike) -> Tensor:
    """`delta`, a part of the range from 0 to 1, added to each pixel."""
    return _adjusted(image, _adjust_brightness, delta)


def adjust_contrast(images: TensorLike, contrast_factor: FloatLike) -> Tensor:
    """Images whose distance from their mean, for each channel, is `contrast_factor` times as large.

    It has no gradient, as in TensorFlow: asking for one raises `LookupError`, until one is registered for
    ``AdjustContrastv2`` with `RegisterGradient`.

    Args:
      images: floats, of shape ``(..., height, width, channels)``; integers are scaled, and cut to integers again.
      contrast_factor: a float scalar.

    Raises:
      InvalidArgumentError: `contrast_factor` is not a scalar.

    >>> import tapejax as tf
    >>> print(tf.image.adjust_contrast([[[0.0], [1.0]]], 0.5).numpy().ravel())
    [0.25 0.75]
    """
    array = raw(images)
    if array.ndim < 3:
        raise ValueError(f"images must have at least 3 dimensions (height, width, channels), got shape {array.shape}")
    _require_scalar("contrast_factor", contrast_factor)
    return _adjusted(array, _adjust_contrast, raw(contrast_factor, dtype_hint="float32"))


def adjust_gamma(image: TensorLike, gamma: FloatLike = 1, gain: FloatLike = 1) -> Tensor:
    """gain * image ** gamma. Raises ValueError for a negative `gamma`."""
    values = known(raw(gamma))
    if values is not None and (values < 0).any():
        error = ValueError if isinstance(gamma, (int, float)) else InvalidArgumentError
        raise error(f"Gamma should be a non-negative real number, got {gamma}")
    return _adjusted(image, _adjust_gamma, gamma, gain)


def _require_scalar(name: str, value: TensorLike) -> None:
    if np.ndim(value):
        raise InvalidArgumentError(f"{name} must be a scalar, got {value}")


def adjust_hue(image: TensorLike, delta: FloatLike, name: str | None = None) -> Tensor:
    """The hue of RGB images turned by `delta`, in [-1, 1]; 1 is all the way round."""
    _channels(image, 3)
    _require_scalar("delta", delta)
    if isinstance(delta, (int, float)) and not -1 <= delta <= 1:
        raise ValueError(f"delta must be in the interval [-1, 1], got {delta}")
    return _adjusted(image, _adjust_hue, delta)


def adjust_saturation(image: TensorLike, saturation_factor: FloatLike, name: str | None = None) -> Tensor:
    """The saturation of RGB images multiplied by a factor."""
    _channels(image, 3)
    _require_scalar("saturation_factor", saturation_factor)
    return _adjusted(image, _adjust_saturation, saturation_factor)


def per_image_standardization(image: TensorLike) -> Tensor:
    """Each image with its mean subtracted, divided by its standard deviation (at least 1 / sqrt(number of values))."""
    return op(_per_image_standardization, _image(image))


def _per_image_standardization(x):
    x, axes = x.astype(jnp.float32), (-3, -2, -1)
    deviation = x - jnp.mean(x, axes, keepdims=True)
    count = np.prod(x.shape[-3:])
    variance = jnp.mean(jnp.square(deviation), axes, keepdims=True)
    root = jnp.where(variance > 0, jnp.sqrt(jnp.where(variance > 0, variance, 1)), variance)  # with a finite slope at 0
    return deviation / jnp.maximum(root, (1 / np.sqrt(count)).astype(x.dtype))


# ---- Random -------------------------------------------------------------------------------------------------


def stateless(function: Callable, seed: TensorLike = inspect.Parameter.empty) -> Callable[..., Tensor]:
    """The stateless twin of a random function: the same `seed` always gives the same numbers."""
    signature = inspect.signature(function)
    parameters = [
        p.replace(default=seed, annotation="TensorLike") if p.name == "seed" else p
        for p in signature.parameters.values()
    ]
    signature = signature.replace(parameters=parameters)

    def twin(*args: Any, **kwargs: Any) -> Tensor:
        arguments = signature.bind(*args, **kwargs).arguments
        return function(**arguments | {"seed": _random.Fixed(arguments.get("seed", seed))})

    twin.__name__ = twin.__qualname__ = f"stateless_{function.__name__}"
    twin.__doc__ = f"As `{function.__name__}`; the same `seed`, two integers, always gives the same."
    twin.__signature__ = signature  # type: ignore[attr-defined]
    return twin


def _random_flip(name: str, axis: int, how: str) -> Callable[..., Tensor]:
    def public(image: TensorLike, seed: IntLike | None = None) -> Tensor:
        array = _image(image, 3, 4)
        return op(_flip_where, array, _random.uniform(array.shape[:-3], seed=seed), axis=axis)

    public.__doc__ = f"Each image {how}, or not, at random."
    return renamed(name, public)


def _flip_where(x, chance, axis):
    return jnp.where(chance[..., None, None, None] < 0.5, jnp.flip(x, axis), x)


renamed("random_flip", _flip_where)


def _random_delta(name: str, adjust: Callable, most: float, bound: str) -> Callable[..., Tensor]:
    def public(image: TensorLike, max_delta: float, seed: IntLike | None = None) -> Tensor:
        _require(0 <= max_delta <= most, f"max_delta must be {bound}, got {max_delta}")
        return adjust(image, _random.uniform((), -max_delta, max_delta, seed=seed))

    public.__doc__ = f"`{adjust.__name__}` by a random number in [-max_delta, max_delta); max_delta must be {bound}."
    return renamed(name, public)


def _random_factor(name: str, adjust: Callable) -> Callable[..., Tensor]:
    def public(image: TensorLike, lower: float, upper: float, seed: IntLike | None = None) -> Tensor:
        _require(upper > lower, f"{name}: upper must be > lower, got {lower} and {upper}")
        _require(lower >= 0, f"{name}: lower must be non-negative, got {lower}")
        return adjust(image, _random.uniform((), lower, upper, seed=seed))

    public.__doc__ = f"`{adjust.__name__}` by a random factor in [lower, upper)."
    return renamed(name, public)


random_flip_left_right = _random_flip("random_flip_left_right", -2, "mirrored left to right")
random_flip_up_down = _random_flip("random_flip_up_down", -3, "turned upside down")
random_brightness = _random_delta("random_brightness", adjust_brightness, np.inf, "non-negative")
random_hue = _random_delta("random_hue", adjust_hue, 0.5, "in [0, 0.5]")
random_contrast = _random_factor("random_contrast", adjust_contrast)
random_saturation = _random_factor("random_saturation", adjust_saturation)


def random_crop(value: TensorLike, size: ShapeLike, seed: IntLike | None = None, name: str | None = None) -> Tensor:
    """A part of `value` of shape `size`, at a random place.

    Raises:
      InvalidArgumentError: `size` is larger than `value`.
    """
    array, sizes = raw(value), shape_of(size, "size")
    if len(sizes) != array.ndim or any(there < wanted for there, wanted in zip(array.shape, sizes, strict=True)):
        raise InvalidArgumentError(f"Need value.shape >= size, got {array.shape} and {sizes}")
    return op(_random_crop, array, _random.uniform((array.ndim,), seed=seed), size=sizes)


def _random_crop(x, chance, size):
    spare = jnp.asarray([there - wanted + 1 for there, wanted in zip(x.shape, size, strict=True)])
    return lax.dynamic_slice(x, jnp.floor(chance * spare).astype(jnp.int32), size)


_TWINS = (random_flip_left_right, random_flip_up_down, random_brightness, random_contrast, random_hue, random_crop)
globals().update({f"stateless_{function.__name__}": stateless(function) for function in _TWINS})
stateless_random_saturation = stateless(random_saturation, seed=None)  # TensorFlow has a default here, and refuses it

# ---- Measuring ---------------------------------------------------------------------------------------------


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """(dy, dx): the differences to the next row and to the next column, 0 in the last.

    Raises:
      ValueError: `image` is not of shape (batch, height, width, channels).
    """
    array = raw(image)
    _require(array.ndim == 4, f"image_gradients expects a 4D tensor (batch, h, w, channels), got shape {array.shape}")
    return op(_image_gradients, array)


def _image_gradients(x):
    ends = [[(0, int(axis == own)) for own in range(4)] for axis in (1, 2)]
    return tuple(jnp.pad(jnp.diff(x, axis=axis), end) for axis, end in zip((1, 2), ends, strict=True))


def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel's derivatives with respect to y and x, along a new last axis of length 2."""
    return _floating(_sobel_edges, _image(image, 4, 4))


def _sobel_edges(x):
    padded = jnp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")

    def filtered(by_rows, by_columns):
        height, width = x.shape[1:3]
        places = [(i, j, r * c) for i, r in enumerate(by_rows) for j, c in enumerate(by_columns)]
        return sum(weight * padded[:, i : i + height, j : j + width] for i, j, weight in places)

    return jnp.stack([filtered((-1, 0, 1), (1, 2, 1)), filtered((1, 2, 1), (-1, 0, 1))], -1)


@operation("images")
def total_variation(images):
    """The sum of the absolute differences of neighbouring pixels: a number for each image."""
    return sum(_sum(_abs(jnp.diff(_image(images, 3, 4), axis=i)), (-3, -2, -1), False) for i in (-3, -2))


def _pair(a: TensorLike, b: TensorLike, max_val: FloatLike) -> tuple[Tensor, Tensor, Array]:
    one, other = arrays_of(a, b)
    for array in (one, other):
        _require(array.ndim >= 3, f"images must be at least three-dimensional, got shape {array.shape}")
    try:
        np.broadcast_shapes(one.shape[:-3], other.shape[:-3])
        _require(one.shape[-3:] == other.shape[-3:], "")
    except ValueError:
        raise ValueError(f"images of shapes {one.shape} and {other.shape} cannot be compared") from None
    limit = raw(convert_image_dtype(_array.cast(static(max_val, "max_val"), one.dtype), "float32"))
    return convert_image_dtype(one, "float32"), convert_image_dtype(other, "float32"), limit


def psnr(a: TensorLike, b: TensorLike, max_val: FloatLike, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images in decibels; `max_val` is the range of their values."""
    return op(_psnr, *_pair(a, b, max_val))


def _psnr(a, b, limit):
    error = jnp.mean(jnp.square(a - b), (-3, -2, -1))
    return 20 * jnp.log(limit) / np.log(10).astype(np.float32) - np.float32(10 / np.log(10)) * jnp.log(error)


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, return_index_map=False) -> Tensor:
    """The structural similarity of images: 1 for equal ones.

    Args:
      max_val: the range of their values.
      filter_size, filter_sigma: of the Gaussian window.
      k1, k2: what keeps the fractions finite.
      return_index_map: whether to give the similarity at each place instead of the mean.

    Raises:
      ValueError, InvalidArgumentError: the shapes differ, or are smaller than the window.
    """
    a, b, limit = _pair(img1, img2, max_val)
    if min(a._array.shape[-3:-1]) < filter_size:
        raise InvalidArgumentError(f"images must be at least filter_size={filter_size} high and wide")
    options = {"size": int(filter_size), "sigma": float(filter_sigma), "k1": float(k1), "k2": float(k2)}
    return op(_ssim, a, b, limit, local=bool(return_index_map), **options)


def _similar(a, b, limit, size, sigma, k1, k2):
    """Similarity, and its part without the means, for each place and channel."""
    bell = np.exp(-np.square(np.arange(size) - (size - 1) / 2) / (2 * sigma**2))
    window = (np.outer(bell, bell) / bell.sum() ** 2).astype(np.float32)[..., None, None]

    def blurred(x):
        flat = jnp.moveaxis(x, -1, 0).reshape(-1, *x.shape[-3:-1], 1)  # a picture for each channel
        flat = lax.conv_general_dilated(flat, window, (1, 1), "VALID", dimension_numbers=_LAYOUT, precision="highest")
        return jnp.moveaxis(flat.reshape(x.shape[-1], *x.shape[:-3], *flat.shape[1:3]), 0, -1)

    a, b = jnp.broadcast_arrays(a, b)
    c1, c2 = (k1 * limit) ** 2, (k2 * limit) ** 2
    mean_a, mean_b, cross, both = blurred(jnp.stack([a, b, a * b, jnp.square(a) + jnp.square(b)]))
    product = 2 * mean_a * mean_b
    squares = jnp.square(mean_a) + jnp.square(mean_b)
    luminance = (product + c1) / (squares + c1)
    contrast = (2 * cross - product + c2) / (both - squares + c2)
    return luminance * contrast, contrast


def _ssim(a, b, limit, local, **options):
    value, _ = _similar(a, b, limit, **options)
    return jnp.mean(value, -1) if local else jnp.mean(value, (-3, -2, -1))


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: FloatLike,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity over several scales, each half as large as the one before; see `ssim`."""
    a, b, limit = _pair(img1, img2, max_val)
    powers = tuple(float(p) for p in static(power_factors, "power_factors"))
    if min(a._array.shape[-3:-1]) // 2 ** (len(powers) - 1) < filter_size:
        raise InvalidArgumentError(f"images of shape {a.shape} are too small for {len(powers)} scales, {filter_size=}")
    options = {"size": int(filter_size), "sigma": float(filter_sigma), "k1": float(k1), "k2": float(k2)}
    return op(_ssim_multiscale, a, b, limit, powers=powers, **options)


def _ssim_multiscale(a, b, limit, powers, **options):
    def halved(x):
        odd = [(0, 0)] * (x.ndim - 3) + [(0, n % 2) for n in x.shape[-3:-1]] + [(0, 0)]
        x = jnp.pad(x, odd, "symmetric")
        return (x[..., ::2, ::2, :] + x[..., 1::2, ::2, :] + x[..., ::2, 1::2, :] + x[..., 1::2, 1::2, :]) / 4

    parts = []
    for scale, power in enumerate(powers):
        if scale:
            a, b = halved(a), halved(b)
        whole, contrast = _similar(a, b, limit, **options)
        part = whole if scale == len(powers) - 1 else contrast
        parts.append(jax.nn.relu(jnp.mean(part, (-3, -2))) ** power)
    return jnp.mean(jnp.prod(jnp.stack(parts), 0), -1)


# ---- Boxes -------------------------------------------------------------------------------------------------


def non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size, iou_threshold=0.5, score_threshold=-np.inf, name=None
) -> Tensor:
    """The indices, int32, of the boxes of highest score that overlap by no more than `iou_threshold`.

    Args:
      boxes: rows of (y1, x1, y2, x2).
      scores: one for each box; those not above `score_threshold` are left out.

    Raises:
      TypeError: under jit, where the number of boxes that remain is not known.
    """
    corners, score_of = host(boxes, "boxes"), host(scores, "scores")
    top, bottom = np.sort(corners[:, [0, 2]]).T
    left, right = np.sort(corners[:, [1, 3]]).T
    area = (bottom - top) * (right - left)
    chosen, most = list[int](), int(whole(max_output_size, "max_output_size"))
    for i in np.argsort(-score_of, kind="stable"):
        if len(chosen) == most or not score_of[i] > float(static(score_threshold)):
            break
        height = np.minimum(bottom[i], bottom[chosen]) - np.maximum(top[i], top[chosen])
        width = np.minimum(right[i], right[chosen]) - np.maximum(left[i], left[chosen])
        common = np.maximum(height, 0) * np.maximum(width, 0)
        union = area[i] + area[chosen] - common
        if not (common > float(static(iou_threshold)) * union).any():
            chosen.append(int(i))
    return convert_to_tensor(np.asarray(chosen, np.int32))
