from __future__ import annotations

import io
from typing import Any

from proton_bench.report.text.path_series import PathReport
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console

MINUTE_NS = 60 * 10**9


def line(number: int, total: float, **columns: Any) -> dict[str, Any]:
    """Return a line of an answer about two profiles."""
    known = {
        "run": f"run{number}",
        "path": "fwd/softmax",
        "time_unix_nano": number * MINUTE_NS,
        "present": 2,
        "total": total,
        "share": 0.25,
        "median": 1000.0,
        "p99": 2000.0,
    }
    return {**known, **columns}


def printed(
    *lines: dict[str, Any], by: tuple[str, ...] = ("run",), limit: int | None = None
) -> str:
    file = io.StringIO()
    print_report(open_console(file), PathReport(lines, "softmax", by, "time (ns)", limit))
    return file.getvalue()


def test_each_group_has_a_line_with_the_mean_of_its_profiles() -> None:
    heading, first, second, *_ = printed(line(0, 4e6), line(1, 8e6)).splitlines()

    assert heading.split() == [
        *("start", "profiles", "mean", "(ms)", "share", "%", "median", "(us)", "p99", "(us)", "run")
    ]
    assert first.split()[:4] == ["1970-01-01", "00:00", "2", "2.000"]
    assert second.split()[3:] == ["4.000", "25.00", "1.000", "2.000", "run1"]


def test_each_path_with_several_lines_has_bars() -> None:
    lines = [line(0, 1.0), line(1, 8.0), line(2, 5.0, path="fwd/mul")]

    bars = [each for each in printed(*lines, by=("path", "run")).splitlines() if "▁" in each]

    assert bars == ["▁█  fwd/softmax"]
    assert "▁█  softmax" in printed(line(0, 1.0), line(1, 8.0))


def test_missing_values_are_dashes_and_unknown_quantiles_have_no_column() -> None:
    text = printed(line(0, 1.0, share=None, median=None, p99=None, run=None))

    assert "median (" not in text
    assert text.splitlines()[1].split()[-2:] == ["-", "-"]


def test_lines_beyond_the_limit_are_counted() -> None:
    text = printed(*(line(number, 1.0) for number in range(5)), limit=2)

    assert "run1" in text
    assert "run2" not in text
    assert "3 lines left out" in text


def test_text_from_elsewhere_is_shown_harmless() -> None:
    assert "\x1b" not in printed(line(0, 1.0, run="\x1b[2J", path="\x1b[2J"), by=("run", "path"))
