from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from fakes.profiles import training_profile
from fakes.runs import run_of
from fakes.suites import suite

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.html.document import fact_lines
from proton_bench.report.html.summary import Summary, comparison_summary, profile_summary
from proton_bench.report.html.table import kernel_table


def summary_of(profile: Profile, *metrics: str) -> Summary:
    names = metrics or default_metrics(profile)
    kernels = kernel_table(profile, names, Selection())
    return profile_summary(profile, build_tree(profile, names, Selection()), kernels)


def test_total_and_rows_are_reported() -> None:
    summary = summary_of(training_profile())

    assert summary.headline == "time 4 ms"
    assert summary.lines[0] == "10 rows, 2 kernels and operators"
    assert summary.warnings == ()


def test_what_benchmarks_are_scaled_to_is_reported() -> None:
    comparison = compare([Run(suite(10, 4), "a")], [Run(suite(40, 8), "b")], CompareOptions())

    assert "called a different number of times" in comparison_summary(comparison).lines[-1]


def test_busy_devices_and_the_profilers_own_cost_are_reported() -> None:
    use = DeviceUse(None, 0, busy_ns=3_000_000, idle_ns=1_000_000)
    facts = Provenance({"estimated_cost_ns": 20_000, "start_time_ns": 0, "end_time_ns": 10_000_000})

    summary = summary_of(replace(training_profile(), device_use=(use,), provenance=facts))

    assert summary.lines[1] == (
        "CUDA:0 busy 30 % of the run, idle 10 % of it between its first and last work"
    )
    assert "40 %" in summary.lines[2]
    assert summary.lines[3].startswith("own cost of the profiler: about 20 us (its estimate)")


def test_losses_are_warnings() -> None:
    profile = replace(training_profile(), partial=True, dropped={"buffer overflow": 3})

    assert summary_of(profile).warnings == (
        "PARTIAL: the file was written before the run ended",
        "DROPPED: 3 records: buffer overflow",
    )


def test_negative_bytes_are_a_warning() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"bytes": -5, "time (ns)": 1})

    (warning,) = summary_of(builder.build(), "time/ns", "bytes").warnings
    assert "integer overflow" in warning


def test_empty_profile_is_reported() -> None:
    summary = profile_summary(ProfileBuilder().build(), None, None)

    assert summary.headline == "nothing was recorded"
    assert summary.warnings[0].startswith("EMPTY: the profile has no rows")


def test_numbers_without_a_unit_are_reported() -> None:
    builder = ProfileBuilder()
    builder.add(0, "k", FrameKind.KERNEL, metrics={"cycles": 1234.5})

    summary = summary_of(builder.build())

    assert summary.headline == "cycles 1234"


def test_comparison_says_what_changed_and_what_both_cost() -> None:
    base = run_of(("s/a", 1000, 1, ""), source="base.proton")
    new = run_of(("s/a", 1500, 1, ""), source="new.proton")
    lossy = replace(new, profile=replace(new.profile, dropped={"full": 2}))

    summary = comparison_summary(compare([base], [lossy], CompareOptions()))

    assert summary.headline.startswith("+50.0 % (+500 ns)")
    assert summary.lines == (
        "base: base.proton: 1 us",
        "new: new.proton: 1.5 us",
        "both: own cost of the profiler: unknown, the files do not say",
    )
    assert summary.warnings == ("new.proton: DROPPED: 2 records: full",)


def test_side_that_cost_more_to_record_is_a_warning() -> None:
    run = run_of(("s/a", 1000, 1, ""), source="x.proton")
    sides = [
        replace(run, profile=replace(run.profile, provenance=Provenance(facts)))
        for facts in (
            {"estimated_cost_ns": cost, "start_time_ns": 0, "end_time_ns": 1000}
            for cost in (10, 500)
        )
    ]

    summary = comparison_summary(compare(sides[:1], sides[1:], CompareOptions()))

    assert summary.lines[2].startswith("base: own cost of the profiler: about 10 ns")
    (warning,) = summary.warnings
    assert "more in new than in base" in warning


