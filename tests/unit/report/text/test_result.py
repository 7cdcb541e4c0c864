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
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.result import ResultReport, result_csv, result_document
from proton_bench.report.tree.tree import print_report


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


def test_nothing_is_a_heading() -> None:
    assert table(result()) == ["a", "(0 lines)"]


def test_more_lines_are_announced() -> None:
    assert table(result((1,), has_more=True))[-1] == "(1 line; use --limit to see more)"


def test_hostile_names_stay_on_their_line() -> None:
    lines = table(result(("[/bold]\n\x1b[31m",), ("名前",)))

    assert lines[1:3] == ["[/bold]\\n\\x1b[31m", "名前"]


def test_texts_are_cut_on_a_terminal_only() -> None:
    found = result(("n" * 200, 12345))

    assert len(table(found)[1]) == 207
    (cut,) = table(found, width=40, terminal=True)[1:2]
    assert len(cut) == 40
    assert cut.endswith("…  12345")


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
