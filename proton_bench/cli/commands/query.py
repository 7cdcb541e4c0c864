"""``proton query``: query profiles in SQL or in hatchet's language."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.analysis.query.relations import TABLES
from proton_bench.cli.boundary import warn
from proton_bench.cli.files import check_profiles, print_bytes, print_reports
from proton_bench.errors import UsageError
from proton_bench.store.selection import Selection

if TYPE_CHECKING:
    from proton_bench.analysis.query.relations import LabelledRun
    from proton_bench.analysis.query.sql import QueryResult


_TABLE_LIMIT = 1000


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV with a heading.")]


def command(
    words: Annotated[
        list[str],
        typer.Argument(
            help="Profiles of any known format, or stores with all their profiles, then one SQL "
            f"statement over the tables {', '.join(TABLES)}.",
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
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Query profiles in SQL."""
    chosen, most = read_output(as_json=as_json, as_csv=as_csv)
    files, sql = (words, pattern) if pattern is not None else _split(words)
    check_profiles(files)
    from proton_bench.analysis.query.sql import query as run_sql

    runs = _read_runs(files)
    if pattern is None:
        result = run_sql(runs, sql, most)
    else:
        from proton_bench.analysis.view.hatchet_query import match_nodes

        result = match_nodes(runs, sql, most)
    print_result(result, runs, sql, form=chosen)


def read_output(*, as_json: bool, as_csv: bool = False) -> tuple[str, int | None]:
    """Return how a result is printed, and its most lines, None for all, by the options.

    Raises:
        UsageError: They contradict each other.
    """
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other: give one of them")
    form = "json" if as_json else "csv" if as_csv else "table"
    return form, _TABLE_LIMIT if form == "table" else None


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


def print_result(result: QueryResult, runs: Sequence[LabelledRun], text: str, *, form: str) -> None:
    """Print a result as ``table``, ``json`` or ``csv``."""
    from proton_bench.report.text.result import ResultReport, result_csv, result_document
    from proton_bench.support.text import encode_document

    if form == "table":
        print_reports(ResultReport(result))
        return
    if form == "json":
        content = encode_document(result_document(result, runs, text))
    else:
        content = result_csv(result)
    print_bytes(content)


def _read_runs(files: Sequence[str]) -> list[LabelledRun]:
    from proton_bench.analysis.query.sql import label_runs
    from proton_bench.formats.registry import formats, read_profile

    stores = [store for file in files if (store := Selection.of(file)) is not None]
    profiles = [(file, read_profile(file)) for file in files if Selection.of(file) is None]
    for file, profile in profiles:
        if len(profile) == 1:
            warn(f"{file!a} is empty: nothing was recorded in that run")
    runs = label_runs(profiles, [suffix for each in formats() for suffix in each.suffixes])
    return [*runs, *(run for store in stores for run in stored_runs(store))]


def stored_runs(selection: Selection) -> list[LabelledRun]:
    """Return selected profiles of a store, labelled with their ids.

    Raises:
        UsageError: The store does not exist, the condition is wrong, or it holds for no profile.
        ProfileFormatError: The store is damaged.
        MissingExtraError: A library of stores is not installed.
    """
    from proton_bench.analysis.query.relations import LabelledRun

    return [
        LabelledRun(row["profile_id"], row["source"], profile)
        for row, profile in selection.profiles()
    ]
