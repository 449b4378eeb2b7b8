"""``tf.image``: the same pixels, gradients and errors."""

import io

import numpy as np
import pytest
from harness import error_of, parity
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(0)
SMALL = RNG.uniform(size=(2, 5, 7, 3)).astype(f32)
ONE = SMALL[0]
BYTES = (RNG.uniform(size=(6, 5, 3)) * 256).astype(np.uint8)
LARGE = RNG.uniform(size=(2, 24, 20, 2)).astype(f32)
NEAR = np.clip(LARGE + 0.1 * RNG.normal(size=LARGE.shape), 0, 1).astype(f32)

table = Table(rtol=2e-5, atol=2e-6)

# ---- Sizes ---------------------------------------------------------------------------------------------------------

for method in "bilinear nearest bicubic area lanczos3 lanczos5 gaussian mitchellcubic".split():
    for size in [(9, 4), (3, 11)]:
        slow = size == (3, 11) and method not in ("nearest", "bilinear")
        op = lambda tf, x=SMALL, m=method, s=size: tf.image.resize(x, s, m)  # noqa: E731
        if method == "area":  # it has no gradient in TensorFlow
            table.values(f"resize-{method}-{size}", op)
        else:
            table.gradients(f"resize-{method}-{size}", op, SMALL, slow=slow)
    if method not in ("nearest", "area"):
        table.gradients(
            f"resize-antialias-{method}",
            lambda tf, x, m=method: tf.image.resize(x, (3, 9), m, antialias=True),
            SMALL,
            slow=method != "bicubic",
        )
for method in ("gaussian", "mitchellcubic"):  # they blur also where the size stays
    table.gradients(f"resize-same-{method}", lambda tf, x, m=method: tf.image.resize(x, (5, 7), m), ONE)
table.values(
    "resize-arguments",
    lambda tf: [
        tf.image.resize(ONE, [3, 4], preserve_aspect_ratio=True),
        tf.image.resize(ONE, [30, 30], preserve_aspect_ratio=True).shape,
        tf.image.resize(BYTES, (3, 3)),
        tf.image.resize(BYTES, (3, 3), tf.image.ResizeMethod.NEAREST_NEIGHBOR),
        tf.image.resize(BYTES, BYTES.shape[:2]),
        tf.image.resize(ONE, tf.constant([2, 3]), method=tf.image.ResizeMethod.AREA),
        tf.image.resize(SMALL, (2, 2), name="r"),
    ],
    atol=1e-4,
)
table.errors(
    "resize-errors",
    lambda tf: [
        lambda: tf.image.resize(ONE[0], (2, 2)),
        lambda: tf.image.resize(ONE, (2, 2, 2)),
        lambda: tf.image.resize(ONE, (2, 2), method="cubic"),
        lambda: tf.image.resize(ONE, (0, 2)),
        lambda: tf.image.resize(ONE, 2),
    ],
)
table.gradients("resize_with_pad", lambda tf, x: tf.image.resize_with_pad(x, 8, 8), SMALL)
table.gradients(
    "resize_with_pad-down", lambda tf, x: tf.image.resize_with_pad(x, 3, 6, "bicubic", antialias=True), SMALL
)
for target in [(3, 3), (9, 8), (3, 12), (8, 4), (5, 7)]:
    table.gradients(
        f"resize_with_crop_or_pad-{target}", lambda tf, x, t=target: tf.image.resize_with_crop_or_pad(x, *t), SMALL
    )
