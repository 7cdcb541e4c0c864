from __future__ import annotations

import math
from typing import Any

import pytest
from fakes.counted import H200, SECOND, Kernel, counted_profile
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.why.launch_facts import launch_means, with_launch_facts
from proton_bench.analysis.why.row_facts import Ceilings
from proton_bench.analysis.why.verdict import KINDS, UNKNOWN, Verdict
from proton_bench.analysis.why.verdicts import Verdicts, why_values
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.counter_columns import USUAL_CEILINGS
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance


def verdict(profile: Profile, row: int = 0) -> Verdict:
    found = Verdicts(profile).of(row)
    assert found is not None
    return found


def test_counters_are_divided_by_the_ceilings_of_the_run() -> None:
    kernel = Kernel(path="copy", units={"dram": 0.6, "tensor": 0.02})

    usual = verdict(counted_profile(kernel))
    measured = verdict(counted_profile(kernel, ceilings={"dram": 0.95}))

    assert usual.kind == "memory:dram"
    assert usual.gain_ns == pytest.approx(1e6 * (1 - 0.6 / 0.84))
    assert measured.kind == UNKNOWN


def test_a_wide_estimate_is_used_where_all_of_it_is_near_the_roof() -> None:
    near = verdict(counted_profile(Kernel(path="copy", units={"dram": 0.8}, error=0.05)))
    wide = verdict(counted_profile(Kernel(path="copy", units={"dram": 0.8}, error=0.13)))

    assert near.kind == "memory:dram"
    assert {evidence.id for evidence in near.evidence} == {"counter.dram"}
    assert wide.kind == UNKNOWN
    assert wide.measure == "proton run -m counters, in a longer run"


def test_errors_shrink_when_rows_are_folded() -> None:
    variants = [
        Kernel(
            path="layer/copy",
            units={"dram": 0.8},
            error=0.15,
            variant=Variant(grid=(blocks, 1, 1)),
        )
        for blocks in (1000, 2000, 3000, 4000)
    ]
    profile = with_launch_facts(counted_profile(*variants))

    assert verdict(profile, 2).kind == UNKNOWN
    assert verdict(profile.fold_variants(), 2).kind == "memory:dram"


def test_counters_of_a_small_part_of_the_time_are_not_used() -> None:
    kernel = Kernel(path="copy", units={"dram": 0.8}, metrics={"time (ns)": 4e6})
    values = kernel.values() | {"time (ns)": 21e6}

    found = verdict(counted_profile(Kernel(path="copy", metrics=values)))

    assert found.kind == UNKNOWN


def test_files_without_variances_tell_nothing() -> None:
    kernel = Kernel(path="copy", units={"dram": 0.8})
    values = {name: value for name, value in kernel.values().items() if "variance" not in name}

    assert verdict(counted_profile(Kernel(path="copy", metrics=values))).kind == UNKNOWN


def test_row_above_has_the_verdict_of_most_of_its_time() -> None:
    profile = counted_profile(
        Kernel(path="layer/copy", time_ns=3e6, units={"dram": 0.8}),
        Kernel(path="layer/product", time_ns=1e6, units={"tensor": 0.9}),
    )

    found = verdict(profile)

    assert found.kind == "memory:dram"
    assert found.share == pytest.approx(0.75)
    assert found.evidence[0].id == "row.mix"
    assert {"counter.dram"} <= {evidence.id for evidence in found.evidence}
    assert found.gain_ns == pytest.approx(3e6 * (1 - 0.8 / 0.84))


def test_row_with_one_kernel_has_its_verdict() -> None:
    profile = counted_profile(Kernel(path="layer/copy", units={"dram": 0.8}))
    verdicts = Verdicts(profile)

    assert verdicts.of(0) == verdicts.of(2) == verdicts.own(2)


def test_the_reason_of_one_kernel_is_not_that_of_the_row_above() -> None:
    profile = counted_profile(
        Kernel(path="net/idle", time_ns=4e6, units={"dram": 0.1, "sm_active": 0.9}),
        Kernel(path="net/copy", time_ns=3e6, units={"dram": 0.8}),
        Kernel(path="net/gemm", time_ns=3e6, units={"tensor": 0.9}),
    )

    found = verdict(profile, 1)

    assert (found.kind, found.short, found.share) == (UNKNOWN, "unknown 40 % of it", 0.4)
    assert found.reason.startswith("idle: not all measured")


def test_row_without_time_has_none() -> None:
    builder = ProfileBuilder()
    builder.add(0, "scope", FrameKind.SCOPE, metrics={"wall (ns)": 5.0})
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5.0}, device=H200)

    assert Verdicts(builder.build()).of(1) is None


