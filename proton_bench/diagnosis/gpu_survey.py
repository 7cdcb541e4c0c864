"""The state of NVIDIA GPUs, from the management library, else from nvidia-smi."""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["GpuProcess", "GpuState", "GpuSurvey", "survey_gpus"]

_TIMEOUT_S = 15.0
# nvidia-smi's name of a fact, and how it is read. Drivers know the reasons by one of two names.
_NUMBERS = {
    "sm_mhz": "clocks.sm",
    "most_sm_mhz": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
}
_TEXTS = {"name": "name", "uuid": "uuid", "driver": "driver_version", "capability": "compute_cap"}
_SWITCHES = {"persistence": "persistence_mode", "mig": "mig.mode.current"}
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_CUDA = re.compile(r"CUDA (?:\w+ )?Version\s*:\s*(\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that has work or memory on a GPU."""

    pid: int
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU.

    Attributes:
        index: Number in the management library; CUDA may number differently.
        facts: Known facts: ``name``, ``uuid``, ``capability`` ("9.0"), ``sm_mhz``,
            ``most_sm_mhz``, ``memory_mhz``, ``throttle`` (bits), ``persistence``, ``mig``,
            ``compute_mode`` ("Default") and ``processes``.
        unknown: Why each of the other facts is unknown.
    """

    index: int
    facts: Mapping[str, Any]
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuSurvey:
    """All GPUs of the machine.

    Attributes:
        gpus: Empty if there is none, or if neither source answers.
        driver: Version of the driver; "" if unknown.
        cuda: Newest CUDA that the driver supports; "" if unknown.
        unasked: Why the management library, and why nvidia-smi, did not answer.
    """

    gpus: tuple[GpuState, ...] = ()
    driver: str = ""
    cuda: str = ""
    unasked: tuple[str, ...] = ()


def survey_gpus(
    load: Callable[[str], Any] = importlib.import_module, program: str = "nvidia-smi"
) -> GpuSurvey:
    """Query the first source that answers; neither starts CUDA.

    Args:
        load: Imports a module by its name.
        program: Name or path of nvidia-smi.
    """
    try:
        nvml = load("pynvml")
    except ImportError:
        missing = "nvidia-ml-py is not installed"
    else:
        try:
            return _ask_nvml(nvml)
        except (nvml.NVMLError, OSError) as error:
            missing = f"management library: {error}"
    try:
        return _Smi(program).survey(missing)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return GpuSurvey(unasked=(missing, f"nvidia-smi: {error}"))


def _ask_nvml(nvml: Any) -> GpuSurvey:
    nvml.nvmlInit()
    try:
        count = nvml.nvmlDeviceGetCount()
        gpus = tuple(_nvml_state(nvml, index) for index in range(count))
        number = nvml.nvmlSystemGetCudaDriverVersion()
        return GpuSurvey(
            gpus=gpus,
            driver=_text(nvml.nvmlSystemGetDriverVersion()),
            cuda=f"{number // 1000}.{number % 1000 // 10}",
        )
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _nvml_state(nvml: Any, index: int) -> GpuState:
    facts: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    for name, ask in _nvml_questions(nvml, device).items():
        try:
            facts[name] = ask()
        except nvml.NVMLError as error:
            unknown[name] = str(error)
        except AttributeError:
            unknown[name] = "this nvidia-ml-py is too old"
    return GpuState(index, facts, unknown)


def _nvml_questions(nvml: Any, device: Any) -> dict[str, Callable[[], Any]]:
    modes = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
    return {
        "name": lambda: _text(nvml.nvmlDeviceGetName(device)),
        "uuid": lambda: _text(nvml.nvmlDeviceGetUUID(device)),
        "capability": lambda: "{}.{}".format(*nvml.nvmlDeviceGetCudaComputeCapability(device)),
        "sm_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
        "most_sm_mhz": lambda: nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM),
        "memory_mhz": lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
        "throttle": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device),
        "persistence": lambda: bool(nvml.nvmlDeviceGetPersistenceMode(device)),
        "mig": lambda: bool(nvml.nvmlDeviceGetMigMode(device)[0]),
        "compute_mode": lambda: modes[nvml.nvmlDeviceGetComputeMode(device)],
        "processes": lambda: tuple(_nvml_processes(nvml, device)),
    }


def _nvml_processes(nvml: Any, device: Any) -> Iterator[GpuProcess]:
    for process in nvml.nvmlDeviceGetComputeRunningProcesses(device):
        name = "unknown"
        with contextlib.suppress(nvml.NVMLError):  # of another container
            name = _text(nvml.nvmlSystemGetProcessName(process.pid))
        yield GpuProcess(process.pid, name, process.usedGpuMemory)


class _Smi:
    """Reads tables of nvidia-smi.

    Args:
        program: Its name or path.
    """

    def __init__(self, program: str) -> None:
        found = shutil.which(program)
        if found is None:
            raise FileNotFoundError("not in PATH")
        self._path = found

    def survey(self, missing: str) -> GpuSurvey:
        rows = self._gpus()
        processes = self._processes()
        gpus = tuple(_smi_state(row, processes) for row in rows)
        cuda = _CUDA.search(self._run())
        return GpuSurvey(
            gpus=gpus,
            driver=rows[0].get("driver_version", "") if rows else "",
            cuda=cuda[1] if cuda else "",
            unasked=(missing,),
        )

    def _gpus(self) -> list[dict[str, str]]:
        common = ["index", *_TEXTS.values(), *_NUMBERS.values(), *_SWITCHES.values()]
        attempts = [[*common, "compute_mode", reasons] for reasons in _REASONS]
        attempts.append(["index", "name", "uuid", "driver_version"])
        for fields in attempts[:-1]:
            with contextlib.suppress(subprocess.CalledProcessError):
                return self._table(f"--query-gpu={','.join(fields)}", fields)
        return self._table(f"--query-gpu={','.join(attempts[-1])}", attempts[-1])

    def _processes(self) -> list[dict[str, str]] | None:
        fields = ["gpu_uuid", "pid", "process_name", "used_gpu_memory"]
        try:
            return self._table(f"--query-compute-apps={','.join(fields)}", fields)
        except subprocess.CalledProcessError:
            return None

    def _table(self, query: str, fields: list[str]) -> list[dict[str, str]]:
        text = self._run(query, "--format=csv,noheader,nounits")
        rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
        return [dict(zip(fields, row, strict=False)) for row in rows if len(row) >= len(fields)]

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._path, *arguments],
            capture_output=True,
            check=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
        return done.stdout


def _smi_state(row: Mapping[str, str], processes: list[dict[str, str]] | None) -> GpuState:
    facts: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    readers: dict[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
        **{name: ((column,), str) for name, column in _TEXTS.items()},
        **{name: ((column,), int) for name, column in _NUMBERS.items()},
        **{name: ((column,), _switch) for name, column in _SWITCHES.items()},
        "compute_mode": (("compute_mode",), str),
        "throttle": (_REASONS, lambda text: int(text, 16)),
    }
    for name, (columns, read) in readers.items():
        text = next((row[column] for column in columns if column in row), None)
        try:
            if text is None or text.startswith(("[", "N/A")):
                raise ValueError
            facts[name] = read(text)
        except ValueError:
            unknown[name] = f"nvidia-smi says {text}" if text else "nvidia-smi does not show it"
    if processes is None:
        unknown["processes"] = "nvidia-smi does not list them"
    else:
        facts["processes"] = tuple(
            _smi_process(each) for each in processes if each["gpu_uuid"] == facts.get("uuid")
        )
    return GpuState(int(row["index"]), facts, unknown)


def _smi_process(row: Mapping[str, str]) -> GpuProcess:
    memory = row["used_gpu_memory"]
    return GpuProcess(
        int(row["pid"]), row["process_name"], int(memory) << 20 if memory.isdecimal() else None
    )


def _switch(text: str) -> bool:
    states = {"Enabled": True, "Disabled": False}
    if text not in states:
        raise ValueError(text)
    return states[text]


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