table.gradients("crop_to_bounding_box", lambda tf, x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 4), SMALL)
table.gradients("pad_to_bounding_box", lambda tf, x: tf.image.pad_to_bounding_box(x, 1, 2, 8, 10), SMALL)
table.gradients("central_crop", lambda tf, x: [tf.image.central_crop(x, f) for f in (0.5, 0.3, 1.0)], LARGE)
table.errors(
    "boxes-errors",
    lambda tf: [
        lambda: tf.image.crop_to_bounding_box(ONE, 3, 2, 3, 4),
        lambda: tf.image.crop_to_bounding_box(ONE, -1, 2, 3, 4),
        lambda: tf.image.crop_to_bounding_box(ONE, 0, 0, 0, 4),
        lambda: tf.image.pad_to_bounding_box(ONE, 0, 0, 3, 10),
        lambda: tf.image.pad_to_bounding_box(ONE, -1, 0, 8, 10),
        lambda: tf.image.central_crop(ONE, 0.0),
        lambda: tf.image.central_crop(ONE, 1.5),
        lambda: tf.image.central_crop(ONE[0], 0.5),
        lambda: tf.image.resize_with_crop_or_pad(ONE, 0, 3),
        lambda: tf.image.resize_with_pad(ONE, 0, 3),
    ],
)
for padding in ("SAME", "VALID"):
    table.gradients(
        f"extract_patches-{padding}",
        lambda tf, x, p=padding: tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 2, 1], [1, 1, 2, 1], p),
        SMALL,
    )
BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9], [-0.2, 0.3, 0.7, 1.3], [0.9, 0.8, 0.1, 0.2]], f32)
for size in [(4, 5), (1, 3)]:
    table.gradients(
        f"crop_and_resize-{size}",
        lambda tf, x, boxes, i, s=size: tf.image.crop_and_resize(x, boxes, i, s),
        SMALL,
        BOXES + np.array([0.03, 0.02, 0.01, -0.07], f32),  # not on a row: there the slope is another on each side
        np.array([0, 1, 0, 1], np.int32),
        atol=1e-4,
    )
table.values(
    "crop_and_resize-arguments",
    lambda tf: tf.image.crop_and_resize(BYTES[None], BOXES, [0] * 4, [3, 3], "nearest", extrapolation_value=-1.0),
    atol=1e-4,
)

# ---- Turning -------------------------------------------------------------------------------------------------------

for name in "flip_left_right flip_up_down transpose rot90".split():
    table.gradients(name, lambda tf, x, y, n=name: [getattr(tf.image, n)(x), getattr(tf.image, n)(y)], SMALL, ONE)
table.values("rot90-k", lambda tf: [tf.image.rot90(ONE, k) for k in (0, 2, 3, 5, -1)])
table.errors(
    "turning-errors",
    lambda tf: [
        lambda: tf.image.flip_left_right(ONE[0]),
        lambda: tf.image.flip_up_down(ONE[0]),
        lambda: tf.image.rot90(ONE[0]),
        lambda: tf.image.transpose(ONE[0]),
        lambda: tf.image.random_flip_left_right(ONE[0]),
    ],
)

# ---- Colours -------------------------------------------------------------------------------------------------------

for name in "rgb_to_yiq yiq_to_rgb rgb_to_yuv yuv_to_rgb rgb_to_grayscale rgb_to_hsv".split():
    table.gradients(name, lambda tf, x, n=name: getattr(tf.image, n)(x), SMALL)
