"""Perfetto's engine reads in our timelines what the tree of the same run says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.engine_timeline import EngineTimeline
from browser.trace_engine import TraceEngine
from fakes.doubles import Doubles
from fakes.fixtures import cupti_doubles
from reference.chrome_timeline import WORK, same_host_time, walls_of, work_of
from timeline_runs import TimelineRun, record_program

__all__ = ["cupti_doubles"]

pytestmark = pytest.mark.browser

Trace = Callable[..., TimelineRun]
Format = Callable[[TimelineRun], Path]
HOST = ("scope", "metric", "cpu_op", "cuda_runtime")
FORMATS = pytest.mark.parametrize(
    "file", [lambda run: run.chrome, lambda run: run.perfetto], ids=["chrome", "perfetto"]
)


@pytest.fixture(scope="module")
def trace(cupti_doubles: Doubles, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Record a program, or return the recording that another test read."""
    runs: dict[object, TimelineRun] = {}

    def traced(what: str, **variables: str) -> TimelineRun:
        key = (what, *sorted(variables.items()))
        if key not in runs:
            folder = tmp_path_factory.mktemp("trace")
            runs[key] = record_program(what, cupti_doubles, folder, **variables)
        return runs[key]

    return traced


def instances(timeline: EngineTimeline) -> Counter[tuple[str, ...]]:
    return Counter(each.path for each in timeline.of("scope", "metric"))


def assert_like_the_tree(timeline: EngineTimeline, run: TimelineRun) -> None:
    tree = run.tree
    assert_every_nanosecond_is_read(timeline, run)
    assert timeline.sums("kernel", "copy") == work_of(tree)
    walls = timeline.sums("scope", "metric")
    assert walls.keys() == walls_of(tree).keys()
    for path, wall_ns in walls_of(tree).items():
        count, shown_ns = walls[path]
        assert same_host_time(shown_ns, wall_ns, count), (path, shown_ns, wall_ns)


def assert_every_nanosecond_is_read(timeline: EngineTimeline, run: TimelineRun) -> None:
    """Compare with the file in Chrome's format, read without the engine."""
    assert timeline.complaints == []
    plain = run.timeline
    for ours, engines in ((WORK, ("kernel", "copy")), (HOST, ("scope", "metric", "op", "launch"))):
        expected = Counter((each.path, each.duration_ns) for each in plain.of(*ours))
        assert Counter((each.path, each.duration_ns) for each in timeline.of(*engines)) == expected


@FORMATS
@pytest.mark.parametrize("what", ["launches", "many", "threads", "graph", "two_graphs", "ranges"])
def test_slices_add_up_to_the_tree(
    what: str, file: Format, trace: Trace, trace_engine: TraceEngine
) -> None:
    run = trace(what)

    assert_like_the_tree(EngineTimeline(trace_engine, file(run)), run)


def test_work_of_a_recorded_run_is_as_it_was_recorded(
    trace: Trace, trace_engine: TraceEngine
) -> None:
    run = trace("graph.cupti")

    timeline = EngineTimeline(trace_engine, run.perfetto)

    assert timeline.complaints == []
    assert timeline.sums("kernel", "copy") == work_of(run.tree)
    assert len(timeline.of("kernel")) == 90
    assert {each.track for each in timeline.of("kernel")} == {
        "Stream 7",
        "Stream 17",
        "Stream 142",
    }


@FORMATS
def test_every_launch_leads_to_its_kernel(
    file: Format, trace: Trace, trace_engine: TraceEngine
) -> None:
    timeline = EngineTimeline(trace_engine, file(trace("launches")))

    flows = timeline.flows()
    kernels = timeline.of("kernel")
    assert len(flows) == len(kernels) == len(timeline.of("launch"))
    assert {id(into) for _, into in flows} == {id(each) for each in kernels}
    assert all(out.category == "launch" and out.path == into.path for out, into in flows)
    assert all(out.start_ns < into.start_ns for out, into in flows)


