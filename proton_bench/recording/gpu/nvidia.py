"""Facts of GPUs from NVIDIA's management library, if there is a driver."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_MOST_GENERATIONS = 64


def strangers(pids: Iterable[int]) -> list[int]:
    """Return the processes that are not this one, its ancestors or its descendants.

    A process that is not visible here, as from inside a container, is left out: its number may mean
    another process here, even this one.

    Args:
        pids: Numbers of processes.
    """
    own = os.getpid()
    ancestors = {own, *_ancestors(own)}
    found = []
    for pid in sorted(set(pids)):
        if _parent(pid) is None or pid in ancestors or own in _ancestors(pid):
            continue
        found.append(pid)
    return found


def _ancestors(pid: int) -> Iterator[int]:
    for _ in range(_MOST_GENERATIONS):
        parent = _parent(pid)
        if not parent:
            return
        yield parent
        pid = parent


def _parent(pid: int) -> int | None:
    """Return the parent of a process, 0 for none, or None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            # The name before it may hold anything, brackets too.
            return int(stream.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


# Exists exactly while the kernel driver is loaded.
_DRIVER = "/proc/driver/nvidia/version"
_SMI_TIMEOUT_S = 10.0


def has_driver() -> bool:
    """Whether the kernel has NVIDIA's driver; without it the library is not loaded."""
    return os.path.exists(_DRIVER)


def gpu_facts() -> list[dict[str, Any]]:
    """Return the properties and the current state of every GPU.

    That is ``name``, ``uuid``, ``driver``, ``memory_bytes``, ``ecc`` ("on" or "off"), ``mig``
    ("off", or the names of its instances), ``power_limit_w``; and ``sm_clock_mhz``,
    ``memory_clock_mhz``, ``throttle_reasons`` (bits of NVML), ``temperature_c`` and
    ``other_processes``, the ids of processes computing on it, except this one, its ancestors and
    its descendants.

    A fact that the driver refuses is left out; without a driver or library the list is empty.
    """
    if not has_driver():
        return []
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        count = pynvml.nvmlDeviceGetCount()
        return [{"driver": driver, **_one_gpu(pynvml, index)} for index in range(count)]
    except pynvml.NVMLError:
        return []
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


@functools.cache
def newest_capability() -> int:
    """Return ten times the compute capability of the newest GPU, 0 if unknown.

    Neither the management library nor nvidia-smi, the fallback, starts CUDA.
    """
    try:
        import pynvml
    except ImportError:
        return _capability_of_smi()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return _capability_of_smi()
    capabilities = [0]
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            device = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(device)
            capabilities.append(10 * major + minor)
    except pynvml.NVMLError:
        pass  # only those that answered count
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
    return max(capabilities)


def _capability_of_smi() -> int:
    import subprocess

    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            timeout=_SMI_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return 0
    lines = [line.strip().partition(".") for line in done.stdout.splitlines()]
    known = [(major, minor) for major, _, minor in lines if (major + minor).isdecimal()]
    return max((10 * int(major) + int(minor) for major, minor in known), default=0)


def _one_gpu(nvml: Any, index: int) -> dict[str, Any]:
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    questions: dict[str, Callable[[], Any]] = {
        "name": lambda: _text(nvml.nvmlDeviceGetName(device)),
        "uuid": lambda: _text(nvml.nvmlDeviceGetUUID(device)),
        "sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
        "throttle_reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
        "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(device).total,
        "ecc": lambda: _switch(nvml.nvmlDeviceGetEccMode(device)),
        "mig": lambda: _mig(nvml, device),
        "power_limit_w": lambda: round(nvml.nvmlDeviceGetEnforcedPowerLimit(device) / 1000),
        "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
        "other_processes": lambda: strangers(
            each.pid for each in nvml.nvmlDeviceGetComputeRunningProcesses(device)
        ),
    }
    facts: dict[str, Any] = {}
    for fact, ask in questions.items():
        # Older libraries and drivers lack some, and answers differ.
        with contextlib.suppress(nvml.NVMLError, AttributeError, TypeError, IndexError):
            facts[fact] = ask()
    return facts


def _switch(modes: Sequence[int]) -> str:
    return "on" if modes[0] else "off"


def _mig(nvml: Any, device: Any) -> str:
    """Return the partitions of a GPU, such as ``1g.18gb, 2g.35gb``."""
    if not nvml.nvmlDeviceGetMigMode(device)[0]:
        return "off"
    names = []
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        with contextlib.suppress(nvml.NVMLError):  # there is no instance of this number
            instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
            names.append(_text(nvml.nvmlDeviceGetName(instance)).rpartition("MIG ")[2])
    return ", ".join(sorted(names)) or "on"


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