table.values("hsv_to_rgb", lambda tf: tf.image.hsv_to_rgb(SMALL))
GREYS = np.array([[[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.2], [0.2, 0.5, 0.5]]], f32)
table.gradients("rgb_to_hsv-ties", lambda tf, x: tf.image.rgb_to_hsv(x), GREYS)
table.gradients(
    "per_image_standardization-flat", lambda tf, x: tf.image.per_image_standardization(x), np.full((4, 3, 3), 0.5, f32)
)
table.gradients(  # the boxes' edges lie on rows and columns, where the value has a kink
    "crop_and_resize-on-the-grid",
    lambda tf, boxes: tf.image.crop_and_resize(SMALL, boxes, [0, 1], [3, 3]),
    np.float32([[0, 0, 1, 1], [0.25, 0.5, 1, 0]]),
)
table.values("rgb_to_hsv-grey", lambda tf: [tf.image.rgb_to_hsv(GREYS), tf.image.hsv_to_rgb(GREYS)])
table.gradients("grayscale_to_rgb", lambda tf, x: tf.image.grayscale_to_rgb(x), SMALL[..., :1])
table.values("rgb_to_grayscale-bytes", lambda tf: tf.image.rgb_to_grayscale(BYTES))
table.errors(
    "colour-errors",
    lambda tf: [
        lambda: tf.image.grayscale_to_rgb(tf.constant(ONE)),
        lambda: tf.image.adjust_hue(ONE, 2.0),
        lambda: tf.image.adjust_gamma(ONE, -1),
        lambda: tf.image.rgb_to_hsv(tf.constant(BYTES)),
        lambda: tf.image.random_brightness(ONE, -0.1),
        lambda: tf.image.random_contrast(ONE, 0.5, 0.5),
        lambda: tf.image.random_saturation(ONE, -1.0, 0.5),
        lambda: tf.image.random_hue(ONE, 0.6),
    ],
)
table.gradients(
    "adjust_brightness",
    lambda tf, x, d: [tf.image.adjust_brightness(x, 0.2), tf.image.adjust_brightness(x, d)],
    ONE,
    f32(0.1),
)
table.gradients("adjust_gamma", lambda tf, x: tf.image.adjust_gamma(x, 0.5, 2), ONE)
table.values(
    "adjust",
    lambda tf: [
        [tf.image.adjust_hue(ONE, d) for d in (0.0, 0.3, -0.6, 1.0)],
        [tf.image.adjust_saturation(ONE, s) for s in (0.0, 0.5, 3.0)],
        [tf.image.adjust_contrast(ONE, s) for s in (0.0, 2.0)],
        tf.image.adjust_hue(SMALL, 0.2),
    ],
)
WHOLE = np.arange(1, 19, dtype=np.int32).reshape(3, 2, 3)
table.values(
    "adjust-whole-numbers",
    lambda tf: [
        [
            [tf.image.adjust_hue(x, d) for d in (0.0, 0.2, 0.5, -0.3)],
            [tf.image.adjust_saturation(x, s) for s in (0.3, 3.0)],
            [tf.image.adjust_contrast(x, s) for s in (0.5, 2.0)],
            tf.image.total_variation(x),
        ]
        for x in (tf.constant(WHOLE), tf.cast(WHOLE, tf.int16))
    ],
)
table.values(
    "contrast-of-other-floats",
    lambda tf: [
        tf.image.adjust_contrast(tf.cast(ONE, tf.bfloat16), 0.5).dtype,
        tf.cast(tf.image.adjust_contrast(np.float64(ONE), 0.5), tf.float32),
    ],
)
table.values("sobel-of-integers", lambda tf: error_of(tf.image.sobel_edges, tf.constant(WHOLE[None])))
table.values(
    "adjust-bytes",
    lambda tf: [
        tf.image.adjust_brightness(BYTES, 0.2),
        tf.image.adjust_brightness(BYTES, -0.5),
        tf.image.adjust_gamma(BYTES, 2.0),
        tf.image.adjust_saturation(BYTES, 0.5),
    ],
)
table.gradients(
    "per_image_standardization", lambda tf, x: tf.image.per_image_standardization(x), SMALL, rtol=1e-4, atol=1e-4
)
table.values(
    "per_image_standardization-others",
    lambda tf: [
        tf.image.per_image_standardization(BYTES),
        tf.image.per_image_standardization(np.ones((3, 3, 1), f32)),
    ],
)
INTEGERS = {
    "uint8": [0, 1, 127, 255],
    "int16": [-5, 0, 300, 32767],
    "int32": [0, 5, 2**30, 2**31 - 1],
    "uint16": [0, 9, 65535],
}
for source, numbers in INTEGERS.items():
    for saturate in (False, True):
        table.values(
            f"convert_image_dtype-{source}-{saturate}",
            lambda tf, n=numbers, s=source, sat=saturate: [
                tf.image.convert_image_dtype(tf.constant(n, s), d, saturate=sat)
                for d in (tf.float32, tf.float16, tf.uint8, tf.int16, tf.uint16)
                if sat or s in ("uint8", "uint16")
            ],
        )
