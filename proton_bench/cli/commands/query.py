"""``proton query``: SQL over profiles, or a query in hatchet's string dialect."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from proton_bench.analysis.query.relations import Run
from proton_bench.analysis.query.sql import QueryResult, label_runs, query
from proton_bench.analysis.query.tables import TABLES
from proton_bench.analysis.view.hatchet_query import match_nodes
from proton_bench.cli.output_file import print_bytes
from proton_bench.cli.show import warn
from proton_bench.errors import UsageError
from proton_bench.formats.registry import formats, read_profile
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.result import ResultReport, result_csv, result_document
from proton_bench.report.tree.tree import print_report
from proton_bench.support.console import open_console

__all__ = ["command"]

_TABLE_LIMIT = 1000


class _Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            help="Profiles of any known format, then one SQL statement over the tables "
            f"{', '.join(TABLES)}.",
            metavar='PROFILE... "SQL"',
            show_default=False,
        ),
    ],
    pattern: Annotated[
        str | None,
        typer.Option(
            "--hatchet",
            metavar="QUERY",
            help="List the nodes that a query in hatchet's string dialect matches, such as "
            '\'MATCH (".", p) WHERE p."name" =~ "matmul.*"\'; no SQL then.',
        ),
    ] = None,
    form: Annotated[
        _Form | None, typer.Option("--format", help="How to print the result; a table without it.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; same as --format json.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV with a heading; same as --format csv.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="LINES",
            min=0,
            show_default=False,
            help=f"Print at most so many lines, 0 for all. Without it {_TABLE_LIMIT} as a table, "
            "all as JSON or CSV.",
        ),
    ] = None,
) -> None:
    """Ask profiles a question in SQL."""
    chosen = _read_form(form, as_json=as_json, as_csv=as_csv)
    most = _read_limit(limit, chosen)
    files, sql = (words, pattern) if pattern is not None else _split(words)
    runs = _read_runs(files)
    ask = match_nodes if pattern is not None else query
    _print(chosen, ask(runs, sql, most), result_query=sql, runs=runs)


def _read_form(form: _Form | None, *, as_json: bool, as_csv: bool) -> _Form:
    flags = [_Form.JSON] * as_json + [_Form.CSV] * as_csv
    chosen = {*flags, *([form] if form is not None else [])}
    if len(chosen) > 1:
        raise UsageError("--json, --csv and --format exclude each other: give one of them")
    return chosen.pop() if chosen else _Form.TABLE


def _read_limit(limit: int | None, form: _Form) -> int | None:
    if limit is None:
        return _TABLE_LIMIT if form is _Form.TABLE else None
    return limit or None


def _split(words: list[str]) -> tuple[list[str], str]:
    *files, sql = words
    if not files:
        raise UsageError(
            f"a query needs a profile and an SQL statement, got only {sql!a}: write "
            'proton query FILE "SELECT name, kind FROM nodes"; tables are ' + ", ".join(TABLES)
        )
    if os.path.isfile(sql):
        raise UsageError(f"{sql!a} is a file: the last word must be the SQL statement, in quotes")
    return files, sql


def _read_runs(files: list[str]) -> list[Run]:
    profiles = [(file, read_profile(file)) for file in files]
    for file, profile in profiles:
        if len(profile) == 1:
            warn(f"{file!a} is empty: nothing was recorded in that run")
    return label_runs(profiles, [suffix for each in formats() for suffix in each.suffixes])


def _print(form: _Form, result: QueryResult, *, result_query: str, runs: list[Run]) -> None:
    if form is _Form.TABLE:
        print_report(open_console(), ResultReport(result))
        return
    if form is _Form.JSON:
        content = encode_document(result_document(result, runs, result_query))
    else:
        content = result_csv(result)
        if result.has_more:
            warn("there are more lines than --limit")
    print_bytes(content)
