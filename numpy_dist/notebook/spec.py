"""Kernel specs: what tells Jupyter how to start a notebook on several ranks."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

__all__ = ["InstalledSpec", "install", "installed", "remove"]

_MARK = "numpy_dist"  # in the metadata of specs that are ours
_NAME = re.compile(r"[a-z0-9._-]+")


class InstalledSpec(NamedTuple):
    """A kernel of ours that Jupyter finds."""

    name: str
    ranks: int
    folder: str


def content(ranks: int) -> dict[str, object]:
    """What stands in ``kernel.json``."""
    start = ["kernel", "start", "-n", str(ranks), "-f", "{connection_file}"]
    return {
        "argv": [sys.executable, "-P", "-m", "numpy_dist", *start],
        "display_name": f"NumPy on {ranks} rank{'s' * (ranks > 1)}",
        "language": "python",
        "interrupt_mode": "message",  # a signal would come to the launcher, and end the job
        # Whether the kernel can encrypt what it sends to Jupyter depends on its version.
        "metadata": {**get_kernel_dict().get("metadata", {}), "debugger": ranks == 1, _MARK: {"ranks": ranks}},
    }


def install(ranks: int, name: str | None = None, user: bool = False, prefix: str | None = None) -> InstalledSpec:
    """Write a kernel spec, in place of one of the same name.

    Parameters
    ----------
    ranks : int
    name : str, optional
        By which Jupyter knows the kernel; by default ``numpy-dist-4`` for 4 ranks.
    user : bool
        Whether it is for this user only, and all of their environments.
    prefix : str, optional
        The environment that it is for; by default that of this Python, if that is a virtual one, and else the user.

    Raises
    ------
    ValueError
        If the name has other characters than lower-case letters, digits, and ``._-``.
    """
    name = f"numpy-dist-{ranks}" if name is None else name
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a kernel: use lower-case letters, digits, and . _ -")
    if prefix is None and not user:
        if sys.prefix != sys.base_prefix:
            prefix = sys.prefix
        else:
            user = True
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.json").write_text(json.dumps(content(ranks), indent=1) + "\n", encoding="utf-8")
        where = KernelSpecManager().install_kernel_spec(folder, name, user=user, prefix=prefix)
    return InstalledSpec(name, ranks, where)


def installed() -> list[InstalledSpec]:
    """The kernels of ours that Jupyter finds, by name."""
    found = []
    for name, told in sorted(KernelSpecManager().get_all_specs().items()):
        mark = told["spec"].get("metadata", {}).get(_MARK)
        if mark is not None:
            found.append(InstalledSpec(name, int(mark["ranks"]), told["resource_dir"]))
    return found


def remove(name: str) -> str:
    """Remove a kernel of ours; returns the folder that it was in.

    Raises
    ------
    ValueError
        If there is none of this name.
    """
    if name not in [spec.name for spec in installed()]:
        raise ValueError(f"there is no kernel {name!r} of numpy-dist (numpy-dist kernel list)")
    try:
        return str(KernelSpecManager().remove_kernel_spec(name))
    except NoSuchKernel as error:
        raise ValueError(str(error)) from None
