from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from fakes.profiles import training_profile

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.report.html.document import fact_lines


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
