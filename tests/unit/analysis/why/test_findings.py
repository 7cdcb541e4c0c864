from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes.counted import H200, SECOND, Kernel, counted_profile
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.why.findings import FINDINGS, find
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Finding
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile

MS = 1_000_000
SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "cutlass_80_tensorop_s1688gemm_128x128_nn_align4"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)"
STEP = "Optimizer.step#AdamW.step"
FOREACH = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
    "<at::native::TensorListMetadata<1>, {}<float>>()"
)


def used(
    busy_ms: float, idle_ms: float, launches: int = 10, *, long_ms: float = 0, **more: Any
) -> DeviceUse:
    """Return a device whose kernels started 8 us after their launch."""
    return DeviceUse(
        None,
        0,
        busy_ns=int(busy_ms * MS),
        idle_ns=int(idle_ms * MS),
        long_idle_ns=int(long_ms * MS),
        launches=launches,
        latency_sum_ns=launches * 8000,
        latency_min_ns=8000,
        latency_max_ns=8000,
        latency_first_bucket=87,
        latency_buckets=(launches,),
        **more,
    )


def found_in(profile: Profile) -> dict[str, Finding]:
    return {finding.id: finding for finding in find(WholeRun.of(profile))}


def test_time_before_and_after_the_work_is_told_from_gaps() -> None:
    profile = counted_profile(
        Kernel(path="k", time_ns=100.0 * MS, count=10), use=used(100, 300), run_ns=SECOND
    )

    found = found_in(profile)

    assert found.keys() == {"no-work", "idle"}
    assert found["no-work"].gain_ns == 600 * MS
    assert found["idle"].gain_ns == 300 * MS


def test_busy_device_has_no_finding() -> None:
    profile = counted_profile(
        Kernel(path="k", time_ns=950.0 * MS, count=10), use=used(950, 40), run_ns=SECOND
    )

    assert found_in(profile) == {}


@pytest.mark.parametrize(("count", "expected"), [(999, "idle"), (1001, "launches")])
def test_small_kernels_are_those_below_ten_microseconds(count: int, expected: str) -> None:
    profile = counted_profile(
        Kernel(path="k", time_ns=10.0 * MS, count=count), use=used(10, 990, count), run_ns=SECOND
    )

    found = found_in(profile)

    assert found.keys() == {expected}
    assert found[expected].gain_ns == 990 * MS


def test_late_launches_explain_no_long_gaps() -> None:
    kernel = Kernel(path="k", time_ns=10.0 * MS, count=2000)

    def gains(long_ms: float) -> dict[str, float]:
        use = used(10, 990, 2000, long_ms=long_ms)
        found = find(WholeRun.of(counted_profile(kernel, use=use, run_ns=SECOND)))
        return {each.id: each.gain_ns for each in found}

    assert gains(0) == {"launches": 990 * MS}
    assert gains(90) == {"launches": 900 * MS}
    assert gains(190) == {"launches": 800 * MS, "idle": 190 * MS}
    assert gains(980) == {"idle": 990 * MS}


def test_launches_come_at_the_pace_between_long_gaps() -> None:
    kernel = Kernel(path="k", time_ns=100.0 * MS, count=20_000)
    use = used(100, 900, 20_000, long_ms=500)

    text = found_in(counted_profile(kernel, use=use, run_ns=SECOND))["launches"].text

    assert "one every 25 us" in text


@pytest.mark.parametrize(("kernels", "expected"), [(250, "idle"), (2, "launches")])
def test_kernels_of_a_graph_are_one_launch(kernels: int, expected: str) -> None:
    names = [f"step/<captured_at>/{name}" for name in (MUL, ADD)]
    rows = [Kernel(path=name, time_ns=50 * kernels * 4e3, count=50 * kernels) for name in names]
    busy_ms = kernels * 0.4
    profile = counted_profile(*rows, use=used(busy_ms, 900, 100), run_ns=2 * SECOND)

    found = found_in(profile)

    assert found.keys() == {"no-work", expected, "unfused-elementwise"}
    assert found["unfused-elementwise"].gain_ns < busy_ms * MS  # no launches are spared
    kinds = {verdict.kind for row in range(1, 5) if (verdict := Verdicts(profile).own(row))}
    assert kinds == {"unknown"}


