"""``proton ab``: is the new code slower than the old one, on this machine and now?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from proton_bench.cli.measured import (
    JsonFileOption,
    PairsOption,
    SetupOption,
    measured_command,
    split_command,
    split_recording,
)
from proton_bench.cli.options import (
    CONTEXT_SETTINGS,
    EverythingOption,
    GithubOption,
    JunitOption,
    MarkdownOption,
    PolicyOption,
    SetOption,
    TargetArgument,
    ThresholdOption,
    chosen_policy,
)
from proton_bench.errors import UsageError

__all__ = ["CONTEXT_SETTINGS", "REMOVED", "command"]

# Options of earlier versions, and what to write instead.
REMOVED = {
    "--bisect": "`proton bisect GOOD BAD -- TARGET` searches",
    "--inconclusive": "write --set inconclusive=pass",
    "--metric": "write -t with the metric, such as -t p95:5%",
}
_LAST = "last"


def command(
    target: TargetArgument = None,
    base_ref: Annotated[
        str | None,
        typer.Option(
            "--base-ref",
            metavar="REF",
            help="Compare the working tree with this commit, branch or tag (default: HEAD).",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="CMD", help="Compare with this command instead."),
    ] = None,
    setup: SetupOption = None,
    runs: PairsOption = None,
    threshold: ThresholdOption = None,
    policy: PolicyOption = None,
    settings: SetOption = None,
    json: JsonFileOption = None,
    markdown: MarkdownOption = None,
    junit: JunitOption = None,
    github: GithubOption = False,
    everything: EverythingOption = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="FOLDER|last",
            help="Continue an interrupted experiment with its own options.",
        ),
    ] = None,
) -> int:
    """Run two versions of a program in turn and show which call paths got slower.

    TARGET after -- may begin with the options -b, -c, -m and -k of `proton run`, for both sides.
    Every run is a fresh process and is kept. Exits with 0 if nothing got slower and 1 if something
    did; 2 is wrong usage or a failed run, 3 undecided, 4 not comparable.
    """
    from proton_bench.cli.gating.outputs import Outputs
    from proton_bench.cli.work.experiments import ab
    from proton_bench.gate.policy import PolicyWords

    outputs = Outputs(everything, json, markdown, junit, github)
    comparison = ab.Comparison(outputs)
    if resume is not None:
        kept = (target, base_ref, base, setup, runs, threshold, policy, settings)
        if any(each is not None for each in kept):
            raise UsageError(
                "--resume continues an experiment with its own options: leave the other options out"
            )
        return comparison.resume(None if resume == _LAST else Path(resume).resolve())
    words = PolicyWords(policy, threshold or (), settings or ())
    new_words, recording = split_recording(target or [])
    new = measured_command(new_words, recording)
    return comparison.begin(
        ab.Request(
            command=new,
            base=measured_command(split_command(base), recording) if base is not None else None,
            revision=ab.revision(base_ref, base=base, setup=setup, folder=new.options.folder),
            setup=setup or "",
            runs=runs or 0,
            policy=chosen_policy(words),
        )
    )
