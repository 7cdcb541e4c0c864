"""``proton query``: query profiles in SQL or in hatchet's language."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from proton_bench.analysis.query.tables import TABLES
from proton_bench.cli.inputs import check_profiles
from proton_bench.errors import UsageError

__all__ = ["REMOVED", "CsvOption", "JsonOption", "command", "read_output"]

_TABLE_LIMIT = 1000
# Options of earlier versions, and what to do instead.
REMOVED = {"--limit": "write LIMIT into the statement; --json and --csv have all lines"}


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
    from proton_bench.cli.work.query import answer

    answer(files, sql, most, chosen, of_nodes=pattern is not None)


def read_output(*, as_json: bool, as_csv: bool) -> tuple[str, int | None]:
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
