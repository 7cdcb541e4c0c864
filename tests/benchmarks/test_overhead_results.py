"""The file of benchmarks.overhead, and going on with it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from overhead_results import measured, results

from benchmarks.overhead.__main__ import parse
from benchmarks.overhead.plan import ARMS, WORKLOADS, chosen
from benchmarks.overhead.results import Results
from benchmarks.round_results import SchemaError, measure, merged


def once(order: random.Random) -> dict[str, Any]:
    return {"none": {"error": None, "workloads": {"tiny": measured(order.random(), 0.0)}}}


def test_a_file_reads_back_as_it_was(tmp_path: Path) -> None:
    made = results({"none": 0.0, "ours": 1e-6}, rounds=2)

    made.save(tmp_path / "deep" / "results.json")

    assert Results.load(tmp_path / "deep" / "results.json") == made
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["results.json"]


def test_a_file_has_the_schema_that_is_written_down(tmp_path: Path) -> None:
    results({"none": 0.0}, rounds=1).save(tmp_path / "results.json")

    document = json.loads((tmp_path / "results.json").read_text())

    assert set(document) == {"schema", "version", "machine", "settings", "rounds"}
    assert document["schema"] == "proton_bench.overhead"
    tiny = document["rounds"][0]["arms"]["none"]["workloads"]["tiny"]
    own = {"bare_thread", "profiled_thread"}
    assert set(tiny) == {"bare", "profiled", "finalize_s", "bytes", "kernels", *own}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "holds no results"),
        ({"version": 2}, "has version 2, not 1"),
        ({"rounds": [{"arms": {"ours": {"workloads": {"tiny": {}}}}}]}, "ours/tiny lacks"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    document = {**results({"none": 0.0}, rounds=1).document(), **change}
    (tmp_path / "other.json").write_text(json.dumps(document))

    with pytest.raises(SchemaError, match=message):
        Results.load(tmp_path / "other.json")


def test_files_are_joined_round_by_round() -> None:
    parts = [results({"none": 0.0}, rounds=2), results({"none": 0.0}, rounds=3)]

    assert len(merged(parts).of("none", "tiny")) == 5


def test_every_round_is_in_the_file_when_the_next_one_is_stopped(tmp_path: Path) -> None:
    options = parse(["--rounds", "5", "--json", str(tmp_path / "results.json")])
    done = []

    def stopped(order: random.Random) -> dict[str, Any]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(order)
        return once(order)

    with pytest.raises(KeyboardInterrupt):
        measure(options, Results(), stopped)

    assert len(Results.load(options.json).rounds) == 2


def test_going_on_measures_the_rounds_that_are_missing_in_the_same_order(tmp_path: Path) -> None:
    path = str(tmp_path / "results.json")
    whole, parts = Results(), Results()
    measure(parse(["--rounds", "4", "--json", path]), whole, once)

    measure(parse(["--rounds", "1", "--json", path]), parts, once)
    again = Results.load(Path(path))
    measure(parse(["--rounds", "4", "--json", path]), again, once)

    assert [each["arms"] for each in again.rounds] == [each["arms"] for each in whole.rounds]
    assert [each["number"] for each in again.rounds] == [0, 1, 2, 3]


def test_no_round_begins_that_the_budget_has_no_time_for(tmp_path: Path) -> None:
    path = str(tmp_path / "results.json")
    made = Results()

    measure(parse(["--rounds", "4", "--budget-seconds", "-1", "--json", path]), made, once)

    assert made.rounds == []


def test_arms_run_what_was_asked_for() -> None:
    arms = chosen(["ours", "ours_python"], ["graph"])

    assert {name: arm.workloads for name, arm in arms.items()} == {"ours": ("graph",)}
    # Profilers that sample program counters run on request only.
    assert set(chosen()) == {name for name, arm in ARMS.items() if not arm.samples}
    assert set(chosen(["ours_pcs"], ["tiny", "graph"])) == {"ours_pcs"}
    assert chosen()["none"].workloads == WORKLOADS
