"""``tf.signal``: transforms, windows, frames."""

import numpy as np
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(5)
SIGNAL = RNG.normal(size=(2, 3, 12)).astype(f32)
CUBE = RNG.normal(size=(2, 4, 6, 5)).astype(f32)
LONG = RNG.normal(size=(2, 64)).astype(f32)


def halves(x):
    return (x + 1j * x[..., ::-1]).astype(np.complex64)


table = Table(rtol=1e-4, atol=1e-4)


def parts(tf, z):
    return [tf.math.real(z), tf.math.imag(z)]


for name, x in {"fft": SIGNAL, "fft2d": CUBE, "fft3d": CUBE}.items():
    for form in (name, "i" + name):
        table.gradients(f"{form}", lambda tf, z, n=form: parts(tf, getattr(tf.signal, n)(z)), halves(x))
    axes = {"fft": 1, "fft2d": 2, "fft3d": 3}[name]
    lengths = [5, 8, 4][:axes]
    if name != "fft3d":  # has no gradient in TensorFlow, and the others none for an fft_length
        table.gradients(
            f"r{name}-gradient", lambda tf, x, n="r" + name: parts(tf, getattr(tf.signal, n)(x)), x[..., :4].copy()
        )
    table.values(
        f"r{name}",
        lambda tf, x=x, n="r" + name, s=lengths: [
            getattr(tf.signal, n)(x),
            getattr(tf.signal, n)(x, fft_length=s),
        ],
    )
    table.values(
        f"ir{name}",
        lambda tf, x=x, n="ir" + name, s=lengths: [
            getattr(tf.signal, n)(halves(x)),
            getattr(tf.signal, n)(halves(x), fft_length=s),
        ],
    )
table.values(
    "fftshift",
    lambda tf: [
        tf.signal.fftshift(SIGNAL),
        tf.signal.fftshift(SIGNAL, axes=[1]),
        tf.signal.ifftshift(SIGNAL, axes=2),
        tf.signal.ifftshift(CUBE, [1, 3]),
    ],
)
table.errors(
    "transform-errors",
    lambda tf: [
        lambda: tf.signal.fft2d(halves(SIGNAL)[0, 0]),
        lambda: tf.signal.dct(SIGNAL, type=5),
        lambda: tf.signal.dct(SIGNAL, axis=0),
        lambda: tf.signal.dct(SIGNAL, norm="x"),
        lambda: tf.signal.dct(SIGNAL, type=1, norm="ortho"),
        lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=5000.0),
        lambda: tf.signal.hann_window(4, dtype=tf.int32),
        lambda: tf.signal.overlap_and_add(SIGNAL[0, 0], 2),
    ],
)
for kind in (1, 2, 3, 4):
    for norm in (None, "ortho") if kind != 1 else (None,):
        table.gradients(
            f"dct-{kind}-{norm}",
            lambda tf, x, k=kind, norm=norm: [
                tf.signal.dct(x, type=k, norm=norm),
                tf.signal.idct(x, type=k, norm=norm),
            ],
            SIGNAL,
        )
table.values(
    "dct-n", lambda tf: [tf.signal.dct(SIGNAL, n=5), tf.signal.dct(SIGNAL, type=3, n=15), tf.signal.dct(SIGNAL)]
)
for name in "hann_window hamming_window".split():
    table.values(
        name,
        lambda tf, n=name: [
            getattr(tf.signal, n)(length, periodic) for length in (1, 2, 7, 8) for periodic in (True, False)
        ],
    )
table.values(
    "windows",
    lambda tf: [
        tf.signal.hann_window(4, dtype=tf.float16),
    ],
)
table.gradients(
    "frame",
    lambda tf, x: [
        tf.signal.frame(x, 5, 3),
        tf.signal.frame(x, 5, 3, pad_end=True, pad_value=9),
        tf.signal.frame(x, 2, 1, axis=1),
        tf.signal.frame(tf.stop_gradient(x), 20, 3),
        tf.signal.frame(x, 20, 3, pad_end=True),
    ],
    SIGNAL,
)
table.gradients("overlap_and_add", lambda tf, x: [tf.signal.overlap_and_add(x, s) for s in (4, 12, 15)], SIGNAL)
table.gradients(
    "stft",
    lambda tf, x: [
        *parts(tf, tf.signal.stft(x, 10, 4)),
        *parts(tf, tf.signal.stft(x, 10, 4, fft_length=12, window_fn=tf.signal.hamming_window, pad_end=True)),
        *parts(tf, tf.signal.stft(x, 8, 4, window_fn=None)),
    ],
    LONG,
)
table.gradients(
    "inverse_stft",
    lambda tf, x: [
        tf.signal.inverse_stft(tf.signal.stft(x, 16, 4), 16, 4, window_fn=tf.signal.inverse_stft_window_fn(4)),
        tf.signal.inverse_stft(tf.signal.stft(x, 10, 5), 10, 5, window_fn=None),
    ],
    LONG,
)
table.values(
    "inverse_stft_window_fn",
    lambda tf: tf.signal.inverse_stft_window_fn(3, tf.signal.hamming_window)(8, dtype=tf.float32),
)
table.values(
    "mel",
    lambda tf: [
        tf.signal.linear_to_mel_weight_matrix(),
        tf.signal.linear_to_mel_weight_matrix(10, 33, 16000, 80.0, 7600.0),
        tf.signal.mfccs_from_log_mel_spectrograms(SIGNAL),
    ],
)

test_rows = table.test()
