"""``proton bisect``: which revision made it slower?"""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.cli.measured import (
    JsonFileOption,
    PairsOption,
    SetupOption,
    measured_command,
    split_recording,
)
from proton_bench.cli.options import PolicyOption, ThresholdOption, chosen_policy

__all__ = ["REMOVED", "command"]

# Options of earlier versions, and what to write instead.
REMOVED = {
    "--package": "search commits whose --setup installs a version, such as "
    "--setup 'pip install -r requirements.txt'",
    "--restart": "every search begins anew",
}


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
    from proton_bench.cli.work.experiments.bisect import find_revision
    from proton_bench.gate.bisect import Bisection
    from proton_bench.gate.policy import PolicyWords

    bisection = Bisection(
        command=measured_command(*split_recording(target or [])),
        good=good,
        bad=bad,
        first_parent=first_parent,
        setup=setup or "",
        runs=runs or 0,
        policy=chosen_policy(PolicyWords(policy, threshold or ())),
    )
    return find_revision(bisection, json=json)
