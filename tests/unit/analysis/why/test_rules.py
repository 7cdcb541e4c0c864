from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.accounting.device_use import DeviceVerdict
from proton_bench.analysis.why.launch_facts import Launch
from proton_bench.analysis.why.row_facts import RowFacts, Stalls, Use
from proton_bench.analysis.why.rules import RULES, Match
from proton_bench.analysis.why.verdict import KINDS
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse

H200 = Device("CUDA", 0, "90", 132, 1_980_000, 3_201_000, 6144)
KERNEL = RowFacts("kernel", FrameKind.KERNEL, 1e6, launches=10, device=H200, has_counters=True)
IDLE = DeviceVerdict(
    "CUDA:0", DeviceUse(None, 0, busy_ns=100, idle_ns=900, launches=20), 8_000.0, "launch-bound"
)


def uses(**fractions: float) -> dict[str, Use]:
    """Return exact uses of units, with a ceiling of 0.8."""
    return {name: Use(fraction, 0.0, 0.8) for name, fraction in fractions.items()}


CORES = uses(tensor=0.0, fp32=0.1, fp64=0.0, alu=0.1, xu=0.0, issue=0.2, sm_active=0.95)
CACHES = uses(dram=0.1, l2=0.1, l2_requests=0.1, l2_slice=0.1, l1=0.1, shared=0.1)
ALL_LOW = CORES | CACHES
# Reads by columns: each request of L2 is for one sector of 32 bytes.
BY_COLUMNS = CORES | uses(dram=0.42, l2=0.15, l2_requests=0.45, l2_slice=0.46, l1=0.1, shared=0.0)


def decided(facts: RowFacts) -> tuple[str, Match] | None:
    """Return the first rule that fits, as verdicts do."""
    for rule in RULES:
        match = rule.find(facts)
        if match is not None:
            return rule.kind, match
    return None


def kernel(**facts: Any) -> RowFacts:
    return replace(KERNEL, **facts)


def stalled(**shares: float) -> Stalls:
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    return Stalls(tuple(ordered), 100.0, "attn.py:41")


