"""Findings about scopes inside kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from fakes.counted import H200

from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Finding
from proton_bench.formats.registry import read_profile
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

MS = 10**6
LOOP = "loop.0@matmul.py:12"


def instrumented(
    loop: Mapping[str, int],
    *,
    whole: int,
    time_ms: float = 0,
    passes: Sequence[float] = (),
    loop_name: str = LOOP,
) -> Profile:
    """A kernel with one loop of ``whole`` cycles, and the cycles of scopes in it."""
    builder = ProfileBuilder()
    for name in ("cycles", "normalized_cycles", "instances", "instrumented_launches"):
        builder.declare(name, Aggregation.EXCLUSIVE)
    facts = {"instrumented_launches": 1}
    if time_ms:
        facts |= {"time (ns)": int(time_ms * MS), "count": 1}
    kernel = builder.add(0, "product", FrameKind.KERNEL, metrics=facts, device=H200)

    def add(above: int, name: str, cycles: int) -> int:
        # One launch of 8 warps.
        metrics = {"cycles": cycles, "normalized_cycles": cycles / 8, "instances": 8}
        return builder.add(above, name, FrameKind.SCOPE, metrics=metrics, device=H200)

    top = add(kernel, loop_name, whole)
    for name, cycles in loop.items():
        add(top, name, cycles)
    if passes:
        builder.set_distribution(top, "cycles", Distribution.from_samples(passes))
    return builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 100 * MS})


def found_in(profile: Profile) -> dict[str, Finding]:
    return {finding.id: finding for finding in find(WholeRun.of(profile))}


def values(finding: Finding) -> dict[str, float | None]:
    return {each.id: each.value for each in finding.evidence}


PIPELINED = {
    "load_issue.0@matmul.py:13": 60_000,
    "load_wait.0@matmul.py:13": 540_000,
    "dot_issue.0@matmul.py:15": 100_000,
    "dot_wait.0@matmul.py:15": 200_000,
}


def test_the_largest_wait_of_a_kernel_is_named_with_its_share() -> None:
    finding = found_in(instrumented(PIPELINED, whole=1_000_000, time_ms=40))["inside-kernel"]

    assert values(finding)["scopes.dominant"] == pytest.approx(0.54, rel=0.01)
    assert "load_wait.0@matmul.py:13" in finding.text
    assert finding.gain_ns == pytest.approx(0.54 * 40 * MS, rel=0.01)
    assert "num_stages" in finding.helps


def test_latency_is_hidden_except_for_what_is_waited_for() -> None:
    overlap = values(found_in(instrumented(PIPELINED, whole=1_000_000))["inside-kernel"])

    assert overlap["scopes.overlap"] == pytest.approx(0.46, rel=0.01)


def test_loads_that_are_not_issued_ahead_hide_nothing() -> None:
    parts = {"load.0@matmul.py:13": 400_000, "dot.0@matmul.py:15": 300_000}

    assert values(found_in(instrumented(parts, whole=1_000_000))["inside-kernel"])[
        "scopes.overlap"
    ] == pytest.approx(0.0)


def test_dots_that_dominate_save_the_rest() -> None:
    parts = {
        "load_issue.0@a.py:1": 10_000,
        "load_wait.0@a.py:1": 90_000,
        "dot_wait.0@a.py:2": 800_000,
    }

    finding = found_in(instrumented(parts, whole=1_000_000, time_ms=40))["inside-kernel"]

    assert finding.gain_ns == pytest.approx(0.2 * 40 * MS, rel=0.01)
    assert values(finding)["scopes.overlap"] == pytest.approx(0.91, rel=0.01)


def test_work_between_the_scopes_of_a_loop_is_not_of_one_of_them() -> None:
    finding = found_in(instrumented({"load.0@a.py:1": 100_000}, whole=1_000_000))["inside-kernel"]

    assert values(finding)["scopes.dominant"] == pytest.approx(0.9, rel=0.01)
    assert LOOP in finding.text


def test_nothing_dominates_where_the_parts_are_alike() -> None:
    parts = {f"load_wait.{number}@a.py:{number}": 250_000 for number in range(4)}

    assert "inside-kernel" not in found_in(instrumented(parts, whole=1_000_000))


def test_scopes_of_the_source_have_no_kind() -> None:
    finding = found_in(instrumented({}, whole=1_000_000, loop_name="my part"))["inside-kernel"]

    assert "my part" in finding.text
    assert "--instrument" in finding.helps


def test_without_a_time_of_the_kernel_the_clock_tells_how_long_a_warp_took() -> None:
    finding = found_in(instrumented(PIPELINED, whole=8_000_000))["inside-kernel"]

    # 1 000 000 cycles at 1.98 GHz, of which 540 000 of 8 000 000 are waited for at most.
    between = (8_000_000 - 900_000) / 8_000_000
    assert finding.gain_ns == pytest.approx(1_000_000 / 1.98 * between, rel=0.01)
    assert finding.own_ns == 0  # no time of the run that can be added up


DATA = Path(__file__).parents[3] / "data" / "verdicts"


@pytest.mark.parametrize(
    ("name", "expected", "share"),
    [
        ("staged", "load_issue.6@inside.py:11", 0.40),  # product of tiles of 128, four stages
        ("two", "load_wait.0@inside.py:11", 0.60),  # of tiles of 64, two stages: records were lost
        ("single", "dot_wait.0@inside.py:13", 0.42),  # without stages: the same
        ("even", "loop.0@inside.py:29", 0.99),  # a sum waits where it adds what was loaded
        ("counted", "atomic.0@inside.py:37", 0.96),
    ],
)
def test_recorded_kernels_wait_for_what_they_were_made_to_wait_for(
    name: str, expected: str, share: float
) -> None:
    found = found_in(read_profile(DATA / f"inside_{name}.proton"))

    assert values(found["inside-kernel"])["scopes.dominant"] == pytest.approx(share, abs=0.01)
    assert expected in found["inside-kernel"].text
    assert {type(value) for value in values(found["inside-kernel"]).values()} == {float}  # for JSON
    assert "uneven-warps" not in found


@pytest.mark.parametrize(
    ("name", "hidden"), [("staged", 1.0), ("two", 0.38), ("single", 0.0), ("even", None)]
)
def test_recorded_loops_hide_latency_as_far_as_their_stages_let_them(
    name: str, hidden: float | None
) -> None:
    finding = found_in(read_profile(DATA / f"inside_{name}.proton"))["inside-kernel"]

    overlap = values(finding).get("scopes.overlap")
    assert overlap == (None if hidden is None else pytest.approx(hidden, abs=0.01))


def test_warps_that_lost_records_made_more_of_them_than_others() -> None:
    found = found_in(read_profile(DATA / "inside_ragged.proton"))

    # A twentieth of the programs had rows of twenty times the length.
    assert values(found["uneven-warps"])["scopes.long_warps"] == pytest.approx(2.7, abs=0.05)
    assert "540 warps" in found["uneven-warps"].text


@pytest.mark.parametrize(("longest", "is_uneven"), [(1900.0, False), (4000.0, True)])
def test_warps_are_uneven_if_the_slowest_take_twice_the_mean(
    longest: float, is_uneven: bool
) -> None:
    passes = [1000.0] * 780 + [longest] * 20

    found = found_in(instrumented({}, whole=1_000_000, time_ms=40, passes=passes))

    assert ("uneven-warps" in found) is is_uneven


def test_few_passes_say_nothing_of_balance() -> None:
    passes = [1000.0] * 90 + [9000.0] * 4

    assert "uneven-warps" not in found_in(instrumented({}, whole=1_000_000, passes=passes))


def test_profiles_without_scopes_have_no_such_finding() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"time (ns)": 5 * MS, "count": 1}, device=H200)

    assert not {"inside-kernel", "uneven-warps"} & found_in(builder.build()).keys()
