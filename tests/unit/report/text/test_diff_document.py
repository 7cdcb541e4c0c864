from __future__ import annotations

import json
from typing import Any

from fakes.runs import run_of
from fakes.suites import TESTS, suite

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.ranking import Threshold, rank
from proton_bench.analysis.run import Run
from proton_bench.report.text.diff import diff_document
from proton_bench.support.text import encode_document

BASE = run_of(("s/a", 100, 2, "c1"), ("s/gone", 7, 1, "x"), ("s/b", 10, 1, "b"), source="a.proton")
NEW = run_of(("s/a", 150, 2, "c2"), ("s/fresh", 9, 2, ""), ("t/b", 10, 1, "b"), source="b.proton")


def document(metric: str | None = None, runs: int = 1) -> dict[str, Any]:
    comparison = compare([BASE] * runs, [NEW] * runs, CompareOptions(metric))
    shown = diff_document(comparison, rank(comparison, Threshold(0.0), 100))
    decoded: dict[str, Any] = json.loads(encode_document(shown))
    return decoded


def test_document_is_versioned_and_says_what_was_compared() -> None:
    found = document()

    assert (found["schema"], found["version"]) == ("proton_bench.diff", [1, 0])
    assert (found["metric"], found["unit"], found["by"]) == ("time (ns)", "ns", "path")
    assert found["base"][0]["source"] == "a.proton"
    assert [side[0]["total"] for side in (found["base"], found["new"])] == [117, 169]
    assert found["headline"].startswith("+44.4 % (+52 ns): ")
    assert found["causes"][0]["path"] == ["s", "a"]
    assert found["confidence"] is None


def test_rows_hold_values_parts_and_what_became_of_them() -> None:
    rows = {row["name"]: row for row in document()["rows"]}

    assert rows["a"]["own"] == {
        "base": 100,
        "new": 150,
        "change": 50,
        "base_launches": 2,
        "new_launches": 2,
        "by_launches": 0,
        "by_latency": 50,
        "unlaunched": 0,
    }
    assert rows["a"]["code_changed"]
    assert (rows["gone"]["fate"], rows["gone"]["own"]["new"]) == ("removed", None)
    assert (rows["fresh"]["fate"], rows["fresh"]["former_name"]) == ("new", None)
    assert (rows["b"]["fate"], rows["b"]["moved_from"]) == ("moved", ["s", "b"])


def test_own_changes_add_up_to_the_total() -> None:
    rows = document()["rows"]

    assert sum(row["own"]["change"] for row in rows) == rows[0]["inclusive"]["change"] == 52
    assert all(row["parent"] < place for place, row in enumerate(rows) if row["parent"] is not None)


def test_rows_that_share_a_line_of_text_are_rows() -> None:
    base, new = run_of(("s/t/a", 100, 2, "c")), run_of(("s/t/a", 150, 2, "c"))
    comparison = compare([base], [new], CompareOptions())

    rows = diff_document(comparison, rank(comparison, None, 100))["rows"]

    assert [(row["name"], row["parent"]) for row in rows] == [
        *(("ROOT", None), ("s", 0), ("t", 1), ("a", 2))
    ]


def test_values_are_in_the_unit_that_was_asked_for() -> None:
    found = document("time/us")

    assert found["unit"] == "us"
    assert found["rows"][0]["inclusive"]["change"] == 0.052


def test_rates_have_no_own_values_and_none_instead_of_nan() -> None:
    found = document("avg_time/ns")
    rows = {row["name"]: row for row in found["rows"]}

    assert (found["adds_up"], found["causes"]) == (False, [])
    assert "own" not in rows["a"]
    assert rows["fresh"]["inclusive"] == {"base": None, "new": 4.5, "change": None}


def test_it_says_that_values_are_for_the_calls_of_the_base() -> None:
    comparison = compare([Run(suite(10, 4), "a")], [Run(suite(40, 8), "b")], CompareOptions())

    found = diff_document(comparison, rank(comparison, Threshold(0.0), 100))

    assert found["at_base_calls"]
    assert found["benchmarks_scaled"] == [
        {"id": test, "calls": 40, "base": (40,), "new": (320,)} for test in TESTS
    ]
    assert (document()["at_base_calls"], document()["benchmarks_scaled"]) == (False, [])


def test_several_runs_have_an_interval() -> None:
    found = document(runs=2)

    assert found["confidence"] == 0.95
    assert [len(found["base"]), len(found["new"])] == [2, 2]
    assert found["rows"][0]["interval"] == [52.0, 52.0]
