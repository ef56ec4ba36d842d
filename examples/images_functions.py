"""Two steps that prepare a batch of images for training, in plain NumPy.

A batch is ``images[image, row, column, channel]``.
"""

import numpy as np


def normalise(images):
    """Shift and scale each channel to mean 0 and standard deviation 1 over the whole batch."""
    mean = images.mean(axis=(0, 1, 2))
    deviation = images.std(axis=(0, 1, 2))
    return ((images - mean) / deviation).astype(np.float32)


def flip_half(images, generator):
    """Mirror a random half of the images, left to right, in place."""
    mask = generator.random(len(images)) < 0.5
    images[mask] = images[mask][:, :, ::-1]
    return images


def prepare(images, generator):
    return flip_half(normalise(images), generator)