def test_small_kernels_are_told_by_their_share_not_by_the_mean() -> None:
    profile = counted_profile(
        Kernel(path="small", time_ns=2.0 * MS, count=1000),
        Kernel(path="large", time_ns=498.0 * MS, count=200),
        use=used(500, 500, 1200),
        run_ns=SECOND,
    )

    text = found_in(profile)["launches"].text

    assert "83 % of them below 10 us" in text
    assert "420 us" not in text


def waiting(**metrics: float) -> Profile:
    """Return a run of small kernels with fifty calls that copy to the host."""
    call = Kernel(
        path="aten::nonzero/aten::copy_",
        time_ns=0.0,
        count=50,
        kind=FrameKind.OP,
        device=None,
        metrics=metrics,
    )
    kernel = Kernel(path="k", time_ns=10.0 * MS, count=2000)
    return counted_profile(kernel, call, use=used(10, 990, 2000), host_rate_hz=1000.0)


def test_calls_that_wait_claim_as_much_as_they_were_sampled() -> None:
    found = found_in(waiting(**{"host_wall (ns)": 400.0 * MS}))

    assert found["sync"].own_ns == 400 * MS + 2 * (400 * MS * MS) ** 0.5
    assert found["launches"].own_ns == pytest.approx(990 * MS - found["sync"].own_ns)
    assert found["sync"].evidence[0].value == 50


def test_calls_that_wait_claim_nothing_without_samples_or_times() -> None:
    found = found_in(waiting())

    assert "sync" not in found
    assert found["launches"].own_ns == 990 * MS


@pytest.mark.parametrize("metric", ["wall (ns)", "time (ns)"])
def test_calls_that_wait_claim_their_own_time(metric: str) -> None:
    builder = ProfileBuilder()
    kernel = builder.add(0, "k", FrameKind.KERNEL, device=H200)
    builder.set(kernel, "time (ns)", 10 * MS)
    builder.set(kernel, "count", 2000)
    call = builder.add(0, "cudaStreamSynchronize", FrameKind.OP, device=Device("CPU", 0))
    builder.set(call, "count", 3)
    builder.set(call, metric, 70 * MS)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + SECOND}
    profile = replace(builder.build(provenance=facts), device_use=(used(10, 900, 2000),))

    assert found_in(profile)["sync"].gain_ns == 70 * MS


COMPILERS = {
    "dynamo": "/opt/lib/python3.12/site-packages/torch/_dynamo/symbolic_convert.py:900@step",
    "Inductor": "/opt/lib/python3.12/site-packages/torch/_inductor/graph.py:70@compile_to_module",
    "Triton": "/opt/lib/python3.12/site-packages/triton/compiler/compiler.py:320@compile",
    "autotuning": "/opt/lib/python3.12/site-packages/triton/testing.py:120@do_bench",
}
COMPILED = "/opt/lib/python3.12/site-packages/torch/_dynamo/eval_frame.py:700@compile_wrapper"
LAUNCHED = "/opt/lib/python3.12/site-packages/triton/runtime/jit.py:650@run"


@pytest.mark.parametrize("stage", COMPILERS)
def test_compilation_is_named_with_its_time_and_comes_last(stage: str) -> None:
    profile = sampled(
        (["/home/me/train.py:8@main", COMPILED, COMPILERS[stage]], 450 * MS),
        (["/home/me/train.py:9@main"], 120 * MS),
        use=used(100, 600, long_ms=590),
    )

    found = list(find(WholeRun.of(profile)))

    compiled = next(each for each in found if each.id == "compile")
    assert compiled.gain_ns == 450 * MS
    assert f"{stage} 450 ms" in compiled.text
    assert (found[0].id, found[0].gain_ns) == ("idle", 150 * MS)  # 600 ms without 450 ms
    assert {each.id for each in found[1:]} == {"compile", "no-work"}