# Each row: what is known, the verdict, and ids of its evidence.
POSITIVE: Mapping[str, tuple[RowFacts, str, set[str]]] = {
    "copy": (kernel(kind=FrameKind.COPY, name="<memcpy H2D>"), "copy-engine", {"row.copy"}),
    "copy by its name": (kernel(name="<memset>"), "copy-engine", {"row.copy"}),
    "copy within the device": (
        kernel(name="<memcpy D2D>", declared={"bytes": 0.45}, moved_bytes=1e9),
        "memory:dram",
        {"row.rate"},
    ),
    "copy that a cache serves": (
        kernel(name="<memcpy D2D>", declared={"bytes": 0.9}, moved_bytes=1e9),
        "copy-engine",
        {"row.copy", "row.rate"},
    ),
    "collective": (kernel(name="nccl AllReduce ring"), "waiting", {"row.collective"}),
    "clock": (
        kernel(uses=uses(tensor=0.7), clock=0.85),
        "power-capped",
        {"counter.clock", "counter.tensor"},
    ),
    "tensor": (kernel(uses=uses(tensor=0.7)), "compute:tensor", {"counter.tensor"}),
    "no other unit can be nearer": (
        kernel(uses=uses(l2=0.75), withheld={"tensor": Use(0.4, 0.2, 0.8)}),
        "memory:l2",
        {"counter.l2"},
    ),
    "fp32": (kernel(uses=uses(fp32=0.7, issue=0.75)), "compute:fp32", {"counter.fp32"}),
    "fp64": (kernel(uses=uses(fp64=0.7)), "compute:fp64", {"counter.fp64"}),
    "issue": (kernel(uses=uses(issue=0.7)), "compute:issue", {"counter.issue"}),
    "dram": (kernel(uses=uses(dram=0.7, tensor=0.01)), "memory:dram", {"counter.dram"}),
    "l2": (kernel(uses=uses(l2=0.7)), "memory:l2", {"counter.l2"}),
    "l2 that serves what the code asks for": (
        kernel(uses=uses(l2=0.7, dram=0.2), declared={"code_bytes": 0.8}),
        "memory:l2",
        {"counter.l2", "counter.dram", "code.bytes"},
    ),
    "bytes of the code beside compute": (
        kernel(uses=uses(fp64=0.7, dram=0.2), declared={"code_bytes": 0.8}),
        "compute:fp64",
        {"counter.fp64", "counter.dram"},
    ),
    "requests of l2 for little, at their roof": (
        kernel(uses=uses(l2=0.25, l2_requests=0.74)),
        "uncoalesced",
        {"counter.l2_requests", "counter.sectors"},
    ),
    "dram at its roof with what is not used": (
        kernel(uses=uses(dram=0.75, l2=0.45, l2_requests=0.45), declared={"code_bytes": 0.1}),
        "uncoalesced",
        {"counter.dram", "code.bytes"},
    ),
    "spilled registers, which no load of the code moves": (
        kernel(
            uses=uses(dram=0.75, l2=0.45, l2_requests=0.45),
            declared={"code_bytes": 0.1},
            launch=Launch(local_bytes=512.0),
        ),
        "memory:dram",
        {"counter.dram"},
    ),
    "small requests beside full tensor cores": (
        kernel(uses=BY_COLUMNS | uses(tensor=0.75)),
        "compute:tensor",
        {"counter.tensor"},
    ),
    "small requests of l2, none of its limits near": (
        kernel(uses=BY_COLUMNS),
        "uncoalesced",
        {"counter.sectors", "counter.l2_requests", "counter.dram"},
    ),
    "code that asks for a part of what moved": (
        kernel(uses=uses(dram=0.5), declared={"code_bytes": 0.1}),
        "uncoalesced",
        {"code.bytes", "counter.dram"},
    ),
    "one slice of l2": (
        kernel(uses=ALL_LOW | uses(l2_requests=0.01, l2_slice=0.5)),
        "contention",
        {"counter.l2_slice", "counter.sm_active"},
    ),
    "one slice of l2 at its roof": (
        kernel(uses=ALL_LOW | uses(l2=0.3, l2_requests=0.3, l2_slice=0.75)),
        "contention",
        {"counter.l2_slice"},
    ),
    "special functions": (kernel(uses=ALL_LOW | uses(xu=0.7)), "compute:xu", {"counter.xu"}),
    "integers": (kernel(uses=ALL_LOW | uses(alu=0.7, issue=0.4)), "compute:alu", {"counter.alu"}),
    "l1": (kernel(uses=uses(l1=0.7)), "memory:l1", {"counter.l1"}),
    "shared, which passes l1": (
        kernel(uses=uses(shared=0.6, l1=0.7)),
        "memory:shared",
        {"counter.shared"},
    ),
    "the nearest of two": (kernel(uses=uses(dram=0.6, l2=0.7)), "memory:l2", {"counter.l2"}),
    "declared bytes": (kernel(declared={"bytes": 0.8}), "memory:dram", {"declared.work"}),
    "declared operations": (kernel(declared={"flops16": 0.8}), "compute:tensor", {"declared.work"}),
    "short launches": (
        kernel(time_ns=2e4, use_of_device=IDLE),
        "launch-bound",
        {"row.mean_time", "device.idle"},
    ),
    "grid": (
        kernel(launch=Launch(blocks=48.0, units=132.0, fill=48 / 132)),
        "small-grid",
        {"launch.grid"},
    ),
    "little work": (
        kernel(
            time_ns=1.9e5, launch=Launch(waves=0.9, fill=1.0), uses=uses(sm_active=0.6, dram=0.3)
        ),
        "small-grid",
        {"launch.waves", "counter.sm_active"},
    ),
    "waves": (
        kernel(launch=Launch(waves=1.1, tail_loss=0.45, fill=1.0)),
        "tail",
        {"launch.waves"},
    ),
    "queue of shared memory": (
        kernel(stalls=stalled(mio_throttle=0.6)),
        "memory:shared",
        {"samples.mio_throttle"},
    ),
    "queue of l1": (
        kernel(stalls=stalled(lg_throttle=0.6)),
        "memory:l1",
        {"samples.lg_throttle"},
    ),
    "barrier": (kernel(stalls=stalled(barrier=0.5)), "latency", {"samples.barrier"}),
    "memory latency": (
        kernel(stalls=stalled(long_scoreboard=0.8), uses=ALL_LOW),
        "latency",
        {"samples.long_scoreboard", "counter.issue"},
    ),
    "blocks of different lengths": (
        kernel(time_ns=2e5, launch=Launch(waves=3.0, fill=1.0), uses=uses(sm_active=0.6)),
        "tail",
        {"launch.grid", "counter.sm_active"},
    ),
    "a pipe that the run did not use": (
        kernel(stalls=stalled(wait=0.9), uses=uses(issue=0.5, xu=0.1), unused=frozenset({"fp64"})),
        "latency",
        {"samples.wait", "counter.issue"},
    ),
    "all units idle": (kernel(uses=ALL_LOW), "latency", {"counter.issue", "counter.sm_active"}),
}


