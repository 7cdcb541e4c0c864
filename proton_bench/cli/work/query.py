"""``proton query``, after its options are read."""

from __future__ import annotations

from collections.abc import Sequence

from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult, label_runs, query
from proton_bench.cli.boundary import warn
from proton_bench.cli.output_file import print_bytes
from proton_bench.formats.registry import formats, read_profile
from proton_bench.report.json.tree import encode_document
from proton_bench.report.text.result import ResultReport, result_csv, result_document
from proton_bench.report.tree.tree import print_report
from proton_bench.store.selection import Selection
from proton_bench.support.console import open_console

__all__ = ["answer", "print_result", "stored_runs"]


def answer(
    files: Sequence[str], text: str, limit: int | None, form: str, *, of_nodes: bool = False
) -> None:
    """Query profiles and print the result.

    Args:
        files: The profiles.
        text: SQL statement, or a query in hatchet's language.
        limit: Most lines, None for all.
        form: ``table``, ``json`` or ``csv``.
        of_nodes: Whether the text is in hatchet's language.

    Raises:
        UsageError: A file cannot be read, or the query is wrong.
        ProfileFormatError: A file is corrupt.
        MissingExtraError: DuckDB or hatchet is not installed.
    """
    runs = _read_runs(files)
    if of_nodes:
        from proton_bench.analysis.view.hatchet_query import match_nodes

        result = match_nodes(runs, text, limit)
    else:
        result = query(runs, text, limit)
    print_result(result, runs, text, form=form)


def print_result(result: QueryResult, runs: Sequence[LabelledRun], text: str, *, form: str) -> None:
    """Print a result.

    Args:
        result: The result.
        runs: The runs that it is about.
        text: The query.
        form: ``table``, ``json`` or ``csv``.
    """
    if form == "table":
        print_report(open_console(), ResultReport(result))
        return
    if form == "json":
        content = encode_document(result_document(result, runs, text))
    else:
        content = result_csv(result)
    print_bytes(content)


def _read_runs(files: Sequence[str]) -> list[LabelledRun]:
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
        UsageError: There is no store, the condition is wrong, or it holds for no profile.
        ProfileFormatError: The store is damaged.
        MissingExtraError: A library of stores is not installed.
    """
    return [
        LabelledRun(row["profile_id"], row["source"], profile)
        for row, profile in selection.profiles()
    ]