@pytest.mark.parametrize(("spent_ms", "first"), [(99, "idle"), (101, "compile")])
def test_steps_that_compile_again_have_it_in_each(spent_ms: int, first: str) -> None:
    steps = {"by": "declared", "name": "step", "low_ns": 0, "median_ns": 0, "high_ns": 0}
    steps |= {"first": 9, "count": 8, "begun": 30, "before_ns": 0, "run_ns": 9 * SECOND}
    profile = sampled(
        (["/home/me/train.py:8@main", COMPILED, COMPILERS["Inductor"]], spent_ms * MS),
        (["/home/me/train.py:9@main"], 60 * MS),
        use=used(840, spent_ms + 60),
        steps=steps,
    )
    found = list(find(WholeRun.of(profile)))

    helps = {finding.id: finding.helps for finding in found}
    assert found[0].id == first
    assert ("recompiles" in helps["compile"]) is (first == "compile")


@pytest.mark.parametrize(("spent_ms", "is_bound"), [(499, False), (501, True)])
def test_a_run_that_mostly_compiles_is_bound_by_it(spent_ms: int, is_bound: bool) -> None:
    line = ["/home/me/train.py:8@main", COMPILED, COMPILERS["Triton"]]
    profile = sampled((line, spent_ms * MS), use=used(100, 600))

    compiled = found_in(profile)["compile"]

    assert (compiled.evidence[0].id == "host.compiled") is is_bound


PACKAGES = "/opt/lib/python3.12/site-packages"
CALLED = [
    COMPILED,
    LAUNCHED,
    f"{PACKAGES}/triton/backends/nvidia/driver.py:713@__call__",
    f"{PACKAGES}/triton/compiler/compiler.py:490@launch_metadata",
    f"{PACKAGES}/torch/_inductor/runtime/triton_heuristics.py:1300@run",
    f"{PACKAGES}/torch/_inductor/output_code.py:600@__call__",
    f"{PACKAGES}/torch/_dynamo/convert_frame.py:1@<module>",
    "/home/me/torch_tools/compiler.py:3@compile",
]


@pytest.mark.parametrize("frame", CALLED)
def test_calls_of_compiled_code_are_no_compilation(frame: str) -> None:
    line = (["/home/me/train.py:8@main", frame], 450 * MS)

    assert "compile" not in found_in(sampled(line, use=used(100, 600)))


def test_ranges_of_torch_and_trials_are_compilation() -> None:
    builder = ProfileBuilder()
    step = builder.add(0, "compile_fx_inner (dynamo_timed)", FrameKind.OP)
    builder.set(step, "wall (ns)", 300 * MS)
    inner = builder.add(step, "Scheduler.codegen (dynamo_timed)", FrameKind.OP)
    builder.set(inner, "wall (ns)", 200 * MS)
    trials = builder.add(0, "<autotune>", FrameKind.STATE)
    for above, time_ns in ((trials, 50 * MS), (0, 400 * MS)):
        metrics = {"time (ns)": time_ns, "count": 10}
        builder.add(above, "k", FrameKind.KERNEL, metrics=metrics, device=H200)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + SECOND}
    profile = replace(builder.build(provenance=facts), device_use=(used(450, 500),))

    found = found_in(profile)["compile"]

    assert found.gain_ns == 300 * MS
    assert [(each.id, each.value) for each in found.evidence] == [
        ("host.compile", 300 * MS),
        ("kernels.trials", 50 * MS),
    ]


def test_launches_of_an_operator_are_not_its_calls() -> None:
    use = used(10, 990, 2000)
    below = [
        Kernel(path=f"{op}/{name}", time_ns=1.0 * MS, count=50)
        for op in ("aten::item/aten::_local_scalar_dense", "aten::nonzero")
        for name in ("a", "b")
    ]
    calls = Kernel(path="aten::item", time_ns=1.0, count=50, kind=FrameKind.OP, device=None)
    sampled_ms = {"host_wall (ns)": 100.0 * MS}
    calls, below[0] = replace(calls, metrics=sampled_ms), replace(below[0], metrics=sampled_ms)
    found = [found_in(counted_profile(*each, use=use))["sync"] for each in ([calls], below)]

    assert [each.evidence[0].text for each in found] == [
        "50 calls of aten::item",
        "100 launches in aten::item",
    ]
    assert found[1].evidence[1].text == "100 launches in aten::nonzero"


