"""Timelines of real runs agree with their trees, and events stand where they belong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reference.chrome_timeline import (
    WORK,
    ChromeTimeline,
    Slice,
    same_host_time,
    walls_of,
    work_of,
)
from timeline_runs import TimelineRun

import proton_bench as proton
from proton_bench.recording.session.session import SessionOptions, open_session

torch = pytest.importorskip("torch")

if torch.cuda.is_available():
    from instrumented_kernels import Vectors

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use"),
]

SIZE = 1 << 20
# What clocks of host and device may differ by, and how late an idle GPU may begin.
CLOCK_NS = 20_000
IDLE_NS = 50_000_000
TIME_SLICES_NS = 20_000_000
LONG_S = 20
# A quartz is a few ten parts in a million off.
DRIFT_NS = LONG_S * 1e9 * 1e-4


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """End every session, however the test went."""
    yield
    proton.finalize()


@pytest.fixture
def x() -> Any:
    """A tensor whose kernels are loaded already."""
    tensor = torch.ones(SIZE, device="cuda")
    (tensor + 1).mul_(2).sin_()
    torch.cuda.synchronize()
    return tensor


def record(folder: Path, work: Callable[[], object], backend: str = "cupti") -> TimelineRun:
    """Run a function in a session that keeps a timeline in both formats."""
    options = SessionOptions(
        name=folder / "timeline",
        backend=backend,
        data="trace",
        trace_formats=("chrome_trace", "perfetto"),
    )
    session = open_session(options)
    work()
    torch.cuda.synchronize()
    session.finalize(("proton", "chrome_trace", "perfetto"))
    return TimelineRun(folder / "timeline")


def launches(timeline: ChromeTimeline) -> list[tuple[Slice, Slice]]:
    """Return the calls that launched work, with that work."""
    return [(call, work) for call, work in timeline.flows if work.category in WORK]


def assert_in_order(timeline: ChromeTimeline, idle_ns: int = IDLE_NS) -> None:
    """Check that work begins after its call, and soon after the call and all earlier work."""
    ready_ns: dict[str, int] = {}
    for call, work in sorted(launches(timeline), key=lambda pair: pair[1].start_ns):
        assert work.start_ns > call.start_ns - CLOCK_NS
        ready = max(call.end_ns, ready_ns.get(work.lane, 0))
        assert work.start_ns - ready < idle_ns
        ready_ns[work.lane] = work.end_ns


def test_both_formats_agree_with_the_tree(tmp_path: Path, x: Any) -> None:
    def work() -> None:
        for _ in range(50):
            with proton.scope("outer"):
                x.add(1)
                with proton.scope("inner", {"flops": 3.0}):
                    x.sin().mul_(2)

    run = record(tmp_path, work, "cupti+cpu")

    expected = work_of(run.tree)
    assert sum(count for count, _ in expected.values()) >= 150
    timeline = run.timeline
    on_device = {path: sums for path, sums in expected.items() if "::" not in path[-1][:6]}
    assert timeline.sums(*WORK) == on_device
    assert timeline.crossing() == []
    walls = timeline.sums("scope", "metric")
    for path, wall_ns in walls_of(run.tree).items():
        if path in walls:
            assert same_host_time(walls[path][1], wall_ns, walls[path][0]), path
    assert {("outer",), ("outer", "inner")} <= walls.keys()
    assert_same_work(work_of(read(run.perfetto)), expected)
    assert_same_work(work_of(read(run.chrome)), expected)


def assert_same_work(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    """Compare counts and times; operators are timed on the host."""
    assert found.keys() == expected.keys()
    for path, (count, time_ns) in expected.items():
        assert found[path][0] == count
        assert same_host_time(found[path][1], time_ns, count), path


def read(path: Path) -> Any:
    from proton_bench.formats.registry import read_profile

    return read_profile(path)


def test_every_launch_leads_to_its_kernel(tmp_path: Path, x: Any) -> None:
    def work() -> None:
        for number in range(100):
            with proton.scope(f"step {number % 7}"):
                x.add(1)

    timeline = record(tmp_path, work).timeline

    assert len(launches(timeline)) == len(timeline.of(*WORK)) == 100
    assert all(call.path == work.path for call, work in launches(timeline))
    assert_in_order(timeline)


def test_a_scope_that_waits_covers_its_kernels(tmp_path: Path, x: Any) -> None:
    def work() -> None:
        for _ in range(20):
            with proton.scope("covered"):
                for _ in range(5):
                    x.sin()
                torch.cuda.synchronize()

    timeline = record(tmp_path, work).timeline

    scopes = timeline.named("covered")
    kernels = timeline.of("kernel")
    assert (len(scopes), len(kernels)) == (20, 100)
    for number, kernel in enumerate(kernels):
        scope = scopes[number // 5]
        assert scope.start_ns - CLOCK_NS < kernel.start_ns
        assert kernel.end_ns < scope.end_ns + CLOCK_NS


def test_streams_have_lanes_of_their_own(tmp_path: Path, x: Any) -> None:
    side = torch.cuda.Stream()

    def work() -> None:
        for _ in range(20):
            with proton.scope("main"):
                x.add(1)
            with torch.cuda.stream(side), proton.scope("side"):
                x.mul(2)

    timeline = record(tmp_path, work).timeline

    lanes = {name: {k.lane for k in timeline.of("kernel") if k.path[0] == name} for name in
             ("main", "side")}  # fmt: skip
    assert [len(each) for each in lanes.values()] == [1, 1]
    assert lanes["main"] != lanes["side"]
    assert timeline.crossing() == []


def test_a_graph_leads_to_its_nodes(tmp_path: Path, x: Any) -> None:
    def work() -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), proton.scope("captured"):
            for _ in range(4):
                x.add(1)
        for _ in range(10):
            with proton.scope("replay"):
                graph.replay()
            torch.cuda.synchronize()

    run = record(tmp_path, work)

    timeline, expected = run.timeline, work_of(run.tree)
    assert timeline.sums(*WORK) == expected
    replayed = {path: count for path, (count, _) in expected.items() if path[0] == "replay"}
    assert sum(replayed.values()) == 40
    flows = [pair for pair in launches(timeline) if pair[1].path[0] == "replay"]
    assert len(flows) == 10
    assert len({call.start_ns for call, _ in flows}) == 10
    assert_in_order(timeline)
    assert work_of(read(run.perfetto)) == expected


def record_for_long(folder: Path, x: Any) -> dict[str, Any]:
    """Check that each scope contains its kernel all along; return what the collector reports."""

    def work() -> None:
        over = threading.Event()
        threading.Timer(LONG_S, over.set).start()
        while not over.wait(0.01):
            with proton.scope("covered"):
                x.sin()
                torch.cuda.synchronize()

    run = record(folder, work)

    timeline = run.timeline
    scopes, kernels = timeline.named("covered"), timeline.of("kernel")
    assert len(scopes) == len(kernels) > 500
    for scope, kernel in zip(scopes, kernels, strict=True):
        assert scope.start_ns - CLOCK_NS < kernel.start_ns
        assert kernel.end_ns < scope.end_ns + CLOCK_NS
    facts: dict[str, Any] = run.tree.provenance["collectors"]["cupti"]
    return facts


def test_clocks_agree_through_a_long_run(tmp_path: Path, x: Any) -> None:
    facts = record_for_long(tmp_path, x)

    assert abs(facts["clock_drift_ns"]) < DRIFT_NS


def test_the_clock_of_the_vendor_is_converted_all_along(
    tmp_path: Path, x: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTON_BENCH_CUPTI_CLOCK", "vendor")

    facts = record_for_long(tmp_path, x)

    assert facts["clock"] == "vendor"
    assert abs(facts["clock_drift_ns"]) < DRIFT_NS


def test_operators_stand_between_scopes_and_launches(tmp_path: Path, x: Any) -> None:
    left = torch.ones(256, 256, device="cuda")

    def work() -> None:
        for _ in range(10):
            with proton.scope("layer"):
                torch.nn.functional.linear(left, left)

    timeline = record(tmp_path, work, "cupti+cpu").timeline

    operators = [each for each in timeline.of("cpu_op") if each.path[0] == "layer"]
    assert {"aten::linear"} <= {each.name for each in operators}
    for call, kernel in launches(timeline):
        if kernel.path[0] != "layer":
            continue
        around = [op for op in operators if op.lane == call.lane and op.contains(call)]
        assert around
        assert kernel.path[:2] == ("layer", "aten::linear")
    assert timeline.crossing() == []


def test_scopes_inside_a_kernel_lie_in_its_time(tmp_path: Path) -> None:
    vectors = Vectors()
    vectors.steps()
    torch.cuda.synchronize()

    run = record(tmp_path, vectors.steps, "cupti+instrumentation")

    timeline = run.timeline
    (kernel,) = [each for each in timeline.of("kernel") if each.name == "steps"]
    inside = [
        each
        for each in timeline.slices
        if each.category not in ("kernel", "cuda_runtime") and "steps" in each.path[:-1]
    ]
    assert {"load", "fma", "store"} <= {each.name for each in inside}
    for each in inside:
        assert kernel.start_ns <= each.start_ns <= each.end_ns <= kernel.end_ns
    (timer,) = run.tree.provenance["collectors"]["instrumentation"]["device_timers"]
    assert timer["readings"] >= 1
    # Other programs on the device lengthen a reading.
    assert 0 <= timer["uncertainty_ns"] < TIME_SLICES_NS
    assert "failure" not in timer


def test_clocks_power_and_memory_have_counters(tmp_path: Path, x: Any) -> None:
    def work() -> None:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            x.sin()
            torch.cuda.synchronize()

    counters = record(tmp_path, work).timeline.counters

    of_gpu = {name for name in counters if name.startswith("GPU 0 ")}
    for wanted in ("SM clock", "power", "temperature", "memory used"):
        assert any(wanted in name for name in of_gpu), of_gpu
    (memory,) = [counters[name] for name in of_gpu if "memory used" in name]
    assert len(memory) >= 5
    assert all(next(iter(values.values())) > SIZE * 4 for _, values in memory)
