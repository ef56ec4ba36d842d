"""File formats: arrays in ``.npy``, ``.npz``, HDF5, Zarr and Parquet files, of which each rank reads its part.

    with numpy_dist.open("field.h5") as file:
        u = file["u"][1000:2000]
    numpy_dist.save("result.zarr", np.sin(u))

See docs/files.md.
"""

from __future__ import annotations

from numpy_dist import distarray as distarray  # arrays that are made here are DistArrays
from numpy_dist.formats.opening import open
from numpy_dist.formats.saving import save
from numpy_dist.formats.stored import StoredArray, StoredArrays

__all__ = ["StoredArray", "StoredArrays", "open", "save"]