def test_calls_that_wait_do_not_matter_on_a_busy_device() -> None:
    profile = counted_profile(
        Kernel(path="aten::item/k", time_ns=980.0 * MS, count=50), use=used(980, 20, 50)
    )

    assert "sync" not in found_in(profile)


def sampled(
    *frames: tuple[Sequence[str], int],
    use: DeviceUse,
    kernels: Mapping[str, int] | None = None,
    **facts: Any,
) -> Profile:
    """Return a run of ten launches of each kernel, with samples of the host."""
    builder = ProfileBuilder()
    for name, time_ns in (kernels or {"k": use.busy_ns}).items():
        builder.add(
            0, name, FrameKind.KERNEL, metrics={"time (ns)": time_ns, "count": 10}, device=H200
        )
    top = builder.add(0, "<not recorded>", FrameKind.SCOPE)
    for names, spent_ns in frames:
        above = top
        for name in names:
            above = builder.add(above, name, FrameKind.PYTHON)
        builder.set(above, "host_wall (ns)", spent_ns)
        builder.set(above, "idle (ns)", spent_ns)
    facts = {"start_time_ns": 1, "end_time_ns": 1 + SECOND, "directory": "/home/me", **facts}
    return replace(builder.build(provenance=facts), device_use=(use,))


def test_functions_that_wait_bound_the_gain_by_their_time() -> None:
    wait = "/usr/lib/python3/site-packages/torch/cuda/__init__.py:900@synchronize"
    profile = sampled(
        (["/home/me/train.py:12@step", wait], 150 * MS),
        (["/home/me/train.py:13@step"], 750 * MS),
        use=used(100, 500),
    )

    found = found_in(profile)

    assert found["sync"].gain_ns == 150 * MS
    assert found["idle"].own_ns == 350 * MS


def test_waiting_for_trials_of_an_autotuner_is_tuning_alone() -> None:
    wait = "/usr/lib/python3/site-packages/torch/cuda/__init__.py:900@synchronize"
    bench = "/usr/lib/python3/site-packages/triton/testing.py:149@do_bench"
    line = "/home/me/train.py:12@step"
    profile = sampled(([line, bench, wait], 150 * MS), ([line], 750 * MS), use=used(100, 500))

    found = found_in(profile)

    assert "sync" not in found
    assert found["compile"].gain_ns == 150 * MS


def test_waiting_saves_no_more_than_the_gaps_in_which_nothing_was_compiled() -> None:
    wait = "/usr/lib/python3/site-packages/torch/cuda/__init__.py:900@synchronize"
    jit = "/usr/lib/python3/site-packages/triton/compiler/compiler.py:300@compile"
    line = "/home/me/train.py:12@step"
    profile = sampled(([line, wait], 150 * MS), ([line, jit], 420 * MS), use=used(100, 500))

    found = found_in(profile)

    assert found["sync"].gain_ns == 80 * MS
    assert "TRITON_CACHE_DIR" in found["compile"].helps


def test_a_compiler_that_is_imported_compiles_nothing() -> None:
    importing = "/usr/lib/python3/site-packages/torch/_compile.py:3@<module>"
    dynamo = "/usr/lib/python3/site-packages/torch/_dynamo/variables/base.py:9@register"
    line = "/home/me/train.py:12@step"
    profile = sampled(([line, importing, dynamo], 150 * MS), ([line], 350 * MS), use=used(100, 500))

    assert "compile" not in found_in(profile)


def test_functions_that_wait_may_have_been_sampled_too_rarely() -> None:
    wait = "/usr/lib/python3/site-packages/torch/cuda/__init__.py:900@synchronize"
    line = (["/home/me/train.py:12@step", wait], 10 * MS)
    other = (["/home/me/train.py:13@step"], 800 * MS)
    profile = sampled(line, other, use=used(100, 500), host_rate_hz=100)

    assert found_in(profile)["sync"].gain_ns == 30 * MS  # two standard errors of one sample more


