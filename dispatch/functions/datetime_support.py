"""Datetime support functions, on each rank's own elements."""

from __future__ import annotations

import numpy as np

from numpy_dist.dispatch.patterns.elementwise import elementwise

elementwise(__name__, np.datetime_as_string, "K")
for _function in (np.busday_count, np.busday_offset, np.is_busday):
    elementwise(__name__, _function, "K", plain=("weekmask", "holidays", "busdaycal"))
