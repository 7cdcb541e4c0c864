from __future__ import annotations

import pytest

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status

DIAGNOSIS = Diagnosis(
    (
        Section("backends", (Finding("cpu", Status.OK, "here", provides=("cpu",)),)),
        Section(
            "packages",
            (
                Finding("torch", Status.OK, "2.13.0", provides=("torch",)),
                Finding("script", Status.NOTE, "not on PATH", provides=("proton",)),
                Finding("driver", Status.ABSENT, "none found", "install one", provides=("gpu",)),
                Finding("module", Status.PROBLEM, "does not load", provides=("native",)),
            ),
        ),
        Section("extras", (Finding("torch", Status.ABSENT, "missing: x", provides=("torch",)),)),
    )
)


def test_what_is_ok_or_a_note_satisfies_a_requirement() -> None:
    assert DIAGNOSIS.missing(["cpu", "proton"]) == ()


@pytest.mark.parametrize("name", ["gpu", "native"])
def test_what_is_absent_or_broken_does_not(name: str) -> None:
    (finding,) = DIAGNOSIS.missing(["cpu", name])

    assert finding.provides == (name,)


def test_of_two_things_with_one_name_the_missing_one_decides() -> None:
    (finding,) = DIAGNOSIS.missing(["torch"])

    assert finding.value == "missing: x"


def test_an_unknown_name_is_missing_and_the_choices_are_named() -> None:
    (finding,) = DIAGNOSIS.missing(["cupti"])

    assert (finding.name, finding.status) == ("cupti", Status.ABSENT)
    assert finding.advice == "choose from: cpu, gpu, native, proton, torch"


def test_nothing_required_is_never_missing() -> None:
    assert DIAGNOSIS.missing([]) == ()


@pytest.mark.parametrize(
    ("status", "is_usable"),
    [(Status.OK, True), (Status.NOTE, True), (Status.ABSENT, False), (Status.PROBLEM, False)],
)
def test_what_is_absent_or_broken_is_not_usable(status: Status, is_usable: bool) -> None:
    assert Finding("x", status, "value").usable is is_usable
