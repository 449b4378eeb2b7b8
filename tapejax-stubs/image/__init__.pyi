"""Made by .ci/stubs of the live namespace."""

from collections.abc import Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, ShapeLike, IntLike, FloatLike, Ignored

from tapejax.tf.ops.image import ResizeMethod as ResizeMethod
def adjust_brightness(image: TensorLike, delta: FloatLike) -> tf.Tensor:
    """`delta`, a part of the range from 0 to 1, added to each pixel."""
def adjust_contrast(images: TensorLike, contrast_factor: FloatLike) -> tf.Tensor:
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
def adjust_gamma(image: TensorLike, gamma: FloatLike = 1, gain: FloatLike = 1) -> tf.Tensor:
    """gain * image ** gamma. Raises ValueError for a negative `gamma`."""
def adjust_hue(image: TensorLike, delta: FloatLike, name: str | None = None) -> tf.Tensor:
    """The hue of RGB images turned by `delta`, in [-1, 1]; 1 is all the way round."""
def adjust_saturation(image: TensorLike, saturation_factor: FloatLike, name: str | None = None) -> tf.Tensor:
    """The saturation of RGB images multiplied by a factor."""
def central_crop(image: TensorLike, central_fraction: FloatLike) -> tf.Tensor:
    """The middle of the images, `central_fraction` of each side.

    Raises:
      ValueError: the fraction is not in (0, 1].
    """
def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> tf.Tensor:
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
def crop_and_resize(image: TensorLike, boxes: TensorLike, box_indices: TensorLike, crop_size: Any, method: Any = 'bilinear', extrapolation_value: Any = 0.0, name: str | None = None) -> tf.Tensor:
    """Parts of images, all resized to `crop_size`: float32, a row for each box.

    Args:
      image: (batch, height, width, channels).
      boxes: rows of (y1, x1, y2, x2), in which 1 is the last row or column.
      box_indices: which image each box belongs to.
      method: 'bilinear' or 'nearest', whose gradient with respect to the boxes is that of 'bilinear', as in TensorFlow.
      extrapolation_value: what lies outside the image.
    """
