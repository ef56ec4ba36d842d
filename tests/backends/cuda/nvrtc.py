"""NVIDIA's run-time compiler from its wheel: it compiles CUDA sources for any architecture, without a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The library of ``pip install nvidia-cuda-nvrtc-cu12``; None where it is not installed."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    for folder in () if found is None else found.submodule_search_locations or ():
        for path in Path(folder, "lib").glob("libnvrtc.so.*"):
            return ctypes.CDLL(str(path))
    return None


def version() -> tuple[int, int]:
    """Of CUDA."""
    nvrtc, major, minor = library(), ctypes.c_int(), ctypes.c_int()
    assert nvrtc is not None
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_source(text: str, options: tuple[str, ...], what: str = "CUBIN") -> bytes:
    """The machine code of a source, or its ``"PTX"``.

    Raises
    ------
    ValueError
        With the compiler's own words.
    """
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc is not None
    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    assert created == 0
    try:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        code = nvrtc.nvrtcCompileProgram(program, len(options), given)
        if code != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise ValueError(log.value.decode())
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        made = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, made)
        return made.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
