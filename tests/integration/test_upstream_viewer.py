"""Triton's own viewer reads our ``.hatchet`` with the right inclusive sums."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import write_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind

pytest.importorskip("triton")
pytest.importorskip("hatchet")

# In a process of its own, where nothing answers for `triton.profiler` but Triton.
SHOW = """
import sys, warnings
warnings.simplefilter("ignore")
from triton.profiler import viewer
sys.argv = ["proton-viewer", *sys.argv[1:]]
viewer.main()
"""


def upstream_view(*arguments: str | Path) -> list[list[str]]:
    command = [sys.executable, "-c", SHOW, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.replace("─", " ").split() for line in done.stdout.splitlines() if line.strip()]


def test_inclusive_sums_are_right_in_upstreams_viewer(tmp_path: Path) -> None:
    builder = ProfileBuilder()
    step = builder.add(0, "step", FrameKind.SCOPE, metrics={"wall (ns)": 9_000_000})
    gpu = Device(kind="CUDA", index=0, arch="90")
    for name, time_ns in (("first", 1_000_000), ("second", 2_500_000)):
        metrics = {"time (ns)": time_ns, "count": 2, "flops32": 1000}
        builder.add(step, name, FrameKind.KERNEL, metrics=metrics, device=gpu)
    write_profile(builder.build(), tmp_path / "x.hatchet")

    lines = upstream_view("-m", "time/ms,count", tmp_path / "x.hatchet")

    rows = [line for line in lines if len(line) > 2]
    values = {line[-1]: [float(number) for number in line[-3:-1]] for line in rows}
    assert values["ROOT"] == [3.5, 4]
    assert values["step"] == [3.5, 4]
    assert values["second"] == [2.5, 2]
