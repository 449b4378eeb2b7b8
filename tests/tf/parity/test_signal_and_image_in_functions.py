"""Every function of ``tf.signal`` and ``tf.image`` in a `function`: its numbers as Python's, as tensors, and as sizes.

What a function is given in place of ``n(16)`` is the number, a tensor made inside, or ``tf.shape(...)[0]``, which is known
while the function is traced.
"""

import numpy as np
import pytest
from harness import check

RNG = np.random.default_rng(3)
WAVE = RNG.normal(size=(1, 64)).astype("float32")
CUBE = RNG.normal(size=(1, 4, 6, 8)).astype("float32")
IMAGE = RNG.uniform(size=(1, 8, 6, 3)).astype("float32")
OTHER = RNG.uniform(size=(1, 8, 6, 3)).astype("float32")
BOXES = np.array([[0.0, 0.0, 1.0, 1.0], [0.1, 0.2, 0.7, 0.9], [0.0, 0.1, 0.9, 1.0]], "float32")
WEIGHTS = np.linspace(0.5, 1.5, 16).astype("float32")
MELS = np.log1p(np.abs(RNG.normal(size=(3, 12)))).astype("float32")
SIMILAR = RNG.uniform(size=(1, 48, 48, 1)).astype("float32")

# name: what it is applied to, and how
ROWS = {}


def add(name, x, call, gradient=True, **options):
    """`gradient` is False where TensorFlow has none."""
    ROWS[name] = x, call, gradient, options


def of_complex(tf, x):
    return tf.complex(x, x[..., ::-1])


for _name in "fft fft2d fft3d ifft ifft2d ifft3d".split():
    add(_name, CUBE, lambda tf, x, n, name=_name: getattr(tf.signal, name)(of_complex(tf, x)))
for _name, _lengths in {"rfft": [6], "rfft2d": [5, 6], "rfft3d": [4, 5, 6]}.items():
    add(
        _name,
        CUBE,
        lambda tf, x, n, name=_name, s=_lengths: getattr(tf.signal, name)(x, [n(k) for k in s]),
        gradient=False,
    )
    add(
        f"i{_name}",
        CUBE,
        lambda tf, x, n, name=_name, s=_lengths: getattr(tf.signal, f"i{name}")(of_complex(tf, x), [n(k) for k in s]),
        gradient=False,
    )
add("fftshift", CUBE, lambda tf, x, n: tf.signal.fftshift(x, n(1)))
add("ifftshift", CUBE, lambda tf, x, n: tf.signal.ifftshift(x, [n(1), n(2)]))
add("dct", WAVE, lambda tf, x, n: tf.signal.dct(x, n=32, norm="ortho"))
add("idct", WAVE, lambda tf, x, n: tf.signal.idct(x, type=3))
add("frame", WAVE, lambda tf, x, n: tf.signal.frame(x, n(16), n(8)))
add("frame to the end", WAVE, lambda tf, x, n: tf.signal.frame(x, n(16), n(10), pad_end=True, pad_value=n(1.0)))
add("overlap_and_add", CUBE, lambda tf, x, n: tf.signal.overlap_and_add(x, n(3)))
add("stft", WAVE, lambda tf, x, n: tf.signal.stft(x, n(16), n(8), n(32)))
add(
    "stft to the end",
    WAVE,
    lambda tf, x, n: tf.signal.stft(x, n(12), n(5), window_fn=tf.signal.hamming_window, pad_end=True),
)
add("stft without a window", WAVE, lambda tf, x, n: tf.signal.stft(x, n(16), n(8), window_fn=None))
for _name in "hann hamming".split():
    add(_name, WEIGHTS, lambda tf, x, n, name=_name: x * getattr(tf.signal, f"{name}_window")(n(16)))
    add(
        f"{_name} inverse",
        WEIGHTS,
        lambda tf, x, n, name=_name: (
            x * tf.signal.inverse_stft_window_fn(n(8), getattr(tf.signal, f"{name}_window"))(n(16), tf.float32)
        ),
    )
