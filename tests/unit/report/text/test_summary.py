from __future__ import annotations

from dataclasses import replace

from fakes.counted import Kernel, counted_profile

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile
from proton_bench.report.text.hottest import hottest_paths
from proton_bench.report.text.summary import summary_lines

LIBRARY = "/venv/lib/python3.11/site-packages/torch/data.py"
SECOND = 1_000_000_000


def gpu_run() -> Profile:
    """Return a run of 10 s whose GPU works for 1 s."""
    builder = ProfileBuilder()
    device = Device("CUDA", 0)
    builder.add(
        0, "gemm", FrameKind.KERNEL, metrics={"time (ns)": SECOND, "count": 4}, device=device
    )
    host = builder.add(0, "<not recorded>", FrameKind.PYTHON, metrics={"host_wall (ns)": SECOND})
    load = builder.add(host, "/home/me/train.py:31@load", FrameKind.PYTHON)
    for line, seconds in ((7, 3), (8, 1)):
        spent = {"host_wall (ns)": seconds * SECOND, "idle (ns)": seconds * SECOND}
        builder.add(load, f"{LIBRARY}:{line}@get", FrameKind.PYTHON, metrics=spent)
    step = {"host_wall (ns)": 5 * SECOND, "idle (ns)": 2 * SECOND}
    builder.add(host, "/home/me/train.py:40@<module>", FrameKind.PYTHON, metrics=step)
    use = DeviceUse(device=0, scope=None, busy_ns=SECOND, idle_ns=9 * SECOND)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + 10 * SECOND, "directory": "/home/me"}
    return replace(builder.build(provenance=facts), device_use=(use,))


def test_idle_time_is_that_of_lines_of_own_code() -> None:
    lines = summary_lines(gpu_run())

    assert (
        "GPU idle 60 % of the run: 40 % in train.py:31 load, 20 % in train.py:40 <module>" in lines
    )


def test_the_hottest_path_of_a_library_is_the_own_line_that_called_it() -> None:
    builder = ProfileBuilder()
    own = builder.add(0, "/home/me/train.py:3@main", FrameKind.PYTHON)
    for line in range(5):
        name = f"{LIBRARY}:{line}@inner"
        builder.add(own, name, FrameKind.PYTHON, metrics={"host_wall (ns)": SECOND})

    _, line = hottest_paths(builder.build(provenance={"directory": "/home/me"}))

    assert line.split() == ["100.0%", "5000.000", "train.py:3", "main"]


def test_commands_for_more_name_the_file() -> None:
    assert "proton view 'my run.proton'" in summary_lines(gpu_run(), "my run.proton")[-1]


def test_lines_keep_their_width_where_paths_are_long() -> None:
    builder = ProfileBuilder()
    row = 0
    for depth in range(30):
        row = builder.add(row, f"a scope with a long name {depth}")
    builder.add(row, "kernel" * 40, FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})

    lines = hottest_paths(builder.build(), width=60)

    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith("kernel")


def test_limits_of_paths_are_named_where_counters_were_recorded() -> None:
    counted = counted_profile(Kernel(path="net/copy", units={"dram": 0.8}))

    heading, line = hottest_paths(counted)

    assert "limit" in heading.split()
    assert "memory:dram 95 %" in line
    assert any("proton why x.proton" in each for each in summary_lines(counted, "x.proton"))


def test_limits_are_not_named_without_counters() -> None:
    heading, _ = hottest_paths(counted_profile(Kernel(path="net/copy")))

    assert "limit" not in heading.split()
