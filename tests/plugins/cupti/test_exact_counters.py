"""The mode ``counters=exact`` on the doubles: each launch, or scope, is counted by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton_bench._native")

from fakes.fixtures import cupti_doubles
from fakes.sampled_runs import Run
from fakes.sampled_runs import run as run_sampled

from proton_bench.errors import UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile
from proton_bench.plugin.backend import assign_modes
from proton_bench_plugins.cupti import BACKEND
from proton_bench_plugins.cupti.counting import Counting, Tier, read_counting

__all__ = ["cupti_doubles", "run_sampled"]

# By the double a copy keeps DRAM busy by 80 %, a product the tensor units by 90 %, DRAM by 20 %.
LAUNCHES = """

for _ in range(3):
    with proton.scope("step"):
        gpu.launch_with("copy_kernel", duration_ns=300)
        gpu.launch_with("gemm_kernel", duration_ns=300)
"""
# The clock of the double that runs is not ours.
CLOCK = {"PROTON_BENCH_CUPTI_CLOCK": "vendor", "FAKE_CUPTI_CLOCK": "real"}
LEFT = "\nprint(gpu.range_contexts())\n"


@pytest.fixture(name="run")
def run_by_its_clock(run_sampled: Run) -> Run:
    """Return ``run`` with times of records by the clock that runs."""

    def run_program(program: str, mode: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_sampled(program, mode, **CLOCK, **variables)

    return run_program


def counted(folder: Path) -> tuple[Profile, Mapping[str, Any]]:
    profile = read_profile(folder / "out.proton")
    return profile, profile.provenance["collectors"]["cupti"]["ranges"]


def shares(profile: Profile, quantity: str) -> dict[str, float]:
    """Return the share of a unit's peak by the name of rows that have one."""
    if f"{quantity}_busy (ns)" not in profile.columns:
        return {}
    busy, time = profile.inclusive(f"{quantity}_busy (ns)"), profile.inclusive("counter_time (ns)")
    return {profile.name(row): busy[row] / time[row] for row in range(len(profile)) if time[row]}


def test_each_launch_has_the_counts_of_its_range(run: Run, tmp_path: Path) -> None:
    done = run(LAUNCHES, "counters=exact")

    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["counted"], facts["ranges"], facts["error"]) == ("launch", 6, "")
    dram, tensor = shares(profile, "dram"), shares(profile, "tensor")
    assert dram["copy_kernel"] == pytest.approx(0.8, rel=1e-3)
    assert dram["gemm_kernel"] == pytest.approx(0.2, rel=1e-3)
    assert tensor["gemm_kernel"] == pytest.approx(0.9, rel=1e-3)
    assert dram["step"] == pytest.approx(0.5, rel=1e-3)
    assert profile.inclusive("dram_variance (ns^2)")[0] == 0.0
    assert profile.inclusive("counter_time (ns)")[0] == 1800


def test_a_scope_is_one_range_and_its_kernels_share_it(run: Run, tmp_path: Path) -> None:
    done = run("gpu.launch('first', 7)\n" + LAUNCHES, "counters:exact=scope")

    assert done.returncode == 0, done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["counted"], facts["ranges"], facts["error"]) == ("scope", 3, "")
    dram = shares(profile, "dram")
    assert dram["step"] == pytest.approx(0.5, rel=1e-3)
    assert dram["copy_kernel"] == pytest.approx(dram["gemm_kernel"], rel=1e-3)


def test_more_ranges_than_fit_at_once_are_all_counted(run: Run, tmp_path: Path) -> None:
    many = LAUNCHES.replace("range(3)", "range(600)")

    done = run(many, "counters=exact")

    assert done.returncode == 0, done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["ranges"], facts["lost_ranges"], facts["not_counted"]) == (1200, 0, 0)
    assert profile.inclusive("counter_sampled (ns)")[0] == 1200 * 300


def test_a_graph_is_counted_as_a_whole(run: Run, tmp_path: Path) -> None:
    graph = """

gpu.capture_begin(7)
gpu.launch("copy_kernel", 7)
gpu.launch("copy_kernel", 7)
graph = gpu.graph_instantiate(gpu.capture_end(7))
gpu.graph_launch(graph, 7)
"""

    done = run(graph, "counters=exact")

    assert done.returncode == 0, done.stderr
    _, facts = counted(tmp_path)
    assert (facts["ranges"], facts["not_counted"], facts["error"]) == (1, 2, "")