add("hann, not periodic", WEIGHTS, lambda tf, x, n: x * tf.signal.hann_window(n(16), periodic=n(False)))
add("inverse_stft", WAVE, lambda tf, x, n: tf.signal.inverse_stft(tf.signal.stft(x, n(16), n(8)), n(16), n(8)))
add(
    "inverse_stft with its window",
    WAVE,
    lambda tf, x, n: tf.signal.inverse_stft(
        tf.signal.stft(x, n(16), n(4)), n(16), n(4), window_fn=tf.signal.inverse_stft_window_fn(n(4))
    ),
)
add(
    "a window of the user's",
    WEIGHTS,
    lambda tf, x, n: tf.signal.stft(tf.constant(WAVE), n(16), n(8), window_fn=lambda length, dtype: tf.cast(x, dtype)),
)
add(
    "the inverse of a window of the user's",
    WEIGHTS,
    lambda tf, x, n: tf.signal.inverse_stft_window_fn(n(8), lambda length, dtype: tf.cast(x, dtype))(n(16), tf.float32),
)
add(
    "linear_to_mel_weight_matrix",
    MELS,
    lambda tf, x, n: tf.matmul(x, tf.signal.linear_to_mel_weight_matrix(5, n(12), n(8000), 80.0, 3800.0)),
)
add("mfccs_from_log_mel_spectrograms", MELS, lambda tf, x, n: tf.signal.mfccs_from_log_mel_spectrograms(x))

for _name in (
    "flip_left_right flip_up_down transpose rgb_to_grayscale rgb_to_hsv hsv_to_rgb rgb_to_yiq rgb_to_yuv yiq_to_rgb yuv_to_rgb "
    "per_image_standardization sobel_edges total_variation image_gradients"
).split():
    add(_name, IMAGE, lambda tf, x, n, name=_name: getattr(tf.image, name)(x), gradient=_name != "hsv_to_rgb")
add("grayscale_to_rgb", IMAGE[..., :1], lambda tf, x, n: tf.image.grayscale_to_rgb(x))
add("rot90", IMAGE, lambda tf, x, n: tf.image.rot90(x, n(3)))
SMOOTH = "brightness", "gamma"
for _name, _number in {"brightness": 0.1, "contrast": 0.5, "gamma": 0.7, "hue": 0.2, "saturation": 1.2}.items():
    add(
        f"adjust_{_name}",
        IMAGE,
        lambda tf, x, n, name=_name, k=_number: getattr(tf.image, f"adjust_{name}")(x, n(k)),
        _name in SMOOTH,
    )
    if _name != "gamma":
        _bounds = [_number] if _name in ("brightness", "hue") else [_number, 2.0]
        add(
            f"random_{_name}",
            IMAGE,
            lambda tf, x, n, name=_name, k=_bounds: shapes(tf, getattr(tf.image, f"random_{name}")(x, *k)),
            _name in SMOOTH,
        )
        add(
            f"stateless_random_{_name}",
            IMAGE,
            lambda tf, x, n, name=_name, k=_bounds: shapes(
                tf, getattr(tf.image, f"stateless_random_{name}")(x, *k, seed=(n(1), n(2)))
            ),
            _name in SMOOTH,
        )
for _name in "left_right up_down".split():
    add(
        f"random_flip_{_name}",
        IMAGE,
        lambda tf, x, n, name=_name: shapes(tf, getattr(tf.image, f"random_flip_{name}")(x)),
    )
    add(
        f"stateless_random_flip_{_name}",
        IMAGE,
        lambda tf, x, n, name=_name: shapes(
            tf, getattr(tf.image, f"stateless_random_flip_{name}")(x, seed=[n(1), n(2)])
        ),
    )
add("random_crop", IMAGE, lambda tf, x, n: shapes(tf, tf.image.random_crop(x, [n(1), n(5), n(4), n(3)])))
add(
    "stateless_random_crop",
    IMAGE,
    lambda tf, x, n: shapes(tf, tf.image.stateless_random_crop(x, [n(1), n(5), n(4), n(3)], seed=(n(1), n(2)))),
)
for _method in "bilinear nearest area lanczos3 lanczos5 gaussian mitchellcubic".split():
    add(
        f"resize {_method}",
        IMAGE,
        lambda tf, x, n, m=_method: tf.image.resize(x, [n(5), n(9)], method=m),
        _method != "area",
    )
