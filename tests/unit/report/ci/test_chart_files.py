from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fakes.outcomes import every_outcome, hostile_outcome, outcome, row

from proton_bench.errors import UsageError
from proton_bench.gate.judge.outcome import Outcome
from proton_bench.gate.judge.verdict import SuiteVerdict, Verdict
from proton_bench.report.ci.chart_files import CHART_FORMATS, ChartFile, read_chart_files
from proton_bench.report.ci.series import Series, series_of

GOLDEN = Path(__file__).parents[3] / "data" / "charts"
DOCS = Path(__file__).parents[4] / "docs" / "how-to" / "gate.md"
# A sample of OpenMetrics: name, labels whose values are escaped, a number.
_LABEL = r'[a-z]+="(?:[^"\\\n]|\\[\\n"])*"'
_SAMPLE = re.compile(rf"[a-z_]+(?:\{{{_LABEL}(?:,{_LABEL})*\}})? -?[0-9.]+(?:e-?[0-9]+)?")


def mixed() -> Outcome:
    """Return a gate about times, a rate and cycles, two rows with one path among them."""
    rate = {"metric": "gbps", "base": 2000.0, "new": 1800.0, "change": -0.1}
    return outcome(
        SuiteVerdict.FAIL,
        row(Verdict.REGRESSED, "softmax"),
        row(name="softmax", occurrence=1, change=0.0, low=-0.01, high=0.01),
        row(Verdict.REGRESSED, "copy", threshold="gbps:5%", **rate),
        row(name="sum", metric="cycles", threshold="cycles:3%", base=40.0, new=41.0),
    )


def written(name: str, of: Outcome) -> bytes:
    return CHART_FORMATS[name](list(series_of(of)), of)


@pytest.mark.parametrize("name", CHART_FORMATS)
def test_files_are_the_golden_ones(name: str) -> None:
    assert written(name, mixed()) == (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", CHART_FORMATS)
def test_formats_stand_in_the_docs(name: str) -> None:
    assert f"| `{name}` |" in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize("of", [*every_outcome().values(), hostile_outcome()])
def test_open_metrics_hold_to_their_grammar(of: Outcome) -> None:
    lines = written("openmetrics", of).decode("utf-8").split("\n")

    assert lines[-2:] == ["# EOF", ""]
    samples = [line for line in lines[:-2] if not line.startswith("# ")]
    assert all(_SAMPLE.fullmatch(line) for line in samples)
    keys = [line.rpartition(" ")[0] for line in samples]
    assert len(set(keys)) == len(keys)
    assert keys[-1] == "proton_gate_exit_code"


@pytest.mark.parametrize("name", ["github-action-benchmark", "pytorch-hud"])
@pytest.mark.parametrize("of", [*every_outcome().values(), hostile_outcome()])
def test_json_is_strict_whatever_happened(name: str, of: Outcome) -> None:
    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    assert isinstance(json.loads(written(name, of), parse_constant=refuse), list)


def test_unjudged_values_have_no_verdict() -> None:
    alone = Series(name="a", metric="median", unit="ns", value=1500.0)

    assert CHART_FORMATS["openmetrics"]([alone], None).decode().splitlines()[3:] == [
        'proton_path_seconds{path="a",metric="median",side="new"} 1.5e-06',
        "# EOF",
    ]
    (entry,) = json.loads(CHART_FORMATS["github-action-benchmark"]([alone], None))
    assert entry == {"name": "a [median]", "unit": "ns", "value": 1500.0}
    (record,) = json.loads(CHART_FORMATS["pytorch-hud"]([alone], None))
    assert record["metric"]["extra_info"] == {"unit": "ns", "runs": "1"}


def test_files_are_asked_for_by_format() -> None:
    found = read_chart_files(["openmetrics=a=b.txt", "x=y"], "--write", more=["x"])

    assert found == (ChartFile("openmetrics", Path("a=b.txt")), ChartFile("x", Path("y")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openmetrics", "'openmetrics' is not FORMAT=FILE"),
        ("openmetrics=", "is not FORMAT=FILE"),
        (
            "metrics=x",
            "'metrics' is not a format; choose from: openmetrics, github-action-benchmark",
        ),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^--write.*{message}"):
        read_chart_files([text], "--write")
