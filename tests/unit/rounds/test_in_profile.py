from __future__ import annotations

from fakes.benchmarks import record_of

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.rounds.in_profile import profile_of
from proton_bench.rounds.record import REPLICATE

TEST = ("session", "test_x.py", "test_a")


def value(profile: Profile, path: tuple[str, ...], metric: str) -> object:
    (row,) = [row for row in range(len(profile)) if profile.path(row) == path]
    column = profile.columns.get(metric)
    if column is None or not column.valid[row]:
        return None
    return column.values[row] if column.kind.is_number else column.strings[column.values[row]]


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


def test_the_warm_up_beside_the_rounds_says_its_calls() -> None:
    profile = profile_of([record_of(warmup=9)])

    assert value(profile, (*TEST, "call", "warm-up"), "calls") == 9
    assert value(profile, (*TEST, "call", "rounds"), "calls") == 12


def test_what_the_marker_allows_is_recorded() -> None:
    place = (*TEST, "call", "rounds")

    assert value(profile_of([record_of()]), place, "gate_threshold") is None
    marked = profile_of([record_of(threshold="median:9%")])
    assert value(marked, place, "gate_threshold") == "median:9%"


def test_a_merged_profile_counts_no_process_for_the_rounds() -> None:
    builder = ProfileBuilder()
    builder.add(0, "session", FrameKind.TEST, metrics={"wall (ns)": 7})
    own = builder.build(provenance={"host": "h"})

    merged = Profile.merge([own, profile_of([record_of()])])

    assert len(merged.provenance["parts"]) == 1
