from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.counted import H200, SECOND, Kernel, counted_profile

from proton_bench.analysis.why.answer import MOST_ROWS, Answer, why
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.provenance import Provenance

MODEL = counted_profile(
    Kernel(path="net/mlp/aten::mm/gemm", time_ns=4e6, units={"tensor": 0.9}),
    Kernel(path="net/mlp/aten::mul/mul", time_ns=1e6),
    Kernel(path="net/attn/aten::mm/gemm", time_ns=2e6, units={"dram": 0.8}),
    use=DeviceUse(None, 0, busy_ns=7_000_000, idle_ns=93_000_000, launches=30),
    gpus_at_start=[{"name": "NVIDIA H200"}],
)


def test_whole_run_lists_the_most_expensive_rows_first() -> None:
    found = why(MODEL)

    assert [row.path[-1] for row in found.rows] == ["gemm", "gemm", "mul"]
    assert found.rows[0].place == ("mlp", "gemm")
    assert found.gpu == "NVIDIA H200"
    assert found.span_ns == SECOND
    assert found.work_ns == 7e6
    assert found.idle_ns == SECOND - 7e6


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("mlp", ("net", "mlp")),
        ("MLP", ("net", "mlp")),
        ("gemm", ("net", "mlp", "aten::mm", "gemm")),
        ("attn/gemm", ("net", "attn", "aten::mm", "gemm")),
        ("net › attn › aten::mm", ("net", "attn", "aten::mm")),
        ("net/attn/aten::mm/gemm", ("net", "attn", "aten::mm", "gemm")),
    ],
)
def test_row_is_chosen_by_a_part_of_its_path(path: str, expected: tuple[str, ...]) -> None:
    (row,) = why(MODEL, path).rows

    assert row.path == expected


def test_one_of_equal_layers_is_chosen_by_its_number() -> None:
    kernels = [Kernel(path=f"net/h.{number} (Block)/k", time_ns=5e6) for number in range(3)]
    model = counted_profile(*kernels)

    (layer,) = why(model, "h.1").rows
    (every,) = why(model, "Block").rows

    assert (layer.path, layer.time_ns) == (("net", "h.1 (Block)"), 5e6)
    assert (every.path, every.time_ns) == (("net", "h.* (Block) x3"), 15e6)


@pytest.mark.parametrize("path", ["h.1", "h.1/k", "net/h.1"])
def test_a_layer_comes_before_those_whose_numbers_begin_with_its_number(path: str) -> None:
    kernels = [Kernel(path=f"net/h.{number} (Block)/k", time_ns=number) for number in (1, 10, 11)]

    found = why(counted_profile(*kernels), path)

    assert found.rows[0].path[:2] == ("net", "h.1 (Block)")
    assert [other[1] for other in found.others] == ["h.11 (Block)", "h.10 (Block)"]


@pytest.mark.parametrize("path", ["triton_poi_fused_add_1", "net/Triton_poi_fused_add_1"])
def test_a_kernel_of_inductor_is_found_by_its_recorded_name(path: str) -> None:
    kernels = [Kernel(path=f"net/triton_poi_fused_add_{number}", time_ns=5e6) for number in (0, 1)]

    (row,) = why(counted_profile(*kernels), path).rows

    assert (row.path, row.time_ns) == (("net", "triton_poi_fused_add"), 10e6)


NAMES = counted_profile(
    Kernel(path="step/net/zeros_like/k", time_ns=9e6),
    Kernel(path="step/net/zeros_like/zeros/k", time_ns=2e6),
    Kernel(path="net/zeros/k", time_ns=1e6),
    Kernel(path="Region 0›0/a.b (c)[0]*/k {4}", time_ns=1e5),
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("zeros", ("step", "net", "zeros_like", "zeros")),
        ("net/zeros", ("net", "zeros")),
        ("step › net › zeros", ("step", "net", "zeros_like", "zeros")),
        ("zeros_l", ("step", "net", "zeros_like")),
        ("region › k", ("Region 0›0", "a.b (c)[0]*", "k {4}")),
        ("Region 0›0 › k {4}", ("Region 0›0", "a.b (c)[0]*", "k {4}")),
        ("a.b (c)[0]*", ("Region 0›0", "a.b (c)[0]*")),
    ],
)
def test_a_whole_name_comes_before_those_that_have_it_in_them(
    path: str, expected: tuple[str, ...]
) -> None:
    assert why(NAMES, path).rows[0].path == expected