def test_without_work_ranges_take_the_time_that_is_in_no_range_below() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    outer = builder.add(0, "request", FrameKind.SCOPE, metrics={"wall (ns)": 90.0})
    unnamed = builder.add(outer, "retry", FrameKind.SCOPE)
    for above, wall_ns in ((unnamed, 30.0), (outer, 20.0)):
        builder.add(above, "read", FrameKind.SCOPE, metrics={"wall (ns)": wall_ns})

    found = Verdicts(builder.build())

    assert found.facts.own_ns.tolist() == [0.0, 40.0, 0.0, 30.0, 20.0]
    verdicts = [each for row in (1, 3, 4) if (each := found.own(row)) is not None]
    assert [each.kind for each in verdicts] == ["elapsed"] * 3
    assert found.facts.device_kinds == {"CPU"}


@pytest.mark.parametrize(
    ("kernel", "measure"),
    [
        (Kernel(path="k"), "proton run -m counters"),
        (Kernel(path="k", device=Device("HIP", 0, "gfx942")), "proton run -m pcsampling"),
        (
            Kernel(path="k", units={"dram": 0.1, "sm_active": 0.9}),
            "proton run -m counters:metrics=memory, proton run -m pcsampling",
        ),
        (Kernel(path="k", units={"sm_active": 0.3}), "proton run -m pcsampling"),
    ],
)
def test_unknown_names_the_measurement_that_tells(kernel: Kernel, measure: str) -> None:
    found = verdict(counted_profile(kernel))

    assert found.kind == UNKNOWN
    assert found.reason
    assert found.measure == measure
    assert found.gain_ns is None


def test_units_that_are_too_uncertain_are_not_said_to_be_missing() -> None:
    units = {
        f"fp32_{name}": value for name, value in (("busy (ns)", 5e5), ("variance (ns^2)", 1e10))
    }
    known = {"dram": 0.1, "sm_active": 0.9}

    reason = verdict(counted_profile(Kernel(path="k", units=known, metrics=units))).reason

    missing = reason.partition("missing are ")[2].partition(";")[0]
    assert "FP32" not in missing
    assert "FP32 pipe 53 +- " in reason


def test_launches_that_a_file_lacks_are_not_said_to_be_known() -> None:
    lacking = counted_profile(Kernel(path="k", units={"sm_active": 0.3}))

    assert "launches not recorded" in verdict(lacking).reason


def test_samples_of_an_amd_gpu_give_a_verdict() -> None:
    samples = {"num_samples": 100, "num_stalled_samples": 90, "stalled_alu_dependency": 90}
    kernel = Kernel(path="k", device=Device("HIP", 0, "gfx942"), metrics=samples)

    assert verdict(counted_profile(kernel)).kind == "latency"


def test_line_with_most_samples_is_named() -> None:
    builder = ProfileBuilder()
    row = builder.add(
        0,
        "attn",
        FrameKind.KERNEL,
        metrics={"time (ns)": 1e6, "count": 1},
        device=H200,
    )
    for line, samples in ((40, 5), (41, 50)):
        builder.add(
            row,
            f"src/attn.py:{line}@attn",
            FrameKind.LINE,
            metrics={
                "num_samples": samples,
                "num_stalled_samples": samples,
                "stalled_barrier": samples,
            },
        )

    found = verdict(builder.build(), 1)

    assert found.kind == "latency"
    assert "attn.py:41" in found.evidence[0].text
    assert found.evidence[0].value == 1.0


def test_launches_gain_a_part_of_the_idle_time_by_their_number() -> None:
    use = DeviceUse(
        None,
        0,
        busy_ns=100_000,
        idle_ns=900_000,
        launches=20,
        latency_sum_ns=20 * 8000,
        latency_min_ns=8000,
        latency_max_ns=8000,
        latency_first_bucket=87,
        latency_buckets=(20,),
    )
    profile = counted_profile(Kernel(path="a", time_ns=2e4, count=5), use=use)

    found = verdict(profile)

    assert found.kind == "launch-bound"
    assert found.gain_ns == pytest.approx(900_000 / 4)


@pytest.mark.parametrize("factor", [1, 132])
def test_clock_comes_from_cycles_of_one_or_of_all_multiprocessors(factor: int) -> None:
    cycles = {"sm_cycles": factor * 1e6 * 1.98 * 0.8}
    kernel = Kernel(path="gemm", units={"tensor": 0.9}, metrics=cycles)

    found = verdict(counted_profile(kernel))

    assert found.kind == "power-capped"
    assert found.evidence[0].value == pytest.approx(0.8)


