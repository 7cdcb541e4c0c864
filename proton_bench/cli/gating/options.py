"""The options of ``proton gate``, and how policies of files and of the command line combine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.cli.project import policy_file

if TYPE_CHECKING:
    from proton_bench.gate.policy.policy import Policy
    from proton_bench.gate.policy.policy_words import PolicyWords

__all__ = [
    "EverythingOption",
    "GithubOption",
    "JunitOption",
    "MarkdownOption",
    "PolicyOption",
    "RunsOption",
    "SetOption",
    "SidesArgument",
    "StoreOption",
    "ThresholdOption",
    "chosen_policy",
]

SidesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="The base and the new side: each a profile, a folder of runs, the name of a "
        "baseline, or STORE?CONDITION for runs of a store. With --runs, BASE and then a command; "
        "with --history, any number of them.",
        metavar="BASE NEW | BASE -- CMD | RUN",
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FOLDER",
        help="Folder of baselines (default: .proton of the project).",
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="TOML file with the policy (default: [tool.proton.gate] of pyproject.toml).",
    ),
]
ThresholdOption = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--threshold",
        metavar="EXPR",
        help="What may get slower by how much, such as 5%, 'fwd/**/softmax*@p95:10%' or calls:0; "
        "may be repeated, the last one that matches a path counts.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A key of the policy; may be repeated."),
]
RunsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="R",
        min=1,
        help="Record the new side: run the command after -- in at most R fresh processes; fewer if "
        "every path is decided earlier.",
    ),
]

EverythingOption = Annotated[bool, typer.Option("--all", help="Also show paths that are the same.")]
MarkdownOption = Annotated[
    Path | None,
    typer.Option("--markdown", metavar="FILE", help="Write a comment for a pull request."),
]
JunitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")
]
GithubOption = Annotated[
    bool,
    typer.Option(
        "--github", help="Print annotations and add to the job summary of GitHub Actions."
    ),
]


def chosen_policy(words: PolicyWords) -> Policy:
    """Return the policy of the file, overridden by the command line.

    Raises:
        UsageError: Something cannot be read; the message says where.
    """
    return words.policy(policy_file())
