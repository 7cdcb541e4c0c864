from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.benchmarks import Replayed, record_of, runs_of, settings_of

from proton_bench.analysis.run import Run
from proton_bench.formats.registry import write_profile
from proton_bench.gate.baselines import BaselineStore
from proton_bench.pytest_plugin.benchmarks.end import judging
from proton_bench.pytest_plugin.benchmarks.end.judging import Judging
from proton_bench.pytest_plugin.benchmarks.settings import Settings

A, B = "test_x.py::test_a", "test_x.py::test_b[shape=(1, 2)]"
BASE = {A: 100.0, B: 40.0}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Any:
    """Judge made-up runs by those that were promoted to be ``main``."""

    def judge(
        new: list[Run],
        base: list[Run] | None = None,
        made: Replayed | None = None,
        **changes: Any,
    ) -> Judging:
        chosen = replace(settings, **changes)
        store = BaselineStore(chosen.storage)
        if base is not None:
            store.save("main", base)
            store.promote("main")
        replayed = made or Replayed(new)
        monkeypatch.setattr(judging, "fresh_runs_of", replayed.offered)
        records = [record_of(test) for test in BASE]
        found = Judging(SimpleNamespace(), chosen, records)  # type: ignore[arg-type]
        found.run(lambda: new[0])
        return found

    return judge


def base_runs() -> list[Run]:
    return runs_of(BASE, runs=6, seed=1)


def test_the_same_times_pass(judged: Any) -> None:
    found = judged(runs_of(BASE, runs=6, seed=2, first=10), base_runs())

    assert found.exit_code == 0
    assert found.failures() == {}
    assert found.lines()[0].startswith("PASS: none of 2 paths got slower than allowed")
    assert found.document()["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("times", "changes", "count"),
    [
        (BASE, {}, 4),  # decided by the first look
        ({A: 100.0, B: 46.0}, {}, 6),  # a path fails after six at the earliest
        (BASE, {"save": "main"}, 6),  # may become a base
        (BASE, {"compare": (), "save": "main"}, 6),
    ],
)
def test_as_many_processes_run_as_decide(
    judged: Any, times: dict[str, float], changes: dict[str, Any], count: int
) -> None:
    made = Replayed(runs_of(times, runs=8, seed=2, first=10))

    judged([], base_runs(), made=made, **changes)

    assert made.count == count


def test_a_slower_benchmark_fails_its_test_and_no_other(judged: Any) -> None:
    slower = runs_of({A: 100.0, B: 46.0}, runs=6, seed=2, first=10)

    found = judged(slower, base_runs())

    assert found.exit_code == 1
    assert list(found.failures()) == [B]
    text = found.failures()[B]
    assert text.startswith(
        "proton gate: 1 check got worse: test_x.py::test_b[shape=(1, 2)] > round"
    )
    assert "slower" in text
    assert "allowed median:3%" in text
    assert text.endswith("allowed median:3%")
    assert found.lines()[0].startswith("FAIL: ")


def test_a_marker_allows_its_test_more_and_the_default_holds_for_others(judged: Any) -> None:
    marked = {B: "median:20%"}
    new = runs_of({A: 115.0, B: 46.0}, runs=6, seed=2, first=10, thresholds=marked)

    found = judged(new, runs_of(BASE, runs=6, seed=1, thresholds=marked))

    assert list(found.failures()) == [A]
    assert list(judged(new, base_runs()).failures()) == [A, B]


def test_a_threshold_of_the_command_line_wins_over_the_marker(judged: Any) -> None:
    marked = {B: "median:20%"}
    new = runs_of({A: 100.0, B: 46.0}, runs=6, seed=2, first=10, thresholds=marked)

    found = judged(new, base_runs(), compare_fail=("median:5%",))

    assert list(found.failures()) == [B]


def test_one_run_decides_structure_alone_and_says_what_helps(judged: Any) -> None:
    new = runs_of({A: 200.0, B: 80.0}, runs=1, seed=2, first=10)

    found = judged(new, runs_of(BASE, runs=1, seed=1), runs=0)

    assert found.exit_code == 3
    assert found.failures() == {}
    assert "--proton-runs=6 to measure in 6 fresh processes" in found.lines()[-1]


def test_without_a_baseline(judged: Any) -> None:
    found = judged(base_runs())

    assert found.exit_code == 5
    assert found.lines()[0].startswith("NO-BASELINE: there is no file, folder or baseline 'main'")
    assert found.document()["verdict"] == "NO-BASELINE"


def test_a_baseline_of_another_device_is_incomparable(judged: Any) -> None:
    other = [
        Run(replace(run.profile, provenance=run.profile.provenance.updated(backend="cupti")), "o")
        for run in base_runs()
    ]
    new = [
        Run(replace(run.profile, provenance=run.profile.provenance.updated(backend="cpu")), "n")
        for run in runs_of(BASE, runs=6, seed=2, first=10)
    ]

    found = judged(new, other)

    assert found.exit_code == 4
    assert found.failures() == {}
    assert found.lines()[0].startswith("INCOMPARABLE: ")


def test_a_damaged_baseline_is_an_error_and_no_traceback(judged: Any, settings: Settings) -> None:
    judged(base_runs(), base_runs())
    next(settings.storage.rglob("*.proton")).write_bytes(b"nothing")

    found = judged(base_runs())

    assert found.exit_code == 2
    assert ".proton: " in found.lines()[0]


def test_a_run_is_saved_after_it_was_judged_and_counts_for_nothing_yet(
    judged: Any, settings: Settings
) -> None:
    new = runs_of({A: 150.0, B: 40.0}, runs=6, seed=2, first=10)

    first = judged(new, base_runs(), save="main")
    second = judged(new, save="main")

    assert (first.exit_code, second.exit_code) == (1, 1)
    assert first.lines()[-1].startswith("saved as candidate main@")
    assert len(BaselineStore(settings.storage).entries("main")) == 3


def test_without_benchmarks_there_is_nothing_to_judge(settings: Settings) -> None:
    found = Judging(SimpleNamespace(), settings, [])  # type: ignore[arg-type]

    found.run(lambda: base_runs()[0])

    assert found.exit_code == 5
    assert "no test is a benchmark" in found.lines()[0]


def test_a_store_that_cannot_be_written_is_an_error_beside_the_verdict(
    judged: Any, tmp_path: Path, settings: Settings
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for number, run in enumerate(base_runs()):
        write_profile(run.profile, folder / f"{number}.proton")
    settings.storage.write_text("a file")

    found = judged(base_runs(), compare=(str(folder),), save="main")

    assert found.exit_code == 2
    assert any(line.startswith("error: ") for line in found.lines())