def test_column_has_a_short_text_for_rows_with_time() -> None:
    builder = ProfileBuilder()
    builder.add(0, "scope", FrameKind.SCOPE, metrics={"wall (ns)": 5.0})
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5.0}, device=H200)

    found = why_values(builder.build())

    assert found.valid.tolist() == [True, False, True]
    assert max(map(len, found.values.tolist())) <= 40
    assert not found.is_number


def test_deep_chain_takes_linear_time() -> None:
    # Every row has time of its own, so that every row has a mixture to find.
    builder = ProfileBuilder()
    above = 0
    for depth in range(5000):
        above = builder.add(
            above, f"k{depth % 7}", FrameKind.KERNEL, metrics={"time (ns)": 1.0}, device=H200
        )

    assert len(why_values(builder.build()).values) == 5001


UNITS = st.dictionaries(
    st.sampled_from(["dram", "tensor", "issue", "l2", "l1", "sm_active"]), st.floats(0, 1.5)
)


KERNELS = st.lists(
    st.builds(
        Kernel,
        path=st.sampled_from(["a/k", "a/b/k", "b/gemm", "copy", "nccl AllReduce"]),
        time_ns=st.one_of(st.floats(1, 1e12), st.sampled_from([math.inf, math.nan, -1.0])),
        count=st.integers(0, 1000),
        units=UNITS,
        error=st.floats(0, 0.1),
        variant=st.builds(
            Variant,
            grid=st.tuples(st.integers(1, 1000), st.just(1), st.just(1)),
            block=st.just((128, 1, 1)),
            registers=st.integers(0, 255),
        ),
        device=st.sampled_from([H200, Device("HIP", 0, "gfx942"), Device("CPU", 0), None]),
    ),
    max_size=8,
)


@given(KERNELS)
@settings(max_examples=how_many(100, 25), deadline=None)
def test_no_verdict_without_evidence_and_gains_within_the_run(kernels: list[Kernel]) -> None:
    verdicts = Verdicts(counted_profile(*kernels))

    for row in range(len(verdicts.profile)):
        found = verdicts.of(row)
        if found is None:
            continue
        assert found.kind in KINDS
        assert bool(found.evidence) or found.kind == UNKNOWN
        assert bool(found.reason and found.measure) == (found.kind == UNKNOWN)
        assert found.gain_ns is None or 0.0 <= found.gain_ns <= SECOND


@pytest.mark.parametrize(
    ("fp64_percent", "sampled_s", "kind"),
    [(1.0, 1, "latency"), (90.0, 1, UNKNOWN), (1.0, 0.5, UNKNOWN)],
)
def test_a_unit_that_the_whole_run_hardly_used_limits_no_row(
    fp64_percent: float, sampled_s: float, kind: str
) -> None:
    units = {"alu": 0.1, "xu": 0.0, "issue": 0.2, "dram": 0.1, "l2": 0.1, "l1": 0.1}
    units |= {"sm_active": 0.9, "l2_requests": 0.1, "l2_slice": 0.1}
    means = {"tensor_pct": 0.0, "fp32_pct": 0.0, "fp64_pct": fp64_percent}
    entry = {"device": 0, "sampled_ns": int(sampled_s * SECOND), "means": means}
    profile = counted_profile(
        Kernel(path="k", time_ns=0.9 * SECOND, units=units),
        use=DeviceUse(None, 0, busy_ns=int(0.9 * SECOND), idle_ns=int(0.1 * SECOND), launches=10),
        gpm=[entry],
    )

    assert verdict(profile).kind == kind


def test_a_refusal_of_counters_is_the_reason() -> None:
    refused = {"cupti": {"counters": {"error": "the driver lets only administrators read them"}}}

    found = verdict(counted_profile(Kernel(path="k"), collectors=refused))

    assert found.kind == UNKNOWN
    assert found.measure == "proton doctor"
    assert "administrators" in found.reason


def test_a_kernel_that_no_burst_met_has_to_run_longer() -> None:
    missed = Kernel(path="missed", time_ns=2e6, metrics={"counter_time (ns)": 0.0})
    met = Kernel(path="met", units={"dram": 0.8})
    facts = {"cupti": {"counters": {"bursts": 5, "samples": 900}}}
    profile = counted_profile(missed, met, collectors=facts, run_ns=2 * SECOND)

    found = Verdicts(profile).own(1)

    assert found is not None
    assert found.reason.startswith("not sampled")
    assert found.measure.endswith("in a run in which it takes 1.2 s or more")


