from __future__ import annotations

import io

from rich.console import Console

from proton_bench.analysis.metrics.derive import AvailableMetrics
from proton_bench.report.text.tree import ListReport


def test_a_long_name_takes_no_more_than_some_lines() -> None:
    found = AvailableMetrics((f"{'x' * 100_000} (ns)",), (), (f"{'y' * 50_000}/ms",))
    text = io.StringIO()

    Console(file=text).print(ListReport(found), crop=False)

    assert len(text.getvalue()) < 1000
    assert "more characters" in text.getvalue()