def crop_to_bounding_box(image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> tf.Tensor:
    """The part of the images of the target's size that begins at the offset.

    Raises:
      ValueError: the part does not lie within the images.
    """
def decode_bmp(contents: bytes, channels: IntLike = 0, name: str | None = None) -> tf.Tensor:
    """The pixels of a BMP file: uint8, (height, width, channels)."""
def decode_gif(contents: bytes, name: str | None = None) -> tf.Tensor:
    """All frames of a GIF: uint8, (frames, height, width, 3)."""
def decode_image(contents: Any, channels: Any = None, dtype: Any = 'uint8', name: str | None = None, expand_animations: Any = True) -> tf.Tensor:
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
def decode_jpeg(contents: bytes, channels: IntLike = 0, ratio: int = 1, fancy_upscaling: Ignored = True, try_recover_truncated: Ignored = False, acceptable_fraction: Ignored = 1, dct_method: Ignored = '', name: Ignored = None) -> tf.Tensor:
    """The pixels of a JPEG file: uint8, (height, width, channels). `ratio` makes it smaller, by 1, 2, 4 or 8.

    `fancy_upscaling`, `try_recover_truncated`, `acceptable_fraction` and `dct_method` are taken for TensorFlow's sake.
    """
def decode_png(contents: bytes, channels: IntLike = 0, dtype: DTypeLike = 'uint8', name: str | None = None) -> tf.Tensor:
    """The pixels of a file of this kind, (height, width, channels): PNG."""
def decode_webp(contents: bytes, channels: IntLike = 0, dtype: DTypeLike = 'uint8', name: str | None = None) -> tf.Tensor:
    """The pixels of a file of this kind, (height, width, channels): WEBP."""
def encode_jpeg(image: TensorLike, format: str = '', quality: IntLike = 95, progressive: bool = False, optimize_size: bool = False, chroma_downsampling: bool = True, density_unit: str = 'in', x_density: int = 300, y_density: int = 300, xmp_metadata: str = '', name: str | None = None) -> bytes:
    """The bytes of a JPEG file with the pixels, uint8 of shape (height, width, 1 or 3).

    Args:
      quality: from 0 to 100.
      progressive, optimize_size, chroma_downsampling: how it is compressed.
      x_density, y_density, density_unit: pixels for each inch or cm, as noted in the file.
      format, xmp_metadata: taken for TensorFlow's sake.
    """
def encode_png(image: TensorLike, compression: int = -1, name: str | None = None) -> bytes:
    """The bytes of a PNG file with the pixels, uint8 of shape (height, width, channels)."""
def extract_patches(images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> tf.Tensor:
    """The window of pixels around each place, flattened into the channels.

    Args:
      images: (batch, height, width, channels).
      sizes, strides, rates: of the window, as ``[1, rows, columns, 1]``.
      padding: 'SAME' or 'VALID'.
    """
def flip_left_right(image: TensorLike) -> tf.Tensor:
    """The images mirrored, left to right."""
def flip_up_down(image: TensorLike) -> tf.Tensor:
    """The images mirrored, upside down."""
def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> tf.Tensor:
    """The one channel three times."""
def hsv_to_rgb(images: TensorLike, name: str | None = None) -> tf.Tensor:
    """Red, green and blue of pixels given by hue, saturation and value. Takes floats."""
def image_gradients(image: TensorLike) -> tuple[tf.Tensor, tf.Tensor]:
    """(dy, dx): the differences to the next row and to the next column, 0 in the last.

    Raises:
      ValueError: `image` is not of shape (batch, height, width, channels).
    """
def is_jpeg(contents: bytes, name: str | None = None) -> tf.Tensor:
    """Whether the bytes begin as a JPEG file does."""
def non_max_suppression(boxes: TensorLike, scores: TensorLike, max_output_size: Any, iou_threshold: Any = 0.5, score_threshold: Any = ..., name: str | None = None) -> tf.Tensor:
    """The indices, int32, of the boxes of highest score that overlap by no more than `iou_threshold`.

    Args:
      boxes: rows of (y1, x1, y2, x2).
      scores: one for each box; those not above `score_threshold` are left out.

    Raises:
      TypeError: under jit, where the number of boxes that remain is not known.
    """
def pad_to_bounding_box(image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any) -> tf.Tensor:
    """The images put into zeros of the target's size, at the offset.

    Raises:
      ValueError: they do not fit in.
    """
def per_image_standardization(image: TensorLike) -> tf.Tensor:
    """Each image with its mean subtracted, divided by its standard deviation (at least 1 / sqrt(number of values))."""
def psnr(a: TensorLike, b: TensorLike, max_val: FloatLike, name: str | None = None) -> tf.Tensor:
    """The peak signal-to-noise ratio of images in decibels; `max_val` is the range of their values."""
def random_brightness(image: TensorLike, max_delta: float, seed: IntLike | None = None) -> tf.Tensor:
    """`adjust_brightness` by a random number in [-max_delta, max_delta); max_delta must be non-negative."""
def random_contrast(image: TensorLike, lower: float, upper: float, seed: IntLike | None = None) -> tf.Tensor:
    """`adjust_contrast` by a random factor in [lower, upper)."""
def random_crop(value: TensorLike, size: ShapeLike, seed: IntLike | None = None, name: str | None = None) -> tf.Tensor:
    """A part of `value` of shape `size`, at a random place.

    Raises:
      InvalidArgumentError: `size` is larger than `value`.
    """
def random_flip_left_right(image: TensorLike, seed: IntLike | None = None) -> tf.Tensor:
    """Each image mirrored left to right, or not, at random."""
def random_flip_up_down(image: TensorLike, seed: IntLike | None = None) -> tf.Tensor:
    """Each image turned upside down, or not, at random."""
def random_hue(image: TensorLike, max_delta: float, seed: IntLike | None = None) -> tf.Tensor:
    """`adjust_hue` by a random number in [-max_delta, max_delta); max_delta must be in [0, 0.5]."""
def random_saturation(image: TensorLike, lower: float, upper: float, seed: IntLike | None = None) -> tf.Tensor:
    """`adjust_saturation` by a random factor in [lower, upper)."""
def resize(images: Any, size: Any, method: Any = 'bilinear', preserve_aspect_ratio: Any = False, antialias: Any = False, name: str | None = None) -> tf.Tensor:
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
def resize_with_crop_or_pad(image: TensorLike, target_height: IntLike, target_width: IntLike) -> tf.Tensor:
    """The middle of the images, cropped or padded with zeros to the target's size."""
def resize_with_pad(image: TensorLike, target_height: Any, target_width: Any, method: Any = 'bilinear', antialias: Any = False) -> tf.Tensor:
    """The images resized, their proportions kept, and padded with zeros to the target's size."""
def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> tf.Tensor:
    """How bright each pixel is: one channel, in the images' dtype."""
def rgb_to_hsv(images: TensorLike, name: str | None = None) -> tf.Tensor:
    """Hue, saturation and value of each pixel, from 0 to 1. Takes floats."""
def rgb_to_yiq(images: TensorLike) -> tf.Tensor:
    """Each pixel's colour changed as the name says: rgb to yiq. Takes floats."""
def rgb_to_yuv(images: TensorLike) -> tf.Tensor:
    """Each pixel's colour changed as the name says: rgb to yuv. Takes floats."""
def rot90(image: TensorLike, k: IntLike = 1, name: str | None = None) -> tf.Tensor:
    """The images turned `k` times by 90 degrees, counter-clockwise."""
def sobel_edges(image: TensorLike) -> tf.Tensor:
    """Sobel's derivatives with respect to y and x, along a new last axis of length 2."""
def ssim(img1: Any, img2: Any, max_val: Any, filter_size: Any = 11, filter_sigma: Any = 1.5, k1: Any = 0.01, k2: Any = 0.03, return_index_map: Any = False) -> tf.Tensor:
    """The structural similarity of images: 1 for equal ones.

    Args:
      max_val: the range of their values.
      filter_size, filter_sigma: of the Gaussian window.
      k1, k2: what keeps the fractions finite.
      return_index_map: whether to give the similarity at each place instead of the mean.

    Raises:
      ValueError, InvalidArgumentError: the shapes differ, or are smaller than the window.
    """
def ssim_multiscale(img1: TensorLike, img2: TensorLike, max_val: FloatLike, power_factors: Sequence[float] = ..., filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03) -> tf.Tensor:
    """The structural similarity over several scales, each half as large as the one before; see `ssim`."""
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: TensorLike) -> tf.Tensor:
    """As `random_brightness`; the same `seed`, two integers, always gives the same."""
def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: TensorLike) -> tf.Tensor:
    """As `random_contrast`; the same `seed`, two integers, always gives the same."""