def test_every_row_is_chosen_by_its_path() -> None:
    for path in (row.path for row in why(NAMES).rows):
        for length in range(1, len(path) + 1):
            (row,) = why(NAMES, " › ".join(path[:length])).rows
            assert row.path == path[:length]


@pytest.mark.parametrize("path", ["nothing", "", "/", "attn/mul", "gemm/attn"])
def test_path_that_no_row_has_is_wrong_usage(path: str) -> None:
    with pytest.raises(UsageError):
        why(MODEL, path)


def test_other_rows_with_the_name_are_named() -> None:
    assert why(MODEL, "gemm").others == (("net", "attn", "aten::mm", "gemm"),)


def test_rows_of_one_name_are_told_apart() -> None:
    kernels = [Kernel(path=path, time_ns=time) for path, time in (("a/x/k", 9.0), ("b/x/k", 8.0))]
    rows = why(counted_profile(*kernels, Kernel(path="b/y/k", time_ns=7.0))).rows

    assert [row.place for row in rows] == [("a", "x", "k"), ("b", "x", "k"), ("y", "k")]


def test_row_above_counts_the_launches_below() -> None:
    (row,) = why(MODEL, "mlp").rows

    assert row.launches == 20
    assert row.time_ns == 5e6
    assert row.verdict.kind == "compute:tensor"


def test_calls_of_an_operator_are_not_those_of_operators_below() -> None:
    builder, device = ProfileBuilder(), Device("CPU", 0)
    above = builder.add(0, "net", FrameKind.LAYER)
    for name in ("aten::add", "aten::to"):
        metrics = {"time (ns)": 1e6, "count": 20}
        above = builder.add(above, name, FrameKind.OP, metrics=metrics, device=device)
    profile = builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 200_000_000})

    counts = [why(profile, name).rows[0].launches for name in ("add", "to", "net")]

    assert counts == [20, 20, 40]
    assert why(profile).sentence.endswith("and scopes, 1 % of the run")


def test_what_was_not_recorded_is_said() -> None:
    without = counted_profile(Kernel(path="k"))
    on_cpu = counted_profile(Kernel(path="k", device=Device("CPU", 0)))

    assert len(why(without).missing) == 3
    assert len(why(MODEL).missing) == 3  # counters are there, what this GPU reaches is not
    assert why(on_cpu).missing == ()


def test_ceilings_that_were_measured_are_not_missing() -> None:
    kernel = Kernel(path="k", units={"dram": 0.8})
    usual = counted_profile(kernel, ceilings={"dram": 0.84}, ceilings_measured=[])
    measured = counted_profile(kernel, ceilings={"dram": 0.9}, ceilings_measured=["dram"])

    assert len(why(usual).missing) == len(why(measured).missing) + 1


def test_counters_that_a_run_asked_for_in_vain_are_not_asked_for_again() -> None:
    cut = why(counted_profile(Kernel(path="k"), mode="counters:metrics=memory"))
    without = why(counted_profile(Kernel(path="k"), mode=""))

    assert len(cut.missing) == len(without.missing)
    assert "-m counters" in without.missing[0]
    assert "-m counters" not in cut.missing[0]


def test_device_with_work_is_not_all_idle() -> None:
    use = DeviceUse(None, 0, busy_ns=1_000_000, idle_ns=999_000_000, launches=10)

    assert "100 %" not in why(counted_profile(Kernel(path="k"), use=use)).sentence


def test_empty_profile_has_an_answer() -> None:
    found = why(ProfileBuilder().build())

    assert found.rows == ()
    assert found.findings == ()
    assert found.sentence


@pytest.mark.parametrize(
    ("use", "facts", "expected"),
    [
        (DeviceUse(None, 0, busy_ns=SECOND), {}, "GPU idle 0 % of the run"),
        (
            DeviceUse(None, 0, busy_ns=200_000_000, idle_ns=300_000_000),
            {"estimated_cost_ns": 100_000_000},
            "GPU idle 80 % of the run: 50 % before or after its work, 20 % between kernels, "
            "10 % because it was recorded",
        ),
    ],
)
def test_parts_of_idle_time_add_up(use: DeviceUse, facts: dict[str, int], expected: str) -> None:
    assert why(counted_profile(Kernel(path="k"), use=use, **facts)).sentence == expected


