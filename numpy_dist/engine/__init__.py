"""The array program: ingest and gather, record, fuse, schedule, execute.

The layers above use what is imported here and nothing else of the engine.
"""

import numpy_dist.engine.data.meta_access  # noqa: F401  (is called with the first runtime)
from numpy_dist.engine.data.activities import activity, progressed
from numpy_dist.engine.data.device import Device, device
from numpy_dist.engine.data.elements import element
from numpy_dist.engine.data.event_reporting import events_reported, reported_together
from numpy_dist.engine.data.gather import (
    agreed,
    corner,
    gather,
    have_recorder,
    item,
    lies_on_device,
    local,
    note_reads,
    rewriting,
    shard,
    shard_for_library,
    writing,
)
from numpy_dist.engine.data.ingest import (
    default_shard,
    from_filler,
    from_global,
    from_local,
    from_numpys,
    from_only_rank,
    from_reader,
    from_root,
    shardable,
)
from numpy_dist.engine.data.masked import masked
from numpy_dist.engine.data.scratch import Scratch
from numpy_dist.engine.data.streaming import Read, Share, Stamp, parts_in_order, share, stamp, stream, tell_events
from numpy_dist.engine.data.windows import has_ndarrays, in_memory, is_at_hand, lies_in
from numpy_dist.engine.events.filters import lazily_recorded
from numpy_dist.engine.events.floating import told_as
from numpy_dist.engine.explaining.listing import Listing, explain_program
from numpy_dist.engine.memory.budget import budget, check_budget
from numpy_dist.engine.memory.handle import (
    Handle,
    as_made,
    is_handle,
    is_sharded,
    metadata,
    plain,
    register_handle_class,
    replicated,
    selected,
    sharded,
    view_of_replicated,
)
from numpy_dist.engine.recording.casts import is_real_part, narrowed, without_imaginary_part
from numpy_dist.engine.recording.copies import aligned, assign, assign_part, copy, empty, full, register_policy
from numpy_dist.engine.recording.numpy_errors import numpy_error
from numpy_dist.engine.recording.queries import (
    counters,
    default_layout,
    flush,
    force,
    is_adjoint,
    is_transpose,
    layout_of,
)
from numpy_dist.engine.recording.record import elementwise, mask_of, may_write, wrap
from numpy_dist.engine.recording.reduce import reducible, reduction
from numpy_dist.engine.recording.replay import replay, target_of
from numpy_dist.engine.runtime import Runtime, runtime
from numpy_dist.ir.meta_arrays import Unrecordable, Unshardable, offset_of

__all__ = [
    "agreed",
    "Device",
    "Handle",
    "Listing",
    "Stamp",
    "Read",
    "Runtime",
    "Share",
    "Scratch",
    "Unrecordable",
    "Unshardable",
    "activity",
    "aligned",
    "as_made",
    "assign",
    "assign_part",
    "budget",
    "check_budget",
    "copy",
    "corner",
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
    "from_filler",
    "from_global",
    "from_local",
    "from_numpys",
    "from_only_rank",
    "from_reader",
    "from_root",
    "full",
    "gather",
    "have_recorder",
    "has_ndarrays",
    "in_memory",
    "is_at_hand",
    "is_handle",
    "is_real_part",
    "is_sharded",
    "is_adjoint",
    "is_transpose",
    "masked",
    "item",
    "layout_of",
    "lies_in",
    "lazily_recorded",
    "lies_on_device",
    "stamp",
    "local",
    "metadata",
    "note_reads",
    "events_reported",
    "mask_of",
    "may_write",
    "narrowed",
    "numpy_error",
    "offset_of",
    "stream",
    "tell_events",
    "parts_in_order",
    "plain",
    "progressed",
    "reducible",
    "reduction",
    "register_handle_class",
    "register_policy",
    "replay",
    "replicated",
    "reported_together",
    "rewriting",
    "runtime",
    "selected",
    "shard",
    "shard_for_library",
    "shardable",
    "share",
    "sharded",
    "target_of",
    "told_as",
    "view_of_replicated",
    "without_imaginary_part",
    "wrap",
    "writing",
]
