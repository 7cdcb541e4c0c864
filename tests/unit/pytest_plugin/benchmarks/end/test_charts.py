from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.benchmarks import record_of
from fakes.outcomes import outcome, row

from proton_bench.gate.judge.verdict import SuiteVerdict
from proton_bench.pytest_plugin.benchmarks.end.charts import write_charts
from proton_bench.pytest_plugin.benchmarks.settings import PYTEST_BENCHMARK, WRITTEN
from proton_bench.report.ci.chart_files import CHART_FORMATS

RECORDS = [
    record_of(
        "test_x.py::test_a[2]",
        cpu_ns=(100e3, 101e3, 102e3, 103e3, 900e3),
        parameters={"n": "2"},
        extra_info={"dtype": "f16"},
        group="softmax",
    ),
    record_of("test_x.py::test_b", cpu_ns=(5e3,)),
]


def settings(folder: Path, *formats: str) -> Any:
    return SimpleNamespace(written=[(name, folder / name) for name in formats], project=folder)


def test_every_format_can_be_asked_for() -> None:
    assert set(WRITTEN) == {*CHART_FORMATS, PYTEST_BENCHMARK}


def test_without_a_gate_medians_of_rounds_are_written(tmp_path: Path) -> None:
    write_charts(settings(tmp_path, *CHART_FORMATS), RECORDS, None)

    entries = json.loads((tmp_path / "github-action-benchmark").read_text())
    assert entries == [
        {"name": "test_x.py::test_a[2] [median]", "unit": "ns", "value": 102e3},
        {"name": "test_x.py::test_b [median]", "unit": "ns", "value": 5e3},
    ]
    assert "proton_gate_exit_code" not in (tmp_path / "openmetrics").read_text()


def test_with_a_gate_its_values_are_written(tmp_path: Path) -> None:
    judged = outcome(SuiteVerdict.PASS, row(name="round"))

    write_charts(settings(tmp_path, "github-action-benchmark"), RECORDS, judged)

    (entry,) = json.loads((tmp_path / "github-action-benchmark").read_text())
    assert (entry["name"], entry["value"]) == ("step > round [median]", 105_000.0)


def test_pytest_benchmark_s_document_has_its_keys_and_seconds(tmp_path: Path) -> None:
    write_charts(settings(tmp_path, PYTEST_BENCHMARK), RECORDS, None)

    document = json.loads((tmp_path / PYTEST_BENCHMARK).read_text())
    keys = {"machine_info", "commit_info", "benchmarks", "datetime", "version"}
    assert set(document) == keys
    first, second = document["benchmarks"]
    assert (first["group"], first["name"]) == ("softmax", "test_a[2]")
    assert first["fullname"] == "test_x.py::test_a[2]"
    assert (first["params"], first["param"]) == ({"n": "2"}, "2")
    assert first["extra_info"] == {"dtype": "f16", "clock": "cpu"}
    stats = first["stats"]
    assert stats["median"] == pytest.approx(102e-6)
    assert stats["ops"] == pytest.approx(1 / 102e-6)
    assert (stats["rounds"], stats["iterations"], stats["iqr_outliers"]) == (5, 4, 0)
    assert stats["data"] == pytest.approx([100e-6, 101e-6, 102e-6, 103e-6, 900e-6])
    assert (second["params"], second["stats"]["stddev"]) == (None, 0.0)