def sampled(*, gpu: bool) -> Answer:
    """A run with samples of the host: 0.3 s in an import of its own, 0.4 s in a library."""
    builder = ProfileBuilder()
    device = H200 if gpu else Device("CPU", 0)
    metrics = {"time (ns)": 1e8 if gpu else 3e8, "count": 1, "host_wall (ns)": 3e8}
    builder.add(0, "k", FrameKind.KERNEL if gpu else FrameKind.OP, metrics=metrics, device=device)
    top = builder.add(0, "<not recorded>", FrameKind.SCOPE)
    library = "/usr/lib/python3/site-packages/lib/a.py:5@<module>"
    lines = (["/home/me/train.py:3@<module>", library, "<string>:2@__init__"], [library])
    for names, spent_ns in zip(lines, (3e8, 4e8), strict=True):
        above = top
        for name in names:
            above = builder.add(above, name, FrameKind.PYTHON)
        builder.set(above, "host_wall (ns)", spent_ns)
        if gpu:
            builder.set(above, "idle (ns)", spent_ns)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + SECOND, "directory": "/home/me"}
    use = DeviceUse(None, 0, busy_ns=100_000_000, idle_ns=600_000_000)
    return why(replace(builder.build(provenance=facts), device_use=(use,) if gpu else ()))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"start_time_ns": 1, "end_time_ns": 1 + SECOND}, "GPU idle 90 % of the run"),
        ({}, "GPU work of 100 ms, idle for 900 ms"),
    ],
)
def test_samples_tell_idle_time_without_use_of_the_device(
    facts: dict[str, int], expected: str
) -> None:
    builder = ProfileBuilder()
    metrics = {"time (ns)": 1e8, "count": 1}
    builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=H200)
    waits = {"host_wall (ns)": 9e8, "idle (ns)": 9e8}
    builder.add(0, "<not recorded>", FrameKind.SCOPE, metrics=waits)

    found = why(builder.build(provenance=facts))

    assert (found.sentence, found.findings, found.host) == (expected, (), ())


def test_samples_of_a_run_of_unknown_length_are_not_those_of_its_devices() -> None:
    use = DeviceUse(None, 0, busy_ns=60_000_000, idle_ns=40_000_000)
    kernel = Kernel(path="k", metrics={"host_wall (ns)": 9e8, "idle (ns)": 9e8})
    cut = replace(counted_profile(kernel, use=use), provenance=Provenance())

    assert why(cut).sentence == "GPU idle 40 % of the run"


def test_where_the_host_was_is_told_of_the_whole_run() -> None:
    on_gpu, on_cpu = sampled(gpu=True), sampled(gpu=False)

    lines = ["40 % in lib/a.py:5", "30 % in imports"]
    assert [each.text for each in on_gpu.host] == lines
    assert [each.text for each in on_cpu.host] == ["70 % of the run", *lines]
    assert not any("train.py" in finding.text for finding in on_gpu.findings)


def test_many_rows_are_counted_not_listed() -> None:
    profile = counted_profile(*(Kernel(path=f"k{number}") for number in range(MOST_ROWS + 7)))

    found = why(profile)

    assert len(found.rows) == MOST_ROWS
    assert found.smaller == 7


def test_findings_can_be_added_up() -> None:
    found = why(MODEL)

    assert 0 < found.together_ns <= found.span_ns


@pytest.mark.parametrize(
    ("device", "expected"),
    [(H200, "GPU"), (Device("HIP", 0, "gfx942"), "GPU"), (Device("CPU", 0), "CPU"), (None, "")],
)
def test_kind_of_device_is_told(device: Device | None, expected: str) -> None:
    assert why(counted_profile(Kernel(path="k", device=device))).device == expected


def test_time_of_operators_on_the_cpu_is_no_gpu_time() -> None:
    on_cpu = Kernel(path="net/aten::mm", time_ns=8e6, kind=FrameKind.OP, device=Device("CPU", 0))
    kernel = Kernel(path="net/aten::mm/gemm", time_ns=2e6, units={"tensor": 0.9})

    found, row = why(counted_profile(on_cpu, kernel)), why(counted_profile(on_cpu, kernel), "mm")

    assert (found.device, found.work_ns) == ("GPU", 2e6)
    assert [each.path[-1] for each in found.rows] == ["gemm"]
    assert not any("operators" in each for each in found.missing)
    assert (row.rows[0].time_ns, row.rows[0].launches) == (2e6, 10)
    assert row.rows[0].verdict.kind == "compute:tensor"
