"""A double of the module pynvml, and a program that answers like nvidia-smi."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Error(Exception):
    """NVMLError of the double."""


class GpmRequest:
    """What nvmlGpmMetricsGet fills."""

    def __init__(self) -> None:
        self.version = self.numMetrics = 0
        self.sample1: object = None
        self.sample2: object = None
        self.metrics = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0) for _ in range(16)]


class FakeNvml:
    """Answers of one GPU; a value that is an exception is raised.

    Args:
        answers: Function of pynvml, without ``nvml``, to what it returns.
    """

    NVMLError = Error
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_TEMPERATURE_GPU = 0
    NVML_GPM_METRICS_GET_VERSION = 1
    NVML_GPM_METRIC_SM_UTIL = 2
    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10
    NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20
    c_nvmlGpmMetricsGet_t = GpmRequest  # noqa: N815 - the name of pynvml

    def __init__(self, **answers: Any) -> None:
        self.is_open = False
        self._answers: dict[str, Any] = {
            "SystemGetDriverVersion": "580.95",
            "SystemGetCudaDriverVersion": 13000,
            "SystemGetProcessName": b"python",
            "DeviceGetCount": 1,
            "DeviceGetHandleByIndex": "device",
            "DeviceGetName": b"NVIDIA H200",
            "DeviceGetUUID": "GPU-1",
            "DeviceGetCudaComputeCapability": (9, 0),
            "DeviceGetClockInfo": 1980,
            "DeviceGetMaxClockInfo": 1980,
            "DeviceGetCurrentClocksThrottleReasons": 1,
            "DeviceGetPersistenceMode": 1,
            "DeviceGetMigMode": (0, 0),
            "DeviceGetComputeMode": 0,
            "DeviceGetComputeRunningProcesses": [],
            **answers,
        }

    def answer(self, **answers: Any) -> None:
        """Change the answers."""
        self._answers.update(answers)

    def nvmlInit(self) -> None:  # noqa: N802 - the name of pynvml
        """Start; fails where the answer "Init" is an exception."""
        failure = self._answers.get("Init")
        if failure is not None:
            raise failure
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        """End."""
        self.is_open = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("NVML_"):
            raise AttributeError(name)  # of an older module
        answer = self._answers.get(name.removeprefix("nvml"), Error("Not Supported"))

        def call(*_arguments: object) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def process(pid: int, memory: int | None = 1 << 30) -> SimpleNamespace:
    """Return a process as pynvml describes it."""
    return SimpleNamespace(pid=pid, usedGpuMemory=memory)


def write_smi(folder: Path, gpus: Mapping[str, str], processes: str = "", head: str = "") -> Path:
    """Write a program that knows the fields of ``gpus`` and refuses others; return its path.

    Args:
        folder: Where to write it.
        gpus: Field to value of the only GPU.
        processes: The answer to ``--query-compute-apps``.
        head: The output without options.
    """
    path = folder / "nvidia-smi"
    cases = "\n".join(f'      {name}) row="$row, {value}" ;;' for name, value in gpus.items())
    path.write_text(
        f"""#!/bin/sh
case "$1" in
  --query-gpu=*)
    row=
    for field in $(echo "${{1#--query-gpu=}}" | tr , ' '); do
      case "$field" in
{cases}
      *) echo "Field \\"$field\\" is not a valid field to query."; exit 2 ;;
      esac
    done
    echo "${{row#, }}" ;;
  --query-compute-apps=*) printf '{processes}' ;;
  "") printf '{head}' ;;
  *) exit 2 ;;
esac
""",
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
