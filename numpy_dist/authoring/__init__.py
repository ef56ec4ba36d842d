"""For authors of distributed functions: functions on blocks, with or without halos, reductions, and one axis whole."""

from numpy_dist import distarray as distarray  # arrays that are made here are DistArrays
from numpy_dist.authoring.blocks import axis_local, map_blocks
from numpy_dist.authoring.elementwise import elementwise
from numpy_dist.authoring.overlap import map_overlap
from numpy_dist.authoring.reductions import reduction

__all__ = ["axis_local", "elementwise", "map_blocks", "map_overlap", "reduction"]
