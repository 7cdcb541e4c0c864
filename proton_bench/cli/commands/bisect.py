"""``proton bisect``: which revision made it slower?"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from proton_bench.cli.files import STDOUT, print_reports, write_output
from proton_bench.cli.options import (
    JsonFileOption,
    PairsOption,
    PolicyOption,
    SetupOption,
    ThresholdOption,
    chosen_policy,
    default_store,
)
from proton_bench.cli.target import (
    measured_command,
    split_recording,
)
from proton_bench.errors import UsageError


def command(
    good: Annotated[str, typer.Argument(metavar="GOOD", help="A revision that is not slower.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="A later one that is.")],
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- TARGET",
            help="What to measure, as for `proton run`; it may begin with the options -b, -c, -m "
            "and -k of that.",
            show_default=False,
        ),
    ] = None,
    setup: SetupOption = None,
    first_parent: Annotated[
        bool,
        typer.Option("--first-parent", help="Take a merge as one step."),
    ] = False,
    runs: PairsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    json: JsonFileOption = None,
) -> int:
    """Find the first revision that is slower than GOOD.

    Proves with pairs of runs that BAD is slower than GOOD, then measures in turn with GOOD the
    revisions that `git bisect` chooses, and skips those that do not run. Exits with 0 if the
    revision is found, 3 if nothing is slower or several revisions remain; 2 is wrong usage.
    """
    from proton_bench.gate.bisect import Bisection
    from proton_bench.gate.policy import PolicyWords
    from proton_bench.gate.progress import open_progress
    from proton_bench.gate.project import shown
    from proton_bench.gate.runs import drop_unused, new_folder
    from proton_bench.report.text.bisect import BisectReport, bisect_document
    from proton_bench.support.text import encode_document

    bisection = Bisection(
        command=measured_command(*split_recording(target or [])),
        good=good,
        bad=bad,
        first_parent=first_parent,
        setup=setup or "",
        runs=runs or 0,
        policy=chosen_policy(PolicyWords(policy, threshold or ())),
    )
    bisection.ends()  # before there is a folder that an error would leave behind
    folder = new_folder("bisect", default_store())
    try:
        result = bisection.run(folder, open_progress("bisect"))
    except UsageError:
        drop_unused(folder)
        raise
    sys.stderr.write(f"proton bisect: every run is kept in {shown(folder)}\n")
    if json is not None:
        write_output(json, encode_document(bisect_document(result)))
    if json != STDOUT:
        print_reports(BisectReport(result))
    return result.exit_code
