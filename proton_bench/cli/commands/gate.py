"""``proton gate``: whether new runs are slower than base runs, for people and for CI."""

from __future__ import annotations

from typing import Annotated

import typer

from proton_bench.cli.files import STDOUT
from proton_bench.cli.options import (
    EverythingOption,
    GithubOption,
    JunitOption,
    MarkdownOption,
    PolicyOption,
    RunsOption,
    SetOption,
    SidesArgument,
    StoreOption,
    ThresholdOption,
    default_store,
)

__all__ = ["REMOVED", "command"]

_AFTER_MARK = "write it after --, as in `proton gate --runs 6 main -- -b cpu bench.py`"
_ONE_FOLDER = "put the runs of a side into one folder and name that"
# Options of earlier versions, and what to write instead.
REMOVED = {
    **dict.fromkeys(("-b", "--backend", "-c", "--context", "-m", "--mode"), _AFTER_MARK),
    **dict.fromkeys(("-k", "--hook"), _AFTER_MARK),
    **dict.fromkeys(("--base", "--new"), _ONE_FOLDER),
    **dict.fromkeys(("--noise", "--no-noise"), "noise is no longer stored"),
    "--bisect": "`proton bisect GOOD BAD -- CMD` searches",
    "--quarantine": "write --set quarantine=GLOB",
    "--strict": "write -t calls:0",
    "--ignore-devices": "write --set ignore-devices=true",
    "--inconclusive": "write --set inconclusive=pass",
    "--write": "--json has the values of all rows",
    "--raw-names": "names that compilers number are matched without their numbers",
}


def command(
    sides: SidesArgument = None,
    runs: RunsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    store: StoreOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save", metavar="NAME", help="Save the new runs as a candidate of this baseline."
        ),
    ] = None,
    everything: EverythingOption = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with all rows.")
    ] = False,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    history: Annotated[
        bool,
        typer.Option(
            "--history",
            help="Judge the history of baselines, files and folders, as `proton history` reads "
            "them: fails if a path got worse and the step is not acknowledged.",
        ),
    ] = False,
) -> int:
    """Compare new runs with base runs; exits with 0 if nothing got slower and 1 if something did.

    With --runs R, CMD is recorded as with `proton run` in R fresh processes; it may begin with the
    options -b, -c, -m and -k of that. 2 is wrong usage or a corrupt file, 3 undecided, 4 not
    comparable, 5 no baseline.
    """
    from proton_bench.cli.gating.outputs import Outputs
    from proton_bench.cli.gating.sides import Words
    from proton_bench.cli.work.gate import Wanted, judge
    from proton_bench.gate.policy import PolicyWords

    outputs = Outputs(everything, STDOUT if as_json else None, markdown, junit, github)
    words = PolicyWords(policy, threshold or (), settings or ())
    if history:
        from proton_bench.cli.gating.history import judge_history

        unused = {
            "--runs": runs,
            "--save": save,
            "--markdown": markdown,
            "--junit": junit,
            "--github": github,
        }
        return judge_history(sides or (), words, outputs, store=store, unused=unused)
    asked = Words(positional=sides or (), runs=runs, save=save)
    return judge(Wanted(asked, words, store or default_store()), outputs)