def test_host_without_samples_is_to_be_sampled() -> None:
    use = used(100, 500)
    bare = counted_profile(Kernel(path="k"), use=use)
    shown = sampled((["/home/me/train.py:12@step"], 150 * MS), use=use)

    assert "proton run" in found_in(bare)["idle"].helps
    assert "idle/ms" in found_in(shown)["idle"].helps


def test_functions_of_that_name_elsewhere_do_not_wait() -> None:
    mine = "/home/me/files.py:9@synchronize"
    profile = sampled((["/home/me/train.py:12@step", mine], 150 * MS), use=used(100, 500))

    assert "sync" not in found_in(profile)


def test_only_collectives_are_waiting() -> None:
    use = used(900, 100, waiting_ns=300 * MS)

    found = found_in(counted_profile(Kernel(path="k", time_ns=900.0 * MS), use=use))

    assert found["waiting"].gain_ns == 300 * MS


@pytest.mark.parametrize(
    ("kernel", "is_found"),
    [
        (Kernel(path=SGEMM), True),
        (Kernel(path=SGEMM, units={"tensor": 0.02, "fp32": 0.5}), True),
        (Kernel(path=SGEMM, units={"tensor": 0.3}), False),
        (Kernel(path=TF32), False),
        (Kernel(path="ampere_fp16_s16816gemm_fp16_128x64_nn"), False),
        (Kernel(path=SGEMM, device=Device("CUDA", 0, "75", 40)), False),
        (Kernel(path=SGEMM, device=Device("HIP", 0, "gfx942", 304)), False),
        (Kernel(path="my_kernel"), False),
    ],
)
def test_products_in_fp32(kernel: Kernel, *, is_found: bool) -> None:
    assert ("fp32-products" in found_in(counted_profile(kernel))) == is_found


def test_less_is_gained_from_products_that_reach_more() -> None:
    slow = found_in(counted_profile(Kernel(path=SGEMM, units={"tensor": 0.0, "fp32": 0.2})))
    fast = found_in(counted_profile(Kernel(path=SGEMM, units={"tensor": 0.0, "fp32": 0.9})))

    assert slow["fp32-products"].gain_ns == pytest.approx(1e6 * (1 - 0.2 / 8))
    assert fast["fp32-products"].gain_ns == pytest.approx(1e6 * (1 - 0.9 / 8))


def test_chain_of_elementwise_kernels_below_one_layer() -> None:
    profile = counted_profile(
        Kernel(path=f"gelu/{MUL}", time_ns=6.0 * MS, count=20, units={"dram": 0.5}),
        Kernel(path=f"gelu/{ADD}", time_ns=2.0 * MS, count=10, units={"dram": 0.5}),
    )

    found = found_in(profile)["unfused-elementwise"]

    # One launch of the cheapest kernel remains for each of ten calls.
    assert found.gain_ns == pytest.approx(6.0 * MS)
    assert found.evidence[0].value == 3
    moved = next(each for each in found.evidence if each.id == "counter.dram")
    assert moved.value == pytest.approx(0.5 * 4.9e12 * 0.008, rel=0.01)


@pytest.mark.parametrize(
    "kernels",
    [
        [Kernel(path=f"gelu/{MUL}")],
        [Kernel(path=f"a/{MUL}"), Kernel(path=f"b/{ADD}")],
        [Kernel(path="a/my_mul"), Kernel(path="a/my_add")],
    ],
    ids=["one kernel", "two layers", "other kernels"],
)
def test_no_chain(kernels: list[Kernel]) -> None:
    assert "unfused-elementwise" not in found_in(counted_profile(*kernels))


def test_forward_and_backward_are_two_chains() -> None:
    profile = counted_profile(Kernel(path=f"a/{MUL}"), Kernel(path=f"a/<backward>/{ADD}"))

    assert "unfused-elementwise" not in found_in(profile)