@pytest.mark.parametrize("case", POSITIVE)
def test_rule_decides_by_its_evidence(case: str) -> None:
    facts, kind, ids = POSITIVE[case]

    found = decided(facts)

    assert found is not None
    assert found[0] == kind
    assert ids <= {evidence.id for evidence in found[1].evidence}


NEGATIVE: Mapping[str, RowFacts] = {
    "nothing is known": KERNEL,
    "no unit is at 70 % of its ceiling": kernel(uses=uses(dram=0.55, tensor=0.5)),
    "a high clock limits nothing": kernel(uses=uses(dram=0.3), clock=0.5),
    "long launches are not launch-bound": kernel(time_ns=1e6, use_of_device=IDLE),
    "a busy device is not launch-bound": kernel(
        time_ns=2e4, use_of_device=replace(IDLE, reason="")
    ),
    "a grid for all multiprocessors": kernel(launch=Launch(blocks=132.0, units=132.0, fill=1.0)),
    "little work that keeps multiprocessors active": kernel(
        time_ns=1.9e5, launch=Launch(waves=0.9, fill=1.0), uses=uses(sm_active=0.7)
    ),
    "short work of blocks that may differ": kernel(
        time_ns=1.9e5, launch=Launch(waves=3.0, fill=1.0), uses=uses(sm_active=0.6)
    ),
    "another unit may be nearer": kernel(
        uses=uses(l2=0.6), withheld={"tensor": Use(0.6, 0.2, 0.8)}
    ),
    "a pipe of integers may be full": kernel(
        uses={unit: use for unit, use in ALL_LOW.items() if unit != "alu"}
    ),
    "a pipe of special functions may be full": kernel(
        uses={unit: use for unit, use in ALL_LOW.items() if unit != "xu"}
    ),
    "requests of l2 may be at their limit": kernel(
        uses={unit: use for unit, use in ALL_LOW.items() if unit != "l2_requests"}
    ),
    "requests of several sectors": kernel(
        uses=uses(dram=0.42, l2=0.45, l2_requests=0.5, l2_slice=0.5)
    ),
    "few small requests": kernel(uses=uses(dram=0.1, l2=0.06, l2_requests=0.18, l2_slice=0.2)),
    "small requests on a device whose peaks are not known": kernel(
        uses=uses(dram=0.42, l2=0.15, l2_requests=0.45), device=replace(H200, arch="100")
    ),
    "a slice that may be like the others": kernel(
        uses=uses(l2_requests=0.05) | {"l2_slice": Use(0.25, 0.06, 1.0)}
    ),
    "waiting for results of a pipe that may be full": kernel(
        stalls=stalled(wait=0.9), uses=uses(issue=0.5)
    ),
    "waiting for results of special functions, whose pipe may be full": kernel(
        stalls=stalled(short_scoreboard=0.8), uses=CACHES | uses(issue=0.13)
    ),
    "waiting for atomics of which one slice of l2 may be full": kernel(
        stalls=stalled(long_scoreboard=0.9),
        uses={unit: use for unit, use in CACHES.items() if unit != "l2_slice"},
    ),
    "a small tail": kernel(launch=Launch(waves=2.9, tail_loss=0.03, fill=1.0)),
    "a tail that other blocks fill": kernel(
        launch=Launch(waves=1.1, tail_loss=0.45, fill=1.0), uses=uses(sm_active=0.95)
    ),
    "a small grid whose multiprocessors are active": kernel(
        launch=Launch(blocks=48.0, units=132.0, fill=0.4), uses=uses(sm_active=0.95)
    ),
    "waiting for memory may be bandwidth": kernel(stalls=stalled(long_scoreboard=0.9)),
    "waiting for memory that is not measured": kernel(
        stalls=stalled(long_scoreboard=0.9), uses=uses(tensor=0.0, dram=0.1)
    ),
    "a busy pipe, not latency": kernel(stalls=stalled(math_pipe_throttle=0.9)),
    "reasons without a majority": kernel(
        stalls=stalled(barrier=0.2, wait=0.15, membar=0.1), uses=uses(dram=0.1)
    ),
    "bytes of the code, which say nothing of DRAM": kernel(declared={"code_bytes": 0.9}),
    "declared work far from peak": kernel(declared={"bytes": 0.3}),
    "declared work that cannot be": kernel(declared={"bytes": math.inf}),
    "declared work that is measured otherwise": kernel(
        declared={"bytes": 0.9}, uses=uses(dram=0.2)
    ),
    "not all units measured": kernel(uses=uses(dram=0.1, tensor=0.0, sm_active=1.0)),
}