def test_dropped_ranges_are_counted(run: Run, tmp_path: Path) -> None:
    done = run("gpu.drop_ranges(2)\n" + LAUNCHES, "counters=exact")

    assert done.returncode == 0, done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["ranges"], facts["lost_ranges"]) == (4, 2)
    assert shares(profile, "dram")["copy_kernel"] == pytest.approx(0.8, rel=1e-3)


@pytest.mark.parametrize(
    ("fault", "ranges"),
    [
        ("cuptiProfilerInitialize=7", 0),
        ("cuptiDeviceGetChipName=7", 0),
        ("cuptiRangeProfilerEnable=26", 0),
        ("cuptiRangeProfilerEnable=35", 0),
        ("cuptiProfilerHostInitialize=7", 0),
        ("cuptiRangeProfilerGetCounterDataSize=7", 0),
        ("cuptiRangeProfilerCounterDataImageInitialize=7", 0),
        ("cuptiRangeProfilerSetConfig=7", 0),
        ("cuptiRangeProfilerStart=7", 0),
        ("cuptiRangeProfilerPushRange@3=7", 2),
        ("cuptiRangeProfilerPopRange@3=7", 0),
        ("cuptiRangeProfilerStop=7", 0),
        ("cuptiRangeProfilerDecodeData=7", 0),
        ("cuptiRangeProfilerGetCounterDataInfo=7", 0),
        ("cuptiProfilerHostEvaluateToGpuValues@2=7", 5),
    ],
)
def test_the_program_goes_on_where_counting_fails(
    fault: str, ranges: int, run: Run, tmp_path: Path
) -> None:
    done = run(LAUNCHES + "print('end')", "counters=exact", FAKE_CUPTI_FAIL=fault)

    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "Traceback" not in done.stderr
    profile, facts = counted(tmp_path)
    assert facts["ranges"] == ranges
    assert facts["error"]
    assert profile.inclusive("count")[0] == 6
    assert "copy_kernel" in shares(profile, "dram") or ranges == 0


def test_metrics_of_several_passes_are_refused_with_their_number(run: Run, tmp_path: Path) -> None:
    names = "+".join(f"sm__metric_{number}.sum" for number in range(17))

    done = run(LAUNCHES, f"counters:exact=launch:metrics={names}")

    assert done.returncode == 0, done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["ranges"], facts["not_counted"]) == (0, 6)
    assert "2 passes" in facts["error"]
    assert shares(profile, "dram") == {}


def test_nothing_is_left_on_behind_a_session(run: Run, tmp_path: Path) -> None:
    program = f"""
session = proton.start("again", mode="counters=exact")
{LAUNCHES}
proton.finalize(session)
{LEFT}
"""
    done = run(program, "counters=gpm")

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0"]


def test_a_context_that_ends_is_let_go(run: Run, tmp_path: Path) -> None:
    done = run(LAUNCHES + "gpu.context_destroyed(1)" + LEFT, "counters=exact")

    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert counted(tmp_path)[1]["ranges"] == 6


def test_threads_that_launch_wait_for_each_other(run: Run, tmp_path: Path) -> None:
    threads = """
import threading
def launch(stream):
    for _ in range(50):
        gpu.launch_with("copy_kernel", duration_ns=300, stream=stream)
threads = [threading.Thread(target=launch, args=(7 + n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

    done = run(threads, "counters=exact")

    assert done.returncode == 0, done.stderr
    profile, facts = counted(tmp_path)
    assert (facts["ranges"] + facts["not_counted"], facts["error"]) == (200, "")
    assert facts["ranges"] > 0
    assert profile.inclusive("count")[0] == 200


def counting(mode: str) -> Counting | None:
    (assigned,) = assign_modes([BACKEND], mode)
    return read_counting(assigned, {})


@pytest.mark.parametrize(
    ("mode", "what"),
    [
        ("counters=exact", "launch"),
        ("counters:exact=launch", "launch"),
        ("counters:exact=scope:copies=on", "scope"),
    ],
)
def test_what_is_counted_exactly_is_an_option(mode: str, what: str) -> None:
    asked = counting(mode)

    assert asked is not None
    assert (asked.tier, asked.counted) == (Tier.EXACT, what)


def test_exact_counting_is_off_by_default() -> None:
    for mode in ("counters", "counters:exact=off"):
        asked = counting(mode)
        assert asked is not None
        assert asked.tier is Tier.SAMPLED


@pytest.mark.parametrize("mode", ["counters:exact=kernel", "counters:exact=scope:metrics=all"])
def test_wrong_options_are_refused(mode: str) -> None:
    with pytest.raises(UsageError):
        counting(mode)
