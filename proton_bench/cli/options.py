"""Options that several commands have, and what the project of the current folder gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proton_bench.analysis.choices import FrameFormat
from proton_bench.errors import UsageError

if TYPE_CHECKING:
    from proton_bench.gate.policy import Policy, PolicyWords

# For commands that run a target: everything after the first positional belongs to it, including
# --help and --.
CONTEXT_SETTINGS = {"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}

TargetArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="A script, `pytest`, `python` or any program, then its own arguments, passed on "
        "unchanged.",
        show_default=False,
        metavar="TARGET",
    ),
]

# -- trees
DepthOption = Annotated[int, typer.Option("-d", "--depth", help="Levels to show.")]
FramesOption = Annotated[
    FrameFormat, typer.Option("-f", "--format", help="Form of Python frames' names.")
]
IncludeOption = Annotated[
    str | None,
    typer.Option(
        "-i",
        "--include",
        metavar="REGEX",
        help="Keep rows whose name matches from its start, with the rows above and below them.",
    ),
]
ExcludeOption = Annotated[
    str | None,
    typer.Option(
        "-e",
        "--exclude",
        metavar="REGEX",
        help="Leave out rows whose name matches from its start, and the rows below them. "
        "Values of the rows above do not change.",
    ),
]
WholeOption = Annotated[
    bool,
    typer.Option("--whole", help="Show the whole run, also where its steady steps are known."),
]
RawNamesOption = Annotated[
    bool,
    typer.Option(
        "--raw-names",
        help="Show the names of kernels as they were recorded, Inductor's with their running "
        "numbers, one row each.",
    ),
]


# -- gates
JobOption = Annotated[
    str, typer.Option("--job", metavar="NAME", help="The job: what is compared over time.")
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


PairsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="R",
        min=1,
        help="Compare at most R pairs of runs, 20 by default; fewer if every path is decided "
        "earlier.",
    ),
]
SetupOption = Annotated[
    str | None,
    typer.Option(
        "--setup",
        metavar="CMD",
        help="Create a virtual environment for each version with this shell command, run in its "
        "tree.",
    ),
]
JsonFileOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="F", help="Write a JSON document; - prints it instead."),
]


def chosen_policy(words: PolicyWords) -> Policy:
    """Return the policy of the file, overridden by the command line.

    Raises:
        UsageError: Something cannot be read; the message says where.
    """
    return words.policy(policy_file())


def default_store() -> Path:
    """Return the store of the project: ``.proton`` beside its pyproject.toml or .git."""
    from proton_bench.gate.project import store_of_project

    return store_of_project(_here())


def policy_file() -> Path | None:
    """Return the project's pyproject.toml, or None."""
    from proton_bench.gate.project import policy_of_project

    return policy_of_project(_here())


def project_folder() -> Path:
    """Return the folder of the project, by default the current one."""
    from proton_bench.gate.project import project_of

    return project_of(_here())


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder was removed; change to one that exists") from None