@pytest.mark.parametrize("case", NEGATIVE)
def test_no_rule_decides_without_evidence(case: str) -> None:
    assert decided(NEGATIVE[case]) is None


@pytest.mark.parametrize(
    ("below", "at", "kind"),
    [
        (kernel(uses=uses(dram=0.559)), kernel(uses=uses(dram=0.56001)), "memory:dram"),
        (
            kernel(launch=Launch(blocks=93.0, units=132.0, fill=93 / 132)),
            kernel(launch=Launch(blocks=92.0, units=132.0, fill=92 / 132)),
            "small-grid",
        ),
        (
            kernel(launch=Launch(waves=1.6, tail_loss=0.249, fill=1.0)),
            kernel(launch=Launch(waves=1.5, tail_loss=0.25, fill=1.0)),
            "tail",
        ),
        (
            kernel(time_ns=100_000.0, use_of_device=IDLE),
            kernel(time_ns=99_999.0, use_of_device=IDLE),
            "launch-bound",
        ),
        (
            kernel(uses=ALL_LOW | uses(sm_active=0.69)),
            kernel(uses=ALL_LOW | uses(sm_active=0.7)),
            "latency",
        ),
        (
            kernel(stalls=stalled(barrier=0.299), uses=uses(dram=0.1)),
            kernel(stalls=stalled(barrier=0.3), uses=uses(dram=0.1)),
            "latency",
        ),
        (
            kernel(stalls=stalled(barrier=0.499)),
            kernel(stalls=stalled(barrier=0.5)),
            "latency",
        ),
        (
            kernel(stalls=stalled(mio_throttle=0.499)),
            kernel(stalls=stalled(mio_throttle=0.5)),
            "memory:shared",
        ),
    ],
)
def test_boundary(below: RowFacts, at: RowFacts, kind: str) -> None:
    found = decided(at)

    assert decided(below) is None
    assert found is not None
    assert found[0] == kind


@pytest.mark.parametrize(
    ("unit", "clock", "kind"),
    [
        ("tensor", 0.92, "power-capped"),
        ("tensor", 0.93, "compute:tensor"),
        ("dram", 0.5, "memory:dram"),
    ],
)
def test_clock_below_its_highest_rate_limits_arithmetic_only(
    unit: str, clock: float, kind: str
) -> None:
    found = decided(kernel(uses=uses(**{unit: 0.76}), clock=clock))

    assert found is not None
    assert found[0] == kind


def test_clock_that_costs_less_than_the_unit_leaves_is_evidence_only() -> None:
    found = decided(kernel(uses=uses(tensor=0.6), clock=0.8))

    assert found is not None
    assert found[0] == "compute:tensor"
    assert "counter.clock" in {evidence.id for evidence in found[1].evidence}


def test_interval_that_reaches_the_ceiling_is_no_latency() -> None:
    low = {**ALL_LOW, "dram": Use(0.53, 0.05, 0.8)}

    assert decided(kernel(uses=low)) is None


def test_no_unit_does_more_than_it_can() -> None:
    found = decided(kernel(uses={"fp64": Use(0.96, 0.01, 0.94)}))

    assert found is not None
    assert found[1].short == "100 %"
    assert not [each.text for each in found[1].evidence if "102" in each.text]
    assert found[1].evidence[0].value == 0.96


def test_mean_of_small_and_large_grids_is_not_told_as_blocks() -> None:
    mixed = Launch(blocks=588.0, units=132.0, fill=0.6, waves=1.1)

    found = decided(kernel(launch=mixed))

    assert found is not None
    assert (found[0], found[1].short) == ("small-grid", "60 % filled")
    assert "launch.fill" in {each.id for each in found[1].evidence}


