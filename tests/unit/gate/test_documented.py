from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.gate.policy import METRICS, Policy, policy_from_table
from proton_bench.gate.verdict.result import EXIT_CODES, Reason, SuiteVerdict, Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "gate_policy.md").read_text("utf-8")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_stands_in_the_docs(reason: Reason) -> None:
    assert f"`{reason.value}`" in PAGE.split("## Reasons")[1]


def test_every_key_stands_in_the_docs_and_means_something() -> None:
    table = PAGE.split("| key | value | default |")[1].split("\n\n")[0]
    keys = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]

    for key in keys:
        with pytest.raises(ValueError, match=f": {key}: "):
            policy_from_table({key: object()}, "x")
    with pytest.raises(ValueError, match=f"keys are {', '.join(sorted(keys))}$"):
        policy_from_table({"none": 1}, "x")


def test_exit_codes_and_metrics_stand_in_the_docs() -> None:
    for verdict, code in EXIT_CODES.items():
        assert f"| `{verdict.value}` | {code}" in PAGE
    assert " ".join(METRICS) in PAGE
    assert set(EXIT_CODES) == set(SuiteVerdict)


def test_the_defaults_are_those_of_the_docs() -> None:
    policy = Policy()

    assert (policy.threshold, policy.share, policy.runs) == (0.03, 0.005, 4)


def test_the_gate_has_few_words() -> None:
    assert len(Verdict) <= 6
    assert len(Reason) <= 15