@FORMATS
def test_a_graph_leads_to_its_first_kernel_on_each_stream(
    file: Format, trace: Trace, trace_engine: TraceEngine
) -> None:
    timeline = EngineTimeline(trace_engine, file(trace("graph")))

    flows = Counter((out.path, into.name, into.track[-8:]) for out, into in timeline.flows())

    assert {key[1:] for key in flows} == {("first", "Stream 7"), ("second", "Stream 8")}
    assert sum(flows.values()) == 2 * 5


@FORMATS
def test_overlapping_work_of_a_stream_stands_in_lanes(
    file: Format, trace: Trace, trace_engine: TraceEngine
) -> None:
    run = trace("overlapping")

    timeline = EngineTimeline(trace_engine, file(run))

    assert_like_the_tree(timeline, run)
    tracks = {each.track for each in timeline.of("kernel")}
    assert len(tracks) == 3
    assert all("Stream 7" in track for track in tracks)


SCOPES = """
import threading
import proton_bench as proton

def nested(name, depth):
    with proton.scope(f"{name} {depth}", {"flops": 2.0}):
        if depth:
            nested(name, depth - 1)

def worker():
    for _ in range(200):
        nested("worker", 3)

thread = threading.Thread(target=worker, name="data loader")
thread.start()
for _ in range(200):
    nested("main", 3)
thread.join()
proton.enter_scope("left open")
proton.enter_scope("left open within")
"""


def run_script(folder: Path, script: str, *options: str, **variables: str) -> TimelineRun:
    (folder / "program.py").write_text(script)
    command = [sys.executable, "-m", "proton_bench", "run", "-d", "trace", "-b", "cpu"]
    done = subprocess.run(
        [*command, "-n", "traced", *options, "program.py"],
        cwd=folder,
        env={**os.environ, "PROTON_BENCH_TRACE_FORMATS": "chrome_trace,perfetto", **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return TimelineRun(folder / "traced")


@FORMATS
def test_scopes_of_threads_that_nest_and_those_left_open(
    file: Format, tmp_path: Path, trace_engine: TraceEngine
) -> None:
    run = run_script(tmp_path, SCOPES)

    timeline = EngineTimeline(trace_engine, file(run))

    assert_every_nanosecond_is_read(timeline, run)
    counts = instances(timeline)
    opened = {path: counts.pop(path) for path in list(counts) if path[0] == "left open"}
    assert opened == {("left open",): 1, ("left open", "left open within"): 1}
    assert set(counts.values()) == {200}
    walls = walls_of(run.tree)
    assert counts.keys() == walls.keys()
    for path, (count, shown_ns) in timeline.sums("scope", "metric").items():
        assert path in opened or same_host_time(shown_ns, walls[path], count), path
    tracks: dict[int, set[str]] = {}
    for each in timeline.slices.values():
        tracks.setdefault(each.track_id, set()).add(each.path[0])
    assert sorted(map(sorted, tracks.values())) == [["left open", "main 3"], ["worker 3"]]


@FORMATS
def test_memory_of_the_process_has_a_counter(
    file: Format, tmp_path: Path, trace_engine: TraceEngine
) -> None:
    timeline = EngineTimeline(trace_engine, file(run_script(tmp_path, SCOPES)))

    (counter,) = timeline.counters()
    assert counter.startswith("resident memory")


def test_merged_ranks_stand_side_by_side(tmp_path: Path, trace_engine: TraceEngine) -> None:
    runs = []
    for rank in range(2):
        folder = tmp_path / f"rank {rank}"
        folder.mkdir()
        numbers = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        run_script(folder, SCOPES, **numbers)
        (file,) = folder.glob("*.pftrace")
        runs.append(file)
    merged = tmp_path / "merged.pftrace"
    command = [sys.executable, "-m", "proton_bench", "merge", *map(str, runs), "-o", str(merged)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    timeline = EngineTimeline(trace_engine, merged)

    assert timeline.complaints == []
    processes = Counter(each.process for each in timeline.of("scope", "metric"))
    assert len(processes) == 2
    assert {number for name in processes for number in (0, 1) if f"rank {number}" in name} == {0, 1}
    assert len(set(processes.values())) == 1
