"""All ways to show a gate agree, whatever was recorded."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from fakes.outcomes import HOSTILE, hostile_outcome
from fakes.runs import profiles
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import how_many

from proton_bench.analysis.run import Run
from proton_bench.gate.policy import Policy
from proton_bench.gate.verdict.comparison import gate_result
from proton_bench.gate.verdict.result import Outcome
from proton_bench.model.profile import Profile
from proton_bench.report.text.ci import gate_annotations, gate_junit
from proton_bench.report.text.gate import GateReport, gate_document, gate_markdown
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document

POLICIES = (
    Policy(),
    Policy(share=1e-9).with_thresholds(["median:3%", "calls:0", "total:1us"]),
    Policy().with_thresholds(["p95:5%", "mem:5%", "gbps:1%", "**@mean:5%"]),
)


def renamed(profile: Profile, text: str) -> Profile:
    """Return the profile with a hostile name for whatever had the first one."""
    strings = tuple(text if each == "a" else each for each in profile.strings)
    return replace(profile, strings=strings)


@settings(deadline=None, max_examples=how_many(120, 30))
@given(
    st.lists(profiles(), min_size=1, max_size=4),
    st.lists(profiles(), min_size=1, max_size=4),
    st.sampled_from(POLICIES),
)
def test_every_output_holds_every_gate(
    base: list[Profile], new: list[Profile], policy: Policy
) -> None:
    name = HOSTILE.replace("\ud800", "")
    before, after = (
        [Run(renamed(profile, name), f"{place}.proton") for place, profile in enumerate(side)]
        for side in (base, new)
    )
    outcome = Outcome(gate_result(before, after, policy), explanation="+1 %")
    verdict = str(outcome.result.verdict)

    document = json.loads(encode_document(gate_document(outcome)))
    text = gate_markdown(outcome)
    root = Xml.fromstring(gate_junit(outcome))
    printed = io.StringIO()
    print_report(open_console(printed), GateReport(outcome, everything=True))

    assert document["verdict"] == verdict
    assert text.splitlines()[1].startswith(f"### {verdict}: ")
    assert printed.getvalue().startswith(f"{verdict}: ")
    is_red = bool([*root.iter("failure"), *root.iter("error")])
    assert is_red == bool(outcome.result.exit_code)
    assert any("::error" in each[:9] for each in gate_annotations(outcome)) == is_red
    assert not any("\x1b" in each for each in (text, printed.getvalue()))


@pytest.mark.parametrize("limit", [700, 1500, 5000])
def test_markdown_keeps_any_limit(limit: int) -> None:
    assert len(gate_markdown(hostile_outcome(), limit).encode()) <= limit
