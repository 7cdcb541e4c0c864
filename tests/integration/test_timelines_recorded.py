"""Recorded streams in sessions that keep a timeline: same work, same times, same streams."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from reference.chrome_timeline import WORK, work_of
from timeline_runs import record_program

from proton_bench.formats.registry import read_profile
from proton_bench.model.profile import Profile

__all__ = ["cupti_doubles"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("proton_bench_plugins.cupti") is None,
    reason="the cupti backend is not built",
)

STREAMS = ["compiled", "copies", "eager", "failing", "graph", "graph_changes", "graph_late"]
STREAMS += ["graph_traced", "nvtx", "threads", "triton"]


@pytest.mark.nightly(keep=4)
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("mode", ["", "copies=on"])
def test_timeline_and_tree_agree(
    stream: str, mode: str, cupti_doubles: Doubles, tmp_path: Path
) -> None:
    run = record_program(f"{stream}.cupti", cupti_doubles, tmp_path, DEVICE_PROGRAM_MODE=mode)

    timeline = run.timeline
    expected = work_of(run.tree)
    assert expected
    assert timeline.sums(*WORK) == expected
    assert timeline.crossing() == []
    for file in (run.chrome, run.perfetto):
        profile = read_profile(file)
        assert work_of(profile) == expected
        assert moved_by(profile) == moved_by(run.tree)


def moved_by(profile: Profile) -> dict[tuple[str, ...], int]:
    """Return the bytes of every copy, by path."""
    moved = profile.columns.get("bytes")
    values = moved.to_list() if moved is not None else []
    return {profile.path(row): value for row, value in enumerate(values) if value is not None}


def test_every_launch_finds_its_kernel_when_a_timeline_is_read(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    run = record_program("many", cupti_doubles, tmp_path)

    expected = run.tree.inclusive("launch_latency_count")[0]
    assert expected == 12_000
    for file in (run.chrome, run.perfetto):
        found = read_profile(file)
        assert found.inclusive("launch_latency_count")[0] == expected
        latency = "launch_latency_sum (ns)"
        assert found.inclusive(latency)[0] == run.tree.inclusive(latency)[0]


def test_copies_keep_what_they_moved(cupti_doubles: Doubles, tmp_path: Path) -> None:
    run = record_program("copies.cupti", cupti_doubles, tmp_path, DEVICE_PROGRAM_MODE="copies=on")

    moved = run.tree.inclusive("bytes")[0]
    assert moved > 0
    for file in (run.chrome, run.perfetto):
        assert read_profile(file).inclusive("bytes")[0] == moved


def test_work_keeps_its_times_and_streams(cupti_doubles: Doubles, tmp_path: Path) -> None:
    run = record_program("triton.cupti", cupti_doubles, tmp_path)

    work = run.timeline.of("kernel")
    by_stream = Counter(each.arguments["stream"] for each in work)

    assert by_stream == {13: 25, 17: 25, 7: 6}
    assert all(each.lane.endswith(f"Stream {each.arguments['stream']}") for each in work)
    starts = [each.start_ns for each in work]
    assert max(starts) - min(starts) < 60_000_000_000
    assert all(200 < each.duration_ns < 10_000_000 for each in work)


def test_arrows_join_what_a_launch_and_its_work_have_in_common(
    cupti_doubles: Doubles, tmp_path: Path
) -> None:
    timeline = record_program("threads.cupti", cupti_doubles, tmp_path).timeline

    assert len(timeline.flows) == len(timeline.of("kernel"))
    for call, work in timeline.flows:
        assert call.category == "cuda_runtime"
        assert call.arguments["correlation"] == work.arguments["correlation"]
        assert call.path == work.path
    threads = {(call.lane, work.lane) for call, work in timeline.flows}
    assert len({lane for lane, _ in threads}) == 4
