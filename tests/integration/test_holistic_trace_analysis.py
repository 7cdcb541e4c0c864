"""Timelines of several ranks in Meta's HTA, which reads those of torch.profiler."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from timeline_runs import TimelineRun, record_program

__all__ = ["cupti_doubles"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hta") is None,
    reason="HTA is not installed: pip install --no-deps HolisticTraceAnalysis==0.5.0, and "
    "plotly, networkx, pydot, psutil and ipywidgets",
)

PROGRAM = """
import json, sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
ranks = sorted(analysis.t.traces)
temporal = analysis.get_temporal_breakdown(visualize=False)
idle, _ = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
_, kernels = analysis.get_gpu_kernel_breakdown(
    visualize=False, num_kernels=100, duration_ratio=1.0, include_memory_kernels=True
)
launches = analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
print(json.dumps({
    "ranks": [int(rank) for rank in ranks],
    "kernel_us": temporal["kernel_time(us)"].astype(float).tolist(),
    "idle": idle["rank"].astype(int).unique().tolist(),
    "kernels": kernels[["rank", "name", "sum (us)"]].astype(str).values.tolist(),
    "launches": {int(rank): len(table) for rank, table in launches.items()},
}))
"""


@pytest.fixture
def runs(cupti_doubles: Doubles, tmp_path: Path) -> list[TimelineRun]:
    """Two ranks, each with a folder of its own."""
    found = []
    for rank in range(2):
        folder = tmp_path / str(rank)
        folder.mkdir()
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        found.append(record_program("launches", cupti_doubles, folder, **numbers))
    return found


def packed(runs: list[TimelineRun], folder: Path) -> None:
    """Compress the timelines as they are."""
    folder.mkdir()
    for rank, run in enumerate(runs):
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(run.chrome.read_bytes()))


def exported(runs: list[TimelineRun], folder: Path) -> None:
    """Export the timelines in Perfetto's format."""
    files = [str(run.perfetto) for run in runs]
    command = [sys.executable, "-m", "proton_bench", "export", *files, "--to", "kineto"]
    subprocess.run([*command, "-o", str(folder)], check=True)


@pytest.mark.parametrize("prepare", [packed, exported])
def test_both_ranks_are_read_and_analysed(
    prepare: Callable[[list[TimelineRun], Path], None], runs: list[TimelineRun], tmp_path: Path
) -> None:
    folder = tmp_path / "both"
    prepare(runs, folder)

    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder)]
    environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["ranks"] == [0, 1]
    assert found["idle"] == [0, 1]
    assert all(each > 0 for each in found["kernel_us"])
    for rank, run in enumerate(runs):
        kernels = run.timeline.of("kernel")
        assert found["launches"][str(rank)] == len(kernels)
        times: Counter[str] = Counter()
        for each in kernels:
            times[each.name] += each.duration_ns
        durations = {name: float(us) for at, name, us in found["kernels"] if at == str(rank)}
        assert durations.keys() == times.keys()
        for name, us in durations.items():
            assert us == pytest.approx(times[name] / 1000)
