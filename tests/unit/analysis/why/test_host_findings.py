"""The finding about a program that waits for its data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.counted import H200

from proton_bench.analysis.accounting.host_time import IDLE, NOT_RECORDED
from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Finding
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile
from proton_bench.model.steps import HOST_WALL

MS = 10**6
DATA = Path(__file__).parents[3] / "data" / "verdicts"
CPU = Device("CPU", 0)
PLACE = "/home/me/train.py:7@main"
_LOADER = "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
WAIT = (f"{_LOADER}:741@__next__", "/usr/lib/python3.12/multiprocessing/connection.py:9@poll")
FETCH = (
    f"{_LOADER}:741@__next__",
    "/env/lib/python3.12/site-packages/torch/utils/data/_utils/fetch.py:50@fetch",
)
STARVED = {
    "place": PLACE,
    "workers": 2,
    "prefetch": 2,
    "pins": False,
    "persists": False,
    "epochs": 1,
    "batches": 50,
    "queued": 20,
    "alive_ns": 200 * MS,
    "worked_ns": 190 * MS,
}


def on_gpu(path: tuple[str, ...], *, wait_ms: int, idle_ms: int, **facts: Any) -> Profile:
    """A run of 100 ms in which a GPU worked for what is left."""
    builder = ProfileBuilder()
    builder.device(H200)
    time = {"time (ns)": (100 - idle_ms) * MS, "count": 10}
    builder.add(0, "gemm", FrameKind.KERNEL, metrics=time, device=H200)
    row = builder.add(0, NOT_RECORDED, FrameKind.PYTHON)
    for name in (PLACE, *path[:-1]):
        row = builder.add(row, name, FrameKind.PYTHON)
    metrics = {HOST_WALL: wait_ms * MS, IDLE: min(wait_ms, idle_ms) * MS}
    builder.add(row, path[-1], FrameKind.PYTHON, metrics=metrics)
    use = DeviceUse(
        None,
        0,
        busy_ns=(100 - idle_ms) * MS,
        idle_ns=idle_ms * MS,
        long_idle_ns=idle_ms * MS,
        launches=10,
        latency_sum_ns=80_000,
        latency_min_ns=8000,
        latency_max_ns=8000,
        latency_first_bucket=87,
        latency_buckets=(10,),
    )
    times = {"start_time_ns": 1, "end_time_ns": 1 + 100 * MS, "host_rate_hz": 100.0}
    profile = builder.build(provenance={**times, "directory": "/home/me", **facts})
    return replace(profile, device_use=(use,))


def on_cpu(kind: str = "_SingleProcessDataLoaderIter", *, input_ms: int = 40) -> Profile:
    """A run of 100 ms of operators, which read input for some of them."""
    builder = ProfileBuilder()

    def add(above: int, name: str, ms: float, count: int = 1) -> int:
        metrics = {"time (ns)": ms * MS, "count": count, HOST_WALL: ms * MS}
        return builder.add(above, name, FrameKind.OP, metrics=metrics, device=CPU)

    row = add(0, f"enumerate(DataLoader)#{kind}.__next__", input_ms / 2)
    add(row, "aten::stack", input_ms / 2, count=10_000)
    add(0, "aten::mm", 100 - input_ms)
    return builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 100 * MS})


def found_in(profile: Profile) -> dict[str, Finding]:
    return {finding.id: finding for finding in find(WholeRun.of(profile))}


def values(finding: Finding) -> dict[str, float | None]:
    return {each.id: each.value for each in finding.evidence}


def test_a_starved_gpu_names_the_place_the_workers_and_what_they_do() -> None:
    found = found_in(on_gpu(WAIT, wait_ms=60, idle_ms=60, data_loaders=(STARVED,)))

    assert found.keys() == {"input-bound"}  # no gap is left for a finding without a cause
    finding = found["input-bound"]
    assert finding.gain_ns == 60 * MS
    assert "train.py:7" in finding.text
    assert values(finding)["host.input"] == pytest.approx(0.6)
    assert values(finding)["loader.workers"] == 2
    assert values(finding)["loader.busy"] == pytest.approx(0.95)
    assert "num_workers" in finding.helps
    assert "pin_memory" in finding.helps


def test_a_wait_beside_a_busy_gpu_costs_nothing() -> None:
    assert found_in(on_gpu(WAIT, wait_ms=60, idle_ms=5)) == {}


@pytest.mark.parametrize(("wait_ms", "is_bound"), [(9, False), (11, True)])
def test_a_loader_that_is_fast_enough_is_no_finding(wait_ms: int, is_bound: bool) -> None:
    found = found_in(on_gpu(WAIT, wait_ms=wait_ms, idle_ms=wait_ms))

    assert ("input-bound" in found) is is_bound


def test_workers_that_keep_up_or_wait_themselves_are_told_apart() -> None:
    def finding(**changed: Any) -> Finding:
        loader = {**STARVED, **changed}
        return found_in(on_gpu(WAIT, wait_ms=60, idle_ms=60, data_loaders=(loader,)))["input-bound"]

    busy, idle, ahead = finding(), finding(worked_ns=20 * MS), finding(queued=190)

    assert len({busy.helps, idle.helps, ahead.helps}) == 3
    assert "loader.busy" not in values(ahead)
    assert values(ahead)["loader.ready"] == pytest.approx(0.95)


def test_a_main_process_that_loads_itself_is_told_to_have_workers() -> None:
    finding = found_in(on_gpu(FETCH, wait_ms=60, idle_ms=60))["input-bound"]

    assert "num_workers=0" in finding.text
    assert finding.helps.startswith("num_workers=N")


def test_input_on_a_processor_is_one_finding_and_the_verdict_of_its_rows() -> None:
    profile = on_cpu()
    found = found_in(profile)

    assert next(iter(found)) == "hottest-operators"  # the product takes longer
    assert found["input-bound"].gain_ns == 40 * MS
    assert "small-operators" not in found  # these are of the input
    assert "aten::mm" in found["hottest-operators"].text
    verdict = Verdicts(profile).of(1)
    assert verdict is not None
    assert verdict.kind == "input-bound"


def test_little_input_on_a_processor_is_no_finding() -> None:
    assert "input-bound" not in found_in(on_cpu(input_ms=8))


@pytest.mark.parametrize(
    ("name", "share", "words"),
    [
        ("loader_main", 0.79, "num_workers=0"),
        ("loader_starved", 0.69, "2 workers cannot keep up"),
    ],
)
def test_recorded_steps_that_wait_for_data_say_so_first(
    name: str, share: float, words: str
) -> None:
    found = find(WholeRun.of(read_profile(DATA / f"{name}.proton")))

    assert found[0].id == "input-bound"
    assert values(found[0])["host.input"] == pytest.approx(share, abs=0.01)
    assert words in found[0].text
    assert "pin_memory" in found[0].helps
    assert "idle" not in [finding.id for finding in found]


def test_recorded_steps_that_compile_say_so_first() -> None:
    found = find(WholeRun.of(read_profile(DATA / "recompile.proton")))

    assert found[0].id == "compile"
    assert values(found[0])["host.compiled"] == pytest.approx(0.93, abs=0.01)


@pytest.mark.parametrize(
    "loaders",
    ["no list", ("no mapping",), ({"place": 3, "workers": "2"},), ({"workers": float("nan")},)],
)
def test_facts_of_a_file_may_be_anything(loaders: Any) -> None:
    found = found_in(on_gpu(WAIT, wait_ms=60, idle_ms=60, data_loaders=loaders))

    assert "input-bound" in found


MEMORY = "/env/lib/python3.12/site-packages/torch/cuda/memory.py"


@pytest.mark.parametrize(
    "path", [("cuMemFree",), (f"{MEMORY}:5@empty_cache",), (f"{MEMORY}:5@empty_cache", "cuMemFree")]
)
def test_memory_that_is_given_back_between_kernels_is_an_allocator_stall(
    path: tuple[str, ...],
) -> None:
    found = found_in(on_gpu(path, wait_ms=30, idle_ms=40))

    assert found["allocator-stalls"].gain_ns == 30 * MS
    assert "train.py:7" in found["allocator-stalls"].text
    assert "sync" not in found


def test_a_recorded_step_that_empties_the_cache_names_the_call_and_its_line() -> None:
    found = found_in(read_profile(DATA / "emptied_cache.proton"))

    stalls = found["allocator-stalls"]
    assert values(stalls)["host.memory_call"] is not None
    assert "cuMemFree" in stalls.text
    assert "emptied.py:6" in stalls.text
    # Without the call a step took 4.31 ms instead of 5.67 ms.
    assert stalls.gain_ns == pytest.approx(1.24 * MS, rel=0.01)
    assert "idle" not in found


def test_one_sample_in_the_allocator_may_be_by_chance() -> None:
    assert "allocator-stalls" not in found_in(on_gpu(("cuMemFree",), wait_ms=19, idle_ms=40))
    assert "allocator-stalls" in found_in(on_gpu(("cuMemFree",), wait_ms=20, idle_ms=40))


def test_memory_taken_beside_a_busy_gpu_costs_nothing() -> None:
    assert "allocator-stalls" not in found_in(on_gpu(("cuMemAlloc",), wait_ms=50, idle_ms=1))


def test_calls_of_a_trace_count_by_their_own_time() -> None:
    builder = ProfileBuilder()
    builder.device(H200)
    builder.add(
        0, "gemm", FrameKind.KERNEL, metrics={"time (ns)": 60 * MS, "count": 10}, device=H200
    )
    metrics = {"time (ns)": 30 * MS, "count": 3}
    builder.add(0, "cudaFree", FrameKind.OP, metrics=metrics, device=CPU)
    use = on_gpu(WAIT, wait_ms=1, idle_ms=40).device_use
    profile = builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 100 * MS})

    found = found_in(replace(profile, device_use=use))

    assert found["allocator-stalls"].gain_ns == 30 * MS


def test_what_runs_in_a_compilation_has_its_verdict_and_no_other_finding() -> None:
    builder = ProfileBuilder()

    def add(above: int, name: str, ms: int) -> int:
        metrics = {"time (ns)": ms * MS, "count": 1, HOST_WALL: ms * MS}
        return builder.add(above, name, FrameKind.OP, metrics=metrics, device=CPU)

    row = add(0, "torch.compile (dynamo_timed)", 30)
    add(row, "aten::addmm", 40)
    add(0, "aten::mm", 30)
    profile = builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 100 * MS})

    found = list(find(WholeRun.of(profile)))

    assert [(each.id, each.gain_ns) for each in found] == [
        ("hottest-operators", 30 * MS),
        ("compile", 70 * MS),
    ]
    verdict = Verdicts(profile).of(row)
    assert verdict is not None
    assert (verdict.kind, verdict.share) == ("compile-bound", 1.0)