def test_optimizer_of_several_kernels() -> None:
    names = ("std::multiplies", "std::plus", "std::divides")
    kernels = [Kernel(path=f"{STEP}/{FOREACH.format(name)}") for name in names]

    assert "unfused-optimizer" in found_in(counted_profile(*kernels))
    assert "unfused-optimizer" not in found_in(counted_profile(*kernels[:1]))


FUSED = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel"
    "<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>, "
    "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>()"
)
AVERAGES = [FOREACH.format(name) for name in ("std::multiplies", "std::plus", "at::native::Lerp")]


@pytest.mark.parametrize(
    ("paths", "is_found"),
    [
        ([f"{STEP}/{FUSED}", *(f"ema/{name}" for name in AVERAGES)], False),
        ([f"{STEP}/my_kernel", *AVERAGES], False),
        ([FUSED, *AVERAGES], False),
        ([f"Optimizer.step#FusedLAMB.step/{name}" for name in AVERAGES], False),
        (AVERAGES, False),
        ([*AVERAGES, FOREACH.format("at::native::Sqrt")], True),
        ([f"{STEP}/{FUSED}", *(f"Optimizer.step#SGD.step/{name}" for name in AVERAGES)], True),
    ],
    ids=[
        "average beside",
        "other kernels",
        "fused by name",
        "fused by class",
        "average",
        "adam",
        "two optimizers",
    ],
)
def test_only_steps_of_optimizers_are_unfused(paths: list[str], *, is_found: bool) -> None:
    profile = counted_profile(*(Kernel(path=path) for path in paths))

    assert ("unfused-optimizer" in found_in(profile)) == is_found


def test_of_an_optimizer_the_dearest_kernel_remains() -> None:
    names = {"std::multiplies": 10.0 * MS, "std::plus": 20.0 * MS, "std::divides": 70.0 * MS}
    kernels = [
        Kernel(path=f"{STEP}/{FOREACH.format(name)}", time_ns=time_ns, count=10)
        for name, time_ns in names.items()
    ]

    found = found_in(counted_profile(*kernels))["unfused-optimizer"]

    assert found.gain_ns == pytest.approx(30 * MS)


def test_fewer_launches_save_their_part_of_the_gaps() -> None:
    kernels = [Kernel(path=f"a/{MUL}"), Kernel(path=f"a/{ADD}")]
    launches = 5 * sum(int(kernel.count) for kernel in kernels)

    idle = found_in(counted_profile(*kernels, use=used(100, 500, launches)))["unfused-elementwise"]
    busy = found_in(counted_profile(*kernels, use=used(600, 1, launches)))["unfused-elementwise"]

    assert idle.gain_ns - busy.gain_ns == pytest.approx(500 * MS / 10)


def test_a_fused_optimizer_saves_at_most_what_the_host_was_in_it() -> None:
    adam = "/usr/lib/python3/site-packages/torch/optim/adamw.py:70@step"
    profile = sampled(
        (["/home/me/train.py:12@step", adam], 100 * MS),
        (["/home/me/train.py:13@step"], 500 * MS),
        use=used(100, 500, 1000),
        host_rate_hz=100.0,
        kernels={FOREACH.format(name): 10 * MS for name in ("std::plus", "std::divides")},
    )

    found = found_in(profile)["unfused-optimizer"]

    assert found.gain_ns == pytest.approx(10 * MS + 100 * MS + 2 * (100 * MS * 10 * MS) ** 0.5)
    assert [each.id for each in found.evidence][-1] == "host.optimizer"
    assert found.text.endswith(", and 163.2 ms between kernels")


@pytest.mark.parametrize(
    ("size", "count", "is_found"),
    [(10e6, 1, True), (13e6, 1, False), (10e6, 10, False)],
    ids=["slow", "as fast as pinned", "small"],
)
def test_copies_at_the_rate_of_pageable_memory(size: float, count: int, *, is_found: bool) -> None:
    copy = Kernel(
        path="<memcpy H2D>",
        time_ns=1e6,
        count=count,
        kind=FrameKind.COPY,
        metrics={"bytes": size},
    )

    assert ("slow-copies" in found_in(counted_profile(copy))) == is_found


