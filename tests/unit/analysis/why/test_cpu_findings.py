"""Findings of runs in which no device worked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.counted import SECOND, Kernel, counted_profile

from proton_bench.analysis.why.answer import why
from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import Finding
from proton_bench.errors import UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

MS = 1_000_000


def found_in(profile: Profile) -> dict[str, Finding]:
    return {finding.id: finding for finding in find(WholeRun.of(profile))}


CPU = Device("CPU", 0)


def test_operators_on_a_processor_are_named_over_all_their_rows() -> None:
    profile = counted_profile(
        Kernel(path="a/aten::bmm", time_ns=30.0 * MS, count=6, kind=FrameKind.OP, device=CPU),
        Kernel(path="b/aten::bmm", time_ns=20.0 * MS, count=4, kind=FrameKind.OP, device=CPU),
        Kernel(path="b/aten::add", time_ns=41.0 * MS, count=9000, kind=FrameKind.OP, device=CPU),
        Kernel(path="aten::relu", time_ns=9.0 * MS, count=10, kind=FrameKind.OP, device=CPU),
    )

    found = found_in(profile)

    assert found.keys() == {"hottest-operators", "small-operators"}
    assert found["hottest-operators"].gain_ns == 50 * MS
    assert "aten::bmm: 50 ms" in found["hottest-operators"].text
    assert "10 calls of 5 ms" in found["hottest-operators"].text
    assert found["small-operators"].gain_ns == 41 * MS
    assert "9 000 calls of 4.556 us" in found["small-operators"].text


def test_time_of_other_threads_saves_no_more_than_the_run() -> None:
    builder = ProfileBuilder()
    builder.declare("wall (ns)", Aggregation.EXCLUSIVE)
    for name, thread, seconds in (
        ("wait", "host_wall (ns)", 2),
        ("fetch", "other_threads (ns)", 9),
        ("<not recorded>", "host_wall (ns)", 1),
    ):
        metrics = {thread: seconds * SECOND}
        if name != "<not recorded>":
            metrics["wall (ns)"] = seconds * SECOND
        builder.add(0, name, FrameKind.SCOPE, metrics=metrics)
    profile = builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + 3 * SECOND})

    run = WholeRun.of(profile)
    gains = {finding.text.partition(":")[0]: finding.gain_ns for finding in find(run)}

    assert gains == {
        "fetch": 3 * SECOND,
        "wait": 2 * SECOND,
        "code outside recorded work": SECOND,
    }
    assert sum(finding.own_ns for finding in find(run)) == 3 * SECOND
    assert run.times.host_recorded_ns == 2 * SECOND


def host_only(*lines: tuple[str, int], **facts: Any) -> Profile:
    """Return a run of 1 s with an operator of 100 ms and samples of other code."""
    builder = ProfileBuilder()
    builder.declare("host_wall (ns)", Aggregation.INCLUSIVE)
    outside = builder.add(0, "<not recorded>", FrameKind.PYTHON)
    for line, time_ms in lines:
        builder.add(outside, line, metrics={"host_wall (ns)": time_ms * MS})
    metrics = {"time (ns)": 100 * MS, "host_wall (ns)": 100 * MS}
    builder.add(0, "aten::mm", FrameKind.OP, metrics=metrics, device=CPU)
    return builder.build(provenance={"start_time_ns": 1, "end_time_ns": 1 + SECOND, **facts})


STEPS = {
    "by": "scope",
    "name": "step",
    "first": 2,
    "count": 1,
    "begun": 4,
    "run_ns": SECOND,
    **dict.fromkeys(("low_ns", "median_ns", "high_ns", "before_ns"), 1),
}


def test_code_outside_recorded_work_is_a_finding_with_its_lines() -> None:
    profile = host_only(("train.py:8@batches", 600), ("train.py:9@batches", 300))

    finding = found_in(profile)["other-code"]

    assert finding.gain_ns == 900 * MS
    lines = {each.text: each.value for each in finding.evidence if each.id == "host.line"}
    assert list(lines.values()) == [600 * MS, 300 * MS]
    assert [each.id for each in why(profile, "batches").findings] == ["other-code"]
    for word in ("batch", "8", "in"):
        with pytest.raises(UsageError):
            why(profile, word)


@pytest.mark.parametrize(("facts", "is_found"), [({}, False), ({"steps": STEPS}, True)])
def test_without_samples_only_the_step_tells_of_other_code(
    facts: dict[str, Any], is_found: bool
) -> None:
    profile = host_only(**facts)
    profile = replace(profile, columns={"time (ns)": profile.columns["time (ns)"]})

    finding = found_in(profile).get("other-code")

    assert (finding is not None) is is_found
    assert finding is None or finding.gain_ns == 900 * MS


def test_operators_beside_a_device_are_no_findings() -> None:
    profile = counted_profile(
        Kernel(path="aten::bmm", time_ns=30.0 * MS, kind=FrameKind.OP, device=CPU),
        Kernel(path="k", time_ns=30.0 * MS),
    )

    assert not {"hottest-operators", "small-operators"} & found_in(profile).keys()
