"""The options of ``proton gate``, and how policies of files and of the command line add up."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from proton_bench.cli.project import policy_file
from proton_bench.errors import UsageError
from proton_bench.gate.policy import Policy, policy_from_table, read_policy

__all__ = [
    "BaseOption",
    "ChartsOption",
    "EverythingOption",
    "GithubOption",
    "Inconclusive",
    "InconclusiveOption",
    "JunitOption",
    "MarkdownOption",
    "NewOption",
    "NoNoiseOption",
    "NoiseOption",
    "PolicyOption",
    "PolicyWords",
    "QuarantineOption",
    "RunsOption",
    "SetOption",
    "SidesArgument",
    "StoreOption",
    "ThresholdOption",
    "chosen_policy",
]


class Inconclusive(StrEnum):
    """What a gate that does not know exits with: 3, or 0 and a warning."""

    FAIL = "fail"
    PASS = "pass"


SidesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="What to compare with, and what to compare: a profile, a folder of runs, or the "
        "name of a baseline. With --runs, BASE and then a command.",
        metavar="BASE NEW | BASE -- CMD",
    ),
]
BaseOption = Annotated[
    list[str] | None,
    typer.Option("--base", metavar="RUN", help="Another base run; may be repeated."),
]
NewOption = Annotated[
    list[str] | None,
    typer.Option("--new", metavar="RUN", help="Another new run; may be repeated."),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FOLDER",
        help="Where baselines are kept (default: .proton of the project).",
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        # Rich takes a bracket for markup unless a backslash stands before it.
        help=r"TOML file with the policy (default: \[tool.proton.gate] of pyproject.toml).",
    ),
]
ThresholdOption = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--threshold",
        metavar="EXPR",
        help="What may change by how much, such as median:3%, 'fwd/**/softmax*@p95:10%' or "
        "calls:0; may be repeated, the last one that is about a path counts.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A key of the policy; may be repeated."),
]
QuarantineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--quarantine", metavar="GLOB", help="Paths that are shown and never fail; may be repeated."
    ),
]
InconclusiveOption = Annotated[
    Inconclusive | None,
    typer.Option("--inconclusive", help="Whether a gate that does not know exits with 3 or 0."),
]
NoiseOption = Annotated[
    Path | None,
    typer.Option(
        "--noise",
        metavar="FILE",
        help="What `proton noise` found (default: what it kept of the machine of these runs).",
    ),
]
NoNoiseOption = Annotated[
    bool, typer.Option("--no-noise", help="Judge by these runs alone, whatever is kept.")
]
RunsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="R",
        min=1,
        help="Record the new side: run the command after -- in R fresh processes.",
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
ChartsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--write",
        metavar="FORMAT=FILE",
        help="Write values for charts of other tools: openmetrics, github-action-benchmark or "
        "pytorch-hud; may be repeated.",
    ),
]
GithubOption = Annotated[
    bool,
    typer.Option(
        "--github", help="Print annotations and add to the job summary of GitHub Actions."
    ),
]


@dataclass(frozen=True, slots=True)
class PolicyWords:
    """What the command line says of the policy.

    Attributes:
        file: A TOML file instead of the project's.
        thresholds: Expressions, which win over those of the file.
        settings: ``KEY=VALUE``, the values as in TOML.
        quarantine: Globs beside those of the file.
        flags: Keys of the policy that options of their own turn on.
        inconclusive: What an undecided gate exits with, None for what the file says.
    """

    file: Path | None
    thresholds: Sequence[str] = ()
    settings: Sequence[str] = ()
    quarantine: Sequence[str] = ()
    flags: Sequence[str] = ()
    inconclusive: Inconclusive | None = None


def chosen_policy(words: PolicyWords) -> Policy:
    """Return the policy of the file with what the command line says on top.

    Raises:
        UsageError: Something cannot be read; the message says where.
    """
    file = words.file or policy_file()
    policy = read_policy(file) if file is not None else Policy()
    table: dict[str, Any] = dict.fromkeys(words.flags, True)
    if words.inconclusive is not None:
        table["inconclusive"] = str(words.inconclusive)
    if words.quarantine:
        table["quarantine"] = [*policy.quarantine, *words.quarantine]
    table |= dict(_setting(text) for text in words.settings)
    return policy_from_table(table, "command line", policy).with_thresholds(words.thresholds)


def _setting(text: str) -> tuple[str, Any]:
    """Read ``KEY=VALUE``; a value that is none in TOML is a text."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise UsageError(f"--set {text!a} is not KEY=VALUE, such as share=1%")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()
