"""Runs that record a timeline and its tree: programs and recorded streams on the doubles."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fakes.doubles import Doubles
from fakes.stream_file import read_stream
from reference.chrome_timeline import ChromeTimeline

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

_PROGRAMS = Path(__file__).parent / "integration" / "device_programs.py"
_AHEAD_NS = 120_000_000_000  # the device's clock: work follows its launch, however slow that is
_STREAMS = Path(__file__).parent / "data" / "cupti"


@dataclass(frozen=True)
class TimelineRun:
    """The files of a run.

    Attributes:
        name: Their path without a suffix.
    """

    name: Path

    @property
    def chrome(self) -> Path:
        """The timeline in Chrome's format."""
        return self.name.with_suffix(".chrome_trace")

    @property
    def perfetto(self) -> Path:
        """The timeline in Perfetto's format."""
        return self.name.with_suffix(".pftrace")

    @property
    def tree(self) -> Profile:
        """The run's tree."""
        return read_profile(self.name.with_suffix(".proton"))

    @property
    def timeline(self) -> ChromeTimeline:
        """The timeline, read the plain way."""
        return ChromeTimeline(self.chrome)


def record_program(what: str, doubles: Doubles, folder: Path, **variables: str) -> TimelineRun:
    """Record a program of device_programs.py, or a stream of tests/data/cupti, with a timeline.

    Args:
        what: Name of the program, or of the stream with the suffix ``.cupti``.
        doubles: Of libcupti and libcuda.
        folder: Where files go.
        **variables: Of the environment, besides those of the timeline.
    """
    output = folder / "timeline"
    clock = {"DEVICE_PROGRAM_CLOCK_NS": str(time.monotonic_ns() + _AHEAD_NS)}
    if what.endswith(".cupti"):
        stream, what = _STREAMS / f"{what}.gz", str(folder / what)
        Path(what).write_bytes(gzip.decompress(stream.read_bytes()))
        now_ns = int(dict(read_stream(stream).facts)["cupti_timestamp_ns"]) - _AHEAD_NS
        clock = {"DEVICE_PROGRAM_CLOCK_NS": str(now_ns), "PROTON_BENCH_CUPTI_CLOCK": "vendor"}
    environment = doubles.environment(
        **{
            "DEVICE_PROGRAM_BACKEND": "cupti+cpu",
            "DEVICE_PROGRAM_DATA": "trace",
            "PROTON_BENCH_NATIVE": "1",
            "PROTON_BENCH_TRACE_FORMATS": "chrome_trace,perfetto",
            **clock,
            **variables,
        }
    )
    command = [sys.executable, str(_PROGRAMS), "ours", what, str(output)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return TimelineRun(output)