table.gradients("convert_image_dtype-floats", lambda tf, x: tf.image.convert_image_dtype(x, tf.float16), ONE)
table.values(
    "convert_image_dtype-to-integers",
    lambda tf: [
        tf.image.convert_image_dtype([0.0, 0.25, 1.0], tf.uint8),
        tf.image.convert_image_dtype([-1.0, 0.25, 2.0], tf.uint8, saturate=True),
        tf.image.convert_image_dtype([0.0, 0.5, 0.99], tf.int16),
    ],
)
table.errors("convert_image_dtype-errors", lambda tf: [lambda: tf.image.convert_image_dtype([1.0], tf.bool)])

# ---- Measuring -----------------------------------------------------------------------------------------------------

table.gradients("image_gradients", lambda tf, x: tf.image.image_gradients(x), SMALL)
table.gradients("sobel_edges", lambda tf, x: tf.image.sobel_edges(x), SMALL)
table.gradients(
    "total_variation", lambda tf, x, y: [tf.image.total_variation(x), tf.image.total_variation(y)], SMALL, ONE
)
table.gradients("psnr", lambda tf, x, y: tf.image.psnr(x, y, max_val=1.0), LARGE, NEAR, rtol=1e-4)
table.values("psnr-bytes", lambda tf: tf.image.psnr(BYTES, BYTES[::-1], max_val=255))
table.gradients("ssim", lambda tf, x, y: tf.image.ssim(x, y, 1.0), LARGE, NEAR, rtol=1e-3, atol=1e-5)
table.gradients(
    "ssim-arguments",
    lambda tf, x, y: [
        tf.image.ssim(x, y, 2.0, filter_size=5, filter_sigma=1.0, k1=0.02, k2=0.05),
        tf.image.ssim(x, y, 1.0, filter_size=8, return_index_map=True),
    ],
    LARGE,
    NEAR,
    rtol=1e-3,
    atol=1e-5,
)
table.values("ssim-bytes", lambda tf: tf.image.ssim(BYTES, BYTES[::-1], 255, filter_size=4), rtol=1e-4)
table.gradients(
    "ssim_multiscale",
    lambda tf, x, y: tf.image.ssim_multiscale(x, y, 1.0, power_factors=(0.3, 0.3, 0.4), filter_size=4),
    LARGE[:, :23, :19],
    NEAR[:, :23, :19],
    rtol=1e-3,
    atol=1e-5,
)
table.errors(
    "measuring-errors",
    lambda tf: [
        lambda: tf.image.image_gradients(tf.constant(ONE)),
        lambda: tf.image.total_variation(tf.constant(ONE[0])),
        lambda: tf.image.ssim(SMALL, SMALL, 1.0),
    ],
)
CORNERS = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 10.1, 0, 11.1]], f32)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5], f32)
table.values(
    "non_max_suppression",
    lambda tf: [
        tf.image.non_max_suppression(CORNERS, SCORES, 5),
        tf.image.non_max_suppression(CORNERS, SCORES, 2),
        tf.image.non_max_suppression(CORNERS, SCORES, 5, iou_threshold=0.9, score_threshold=0.7),
    ],
)

# ---- By chance -----------------------------------------------------------------------------------------------------
# The numbers drawn are JAX's: what is compared is what does not depend on them.

SAME = np.full((4, 3, 3), 0.5, f32)


@parity
def test_random_functions_do_what_their_bounds_say(tf):
    """Shapes, dtypes and results between the bounds."""
    tf.random.set_seed(1)
    bright = tf.image.random_brightness(SAME, 0.2)
    flips = [tf.image.random_flip_left_right(ONE).numpy() for _ in range(12)]
    fixed = [tf.image.stateless_random_flip_up_down(SMALL, seed=(1, i)).numpy() for i in range(12)]
    return (
        bright.shape,
        0.3 <= float(bright[0, 0, 0]) <= 0.7,
        bool(tf.reduce_all(bright == bright[0, 0, 0])),
        [sum(np.array_equal(x, y) for x in flips) > 0 for y in (ONE, ONE[:, ::-1])],
        [sum(np.array_equal(x[1], y) for x in fixed) > 0 for y in (SMALL[1], SMALL[1][::-1])],
        tf.image.random_contrast(ONE, 1.0, 1.000001).numpy().round(3),
        tf.image.random_saturation(ONE, 1.0, 1.000001).numpy().round(3),
        tf.image.random_hue(ONE, 0.0),
        tf.image.stateless_random_contrast(BYTES, 0.5, 1.5, seed=[1, 2]).dtype,
        tf.image.stateless_random_hue(BYTES, 0.2, (3, 4)).dtype,
    )


