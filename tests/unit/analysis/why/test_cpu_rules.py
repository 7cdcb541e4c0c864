from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.analysis.why.cpu_rules import CPU_RULES, help_for, why_unknown
from proton_bench.analysis.why.row_facts import Facts, RowFacts
from proton_bench.analysis.why.rules import Match
from proton_bench.analysis.why.verdict import KINDS
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile

ROW = RowFacts("aten::add", FrameKind.OP, 1e6, launches=10, device=Device("CPU", 0))
KILO = 1000.0


def counted(
    ipc: float, *, cache: float = 0.0, branch: float = 0.0, cycles: float = 1e6
) -> RowFacts:
    """Return a row with that many instructions per cycle, and misses per 1000 of them."""
    instructions = ipc * cycles
    counts = {
        "instructions": instructions,
        "cpu_cycles": cycles,
        "cache_misses": cache * instructions / KILO,
        "branch_misses": branch * instructions / KILO,
    }
    return replace(ROW, processor=counts)


def decided(facts: RowFacts) -> tuple[str, Match] | None:
    """Return the first rule that fits."""
    matches = ((rule.kind, rule.find(facts)) for rule in CPU_RULES)
    return next(((kind, match) for kind, match in matches if match is not None), None)


@pytest.mark.parametrize(
    ("facts", "kind", "ids"),
    [
        (counted(0.5, cache=30), "memory:dram", {"counter.cache_mpki", "counter.ipc"}),
        (counted(0.99, cache=10), "memory:dram", {"counter.cache_mpki"}),
        (counted(1.0, branch=20), "latency", {"counter.recovery", "counter.branch_mpki"}),
        (counted(3.0, cache=0.1, branch=1), "compute:issue", {"counter.ipc"}),
        (counted(2.0), "compute:issue", {"counter.ipc"}),
        # Waiting for memory hides what branches cost.
        (counted(0.5, cache=30, branch=40), "memory:dram", {"counter.cache_mpki"}),
    ],
)
def test_counters_decide(facts: RowFacts, kind: str, ids: set[str]) -> None:
    found = decided(facts)

    assert found is not None
    assert found[0] == kind
    assert ids <= {each.id for each in found[1].evidence}
    assert 0 < found[1].gain <= 1


@pytest.mark.parametrize(
    "facts",
    [
        counted(1.5),
        counted(0.5, cache=9.9),
        counted(1.01, cache=30),
        counted(0.5, branch=20),  # 15 % of the cycles
        counted(3.0, cycles=9e4),  # 9000 for each of ten calls
        counted(3.0, cycles=0.0),
        replace(counted(3.0), device=Device("CUDA", 0)),
        replace(ROW, processor={"instructions": 1e9}),
        replace(ROW, processor={"cpu_cycles": 1e9}),
    ],
)
def test_nothing_is_said_without_evidence(facts: RowFacts) -> None:
    assert decided(facts) is None
    reason, measure, _ = why_unknown(facts)
    assert reason
    assert measure


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (replace(ROW, launches=101), "overhead"),
        (replace(ROW, launches=100), "on-cpu"),
        (replace(ROW, launches=0), "on-cpu"),
        (replace(ROW, device=None), "on-cpu"),  # a range of a file that names no device
        (replace(ROW, name="request", launches=1000), "on-cpu"),
        (replace(ROW, device=None, kind=FrameKind.UNKNOWN), None),
        (replace(counted(1.5), launches=1000), "overhead"),
        (replace(ROW, device=Device("CUDA", 0)), None),
        (replace(ROW, device=None, kind=FrameKind.KERNEL), None),
    ],
)
def test_what_was_not_counted_is_told_by_the_length_of_its_calls(
    facts: RowFacts, kind: str | None
) -> None:
    found = decided(facts)

    assert (None if found is None else found[0]) == kind
    if found is not None:
        assert "counters" not in found[1].helps


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten::addmm", "threads"),
        ("aten::convolution_backward", "threads"),
        ("aten::copy_", "copies"),
        ("Torch-Compiled Region: 1/0", "max-autotune"),
        ("request", "threads"),
        ("aten::softmax", ""),
    ],
)
def test_what_helps_depends_on_the_operator(name: str, words: str) -> None:
    assert words in help_for(name)
    assert bool(words) == bool(help_for(name))


def test_rows_of_unknown_limits_show_what_is_known() -> None:
    _, measure, evidence = why_unknown(counted(1.5, cache=3, branch=4))

    values = {each.id: each.value for each in evidence}
    assert values["counter.ipc"] == pytest.approx(1.5)
    assert values["counter.cache_mpki"] == pytest.approx(3)
    assert values["counter.branch_mpki"] == pytest.approx(4)
    assert measure == "perf stat --topdown"


def test_rows_without_misses_are_judged_by_the_rest() -> None:
    fast = counted(3.0)
    known = {name: fast.processor[name] for name in ("instructions", "cpu_cycles")}

    found = decided(replace(ROW, processor=known))

    assert found is not None
    assert found[0] == "compute:issue"


def test_every_rule_names_its_condition_what_helps_and_a_source() -> None:
    for rule in CPU_RULES:
        assert rule.kind in KINDS
        assert rule.when
        assert rule.helps
        assert "http" in rule.source


COUNTS = st.floats(0, 1e300)


@given(st.dictionaries(st.sampled_from(sorted(counted(1).processor)), COUNTS), COUNTS)
def test_any_counts_have_a_verdict_or_a_reason(counts: dict[str, float], launches: float) -> None:
    facts = replace(ROW, processor=counts, launches=launches)

    found = decided(facts)

    if found is None:
        assert why_unknown(facts)[0]
    else:
        assert found[1].evidence
        assert 0 <= found[1].gain <= 1


def operator(provenance: dict[str, object] | None = None, **counts: float) -> Profile:
    builder = ProfileBuilder()
    metrics = {"time (ns)": 1e6, "count": 1.0, **counts}
    builder.add(0, "aten::mm", FrameKind.OP, device=Device("CPU", 0), metrics=metrics)
    return builder.build(provenance=provenance or {})


def test_verdicts_of_a_profile_use_the_counts_of_its_rows() -> None:
    counts = {"instructions": 3e6, "cpu_cycles": 1e6, "cache_misses": 10, "branch_misses": 10}

    verdict = Verdicts(operator(**counts)).of(1)

    assert verdict is not None
    assert verdict.kind == "compute:issue"
    assert verdict.gain_ns == pytest.approx(1e6 * 5 / 8)


def test_counts_that_cannot_be_are_not_known() -> None:
    facts = Facts(operator(instructions=-1.0, cpu_cycles=1e6)).of(1)

    assert dict(facts.processor) == {"cpu_cycles": 1e6}


def test_a_refusal_of_the_kernel_is_the_reason() -> None:
    collectors = {"cpu": {"cpu_counters": {"events": (), "error": "the kernel said no"}}}

    verdict = Verdicts(operator({"backend": "cpu", "collectors": collectors})).of(1)

    assert verdict is not None
    assert verdict.kind == "on-cpu"
    assert any("the kernel said no" in each.text for each in verdict.evidence)
