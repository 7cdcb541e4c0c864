"""``proton history``: how long each call path took over time, and when that changed."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from proton_bench.cli.boundary import warn
from proton_bench.cli.files import (
    REPORT_SUFFIX,
    STDOUT,
    ProgressLine,
    beside,
    print_document,
    print_reports,
    write_output,
)
from proton_bench.cli.options import StoreOption, chosen_policy, default_store
from proton_bench.errors import UsageError
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

if TYPE_CHECKING:
    from proton_bench.cli.outputs import Outputs
    from proton_bench.gate.baselines import BaselineStore
    from proton_bench.gate.history.history import History
    from proton_bench.gate.history.points import Followed, Point
    from proton_bench.gate.history.sources import Sources
    from proton_bench.gate.policy import PolicyWords


def command(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Names of baselines, files with one run, folders of runs that were recorded "
            "together, or STORE?CONDITION; each file, folder, saved entry and run of a store is "
            "one point (default: all baselines).",
            show_default=False,
        ),
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Option(
            "--path",
            metavar="GLOB",
            help="Show only these call paths, such as 'fwd/**/softmax*', and the totals around "
            "them; may be repeated.",
        ),
    ] = None,
    store: StoreOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show paths that did not change.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all points.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write an HTML page; - prints it instead."),
    ] = None,
    acknowledges: Annotated[
        bool,
        typer.Option(
            "--acknowledge", help="Store that these steps are known: `gate --history` passes them."
        ),
    ] = False,
) -> None:
    """Show how long each call path took over time, and the runs where that changed.

    With --acknowledge, `proton gate --history` fails only on later steps.
    """
    from proton_bench.gate.history.history import acknowledge, write_acknowledged
    from proton_bench.gate.policy import PolicyWords
    from proton_bench.report.html.document import history_page
    from proton_bench.report.text.history import HistoryReport, history_document

    if as_json and html == STDOUT:
        raise UsageError("--json and --html - both print to standard output: give one of them")
    followed = read_followed(PolicyWords(None), paths or ())
    history, baselines = open_history(runs or (), followed, store)
    acknowledged = ""
    if acknowledges:
        new = acknowledge(history.traces, by=_user(), at_ns=time.time_ns())
        if new:
            write_acknowledged(baselines.folder, new)
            history = history.with_acknowledged(new)
        series = count_text(len(new), "series", "series")
        acknowledged = f"proton: acknowledged the steps of {series}\n"
    if html is not None:
        page = history_page(history, reports_of(history))
        write_output(html, page.encode("utf-8", "backslashreplace"))
    if as_json:
        print_document(history_document(history))
    elif html != STDOUT:
        print_reports(HistoryReport(history, everything))
    sys.stderr.write(acknowledged)


def read_followed(policy: PolicyWords, paths: Sequence[str] = ()) -> Followed:
    """Return what a history follows.

    Args:
        policy: The policy options.
        paths: Globs; none means the paths that the policy says.

    Raises:
        UsageError: The policy cannot be read.
    """
    from proton_bench.gate.history.points import Followed

    return Followed(chosen_policy(policy), tuple(paths))


def open_history(
    words: Sequence[str], followed: Followed, store: Path | None
) -> tuple[History, BaselineStore]:
    """Read the experiments that these words name, find their steps, and return the store too.

    Raises:
        UsageError: There is none, a file cannot be used, or no path has a name that was asked for.
        ProfileFormatError: A file is corrupt.
    """
    from proton_bench.gate.baselines import BaselineStore
    from proton_bench.gate.history.history import history_of, read_acknowledged
    from proton_bench.gate.history.sources import Sources

    opened = BaselineStore(store or default_store())
    known = read_acknowledged(opened.folder)
    sources = Sources.named(words, opened)
    with ProgressLine() as progress:
        points = list(_counted(sources, followed, progress))
        progress.step("looking for steps")
        history = history_of(points, followed.policy, acknowledged=known, left_out=sources.left_out)
    if len(points) == 1 and points[0].runs > 1 and Path(points[0].source).is_dir():
        folder = visible(points[0].source)
        warn(
            f"{folder} is one point, as runs of a folder count as recorded together: if each is a "
            f"point, name its files, such as {folder}/*.proton"
        )
    if followed.paths and points and not history.traces:
        globs = " or ".join(ascii(each[:80]) for each in followed.paths)
        raise UsageError(
            f"no measured path of these runs matches {globs}: a glob is for a whole path, such as "
            "'fwd/**/softmax*'; `proton view` shows paths"
        )
    return history, opened


def _counted(sources: Sources, followed: Followed, progress: ProgressLine) -> Iterator[Point]:
    for number, point in enumerate(sources.points(followed), 1):
        progress.step(f"reading: {number} of {len(sources)}")
        yield point


def reports_of(history: History) -> dict[str, str]:
    """Return the addresses of the pages that `proton report` wrote beside recordings."""
    recordings = {point.recording for trace in history.traces for point in trace.series.points}
    pages = {each: beside(Path(each), REPORT_SUFFIX) for each in recordings if each}
    return {each: page.resolve().as_uri() for each, page in pages.items() if page.is_file()}


def judge_history(
    words: Sequence[str],
    policy: PolicyWords,
    outputs: Outputs,
    *,
    store: Path | None,
    unused: Mapping[str, Any],
) -> int:
    """Show whether paths got worse by steps that are not acknowledged, and return the exit code.

    Args:
        words: Names of baselines, files and folders; none means all baselines.
        policy: The policy options.
        outputs: Whether a table or a JSON document is printed.
        store: The store, None for that of the project.
        unused: Values of options that make no sense here.

    Raises:
        UsageError: The experiment does not exist, a file cannot be used, or one of these options is
            given.
        ProfileFormatError: A file is corrupt.
    """
    from proton_bench.gate.verdict.result import EXIT_CODES
    from proton_bench.report.text.history import HistoryReport, history_document

    given = [name for name, value in unused.items() if value]
    if given:
        raise UsageError(
            f"--history judges runs that are recorded already and prints a table or --json: leave "
            f"{', '.join(given)} out"
        )
    history, _ = open_history(words, read_followed(policy), store)
    if outputs.json is not None:
        print_document(history_document(history))
    else:
        report = HistoryReport(history, outputs.everything, judged=True)
        print_reports(report)
    return EXIT_CODES[history.verdict]


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = f"user {os.getuid()}"
    return visible(f"{name}@{os.uname().nodename}")