def profile_with(**facts: Any) -> Profile:
    return replace(ProfileBuilder().build(), provenance=Provenance(facts))


def texts(profile: Profile) -> dict[str, str]:
    return {line.name: line.texts[0] for line in fact_lines([profile])}


def test_nested_facts_get_a_path() -> None:
    profile = profile_with(
        command=["python", "a.py"],
        git={"revision": "abc", "dirty": True},
        gpus_at_start=[{"name": "H200"}, {"name": "H100"}],
        hook=None,
        mode="",
    )

    assert texts(profile) == {
        "command": "python a.py",
        "git.revision": "abc",
        "git.dirty": "True",
        "gpus_at_start[0].name": "H200",
        "gpus_at_start[1].name": "H100",
    }


def test_times_and_costs_can_be_read() -> None:
    found = texts(
        profile_with(start_time_ns=1_763_750_000 * 10**9, estimated_cost_ns=41_000, pid=7)
    )

    assert found == {
        "start_time_ns": "2025-11-21 18:33:20 UTC",
        "estimated_cost_ns": "41 us",
        "pid": "7",
    }


def test_costs_of_several_runs_have_one_unit() -> None:
    runs = [profile_with(estimated_cost_ns=cost) for cost in (900_000, 1_200_000, None)]

    assert [line.texts for line in fact_lines(runs)] == [("0.9 ms", "1.2 ms", "")]


@pytest.mark.parametrize("value", [10**40, -(10**40), 10**400, math.inf, math.nan, True, "soon"])
def test_impossible_times_are_shown_as_they_are(value: Any) -> None:
    facts = {"start_time_ns": value, "estimated_cost_ns": value}

    assert texts(profile_with(**facts)) == {name: str(value) for name in facts}


@pytest.mark.parametrize(
    ("nanoseconds", "date"), [(-(2**63), "1677-09-21"), (2**63 - 2**10, "2262-04-11")]
)
def test_every_time_of_64_bits_has_a_date(nanoseconds: int, date: str) -> None:
    assert texts(profile_with(end_time_ns=nanoseconds + 1))["end_time_ns"].startswith(date)


def test_devices_come_first() -> None:
    name, text = next(iter(texts(training_profile()).items()))

    assert name == "device CUDA:0"
    assert text == ("architecture 90, 132 multiprocessors, 1980 MHz, memory 2619 MHz, 6144 bit")


def test_runs_stand_side_by_side_and_differences_are_marked() -> None:
    lines = fact_lines([profile_with(a="1", b="2"), profile_with(a="1", b="3", c="4")])

    assert [(line.name, line.texts, line.differs) for line in lines] == [
        ("a", ("1", "1"), False),
        ("b", ("2", "3"), True),
        ("c", ("", "4"), True),
    ]


def test_collectives_are_sentences_without_their_calls() -> None:
    kind = {"name": "gloo:all_reduce", "ranks": 2, "calls": 5, "ended": 5, "total_ns": 5000}
    profile = profile_with(collectives={"kinds": [kind], "calls": {"number": [1] * 100}})

    assert texts(profile) == {
        "collectives": "gloo:all_reduce: 5 calls among 2 ranks, 1 us from arrival to end"
    }


def test_facts_without_end_are_cut() -> None:
    lines = fact_lines([profile_with(**{f"k{place}": place for place in range(1000)})])

    assert len(lines) == 401
    assert lines[-1].texts == ("600 further facts are in the file",)


def test_texts_are_made_visible_and_cut() -> None:
    found = texts(profile_with(command="a\nb" + "x" * 10_000, **{"k\x1b": 1}))

    assert found["command"].startswith("a\\nbxxx")
    assert found["command"].endswith("more characters)")
    assert found["k\\x1b"] == "1"


def test_deep_facts_end_somewhere() -> None:
    value: Any = "end"
    for _ in range(50):
        value = {"a": value}

    (line,) = fact_lines([profile_with(deep=value)])

    assert line.name == "deep.a.a.a.a.a"