add("resize by a shape", IMAGE, lambda tf, x, n: tf.image.resize(x, tf.shape(x)[1:3] * n(2)))
add(
    "resize by half a shape",
    IMAGE,
    lambda tf, x, n: tf.image.resize(
        x, tf.cast(tf.cast(tf.shape(x)[1:3], tf.float32) * n(0.5), tf.int32), antialias=True
    ),
)
add("resize_with_pad", IMAGE, lambda tf, x, n: tf.image.resize_with_pad(x, n(5), n(9)))
add("resize_with_crop_or_pad", IMAGE, lambda tf, x, n: tf.image.resize_with_crop_or_pad(x, n(5), n(9)))
add("crop_to_bounding_box", IMAGE, lambda tf, x, n: tf.image.crop_to_bounding_box(x, n(1), n(2), n(5), n(4)))
add("pad_to_bounding_box", IMAGE, lambda tf, x, n: tf.image.pad_to_bounding_box(x, n(1), n(2), n(11), n(9)))
add("central_crop", IMAGE, lambda tf, x, n: tf.image.central_crop(x, n(0.5)))
add("crop_and_resize", IMAGE, lambda tf, x, n: tf.image.crop_and_resize(x, BOXES, [0, 0, 0], [n(4), n(5)]))
add(
    "crop_and_resize by boxes",
    BOXES,
    lambda tf, x, n: tf.image.crop_and_resize(IMAGE, x * 0.93, [0, 0, 0], [n(4), n(5)]),
)
add(
    "extract_patches",
    IMAGE,
    lambda tf, x, n: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
)
add("convert_image_dtype", IMAGE, lambda tf, x, n: tf.image.convert_image_dtype(x, tf.float16))
add(
    "convert_image_dtype to integers",
    IMAGE,
    lambda tf, x, n: tf.image.convert_image_dtype(x, tf.uint8, saturate=True),
    gradient=False,
)
add("non_max_suppression", BOXES, lambda tf, x, n: tf.image.non_max_suppression(x, [0.9, 0.8, 0.7], n(2), n(0.6)))
add("psnr", IMAGE, lambda tf, x, n: tf.image.psnr(x, OTHER, n(1.0)))
add("ssim", IMAGE, lambda tf, x, n: tf.image.ssim(x, OTHER, n(1.0), filter_size=5))
add("ssim_multiscale", SIMILAR, lambda tf, x, n: tf.image.ssim_multiscale(x, x**2, n(1.0), filter_size=3))


def shapes(tf, x):
    """What is drawn differs: only its dtype and shape are compared."""
    return 0.0 * x


def as_tensor(tf, number):
    return tf.constant(number)


def as_size(tf, number):
    """Integers are sizes, which are known while a function is traced."""
    return tf.shape(tf.zeros([number]))[0] if type(number) is int else number


def of_call(tf, call, x, numbers, gradient):
    """What the call gives, and its gradient."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = call(tf, x, lambda number: numbers(tf, number))
        if not gradient:
            return y
        loss = tf.add_n([weighted(tf, part) for part in (y if isinstance(y, (list, tuple)) else [y])])
    return y, tape.gradient(loss, x)


def weighted(tf, y):
    """A scalar in which no two elements have the same part."""
    squares = tf.reshape(tf.cast(tf.abs(y), tf.float32) ** 2, [-1])
    return tf.reduce_sum(squares * tf.cast(1 + tf.range(tf.size(squares)) % 7, tf.float32))


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    """Eagerly and in a function, with the gradient."""
    x, call, gradient, options = ROWS[name]

    def body(tf):
        given, used = tf.constant(x), []

        def as_number(tf, number):
            used.append(number)
            return number

        found = [of_call(tf, call, given, as_number, gradient)]
        for way in (as_tensor, as_size) if used else (as_number,):
            found.append(tf.function(lambda x, way=way: of_call(tf, call, x, way, gradient))(given))
        return found

    check(body, **{"rtol": 2e-4, "atol": 2e-4} | options)
