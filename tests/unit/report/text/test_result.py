"""Results of queries as table, CSV and JSON."""

from __future__ import annotations

import csv
import datetime
import io
import json
from decimal import Decimal
from typing import Any

from rich.console import Console

from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult
from proton_bench.model.builder import ProfileBuilder
from proton_bench.report.text.result import (
    PathReport,
    ResultReport,
    result_csv,
    result_document,
)
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document

MINUTE_NS = 60 * 10**9


def result(*rows: tuple[Any, ...], has_more: bool = False) -> QueryResult:
    width = len(rows[0]) if rows else 1
    names = tuple("abcdefgh"[:width])
    return QueryResult(names, ("VARCHAR",) * width, rows, has_more)


def table(found: QueryResult, *, width: int = 80, terminal: bool = False) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=terminal, color_system=None)
    print_report(console, ResultReport(found))
    return text.getvalue().splitlines()


def test_numbers_stand_right_and_texts_left() -> None:
    lines = table(result(("x", 1, 0.5), ("long", 100, None)))

    assert lines == [
        "a       b       c",
        "x       1  0.5000",
        "long  100       -",
        "(2 lines)",
    ]


def test_exact_decimals_are_numbers_like_others() -> None:
    whole = (Decimal("7.25"), Decimal("1e40"))

    assert table(result((whole[0], "x"), (None, "y")))[1].split() == ["7.250", "x"]
    assert len(table(result((whole[1], "x"), (2.5, "y")))) == 4


def test_nothing_is_a_heading() -> None:
    assert table(result()) == ["a", "(0 lines)"]


def test_more_lines_are_announced() -> None:
    assert table(result((1,), has_more=True))[-1] == "(1 line; --json and --csv have all)"


def test_hostile_names_stay_on_their_line() -> None:
    lines = table(result(("[/bold]\n\x1b[31m",), ("名前",)))

    assert lines[1:3] == ["[/bold]\\n\\x1b[31m", "名前"]


def test_texts_are_cut_on_a_terminal_only() -> None:
    found = result(("n" * 199 + "e", 12345))

    assert len(table(found)[1]) == 207
    (cut,) = table(found, width=40, terminal=True)[1:2]
    assert len(cut) == 40
    assert cut.startswith("nnnnnnnnnn…n")
    assert cut.endswith("ne  12345")


def test_csv_reads_back() -> None:
    found = result(('a"b,\nc', None, 2**70, 0.1), ("é", True, [1, None], {"x": 1}))

    lines = list(csv.reader(io.StringIO(result_csv(found).decode(), newline="")))

    assert lines == [
        ["a", "b", "c", "d"],
        ['a"b,\\nc', "", str(2**70), "0.1"],
        ["é", "true", "[1,null]", '{"x":1}'],
    ]


def test_document_holds_every_kind_of_value() -> None:
    when = datetime.datetime(2026, 1, 2, 3, 4, 5)
    row = (2**70, Decimal("1.50"), float("nan"), b"\xff", when, {1: [float("inf")]}, True, None)
    run = LabelledRun("x", "x.proton", ProfileBuilder().build())

    found = json.loads(encode_document(result_document(result(row), [run], "SELECT 1")))

    assert (found["schema"], found["version"]) == ("proton_bench.query", [1, 0])
    assert found["query"] == "SELECT 1"
    assert found["runs"][0]["run"] == "x"
    assert found["columns"][0] == {"name": "a", "type": "VARCHAR"}
    assert found["rows"] == [
        [2**70, 1.5, None, "ff", "2026-01-02T03:04:05", {"1": [None]}, True, None]
    ]
    assert found["more_rows"] is False


def answered(number: int, total: float, **columns: Any) -> dict[str, Any]:
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


def path_table(
    *lines: dict[str, Any], by: tuple[str, ...] = ("run",), limit: int | None = None
) -> str:
    file = io.StringIO()
    print_report(open_console(file), PathReport(lines, "softmax", by, "time (ns)", limit))
    return file.getvalue()


def test_each_group_has_a_line_with_the_mean_of_its_profiles() -> None:
    heading, first, second, *_ = path_table(answered(0, 4e6), answered(1, 8e6)).splitlines()

    assert heading.split() == [
        *("start", "profiles", "mean", "(ms)", "share", "%", "median", "(us)", "p99", "(us)", "run")
    ]
    assert first.split()[:4] == ["1970-01-01", "00:00", "2", "2.000"]
    assert second.split()[3:] == ["4.000", "25.00", "1.000", "2.000", "run1"]


def test_each_path_with_several_lines_has_bars() -> None:
    lines = [answered(0, 1.0), answered(1, 8.0), answered(2, 5.0, path="fwd/mul")]

    bars = [each for each in path_table(*lines, by=("path", "run")).splitlines() if "▁" in each]

    assert bars == ["▁█  fwd/softmax"]
    assert "▁█  softmax" in path_table(answered(0, 1.0), answered(1, 8.0))


def test_missing_values_are_dashes_and_unknown_quantiles_have_no_column() -> None:
    text = path_table(answered(0, 1.0, share=None, median=None, p99=None, run=None))

    assert "median" not in text
    assert "quantiles" not in text
    assert "quantiles are those of its calls" in path_table(answered(0, 1.0))
    assert text.splitlines()[1].split()[-2:] == ["-", "-"]


def test_lines_beyond_the_limit_are_counted() -> None:
    text = path_table(*(answered(number, 1.0) for number in range(5)), limit=2)

    assert "run1" in text
    assert "run2" not in text
    assert "3 lines left out" in text


def test_text_from_elsewhere_is_shown_harmless() -> None:
    assert "\x1b" not in path_table(
        answered(0, 1.0, run="\x1b[2J", path="\x1b[2J"), by=("run", "path")
    )
