"""What CuPy tells about the devices here, as JSON: asked in a process of its own, which may crash or hang.

``python -m numpy_dist.backends.cupy.survey``, for `numpy-dist doctor`.
"""

from __future__ import annotations

import json

import cupy

from numpy_dist.backends.cupy.links import nccl_version


def survey() -> dict[str, object]:
    """Versions, devices, and which of these cannot reach each other; `problem` says why there are none."""
    runtime = cupy.cuda.runtime
    facts: dict[str, object] = {
        "problem": None,
        "cupy": cupy.__version__,
        "runtime": runtime.runtimeGetVersion(),
        "driver": runtime.driverGetVersion(),
        "devices": [],
        "apart": [],
        "nccl": 0,
    }
    try:
        numbers = range(runtime.getDeviceCount())
        facts["devices"] = [runtime.getDeviceProperties(number)["name"].decode() for number in numbers]
        facts["apart"] = [
            (one, other)
            for one in numbers
            for other in numbers
            if one != other and not runtime.deviceCanAccessPeer(one, other)
        ]
        facts["nccl"] = nccl_version()
    except runtime.CUDARuntimeError as problem:  # no device, or a driver that is too old
        facts["problem"] = str(problem)
    return facts


if __name__ == "__main__":
    print(json.dumps(survey()))
