from __future__ import annotations

import pytest
from fakes.benchmarks import record_of

from proton_bench.benchmarks.in_profile import gated_profile, profile_of
from proton_bench.benchmarks.record import REPLICATE
from proton_bench.errors import UsageError
from proton_bench.gate.canary import CANARY_SCOPE
from proton_bench.profile import (
    Device,
    Distribution,
    FrameKind,
    Profile,
    ProfileBuilder,
    Variant,
)
from proton_bench.rounds.cuda import FLUSH

GPU = Device("CUDA", 0, "90", 132)
TEST = ("session", "test_x.py", "test_a")


def value(profile: Profile, path: tuple[str, ...], metric: str) -> object:
    (row,) = [row for row in range(len(profile)) if profile.path(row) == path]
    column = profile.columns[metric]
    if not column.valid[row]:
        return None
    return column.values[row] if column.kind.is_number else column.strings[column.values[row]]


def with_kernels() -> Profile:
    """Return a run in which three rounds of four calls launched a kernel twice per call."""
    builder = ProfileBuilder()
    above = 0
    for name in TEST:
        above = builder.add(above, name, FrameKind.TEST)
    setup = builder.add(above, "setup", FrameKind.TEST)
    builder.add(setup, "fill", FrameKind.KERNEL, metrics={"time (ns)": 9, "count": 1}, device=GPU)
    call = builder.add(above, "call", FrameKind.TEST)
    warm = builder.add(call, "warm-up", FrameKind.SCOPE)
    builder.add(warm, "mm", FrameKind.KERNEL, metrics={"time (ns)": 800, "count": 4}, device=GPU)
    rounds = builder.add(call, "rounds", FrameKind.SCOPE, metrics={"wall (ns)": 7})
    flush = builder.add(call, FLUSH, FrameKind.SCOPE)
    builder.add(flush, "memset", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 3}, device=GPU)
    fwd = builder.add(rounds, "fwd", FrameKind.SCOPE)
    kernel = builder.add(
        fwd,
        "mm",
        FrameKind.KERNEL,
        metrics={"time (ns)": 2400, "count": 24},
        device=GPU,
        variant=Variant(code_hash="c1"),
    )
    builder.set_distribution(kernel, "time (ns)", Distribution.from_samples([100.0] * 24))
    own = builder.build(provenance={"host": "h"})
    return Profile.merge([own, profile_of([record_of(gpu_ns=(50e3,) * 3, metric="cuda")])])


# -- into the profile ----------------------------------------------------------------------------
def test_rounds_stand_below_the_test_and_say_that_they_are_one_replicate() -> None:
    profile = profile_of([record_of(flops=10.0)])
    place = (*TEST, "call", "rounds")

    assert value(profile, place, "benchmark") == "test_x.py::test_a"
    assert value(profile, place, "replicate") == REPLICATE == "process"
    assert value(profile, place, "clock") == "cpu"
    assert value(profile, place, "rounds") == 3
    assert value(profile, place, "calls") == 12
    assert value(profile, place, "flops") == 120.0
    assert value(profile, place, "cpu_round (ns)") == 101e3
    (row,) = [row for row in range(len(profile)) if profile.path(row) == place]
    times = profile.distributions["cpu_round (ns)"].get(row)
    assert times is not None
    assert (times.n, times.minimum, times.maximum) == (3, 100e3, 102e3)
    assert profile.kind(row) is FrameKind.SCOPE


def test_tests_of_one_file_share_its_node() -> None:
    profile = profile_of([record_of("f.py::test_a"), record_of("f.py::test_b")])

    assert len(profile) == 1 + 2 + 2 * 3


def test_a_merged_profile_counts_no_process_for_the_rounds() -> None:
    merged = with_kernels()

    assert len(merged.provenance["parts"]) == 1


# -- what the gate looks at ----------------------------------------------------------------------
def test_the_gate_sees_rounds_and_what_ran_in_them_for_one_call() -> None:
    gated = gated_profile(with_kernels(), "x.proton")
    test = "test_x.py::test_a"

    paths = [gated.path(row) for row in range(1, len(gated))]
    assert paths == [(test,), (test, "round"), (test, "fwd"), (test, "fwd", "mm")]
    assert value(gated, (test, "round"), "time (ns)") == 50e3
    assert value(gated, (test, "fwd", "mm"), "time (ns)") == 200.0
    assert value(gated, (test, "fwd", "mm"), "count") == 2.0
    assert value(gated, (test, "round"), "count") is None
    assert gated.device(4) == GPU
    variant = gated.variant(4)
    assert variant is not None
    assert variant.code_hash == "c1"
    times = gated.distributions["time (ns)"].get(4)
    assert times is not None
    assert times.n == 24
    assert gated.provenance["host"] == "h"


def test_canaries_stay_as_they_are() -> None:
    builder = ProfileBuilder()
    canary = builder.add(0, CANARY_SCOPE, FrameKind.SCOPE)
    builder.add(canary, "fma", FrameKind.KERNEL, metrics={"time (ns)": 70, "count": 7}, device=GPU)
    profile = Profile.merge([builder.build(), profile_of([record_of()])])

    gated = gated_profile(profile, "x.proton")

    assert value(gated, (CANARY_SCOPE, "fma"), "time (ns)") == 70.0
    assert value(gated, (CANARY_SCOPE, "fma"), "count") == 7.0


def test_a_marker_may_gate_the_other_clock() -> None:
    record = record_of(gpu_ns=(50e3,) * 3, metric="cpu", device="cuda")

    gated = gated_profile(profile_of([record]), "x.proton")

    assert value(gated, (record.id, "round"), "time (ns)") == 101e3


def test_a_profile_without_benchmarks_is_named() -> None:
    builder = ProfileBuilder()
    builder.add(0, "mm", FrameKind.KERNEL, metrics={"time (ns)": 1})

    with pytest.raises(UsageError, match=r"x\.proton holds no benchmark of pytest"):
        gated_profile(builder.build(), "x.proton")