CAPPED = Kernel(path="k", units={"tensor": 0.9}, metrics={"sm_cycles": 1e6 * 1.98 * 0.8})


@pytest.mark.parametrize(
    ("said", "reasons"),
    [(0x4, [4.0]), (0x24, [4.0, 32.0]), (0x1, []), (None, []), ("x", []), (-1, []), (True, [])],
)
def test_capped_kernels_are_a_finding_with_the_reasons_of_nvml(
    said: object, reasons: list[float]
) -> None:
    gpus = [{"name": "NVIDIA H200", "throttle_reasons": said}, 7]

    found = found_in(counted_profile(CAPPED, gpus_at_end=gpus))["power-capped"]

    assert found.gain_ns == pytest.approx(2e5)
    assert found.evidence[0].value == pytest.approx(0.8)
    assert [each.value for each in found.evidence[1:]] == reasons


def test_times_of_merged_processes_are_added_up_like_their_runs() -> None:
    second = replace(H200, index=1)
    builder = ProfileBuilder()
    for device in (H200, second):
        metrics = {"time (ns)": 100 * MS, "count": 10}
        builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=device)
    parts = [{"start_time_ns": 1, "end_time_ns": 1 + SECOND}] * 2
    use = used(100, 800, waiting_ns=60 * MS)
    uses = (use, replace(use, device=1))
    one = {"start_time_ns": 1, "end_time_ns": 1 + SECOND}
    single = WholeRun.of(replace(builder.build(provenance=one), device_use=uses))
    merged = WholeRun.of(replace(builder.build(provenance={"parts": parts}), device_use=uses))

    shares = [
        {each.id: each.gain_ns / run.span_ns for each in find(run)} for run in (single, merged)
    ]

    assert shares[0] == shares[1] == {"idle": 0.8, "waiting": 0.06}
    assert single.idle_ns / single.span_ns == merged.idle_ns / merged.span_ns == 0.8


def test_small_findings_are_left_out() -> None:
    profile = counted_profile(
        Kernel(path=SGEMM, time_ns=0.015 * MS), Kernel(path="k", time_ns=985.0 * MS)
    )

    assert found_in(profile) == {}


def test_every_rule_is_described() -> None:
    assert len({rule.id for rule in FINDINGS}) == len(FINDINGS)
    for rule in FINDINGS:
        assert rule.helps
        assert rule.source.startswith("https://")


NAMES = (SGEMM, TF32, MUL, ADD, FOREACH.format("std::plus"), "<memcpy H2D>", "nccl_k", "k")
ROWS = st.lists(
    st.builds(
        Kernel,
        path=st.builds(
            "{}{}".format, st.sampled_from(["", "a/", "a/aten::item/"]), st.sampled_from(NAMES)
        ),
        time_ns=st.floats(0, 1e10),
        count=st.integers(0, 10_000),
        units=st.dictionaries(st.sampled_from(["dram", "tensor", "fp32"]), st.floats(0, 1)),
    ),
    max_size=8,
)
USES = st.builds(
    used, st.floats(0, 2000), st.floats(0, 2000), st.integers(1, 10_000), waiting_ns=st.just(MS)
)


