from __future__ import annotations

from proton_bench.diagnosis.finding import Status
from proton_bench.diagnosis.variables import VARIABLES, Reader, variable_section


def test_names_are_unique() -> None:
    names = [variable.name for variable in VARIABLES]

    assert len(set(names)) == len(names)


def test_variables_that_are_set_are_shown_with_their_meaning() -> None:
    (finding,) = variable_section({"PROTON_BENCH_NATIVE": "1", "HOME": "/root"}).findings

    assert (finding.name, finding.value, finding.status) == (
        "PROTON_BENCH_NATIVE",
        "'1'",
        Status.NOTE,
    )
    assert "NAME.proton" in finding.advice


def test_upstream_knobs_without_effect_say_so() -> None:
    upstream = {one.name: "x" for one in VARIABLES if one.reader is Reader.UPSTREAM}

    findings = variable_section(upstream).findings

    assert len(findings) == len(upstream) > 0
    assert all("this release does not read it" in finding.advice for finding in findings)


def test_a_misspelt_variable_is_a_problem_and_the_right_one_is_named() -> None:
    (finding,) = variable_section({"PROTON_BENCH_DISABLED": "1"}).findings

    assert finding.status is Status.PROBLEM
    assert finding.advice == "nothing reads this variable; did you mean 'PROTON_BENCH_DISABLE'?"


def test_values_cannot_break_a_line() -> None:
    (finding,) = variable_section({"PROTON_BENCH_NATIVE": "a\nb\x1b"}).findings

    assert finding.value == r"'a\nb\x1b'"


def test_of_an_empty_environment_nothing_is_said() -> None:
    assert variable_section({}).findings == ()
