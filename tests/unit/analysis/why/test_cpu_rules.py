from __future__ import annotations

from dataclasses import replace

import pytest

from proton_bench.analysis.kernels.gpu_facts import cpu_counter_error
from proton_bench.analysis.why.row_facts import RowFacts
from proton_bench.analysis.why.rules import CPU_RULES, help_for
from proton_bench.analysis.why.verdict import KINDS
from proton_bench.analysis.why.verdicts import Verdicts
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind

ROW = RowFacts("aten::add", FrameKind.OP, 1e6, launches=10, device=Device("CPU", 0))


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (replace(ROW, launches=101), "overhead"),
        (replace(ROW, launches=100), "elapsed"),
        (replace(ROW, launches=0), "elapsed"),
        (replace(ROW, name="softmax_kernel", kind=FrameKind.KERNEL), "elapsed"),  # interpreted
        (replace(ROW, device=None), "elapsed"),  # a range of a file that names no device
        (replace(ROW, name="request", launches=1000), "elapsed"),
        (replace(ROW, name="gloo:all_reduce"), "waiting"),
        (replace(ROW, name="c10d::allreduce_"), "elapsed"),
        (replace(ROW, device=None, kind=FrameKind.UNKNOWN), None),
        (replace(ROW, device=Device("CUDA", 0)), None),
        (replace(ROW, device=None, kind=FrameKind.KERNEL), None),
    ],
)
def test_what_was_not_counted_is_told_by_the_length_of_its_calls(
    facts: RowFacts, kind: str | None
) -> None:
    matches = ((rule.kind, rule.find(facts)) for rule in CPU_RULES)
    found = next(((name, match) for name, match in matches if match is not None), None)

    assert (None if found is None else found[0]) == kind
    if found is not None:
        assert found[1].evidence
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


def test_every_rule_names_what_helps_and_a_source() -> None:
    for rule in CPU_RULES:
        assert rule.kind in KINDS
        assert rule.helps
        assert "http" in rule.source


def test_counters_of_earlier_files_change_no_verdict() -> None:
    builder = ProfileBuilder()
    counts = {"instructions": 3e6, "cpu_cycles": 1e6, "cache_misses": 10, "branch_misses": 10}
    metrics = {"time (ns)": 1e6, "count": 1.0, **counts}
    builder.add(0, "aten::mm", FrameKind.OP, device=Device("CPU", 0), metrics=metrics)

    verdict = Verdicts(builder.build()).of(1)

    assert verdict is not None
    assert verdict.kind == "elapsed"


@pytest.mark.parametrize("said", [None, 1, {}, {"error": 3}, {"error": ""}])
def test_facts_without_a_text_give_no_reason(said: object) -> None:
    builder = ProfileBuilder()

    profile = builder.build(provenance={"collectors": {"cpu": {"cpu_counters": said}}})

    assert cpu_counter_error(profile) == ""
