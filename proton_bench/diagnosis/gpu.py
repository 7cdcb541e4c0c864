"""GPUs and their drivers: their state and its effect on measurements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from proton_bench.diagnosis.calibration import ceiling_findings
from proton_bench.diagnosis.finding import Finding, Section, Status
from proton_bench.diagnosis.gpu_survey import GpuState, GpuSurvey, survey_gpus

__all__ = ["gpu_section"]

_NVIDIA_VERSION = "proc/driver/nvidia/version"
_AMD_VERSION = "sys/module/amdgpu/version"
_AMD_NODE = "dev/kfd"
_MOST_PROCESSES = 4
_IDLE = 0x1
_SETTINGS = {0x2: "application clocks", 0x10: "sync boost", 0x100: "display clocks"}
_POWER = {0x4: "power limit"}
_FAULTS = {
    0x8: "hardware slowdown",
    0x20: "temperature, set by the driver",
    0x40: "temperature, set by the hardware",
    0x80: "power brake",
}


def gpu_section(survey: Callable[[], GpuSurvey] = survey_gpus, root: Path = Path("/")) -> Section:
    """Return the GPUs and drivers and their state; nothing is started for this.

    Args:
        survey: Queries NVIDIA's management library or nvidia-smi.
        root: Folder with ``dev``, ``proc`` and ``sys``.
    """
    asked = survey()
    found = [finding for gpu in asked.gpus for finding in _gpu(gpu)]
    if asked.gpus:
        found[:0] = [_driver(asked), _counters(asked)]
        found += ceiling_findings(
            [{"name": gpu.facts.get("name"), "driver": asked.driver} for gpu in asked.gpus]
        )
    why = "; ".join(asked.unasked)
    if not asked.gpus and (root / _NVIDIA_VERSION).exists():
        advice = "is the device visible in this container?" + (f" ({why})" if why else "")
        value = "driver loaded, but no GPU answers"
        found.append(Finding("NVIDIA", Status.PROBLEM, value, advice))
    if (root / _AMD_NODE).exists():
        version = _read(root / _AMD_VERSION)
        found.append(Finding("AMD", Status.OK, f"driver {version}".strip(), provides=("gpu",)))
    absent = Finding("driver", Status.ABSENT, "none found", why, provides=("gpu",))
    return Section("gpu", tuple(found) or (absent,))


def _driver(survey: GpuSurvey) -> Finding:
    cuda = survey.cuda or "unknown"
    advice = f"from nvidia-smi, because {survey.unasked[0]}" if survey.unasked else ""
    value = f"{survey.driver or 'unknown'}, CUDA up to {cuda}"
    return Finding("NVIDIA driver", Status.OK, value, advice)


def _counters(survey: GpuSurvey) -> Finding:
    name = "counters in timelines"
    if survey.unasked:
        advice = f"GPUs are read through their management library ({survey.unasked[0]})"
        return Finding(name, Status.NOTE, "memory of the process alone", advice)
    return Finding(name, Status.OK, "clocks, power, temperature, use and memory of GPUs", "")


def _gpu(gpu: GpuState) -> Iterator[Finding]:
    name = f"NVIDIA {gpu.index}"
    parts = [gpu.facts.get("name", "unknown"), gpu.facts.get("uuid", "")]
    if "capability" in gpu.facts:
        parts.append(f"compute capability {gpu.facts['capability']}")
    yield Finding(name, Status.OK, ", ".join(filter(None, parts)), provides=("gpu",))
    for about, fact, describe in (
        ("clocks", "sm_mhz", _clocks),
        ("throttling", "throttle", _throttling),
        ("persistence", "persistence", _persistence),
        ("MIG", "mig", _mig),
        ("compute mode", "compute_mode", _compute_mode),
        ("processes", "processes", _processes),
    ):
        if fact in gpu.facts:
            status, value, advice = describe(gpu)
        else:
            status, advice = Status.NOTE, ""
            value = f"unknown: {gpu.unknown.get(fact, 'the driver does not tell it')}"
        yield Finding(f"{name} {about}", status, value, advice)


_Judgement = tuple[Status, str, str]


def _clocks(gpu: GpuState) -> _Judgement:
    value = f"SM {gpu.facts['sm_mhz']} MHz"
    if "most_sm_mhz" in gpu.facts:
        value += f" of {gpu.facts['most_sm_mhz']}"
    if "memory_mhz" in gpu.facts:
        value += f", memory {gpu.facts['memory_mhz']} MHz"
    return Status.OK, value, ""


def _throttling(gpu: GpuState) -> _Judgement:
    bits = int(gpu.facts["throttle"])
    named = _names(bits, _SETTINGS | _POWER | _FAULTS)
    if _names(bits, _FAULTS):
        advice = "kernels are slower than they should be: check cooling and power of the machine"
        return Status.PROBLEM, named, advice
    if _names(bits, _POWER):
        advice = "clocks change with the load: compare runs at locked clocks (nvidia-smi -lgc)"
        return Status.NOTE, named, advice
    if named:
        advice = "they were set: reset them with nvidia-smi -rac and -rgc"
        return Status.NOTE, named, advice
    return Status.OK, "none" + (", the GPU is idle" if bits & _IDLE else ""), ""


def _names(bits: int, reasons: dict[int, str]) -> str:
    return ", ".join(text for bit, text in reasons.items() if bits & bit)


def _persistence(gpu: GpuState) -> _Judgement:
    if gpu.facts["persistence"]:
        return Status.OK, "on", ""
    advice = (
        "without a program the driver unloads, and each start takes longer: run nvidia-smi -pm 1"
    )
    return Status.NOTE, "off", advice


def _mig(gpu: GpuState) -> _Judgement:
    if not gpu.facts["mig"]:
        return Status.OK, "off", ""
    advice = (
        "a process sees one slice, chosen with CUDA_VISIBLE_DEVICES=MIG-...; PC sampling needs a "
        "slice of one whole GPU instance, and device peaks are those of the slice"
    )
    return Status.NOTE, "on", advice


def _compute_mode(gpu: GpuState) -> _Judgement:
    mode = str(gpu.facts["compute_mode"])
    if mode == "Prohibited":
        return Status.PROBLEM, mode, "no program can use this GPU: run nvidia-smi -c DEFAULT"
    if mode != "Default":
        return Status.NOTE, mode, "one process at a time can use this GPU"
    return Status.OK, mode, ""


def _processes(gpu: GpuState) -> _Judgement:
    others = [each for each in gpu.facts["processes"] if each.pid != os.getpid()]
    if not others:
        return Status.OK, "no other process", ""
    shown = [f"{each.name} (pid {each.pid})" for each in others[:_MOST_PROCESSES]]
    if len(others) > _MOST_PROCESSES:
        shown.append(f"{len(others) - _MOST_PROCESSES} more")
    advice = (
        "their work delays the measured kernels: end them, or choose another GPU with "
        "CUDA_VISIBLE_DEVICES"
    )
    return Status.NOTE, ", ".join(shown), advice


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
