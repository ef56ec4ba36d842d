"""CUDA devices: whether they can be used, and how their messages travel."""

from __future__ import annotations

from numpy_dist.cli.doctor.facts import GPUFacts
from numpy_dist.cli.doctor.finding import SystemFinding, bad, doubtful, good

_MANY = 2  # devices; a single one needs no way to others


def _cuda(version: int) -> str:
    """CUDA's version as people write it."""
    return f"{version // 1000}.{version % 1000 // 10}"


def device(facts: GPUFacts) -> list[SystemFinding]:
    """Whether there is a device, with CuPy to use it; neither is good as well."""
    name = "GPU"
    if not facts.cupy_here:
        if not facts.driver_here:
            return [good(name, "no GPU, none needed")]
        return [doubtful(name, "a GPU, but no CuPy to use it", "pip install 'numpy-dist[cuda12]' (or [cuda13])")]
    if not facts.driver_here:
        seen = "CuPy, but no driver of a GPU: processors compute"
        return [doubtful(name, seen, "install NVIDIA's driver (a container: --gpus all), or pip uninstall CuPy")]
    if facts.problem is not None or not facts.devices:
        if not facts.cupy:
            mend = "pip install --force-reinstall 'numpy-dist[cuda12]' (or [cuda13]); python -c 'import cupy' shows all"
            return [bad(name, f"CuPy does not start: {facts.problem}", mend)]
        mend = "nvidia-smi shows whether the driver works; CUDA_VISIBLE_DEVICES, which devices a program gets"
        return [bad(name, f"CuPy finds no GPU: {facts.problem or 'the driver has none to give'}", mend)]
    return [good(name, f"{', '.join(facts.devices)}; CuPy {facts.cupy}")]


def driver(facts: GPUFacts) -> list[SystemFinding]:
    """Whether the driver knows the CUDA that CuPy was built for; within a major version it need not be as new."""
    if not facts.driver or not facts.runtime:
        return []  # `device` says why
    name, seen = "GPU driver", f"for CUDA {_cuda(facts.driver)}; CuPy was built for {_cuda(facts.runtime)}"
    if facts.driver // 1000 < facts.runtime // 1000:
        mend = f"a newer driver, or pip install 'numpy-dist[cuda{facts.driver // 1000}]' in place of this CuPy"
        return [bad(name, seen, mend)]
    return [good(name, seen)]


def peers(facts: GPUFacts) -> list[SystemFinding]:
    """Whether all devices reach each other's memory."""
    if len(facts.devices) < _MANY:
        return []
    name = "GPU peer access"
    if facts.apart:
        pairs = ", ".join(f"{one} to {other}" for one, other in facts.apart)
        mend = "nvidia-smi topo -p2p r shows why (IOMMU, MIG, other PCIe roots); until then NUMPY_DIST_TRANSPORT=host"
        return [doubtful(name, f"none from {pairs}: messages go by way of the host", mend)]
    return [good(name, f"between all {len(facts.devices)} GPUs")]


def nccl(facts: GPUFacts) -> list[SystemFinding]:
    """Whether several devices have NCCL for their messages."""
    if len(facts.devices) < _MANY:
        return []
    name = "NCCL"
    if not facts.nccl:
        mend = f"pip install nvidia-nccl-cu{facts.runtime // 1000}"
        return [doubtful(name, "none that CuPy can use: messages take another way", mend)]
    number = facts.nccl
    return [good(name, f"{number // 10000}.{number % 10000 // 100}.{number % 100}")]
