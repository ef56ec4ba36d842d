"""The same filters on distributed arrays; numpy_dist calls `register` through the entry point."""

import numpy as np
import scipy.ndimage

import numpy_dist
from softfocus import filters


def register():
    """Register everything; called once, on every rank."""

    @numpy_dist.implements(filters.local_contrast, kind="elementwise")
    def local_contrast(image, width=1):
        def of_block(block):
            inner = block[width:-width, width:-width]
            return inner - filters._mean_of_windows(block, width)

        if width < 1 or image.ndim != 2:
            numpy_dist.decline("needs an image of two axes and a width of at least 1")
        return numpy_dist.map_overlap(of_block, image, depth=width, boundary="edge", trim=False)

    extremes = numpy_dist.reduction(
        lambda block: (float(block.min()), float(block.max())),
        lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    )

    @numpy_dist.implements(filters.brightness_range)
    def brightness_range(image):
        return extremes(image)

    # A function that is not ours: it stays as it is until the user says PLUGINS=softfocus.
    @numpy_dist.implements(
        scipy.ndimage.median_filter,
        when=lambda input, size=None, *rest, **options: isinstance(size, int) and not rest and not options,
        reason="needs an integer size and nothing else",
        varies=("axes",),
    )
    def median_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0):
        before, after = size // 2, (size - 1) // 2
        return numpy_dist.map_overlap(
            lambda block: scipy.ndimage.median_filter(np.ascontiguousarray(block), size),
            input,
            depth=[(before, after)] * input.ndim,
            boundary="symmetric",
        )