def stateless_random_crop(value: TensorLike, size: ShapeLike, seed: TensorLike, name: str | None = None) -> tf.Tensor:
    """As `random_crop`; the same `seed`, two integers, always gives the same."""
def stateless_random_flip_left_right(image: TensorLike, seed: TensorLike) -> tf.Tensor:
    """As `random_flip_left_right`; the same `seed`, two integers, always gives the same."""
def stateless_random_flip_up_down(image: TensorLike, seed: TensorLike) -> tf.Tensor:
    """As `random_flip_up_down`; the same `seed`, two integers, always gives the same."""
def stateless_random_hue(image: TensorLike, max_delta: float, seed: TensorLike) -> tf.Tensor:
    """As `random_hue`; the same `seed`, two integers, always gives the same."""
def stateless_random_saturation(image: TensorLike, lower: float, upper: float, seed: TensorLike = None) -> tf.Tensor:
    """As `random_saturation`; the same `seed`, two integers, always gives the same."""
def total_variation(images: TensorLike, name: str | None = None) -> tf.Tensor:
    """The sum of the absolute differences of neighbouring pixels: a number for each image."""
def transpose(image: TensorLike, name: str | None = None) -> tf.Tensor:
    """Height and width exchanged."""
def yiq_to_rgb(images: TensorLike) -> tf.Tensor:
    """Each pixel's colour changed as the name says: yiq to rgb. Takes floats."""
def yuv_to_rgb(images: TensorLike) -> tf.Tensor:
    """Each pixel's colour changed as the name says: yuv to rgb. Takes floats."""