@pytest.mark.parametrize(
    ("launch", "uses", "gain"),
    [
        # 16 of 132 multiprocessors, each of which holds 16 of its blocks.
        (Launch(blocks=16.0, units=132.0, fill=0.12, waves=0.0075), {}, 0.9925),
        (Launch(blocks=16.0, units=132.0, fill=0.12, waves=0.0075), {"dram": Use(0.042)}, 0.958),
        (Launch(blocks=16.0, units=132.0, fill=0.12), {}, 1.0),
        (Launch(blocks=588.0, units=132.0, fill=0.6, waves=1.1), {}, 0.4),
    ],
)
def test_more_blocks_save_until_they_fill_the_device(
    launch: Launch, uses: dict[str, Use], gain: float
) -> None:
    found = decided(kernel(launch=launch, uses=uses))

    assert found is not None
    assert found[0] == "small-grid"
    assert found[1].gain == pytest.approx(gain)


@pytest.mark.parametrize("metric", ["bytes", "flops16", "flops64"])
def test_declared_work_beyond_the_peak_is_no_limit(metric: str) -> None:
    assert decided(kernel(declared={metric: 1.0})) is not None
    assert decided(kernel(declared={metric: 5.0})) is None


def test_interval_has_the_scale_of_what_it_is_about() -> None:
    low = {**ALL_LOW, "dram": Use(0.52, 0.043, 0.8)}  # 65 +- 5.4 % of the ceiling

    assert decided(kernel(uses=low)) is None


def test_gain_is_what_the_unit_does_not_explain() -> None:
    found = decided(kernel(uses=uses(dram=0.6)))

    assert found is not None
    assert found[1].gain == pytest.approx(0.25)


def test_every_rule_names_what_helps_and_a_source() -> None:
    for rule in RULES:
        assert rule.kind in KINDS
        assert rule.helps
        assert "http" in rule.source or "CACM" in rule.source


FRACTIONS = st.one_of(st.floats(0, 2), st.just(math.nan))
FACTS = st.builds(
    kernel,
    time_ns=st.floats(1, 1e18),
    launches=st.floats(0, 1e9),
    uses=st.dictionaries(
        st.sampled_from(sorted(ALL_LOW)), st.builds(Use, st.floats(0, 2), st.floats(0, 0.06))
    ),
    clock=FRACTIONS,
    launch=st.builds(
        Launch,
        blocks=st.floats(1, 1e9),
        units=st.floats(1, 1e4),
        fill=st.floats(0, 1),
        waves=st.floats(0, 1e6),
        tail_loss=st.one_of(st.floats(0, 1, exclude_max=True), st.just(math.nan)),
        occupancy=FRACTIONS,
    ),
    stalls=st.one_of(
        st.none(),
        st.builds(
            stalled,
            **{
                name: st.floats(0.01, 1.0)
                for name in ("barrier", "long_scoreboard", "mio_throttle", "math_pipe_throttle")
            },
        ),
    ),
    declared=st.dictionaries(st.sampled_from(["bytes", "flops16", "flops64"]), FRACTIONS),
    use_of_device=st.sampled_from([None, IDLE]),
)


@given(FACTS)
@settings(max_examples=how_many(200, 20), deadline=None)
def test_no_verdict_without_evidence_and_no_gain_beyond_the_row(facts: RowFacts) -> None:
    found = decided(facts)

    if found is not None:
        kind, match = found
        assert kind in KINDS
        assert match.evidence
        assert all(evidence.id and evidence.text for evidence in match.evidence)
        assert 0.0 <= match.gain <= 1.0
        assert 0.0 <= match.idle <= 1.0


@pytest.mark.parametrize(
    ("asked", "ratio", "said"), [(0.8, 4.0, "caches"), (0.2, 1.0, ""), (0.05, 0.25, "again")]
)
def test_what_the_code_asks_for_is_compared_with_what_dram_moved(
    asked: float, ratio: float, said: str
) -> None:
    decision = decided(kernel(uses=uses(l2=0.7, dram=0.2), declared={"code_bytes": asked}))

    assert decision is not None
    found = {each.id: each for each in decision[1].evidence}["code.bytes"]
    assert found.value == pytest.approx(ratio)
    assert (":" in found.text, said in found.text) == (bool(said), True)
