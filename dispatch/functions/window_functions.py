"""Window functions, made by NumPy's own code with creation functions of ours."""

from __future__ import annotations

import numpy as np

from numpy_dist.dispatch.functions.array_creation_by_numpy import created

bartlett = created(np.bartlett)
blackman = created(np.blackman)
hamming = created(np.hamming)
hanning = created(np.hanning)
kaiser = created(np.kaiser)
