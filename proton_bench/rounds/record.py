"""The record of one benchmark, in a form that workers can send and JSON can hold."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from proton_bench.rounds.measurement import Device, Measurement, Plan, median_of

# What counts as a repetition. Rounds share everything that differs between processes: clocks,
# memory layout, choices of autotuners. They make one value more precise but do not show its spread.
REPLICATE = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRecord:
    """The record of one benchmark in this process.

    Attributes:
        id: Its name in the gate.
        node_id: Its name in pytest.
        parameters: Parameters of the test as text.
        device: Whose clock counts: ``cpu`` or ``cuda``.
        metric: Which clock is gated: ``cpu`` or ``cuda``.
        calls: Calls in each round.
        cpu_ns: Time of one call on the CPU, of each round.
        gpu_ns: Time of one call on the GPU, of each round; empty without a GPU's timer.
        warmup: Calls before the first round, including calibration.
        flush_l2: Whether the L2 cache of the GPU was emptied before each round.
        cudagraph: Whether a CUDA graph was timed.
        threshold: Threshold of the test's marker, "" for none.
        flops: Floating-point operations of one call, 0 for unknown.
        bytes: Bytes that one call moves, 0 for unknown.
        extra_info: Extra values of the test.
        path: Name and kind of each node of the profile down to the rounds; empty without a session.
        worker: Worker of pytest-xdist that measured it, "" for none.
        gpu_clock: What ``gpu_ns`` is: ``kernels`` for the sum of the times of all kernels and
            copies, ``gpu`` for the time between two events where no backend records them.
        tick_ns: Smallest step of the times of kernels.
    """

    id: str
    node_id: str
    device: str
    metric: str
    calls: int
    cpu_ns: tuple[float, ...]
    gpu_ns: tuple[float, ...]
    warmup: int
    flush_l2: bool
    cudagraph: bool
    path: tuple[tuple[str, int], ...]
    threshold: str = ""
    flops: float = 0.0
    bytes: float = 0.0
    parameters: Mapping[str, str] = field(default_factory=dict)
    extra_info: Mapping[str, Any] = field(default_factory=dict)
    worker: str = ""
    gpu_clock: str = "gpu"
    tick_ns: float = 0.0

    @property
    def clock(self) -> str:
        """What the gated times are: ``cpu``, or ``gpu_clock``."""
        return self.gpu_clock if self.gated_ns is self.gpu_ns else "cpu"

    @property
    def median_ns(self) -> float:
        """Median of the gated times."""
        return median_of(self.gated_ns, self.tick_ns if self.clock == "kernels" else 0.0)

    @property
    def gated_ns(self) -> tuple[float, ...]:
        """Times of the clock that is gated."""
        return self.gpu_ns if self.metric == "cuda" and self.gpu_ns else self.cpu_ns

    def statistics(self) -> dict[str, float]:
        """Return statistics of the gated times, in ns."""
        times = self.gated_ns
        quarters = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
        return {
            "min": min(times),
            "max": max(times),
            "mean": statistics.fmean(times),
            "median": self.median_ns,
            "stddev": statistics.stdev(times) if len(times) > 1 else 0.0,
            "iqr": quarters[2] - quarters[0],
        }

    @classmethod
    def of(cls, name: str, plan: Plan, measurement: Measurement, **more: Any) -> BenchmarkRecord:
        """Return the record of a measurement.

        Args:
            name: Its name in the gate.
            plan: How it was timed.
            measurement: Its rounds.
            **more: Other attributes.
        """
        kernels = measurement.kernels
        on_gpu = measurement.device is Device.CUDA
        attributes: dict[str, Any] = {
            "node_id": name,
            "metric": str(measurement.device),
            "gpu_clock": "gpu" if kernels is None else "kernels",
            "tick_ns": 0.0 if kernels is None else kernels.tick_ns,
            **more,
        }
        return cls(
            id=name,
            device=str(measurement.device),
            calls=measurement.calls,
            cpu_ns=measurement.cpu_ns,
            gpu_ns=measurement.gpu_ns,
            warmup=measurement.warmup_calls,
            flush_l2=plan.flush_l2 and on_gpu,
            cudagraph=plan.cudagraph,
            **attributes,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON and execnet."""
        plain = asdict(self)
        return {
            **plain,
            "parameters": dict(self.parameters),
            "extra_info": {str(key): _plain(value) for key, value in self.extra_info.items()},
            "cpu_ns": list(self.cpu_ns),
            "gpu_ns": list(self.gpu_ns),
            "path": [list(each) for each in self.path],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> BenchmarkRecord:
        """Return the record from `to_plain`."""
        return cls(
            **{
                **plain,
                "cpu_ns": tuple(plain["cpu_ns"]),
                "gpu_ns": tuple(plain["gpu_ns"]),
                "path": tuple((str(name), int(kind)) for name, kind in plain["path"]),
            }
        )


def _plain(value: Any) -> Any:
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return repr(value)