def test_resident_warps_of_earlier_files_are_no_evidence() -> None:
    low = {"tensor": 0.0, "fp32": 0.0, "fp64": 0.0, "issue": 0.1, "l1": 0.1, "sm_active": 0.95}
    profile = counted_profile(
        Kernel(path="k", units={**low, "dram": 0.2, "l2": 0.1, "warps": 0.02})
    )

    found = verdict(profile)

    assert found.kind == UNKNOWN
    assert not any("warps" in each.id for each in found.evidence)


def ceilings(**facts: Any) -> Ceilings:
    return Ceilings.of(Provenance(facts))


def test_measured_ceilings_replace_defaults() -> None:
    found = ceilings(ceilings={"dram": 0.9, "tensor": 0.8}, ceilings_measured=["dram"])

    assert found.fractions == {**USUAL_CEILINGS, "dram": 0.9, "tensor": 0.8}
    assert found.measured == {"dram"}


def test_lowest_of_several_gpus_counts() -> None:
    found = ceilings(ceilings={"A": {"dram": 0.9}, "B": {"dram": 0.8}})

    assert found.fractions["dram"] == 0.8


@pytest.mark.parametrize(
    "said",
    [
        None,
        "dram",
        [0.9],
        {"dram": "high"},
        {"dram": math.nan},
        {"dram": math.inf},
        {"dram": True},
        {"dram": 0},
        {"dram": -1},
        {"dram": 40},
        {"speed": 0.9},
        {"a": {"b": {"dram": 0.5}}},
    ],
)
def test_what_cannot_be_a_ceiling_is_ignored(said: object) -> None:
    assert ceilings(ceilings=said).fractions == USUAL_CEILINGS


@pytest.mark.parametrize("said", ["dram", [{"a": 1}], {"dram": 1}, 7, [None]])
def test_what_cannot_be_a_name_is_ignored(said: object) -> None:
    assert ceilings(ceilings={"dram": 0.9}, ceilings_measured=said).measured == frozenset()


def means(*kernels: Kernel, row: int = 1) -> dict[str, float]:
    profile = with_launch_facts(counted_profile(*kernels))
    return {name: float(values[row]) for name, values in launch_means(profile).items()}


def launched(blocks: int, registers: int = 128, **more: object) -> Variant:
    return Variant(grid=(blocks, 1, 1), block=(256, 1, 1), registers=registers, **more)  # type: ignore[arg-type]


def test_grid_fills_a_part_of_the_multiprocessors() -> None:
    found = means(Kernel(path="k", variant=launched(33)))

    assert found["fill"] == pytest.approx(0.25)
    assert found["waves"] == pytest.approx(33 / (132 * 2))
    assert found["tail_loss"] == 0.0


@pytest.mark.parametrize(
    ("blocks", "loss"),
    [
        (132, 0.0),
        (264, 0.0),
        # 1.25 waves, but no multiprocessor has more than 3 blocks where the mean is 2.5.
        (330, 1 - 2.5 / 3),
        (133, 0.0),  # one wave
        (2640, 0.0),
    ],
)
def test_tail_is_what_the_last_wave_and_the_blocks_of_one_multiprocessor_lose(
    blocks: int, loss: float
) -> None:
    assert means(Kernel(path="k", variant=launched(blocks)))["tail_loss"] == pytest.approx(loss)


def test_means_are_weighted_by_time_and_survive_folding() -> None:
    kernels = [
        Kernel(path="layer/k", time_ns=3.0, variant=launched(33)),
        Kernel(path="layer/k", time_ns=1.0, variant=launched(132)),
    ]
    profile = with_launch_facts(counted_profile(*kernels)).fold_variants()

    assert launch_means(profile)["fill"][2] == pytest.approx((3 * 0.25 + 1) / 4)


@pytest.mark.parametrize(
    ("variant", "device", "unknown"),
    [
        (launched(33, registers=0), H200, {"waves", "tail_loss", "occupancy", "registers"}),
        (launched(33), Device("CUDA", 0, "99", 132), {"waves", "tail_loss", "occupancy"}),
        (launched(33), Device("CUDA", 0, "90"), {"units", "fill", "waves", "tail_loss"}),
        (launched(0), H200, {"blocks", "fill", "waves"}),
    ],
)
def test_what_is_not_known_is_nan(variant: Variant, device: Device, unknown: set[str]) -> None:
    found = means(Kernel(path="k", variant=variant, device=device))

    assert unknown <= {name for name, value in found.items() if math.isnan(value)}


def test_profile_without_launches_stays_as_it_is() -> None:
    profile = counted_profile(Kernel(path="k"))

    assert with_launch_facts(profile) is profile
    assert launch_means(profile) == {}


def test_facts_are_computed_once() -> None:
    profile = with_launch_facts(counted_profile(Kernel(path="k", variant=launched(33))))

    assert with_launch_facts(profile) is profile