@parity
def test_random_crop(tf):
    """A window of the value, whole in the axes that keep their length."""
    crops = [tf.image.random_crop(BYTES, [2, 2, 3]).numpy() for _ in range(3)]
    crops.append(tf.image.stateless_random_crop(BYTES, tf.constant([2, 2, 3]), seed=(1, 2)).numpy())
    windows = [BYTES[i : i + 2, j : j + 2] for i in range(5) for j in range(4)]
    return (
        [any(np.array_equal(crop, window) for window in windows) for crop in crops],
        tf.image.random_crop(BYTES, BYTES.shape),
        error_of(lambda: tf.image.random_crop(BYTES, [9, 2, 3])),
    )


@parity
def test_the_same_seed_does_the_same(tf):
    """Stateless functions depend on their seed alone."""
    image = tf.image
    functions = [
        lambda seed: image.stateless_random_brightness(ONE, 0.5, seed),
        lambda seed: image.stateless_random_saturation(ONE, 0.5, 2.0, seed),
        lambda seed: image.stateless_random_flip_left_right(SMALL, seed),
        lambda seed: image.stateless_random_crop(ONE, (3, 3, 3), seed),
    ]
    return [bool(tf.reduce_all(f((5, 6)) == f((5, 6)))) for f in functions]


# ---- Files ---------------------------------------------------------------------------------------------------------


def encoded(kind, pixels=BYTES, **options):
    image = pytest.importorskip("PIL.Image", reason="images are read by Pillow")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, kind, **options)
    return file.getvalue()


@parity
def test_decoding(tf):
    """PNG, BMP and GIF come out as they went in, in the dtype and the number of channels asked for."""
    png, bmp, gif = encoded("PNG"), encoded("BMP"), encoded("GIF", np.zeros((4, 5), np.uint8))
    return [
        tf.image.decode_png(png),
        tf.image.decode_image(png, channels=3, dtype=tf.float32),
        tf.io.decode_image(png, dtype=tf.uint16),
        tf.image.decode_bmp(bmp),
        tf.image.decode_gif(gif),
        tf.image.decode_image(gif, expand_animations=False),
        tf.image.decode_png(encoded("PNG", BYTES[..., 0])),
        tf.image.decode_png(encoded("PNG", BYTES[..., 0]), channels=3),
        tf.image.decode_png(encoded("PNG", BYTES[..., 0]), channels=4),
        error_of(lambda: tf.image.decode_png(b"no image")),
    ]


SMOOTH = np.linspace(0, 255, 16 * 16 * 3).reshape(16, 16, 3).astype(np.uint8)


@parity(atol=8)  # TensorFlow decodes in a hurry, unless told otherwise
def test_jpeg(tf):
    """A JPEG file is decoded nearly alike, whole or in part, and its shape can be asked for."""
    data = encoded("JPEG", SMOOTH, quality=95)
    return [
        tf.cast(tf.image.decode_jpeg(data), tf.float32),
        tf.cast(tf.io.decode_jpeg(data, channels=1), tf.float32),
        tf.image.decode_jpeg(data, ratio=2).shape,
        tf.image.is_jpeg(data),
        tf.image.is_jpeg(encoded("PNG")),
    ]


@parity
def test_encoding(tf):
    """What was encoded as PNG decodes to the same pixels."""
    encoded("PNG")
    return [
        tf.image.decode_png(tf.io.encode_png(BYTES)),
        tf.image.decode_png(tf.image.encode_png(BYTES[..., :1], compression=9)),
        tf.image.decode_jpeg(tf.io.encode_jpeg(SMOOTH, quality=50)).shape,
    ]


test_rows = table.test()
