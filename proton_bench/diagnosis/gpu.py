"""GPUs, their drivers, and the ceilings that runs with counters would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proton_bench.diagnosis.calibration import ceiling_findings
from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.recording.gpu.nvidia import gpu_facts

__all__ = ["gpu_section"]

_NVIDIA_VERSION = "proc/driver/nvidia/version"
_AMD_VERSION = "sys/module/amdgpu/version"
_AMD_NODE = "dev/kfd"


def gpu_section(gpus: Sequence[Mapping[str, Any]] | None = None, root: Path = Path("/")) -> Section:
    """Return the GPUs with their drivers; nothing is started for this.

    Args:
        gpus: Facts of NVIDIA GPUs; by default those of the management library.
        root: Folder with ``dev``, ``proc`` and ``sys``.
    """
    known = gpu_facts() if gpus is None else gpus
    found = [
        Finding(
            f"NVIDIA {place}",
            Status.OK,
            f"{gpu.get('name', 'unknown')}, driver {gpu.get('driver', 'unknown')}",
            provides=("gpu",),
        )
        for place, gpu in enumerate(known)
    ]
    found += ceiling_findings(known)
    if not known and (root / _NVIDIA_VERSION).exists():
        value = "driver loaded, but no GPU answers"
        advice = "is the device visible in this container?"
        found.append(Finding("NVIDIA", Status.PROBLEM, value, advice, provides=("gpu",)))
    if (root / _AMD_NODE).exists():
        value = f"driver {_read(root / _AMD_VERSION)}".strip()
        found.append(Finding("AMD", Status.OK, value, provides=("gpu",)))
    absent = Finding("driver", Status.ABSENT, "none found", provides=("gpu",))
    return Section("gpu", tuple(found) or (absent,))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
