"""The array program: ingest and gather, record, fuse, schedule, execute.

The layers above use what is imported here and nothing else of the engine.
"""

from numpy_dist.engine.copies import aligned, assign, assign_part, copy, empty, full, register_policy
from numpy_dist.engine.device import Device, device
from numpy_dist.engine.elements import element
from numpy_dist.engine.floating import told_as
from numpy_dist.engine.gather import (
    agreed,
    gather,
    item,
    lies_on_device,
    local,
    rewriting,
    shard,
    shard_for_library,
    writing,
)
from numpy_dist.engine.handle import (
    Handle,
    is_handle,
    is_sharded,
    register_handle_class,
    replicated,
    selected,
    sharded,
    view_of_replicated,
)
from numpy_dist.engine.ingest import default_shard, from_global, from_local, from_reader, from_root, shardable
from numpy_dist.engine.listing import Listing, explain_program
from numpy_dist.engine.memory import budget, check_budget
from numpy_dist.engine.noting import noted
from numpy_dist.engine.outflow import Read, outflow, parts_in_order
from numpy_dist.engine.plans import replay, target_of
from numpy_dist.engine.record import elementwise, may_write, narrowed, numpy_error, wrap
from numpy_dist.engine.reduce import NotNumbers, reducible, reduction
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.engine.scratch import Scratch
from numpy_dist.engine.state import counters, default_layout, flush, force, layout_of
from numpy_dist.ir.phantoms import offset_of

__all__ = [
    "agreed",
    "Device",
    "Handle",
    "Listing",
    "NotNumbers",
    "Read",
    "Runtime",
    "Scratch",
    "aligned",
    "assign",
    "assign_part",
    "budget",
    "check_budget",
    "copy",
    "counters",
    "default_layout",
    "default_shard",
    "device",
    "element",
    "elementwise",
    "empty",
    "explain_program",
    "flush",
    "force",
    "from_global",
    "from_local",
    "from_reader",
    "from_root",
    "full",
    "gather",
    "is_handle",
    "is_sharded",
    "item",
    "layout_of",
    "lies_on_device",
    "local",
    "noted",
    "may_write",
    "narrowed",
    "numpy_error",
    "offset_of",
    "outflow",
    "parts_in_order",
    "reducible",
    "reduction",
    "register_handle_class",
    "register_policy",
    "replay",
    "replicated",
    "rewriting",
    "runtime",
    "selected",
    "shard",
    "shard_for_library",
    "shardable",
    "sharded",
    "target_of",
    "told_as",
    "view_of_replicated",
    "wrap",
    "writing",
]
