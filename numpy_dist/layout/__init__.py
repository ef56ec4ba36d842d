"""Meshes, layouts, regions and the planners over them: pure integer arithmetic. See docs/architecture.md."""

from numpy_dist.layout.default import default_layout, default_points
from numpy_dist.layout.fetch import FetchPlan, plan_fetch
from numpy_dist.layout.halo import ghost_blocks, margins
from numpy_dist.layout.layout import BoxList, Copies, Cut, Layout, Pinned, replicated_layout
from numpy_dist.layout.mesh import Mesh
from numpy_dist.layout.regions import Box, Region
from numpy_dist.layout.views import (
    ViewMap,
    decode,
    image,
    iteration_layout,
    owned_boxes,
    storage_region,
    view_layout,
)

__all__ = [
    "Box",
    "BoxList",
    "Copies",
    "Cut",
    "FetchPlan",
    "Layout",
    "Mesh",
    "Pinned",
    "Region",
    "ViewMap",
    "decode",
    "default_layout",
    "default_points",
    "ghost_blocks",
    "image",
    "iteration_layout",
    "margins",
    "owned_boxes",
    "plan_fetch",
    "replicated_layout",
    "storage_region",
    "view_layout",
]
