"""The filters, as they are written for NumPy."""

import numpy as np

import numpy_dist


@numpy_dist.dispatchable("image")
def brightness_range(image):
    """The smallest and the largest value."""
    return float(np.min(image)), float(np.max(image))


def stretch(image):
    """The image with its values spread over 0 to 1."""
    darkest, brightest = brightness_range(image)
    return (image - darkest) / (brightest - darkest)


@numpy_dist.elementwise
def shrink(value, limit):
    """Values pulled towards 0 by `limit`: soft thresholding."""
    if value > limit:
        return value - limit
    if value < -limit:
        return value + limit
    return 0.0 * value


@numpy_dist.dispatchable("image")
def local_contrast(image, width=1):
    """Each pixel less the mean of its surroundings, `width` pixels in each direction."""
    return image - _mean_of_windows(np.pad(image, width, mode="edge"), width)


def _mean_of_windows(padded, width):
    side = 2 * width + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
    return windows.mean(axis=(2, 3))
