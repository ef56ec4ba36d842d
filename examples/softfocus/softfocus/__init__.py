"""A few image filters, on NumPy arrays and on distributed ones."""

from softfocus.filters import brightness_range, local_contrast, shrink, stretch

__all__ = ["brightness_range", "local_contrast", "shrink", "stretch"]
