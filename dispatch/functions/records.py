"""Structured arrays, field by field: NumPy's `recfunctions` that write into an array they are given."""

from __future__ import annotations

from numpy.lib import recfunctions

from numpy_dist.dispatch.core.registry import implements
from numpy_dist.dispatch.functions.numpy_source import numpy_source

for _function in (recfunctions.assign_fields_by_name, recfunctions.recursive_fill_fields):
    implements(_function, kind="composed")(numpy_source(_function))
