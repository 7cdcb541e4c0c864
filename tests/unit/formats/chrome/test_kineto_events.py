"""Traces of torch.profiler: kernels stand below the operators that launched them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.kineto import GPU, call, host, kernel, trace

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import decode_profile, read_profile
from proton_bench.formats.timeline.launched_work import AMBIGUOUS, UNMATCHED
from proton_bench.formats.timeline.nesting import CUT
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

DATA = Path(__file__).parents[3] / "data" / "kineto"
STEP = (
    host("user_annotation", "step", 0, 100),
    host("python_function", "model.py(12): forward", 5, 90),
    host("cpu_op", "aten::linear", 10, 50),
    host("cpu_op", "aten::addmm", 20, 30),
)


def decode(*events: dict[str, Any], gpus: Any = (GPU,)) -> Profile:
    return decode_profile(trace(events, gpus), "x.json")


def paths(profile: Profile) -> set[str]:
    return {" > ".join(profile.path(row)) for row in range(1, len(profile))}


def row_of(profile: Profile, name: str) -> int:
    return next(row for row in range(len(profile)) if profile.name(row) == name)


def test_a_kernel_stands_below_the_operators_that_hold_its_launch() -> None:
    profile = decode(kernel(1, 400, 12.5), call(1, 25), *STEP, call(2, 55), kernel(2, 420, 1, "k2"))

    above = "step > model.py:12@forward > aten::linear"
    assert {f"{above} > aten::addmm > gemm", f"{above} > k2"} <= paths(profile)
    assert profile.inclusive("time (ns)")[0] == 13_500
    assert profile.dropped == {}


def test_rows_carry_kinds_devices_variants_and_wall_time() -> None:
    profile = decode(*STEP, call(1, 25), kernel(1, 400, 12.5))
    row = row_of(profile, "gemm")

    assert profile.kind(row) is FrameKind.KERNEL
    assert profile.device(row) == Device("CUDA", 0, arch="90", num_sms=132)
    assert profile.variant(row) == Variant(
        grid=(64, 1, 1), block=(128, 1, 1), shared_bytes=1024, registers=32
    )
    assert [profile.kind(r) for r in range(1, row)] == [
        *(FrameKind.SCOPE, FrameKind.PYTHON, FrameKind.OP, FrameKind.OP)
    ]
    assert profile.column("wall (ns)").get(row_of(profile, "aten::linear")) == 50_000


def test_provenance_holds_tool_versions_devices_host_and_rank() -> None:
    facts = decode(*STEP).provenance.to_plain()

    assert facts["tool"] == "torch.profiler"
    assert facts["device_names"] == {"CUDA:0": "NVIDIA H200"}
    assert (facts["host"], facts["rank"], facts["cuda_runtime"]) == ("node1", 3, 12080)
    assert facts["base_time_ns"] == 1759341000000000000


def test_hip_is_recognised_by_the_names_of_its_calls() -> None:
    profile = decode(call(1, 5, "hipLaunchKernel"), kernel(1, 400, 1))

    assert profile.devices == (Device("HIP", 0, num_sms=132),)


def test_copies_and_sets_are_copies() -> None:
    copy = {**kernel(1, 400, 2, "Memcpy HtoD (Pinned -> Device)"), "cat": "gpu_memcpy"}
    copy["args"] = {"device": 0, "stream": 7, "correlation": 1, "bytes": 64}

    profile = decode(*STEP, call(1, 25, "cudaMemcpyAsync"), copy)

    assert profile.kind(row_of(profile, copy["name"])) is FrameKind.COPY


def test_kernels_of_a_graph_stand_at_its_launch() -> None:
    profile = decode(
        *STEP, call(9, 25, "cudaGraphLaunch"), kernel(9, 400, 1, "a"), kernel(9, 410, 1, "b")
    )

    assert {"a", "b"} == {
        profile.name(row) for row in profile.children(row_of(profile, "aten::addmm"))
    }


@pytest.mark.parametrize("category", ["cuda_runtime", "cuda_driver", "hip_runtime"])
def test_calls_of_every_api_launch(category: str) -> None:
    profile = decode(*STEP, {**call(1, 25), "cat": category}, kernel(1, 400, 1))

    assert profile.dropped == {}
    assert len(profile.path(row_of(profile, "gemm"))) == 5


def test_without_a_correlation_id_work_stands_below_the_operator_with_its_external_id() -> None:
    for word in ("External id", "external id"):
        events = [
            {**host("cpu_op", name, ts, 10), "args": {word: number}}
            for number, (name, ts) in enumerate((("aten::mm", 0), ("aten::add", 20)), 5)
        ]
        lost = kernel(0, 400, 1)
        lost["args"] = {"device": 0, word: 6}

        profile = decode(*events, lost)

        assert profile.path(row_of(profile, "gemm")) == ("aten::add", "gemm")
        assert profile.dropped == {}
        assert "launch_latency_count" not in profile.columns


@pytest.mark.parametrize("external", [7, "6", None, -1, 2**70])
def test_an_external_id_that_no_operator_or_several_have_places_nothing(external: Any) -> None:
    events = [host("cpu_op", name, ts, 10) for name, ts in (("a", 0), ("b", 20))]
    events = [{**each, "args": {"External id": 7}} for each in events]
    lost = {**kernel(0, 400, 1), "args": {"device": 0, "External id": external}}

    profile = decode(*events, lost)

    assert profile.path(row_of(profile, "gemm")) == ("gemm",)
    assert profile.dropped == {UNMATCHED: 1}


def test_a_correlation_id_counts_more_than_an_external_id() -> None:
    named = {**host("cpu_op", "other", 60, 10), "args": {"External id": 9}}

    profile = decode(*STEP, named, call(1, 25), kernel(1, 400, 1, **{"External id": 9}))

    assert profile.path(row_of(profile, "gemm"))[-2] == "aten::addmm"


def test_bytes_of_copies_and_sets_are_summed() -> None:
    copies = []
    for number, size in ((1, 64), (2, 100), (3, None)):
        copy = {**kernel(number, 400, 2, "Memcpy HtoD"), "cat": "gpu_memcpy"}
        copy["args"] = {"device": 0, "correlation": number, "bytes": size}
        copies += [call(number, 5), copy]

    profile = decode(*copies, call(4, 6), kernel(4, 500, 1, bytes=99))

    assert profile.column("bytes").get(row_of(profile, "Memcpy HtoD")) == 164
    assert profile.column("bytes").get(row_of(profile, "gemm")) is None
    assert profile.column("count").get(row_of(profile, "Memcpy HtoD")) == 3


def test_how_busy_devices_were_is_known_as_a_whole_and_by_top_level_scope() -> None:
    other = host("user_annotation", "eval", 200, 50)
    waits = kernel(3, 330, 20, "ncclDevKernel_AllReduce")
    events = [
        call(1, 25),
        kernel(1, 300, 10),
        call(2, 210),
        kernel(2, 320, 10),
        call(3, 220),
        waits,
    ]

    profile = decode(*STEP, other, *events)

    whole, step, evaluation = profile.device_use
    assert (whole.scope, whole.busy_ns, whole.idle_ns) == (None, 40_000, 285_000)
    assert (whole.waiting_ns, whole.launches) == (20_000, 3)
    assert (step.scope, step.busy_ns, step.idle_ns) == ("step", 10_000, 275_000)
    assert (evaluation.scope, evaluation.idle_ns) == ("eval", 10_000)
    assert profile.column("waiting_kernel").get(row_of(profile, "ncclDevKernel_AllReduce")) == 1


def test_work_without_launch_or_with_several_is_counted_and_kept() -> None:
    profile = decode(*STEP, kernel(1, 400, 1), call(2, 5), call(2, 25), kernel(2, 410, 1))

    assert profile.dropped == {UNMATCHED: 1, AMBIGUOUS: 1}
    assert profile.path(row_of(profile, "gemm")) == ("gemm",)
    assert profile.inclusive("count")[0] == 2


def test_threads_are_kept_apart() -> None:
    profile = decode(*STEP, {**call(1, 25), "tid": 8}, kernel(1, 400, 1))

    assert profile.path(row_of(profile, "gemm")) == ("gemm",)
    assert profile.dropped == {}


def test_what_is_not_understood_is_counted() -> None:
    unknown = [host(f"new{index}", "x", 0, 1) for index in range(40)]
    lost = {key: value for key, value in STEP[0].items() if key != "dur"}

    profile = decode(*unknown, lost, host("cpu_op", "x", 0, -5), {"ph": "B", "name": "b"})

    assert sum(profile.dropped.values()) == 43
    assert len(profile.dropped) < 30
    assert "slice of the unknown category 'new0': left out" in profile.dropped


def test_what_repeats_other_events_is_left_out_without_a_word() -> None:
    again = [host(cat, "x", 0, 1) for cat in ("gpu_user_annotation", "overhead", "Trace")]

    profile = decode(*again, {"ph": "f", "cat": "ac2g", "id": 1}, {"ph": "M", "pid": ""})

    assert len(profile) == 1
    assert profile.dropped == {}


def test_a_trace_that_torch_wrote_nests_functions_scopes_and_operators() -> None:
    profile = read_profile(DATA / "kineto-stack.json")

    path = profile.path(row_of(profile, "aten::mm"))
    scope = path.index("forward")
    assert path[scope - 1].endswith("@step")
    assert path[scope + 1].endswith("@inner")
    assert path[scope + 2 :] == (
        *("<built-in function linear>", "aten::linear", "aten::matmul", "aten::mm"),
    )
    assert profile.dropped == {}


def test_a_trace_that_torch_compressed_is_the_one_it_packed() -> None:
    path = DATA / "kineto-ops.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    external = sum(
        round(e["dur"] * 1000) for e in events if e.get("cat") in {"cpu_op", "user_annotation"}
    )

    profile = read_profile(path)

    assert profile.column("wall (ns)").values.sum() == external
    assert profile.kind(row_of(profile, "aten::linear")) is FrameKind.OP


@pytest.mark.parametrize("name", ["x.json", "x.json.gz", "x.dat", "x.proton", "x.hatchet"])
def test_content_decides_the_format_whatever_the_suffix(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    content = trace(STEP)
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    assert read_profile(path).provenance["tool"] == "torch.profiler"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (kernel("1", 0, 1), "correlation"),
        (kernel(1, 0, 1, device=[]), "device"),
        (kernel(1, 0, 1, grid=[1, 2]), "grid"),
        (kernel(1, 0, 1, block=[1, 2, "3"]), "block"),
        ({**call(1, 0), "ts": None, "name": 3}, "Expected `str`"),
        ({**call(1, 0), "pid": 1.5}, "Expected"),
    ],
)
def test_values_of_wrong_types_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileFormatError, match=message):
        decode(*STEP, event)


@pytest.mark.parametrize("gpus", [[{"id": "x"}], [3]])
def test_devices_of_wrong_types_are_refused(gpus: Any) -> None:
    with pytest.raises(ProfileFormatError, match="deviceProperties"):
        decode(*STEP, gpus=gpus)


def python(name: str, start: float, dur: float, caller: int | None = None) -> dict[str, Any]:
    """Return a Python call; the caller is an id that the trace gives, None for none."""
    event = host("python_function", name, start, dur)
    return {**event, "args": {} if caller is None else {"Python parent id": caller}}


LOOP = (
    python("t.py(1): loop", 0, 8000),
    python("t.py(2): read", 50, 600, 1),
    python("t.py(3): train", 1500, 1200, 1),
    host("cpu_op", "aten::bmm", 1600, 200),
    call(4, 1650),
    kernel(4, 1900, 70),
)
ABOVE = "t.py:1@loop > t.py:2@read"


@pytest.mark.parametrize("caller", [7, None])
@pytest.mark.parametrize("length", [7800, 7600, 90_000])
def test_a_python_call_that_never_ended_ends_with_its_caller(
    length: int, caller: int | None
) -> None:
    profile = decode(*LOOP, python("<built-in next>", 150, length, caller))

    assert {f"{ABOVE} > <built-in next>", "t.py:1@loop > t.py:3@train > aten::bmm > gemm"} <= paths(
        profile
    )
    assert profile.column("wall (ns)").get(row_of(profile, "<built-in next>")) == 500_000
    assert profile.dropped == {CUT: 1}


@pytest.mark.parametrize("ends", [(9000, 9000), (90_000, 9000), (9000, 90_000), (230, 41)])
def test_a_python_call_that_starts_with_its_caller_is_the_inner_one(ends: tuple[int, int]) -> None:
    chain = [("t.py(4): a", 200), *zip(("t.py(5): b", "t.py(6): c"), ends, strict=True)]
    calls = [python(name, 50, dur, number or None) for number, (name, dur) in enumerate(chain)]
    for number, event in enumerate(calls, 1):
        event["args"]["Python id"] = number

    profile = decode(python("t.py(1): loop", 0, 8000), *calls, host("cpu_op", "op", 90, 1))

    walls = profile.column("wall (ns)")
    path = ("t.py:1@loop", "t.py:4@a", "t.py:5@b", "t.py:6@c")
    assert profile.path(row_of(profile, "t.py:6@c")) == path
    assert walls.get(row_of(profile, "t.py:5@b")) == 1000 * min(200, ends[0])
    assert walls.get(row_of(profile, "t.py:6@c")) == 1000 * min(200, *ends)


def test_a_python_call_has_ended_when_its_caller_calls_another() -> None:
    profile = decode(*LOOP, python("<built-in next>", 700, 7000, 1))

    assert "t.py:1@loop > t.py:3@train > aten::bmm > gemm" in paths(profile)
    assert profile.column("wall (ns)").get(row_of(profile, "<built-in next>")) == 800_000
    assert profile.dropped == {CUT: 1}


def test_annotations_and_calls_that_end_late_by_little_are_as_long_as_they_were() -> None:
    profile = decode(
        *LOOP,
        host("user_annotation", "epoch", 600, 5000),
        python("t.py(9): leaf", 500, 170),
        python("t.py(8): log", 660, 400),
    )

    walls = profile.column("wall (ns)")
    assert "t.py:1@loop > epoch > t.py:3@train > aten::bmm > gemm" in paths(profile)
    assert walls.get(row_of(profile, "epoch")) == 5_000_000
    assert walls.get(row_of(profile, "t.py:9@leaf")) == 170_000
    assert walls.get(row_of(profile, "t.py:8@log")) == 400_000
    assert profile.dropped == {}


WRAPPED = 7_523_372_036_854_775.8  # microseconds: 2^63 ns less the time of the start


@pytest.mark.parametrize("dur", [WRAPPED, 2**63 / 1000, -(2**63) / 1000, 1e300, -2, 2**70])
def test_an_operator_with_an_impossible_length_is_left_out_and_counted(dur: float) -> None:
    profile = decode(*STEP, host("cpu_op", "open", 60, dur), call(3, 25), kernel(3, 70, 2))

    assert profile.dropped == {"range with impossible times: left out": 1}
    assert profile.inclusive("time (ns)")[0] == 2000
    assert "open" not in {profile.name(row) for row in range(len(profile))}


@pytest.mark.parametrize("ts", [2**63 / 1000, -1e300, 9.3e15])
def test_impossible_starts_are_left_out_and_counted(ts: float) -> None:
    profile = decode(
        *STEP, host("cpu_op", "open", ts, 4), call(3, 25), kernel(3, ts, 2), call(5, ts)
    )

    assert sum(profile.dropped.values()) == 3
    assert paths(profile) == paths(decode(*STEP))


@pytest.mark.parametrize("base", ["1690000123456789", "1690000123456789.125"])
def test_times_are_exact_to_a_nanosecond(base: str) -> None:
    """Files of earlier versions of torch hold unix times; a float of those is off by 250 ns."""
    whole, _, part = base.partition(".")
    ends = f"{int(whole) + 3}.{part or '0'}"
    op = f'{{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":{base},"dur":10.001}}'
    inner = f'{{"ph":"X","cat":"cpu_op","name":"in","pid":1,"tid":1,"ts":{ends},"dur":7.001}}'

    profile = decode_profile(f'{{"traceEvents":[{op},{inner}]}}'.encode(), "old.json")

    assert profile.column("time (ns)").to_list() == [None, 3000, 7001]


def test_a_list_of_an_old_torch_is_read() -> None:
    cpu = {"ph": "X", "tid": 3, "pid": "CPU functions", "args": {}}
    events = [
        {**cpu, "name": "add", "ts": 12.5, "dur": 30.25},
        {**cpu, "name": "mul", "ts": 15.5, "dur": 10.0},
        {"ph": "s", "name": "mul", "ts": 15.5, "tid": 3, "pid": "CPU functions", "cat": "x"},
        {**cpu, "name": "mulk", "pid": "CUDA functions", "ts": 20.5, "dur": 3.5},
    ]

    profile = decode_profile(json.dumps(events).encode(), "old.json")

    assert paths(profile) == {"add", "add > mul", "mulk"}
    assert profile.inclusive("time (ns)")[0] == 3500


def test_a_file_of_events_without_durations_says_how_many_it_holds() -> None:
    profile = decode({"ph": "i", "name": "mark", "ts": 4}, {"ph": "C", "name": "memory", "ts": 5})

    assert profile.dropped == {"event without a duration: left out": 2}


def test_a_file_of_another_tool_is_refused_with_what_it_holds() -> None:
    event = {"ph": "X", "cat": "gpu work", "name": "a", "ts": 4, "dur": 2}

    with pytest.raises(ProfileFormatError, match="categories 'gpu work'"):
        decode_profile(json.dumps([event]).encode(), "x.json")


def test_metadata_that_repeats_itself_in_a_compressed_file_costs_nothing() -> None:
    named = [
        {"ph": "M", "name": n, "pid": 5, "args": {}} for n in ("thread_name", "thread_sort_index")
    ]
    content = gzip.compress(trace((*STEP, *named * 60_000)), mtime=0)

    profile = decode_profile(content, "x.json.gz")

    assert len(content) < 1 << 16
    assert paths(profile) == paths(decode(*STEP))
