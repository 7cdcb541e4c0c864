from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.profiles import training_profile

from benchmarks.studies.why.labels import LABELS, Label
from benchmarks.studies.why.study import Row, judge, table
from proton_bench.analysis.why.verdict import KINDS
from proton_bench.formats.registry import read_profile

DATA = Path(__file__).parents[1] / "data" / "verdicts"
LABEL = Label("dram-copy", ("memory:dram", "memory:l2"), "a copy")


def test_labels_are_of_the_closed_set() -> None:
    names = [label.name for label in LABELS]

    assert len(set(names)) == len(names) >= 24
    assert {kind for label in LABELS for kind in label.right} <= set(KINDS) - {"unknown"}


@pytest.mark.parametrize(
    ("kind", "is_wrong"), [("memory:l2", False), ("unknown", False), ("latency", True)]
)
def test_another_verdict_is_wrong_and_none_is_not(kind: str, is_wrong: bool) -> None:
    row = Row(LABEL, ("memory:dram", kind), ("", ""), {("mixed", "dram"): 80.04})

    assert row.is_wrong is is_wrong
    assert ("WRONG" in table([row])) is is_wrong
    assert table([row]).endswith("| dram 80.0 |")


def test_a_label_without_a_row_is_unknown() -> None:
    rows = judge({"mixed": training_profile()})

    assert all(row.is_unknown for row in rows)
    assert len(rows) == len(LABELS)


def test_shares_are_those_below_the_scope() -> None:
    (row, *_) = judge({"mixed": replace(training_profile(), partial=True)})

    assert row.shares == {}


def test_recorded_kernels_have_the_verdicts_of_their_labels() -> None:
    rows = []
    for mixed in sorted(DATA.glob("*_mixed.proton")):
        stalls = mixed.with_name(mixed.name.replace("mixed", "stalls"))
        profiles = {"mixed": read_profile(mixed), "stalls": read_profile(stalls)}
        there = {profiles["mixed"].name(row) for row in range(len(profiles["mixed"]))}
        rows += judge(profiles, only=there)
    found = {row.label.name: row for row in rows}

    assert found.keys() == {label.name for label in LABELS}
    assert [row.label.name for row in rows if row.is_wrong] == []
    assert [row.label.name for row in rows if row.is_unknown] == []
    # What is moved and not used counts more than the unit that moves it.
    for name in ("uncoalesced", "column-read", "column-softmax", "random-gather", "take"):
        assert found[name].kinds[0] == "uncoalesced"