@given(ROWS, st.none() | USES)
@settings(max_examples=how_many(150, 20), deadline=None)
def test_bounds_lie_within_the_run_and_can_be_added(
    kernels: list[Kernel], use: DeviceUse | None
) -> None:
    run = WholeRun.of(counted_profile(*kernels, use=use))
    found = find(run)

    gains = [each.gain_ns for each in found if each.id not in {"compile", "no-work"}]
    assert gains == sorted(gains, reverse=True)
    assert [each.gain_ns for each in found[: len(gains)]] == gains
    assert sum(each.own_ns for each in found) <= run.span_ns * (1 + 1e-9)
    for each in found:
        assert each.evidence
        assert 0.0 <= each.own_ns <= each.gain_ns * (1 + 1e-9)
        assert each.gain_ns <= run.span_ns


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 1000), st.floats(50e3, 1e6))),
    st.floats(0, 2000),
    st.floats(0, 2000),
)
@settings(max_examples=how_many(100, 25), deadline=None)
def test_bounds_are_twice_as_large_if_all_takes_twice_as_long(
    kernels: list[tuple[str, int, float]], busy_ms: float, idle_ms: float
) -> None:
    def gains(factor: float) -> dict[str, float]:
        rows = [
            Kernel(path=f"a/{name}", time_ns=count * mean_ns * factor, count=count)
            for name, count, mean_ns in kernels
        ]
        use = used(busy_ms * factor, idle_ms * factor, long_ms=idle_ms * factor)
        run = WholeRun.of(counted_profile(*rows, use=use, run_ns=int(5 * SECOND * factor)))
        verdicts = (run.verdicts.own(row) for row in run.verdicts.facts.rows())
        found = {each.id: each.gain_ns for each in find(run)}
        return found | {"rows": sum(each.gain_ns or 0.0 for each in verdicts if each)}

    once, twice = gains(1.0), gains(2.0)

    assert twice == pytest.approx({name: 2 * gain for name, gain in once.items()}, abs=10)


def test_idle_time_of_launches_that_waited_to_be_sampled_is_not_theirs() -> None:
    kernel = Kernel(path="k", time_ns=10.0 * MS, count=2000)
    found = {
        mode: found_in(counted_profile(kernel, use=used(10, 890, 2000), mode=mode))
        for mode in ("pcsampling:exact=launch", "pcsampling:exact=off", "counters")
    }

    assert found["pcsampling:exact=launch"].keys() == {"no-work"}
    assert found["pcsampling:exact=off"].keys() == {"no-work", "launches"}
    assert found["counters"]["launches"].gain_ns == 890 * MS


def test_idle_time_that_recording_took_is_not_theirs() -> None:
    profile = counted_profile(
        Kernel(path="k", time_ns=10.0 * MS, count=2000),
        use=used(10, 990, 2000),
        estimated_cost_ns=60 * MS,
    )

    assert found_in(profile)["launches"].gain_ns == 930 * MS


def waited(**facts: Any) -> Profile:
    """Return a run of FP32 products for which the host waited 100 ms in an operator."""
    facts = {"host_rate_hz": 100.0, "context": "layers+ops", **facts}
    waiting = {"host_wall (ns)": 100.0 * MS}
    return counted_profile(
        Kernel(path=SGEMM, time_ns=900.0 * MS, count=100),
        Kernel(path="aten::item/k", time_ns=1.0 * MS, count=10, metrics=waiting),
        use=used(901, 99, 110),
        **facts,
    )


def test_faster_kernels_save_no_more_than_the_host_waits() -> None:
    found = found_in(waited())["fp32-products"]

    assert found.gain_ns == 100 * MS + 2 * (100 * MS * 10 * MS) ** 0.5
    assert [each.id for each in found.evidence][-1] == "host.limit"


def test_without_a_recording_the_host_waits_longer() -> None:
    bare, recorded = (found_in(waited(estimated_cost_ns=cost)) for cost in (0, 40 * MS))

    # The estimate of our own cost may be too small by half.
    gains = [found["fp32-products"].gain_ns for found in (bare, recorded)]
    assert gains[1] - gains[0] == pytest.approx(60 * MS)


@pytest.mark.parametrize("facts", [{"host_rate_hz": None}, {"context": "layers"}])
def test_how_long_the_host_waits_has_to_be_recorded(facts: dict[str, Any]) -> None:
    assert found_in(waited(**facts))["fp32-products"].gain_ns > 500 * MS


def test_launches_of_a_full_queue_wait_too() -> None:
    profile = waited()
    (use,) = profile.device_use
    full = replace(use, launches=10_000, latency_max_ns=81 * MS)
    profile = replace(profile, device_use=(full,))

    assert found_in(profile)["fp32-products"].gain_ns > 500 * MS
