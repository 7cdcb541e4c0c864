"""What disturbs measurements on this machine before any run: load, CPU limits, clocks, GPUs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from proton_bench.gate.machine.fingerprint import SLOWED
from proton_bench.recording.gpu.nvidia import gpu_facts

__all__ = ["disturbances_now"]

# Fewer periods in which a limit stopped a container do not matter.
_STOPPED = 0.01
_CGROUPS = "sys/fs/cgroup"


def disturbances_now(
    root: Path = Path("/"),
    gpus: Callable[[], Sequence[Mapping[str, Any]]] = gpu_facts,
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, ...]:
    """Return what will disturb measurements, each as half a sentence; nothing if it is quiet.

    What cannot be read is not reported.

    Args:
        root: Folder with ``proc`` and ``sys``.
        gpus: Queries the GPUs, see `gpu_facts`.
        environ: Says in ``CUDA_VISIBLE_DEVICES`` which of them count.
    """
    found = (_load(root), _limit(root), _clocks(root), *_gpus(gpus(), environ))
    return tuple(filter(None, found))


def _load(root: Path) -> str:
    """Compare the load of the last minute with the cores; measured programs need one.

    Work that has ended, such as a build before the gate, is still part of that load, but then this
    process is the only one that runs.
    """
    seen = re.match(r"(\d+\.\d+)(?: \S+ \S+ (\d+)/)?", _text(root / "proc/loadavg"))
    cores = len(re.findall(r"^cpu\d+ ", _text(root / "proc/stat"), flags=re.MULTILINE))
    if seen is None or not cores or float(seen[1]) <= max(cores - 1, 0.5) or seen[2] in {"0", "1"}:
        return ""
    plural = "" if cores == 1 else "s"
    return (
        f"load {float(seen[1]):.1f} on {cores} core{plural}: other work takes the CPU from the "
        "measured program"
    )


def _limit(root: Path) -> str:
    """Return how often the CPU limit of a group of this process stopped its processes."""
    worst = 0.0
    for folder in _groups(root):
        counts = dict(re.findall(r"^(nr_\w+) (\d+)$", _text(folder / "cpu.stat"), re.MULTILINE))
        periods = int(counts.get("nr_periods", 0))
        worst = max(worst, int(counts.get("nr_throttled", 0)) / periods if periods else 0.0)
    if worst <= _STOPPED:
        return ""
    return (
        f"the CPU limit of this container stopped it in {100.0 * worst:.0f} % of periods: give it "
        "more CPU"
    )


def _groups(root: Path) -> list[Path]:
    """Return the folders of the control groups of this process, of both versions, and above."""
    found: list[Path] = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if names and "cpu" not in names.split(","):
            continue
        own = PurePosixPath("/", path)
        above = [each for each in (own, *own.parents) if ".." not in each.parts]
        # In a container the path may be that of the host; its own top folder is there anyway.
        for top in [f"{_CGROUPS}/{names}", f"{_CGROUPS}/cpu"] if names else [_CGROUPS]:
            found += [root / top / each.relative_to("/") for each in above]
    return found


def _clocks(root: Path) -> str:
    """Return the range of CPU clocks, if a governor changes them."""
    lows, highs, governors = [], [], set()
    for policy in sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*")):
        governor = _text(policy / "scaling_governor").strip()
        ends = [_text(policy / f"scaling_{end}_freq").strip() for end in ("min", "max")]
        if governor in {"", "performance"} or not all(end.isdecimal() for end in ends):
            continue
        low, high = (int(end) / 1e6 for end in ends)  # kHz
        if low < high:
            lows.append(low)
            highs.append(high)
            governors.add(governor)
    if not governors:
        return ""
    named = " and ".join(sorted(governors))
    return (
        f"governor {named} changes CPU clocks between {min(lows):.1f} and {max(highs):.1f} GHz: "
        "use performance"
    )


def _gpus(gpus: Sequence[Mapping[str, Any]], environ: Mapping[str, str]) -> list[str]:
    slowed: dict[str, list[str]] = {}
    shared = []
    for index, facts in enumerate(gpus):
        if not _is_visible(index, facts, environ.get("CUDA_VISIBLE_DEVICES")):
            continue
        bits = facts.get("throttle_reasons")
        for bit, name in SLOWED.items():
            if isinstance(bits, int) and bits & bit:
                slowed.setdefault(name, []).append(str(index))
        if facts.get("other_processes"):
            shared.append(str(index))
    found = [f"{name} limits clocks of GPU {', '.join(where)}" for name, where in slowed.items()]
    return found + ([f"other processes run on GPU {', '.join(shared)}"] if shared else [])


def _is_visible(index: int, facts: Mapping[str, Any], listed: str | None) -> bool:
    """Return whether CUDA shows a GPU; its numbers are the driver's if all GPUs are alike."""
    if listed is None:
        return True
    names = [each.strip() for each in listed.split(",")]
    uuid = str(facts.get("uuid", ""))
    return str(index) in names or any(each and uuid.startswith(each) for each in names)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
