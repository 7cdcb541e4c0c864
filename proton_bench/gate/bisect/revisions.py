"""Lists what is between GOOD and BAD: commits of a repository, or versions of a package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence

from proton_bench.errors import TargetFailedError, UsageError
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.likeness import LoadedFiles
from proton_bench.gate.experiment.processes.worktree import Revision, git
from proton_bench.model.frame import escape_surrogates
from proton_bench.support.text import visible

__all__ = ["can_matter", "commits_between", "differing_files", "versions_between"]

_FIELDS = "%H%n%P%n%aI%n%an%n%s"
_PLAIN = ("--no-color", "--no-show-signature", "--encoding=UTF-8")
_TEXTS = (".md", ".rst")
_SHOWN_VERSIONS = 10


def commits_between(good: Revision, bad: Revision, *, first_parent: bool) -> History:
    """Return the commits that one revision contains and the other does not.

    Args:
        good: The good revision.
        bad: The bad one, which contains it.
        first_parent: Take each merge as one step, without the commits that it merges.

    Raises:
        UsageError: The bad revision does not contain the good one, or git fails.
    """
    root = bad.root
    _check_contained(good, bad)
    span = f"{good.commit}..{bad.commit}"
    chosen = ["--first-parent"] if first_parent else []
    words = [
        "log",
        "-z",
        *_PLAIN,
        "--reverse",
        "--topo-order",
        *chosen,
        f"--format={_FIELDS}",
        span,
    ]
    listed = escape_surrogates(git(root, *words))  # git keeps what is not UTF-8
    records = [each.split("\n") for each in listed.split("\0") if each]
    files = _files(root, span, chosen)
    places = {record[0]: place for place, record in enumerate(records)}
    found = []
    for commit, above, date, author, title in records:
        names = above.split()[: 1 if first_parent else None]
        parents = tuple(places[name] for name in names if name in places)
        found.append(Candidate(commit, title, author, date, parents, files.get(commit)))
    return History(found)


def versions_between(package: str, good: str, bad: str) -> History:
    """Return the versions of a package after a good one, up to a bad one, as pip lists them.

    Raises:
        UsageError: There is no such package or version, or the good one is not the older one.
        TargetFailedError: pip fails.
    """
    versions = _versions(package)
    for version in (good, bad):
        if version not in versions:
            known = ", ".join(versions[-_SHOWN_VERSIONS:]) or "none"
            raise UsageError(
                f"pip knows no version {visible(version)} of {visible(package)} for this Python; "
                f"the latest are {known}"
            )
    first, last = versions.index(good), versions.index(bad)
    if first >= last:
        raise UsageError(f"{good} is not older than {bad}: give the good version first")
    chosen = versions[first + 1 : last + 1]
    return History(
        [
            Candidate(version, f"{package} {version}", parents=(place - 1,) if place else ())
            for place, version in enumerate(chosen)
        ]
    )


def differing_files(root: str, one: str, other: str) -> frozenset[str]:
    """Return the files that differ between two commits, from the top folder.

    Raises:
        UsageError: git fails.
    """
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", one, other, "--")
    return frozenset(each for each in listed.split("\0") if each)


def can_matter(files: Iterable[str], loaded: LoadedFiles, *, is_built: bool) -> bool:
    """Return whether a change of files can change what a program does.

    It cannot if they are texts, or Python files that no run loaded, unless a build uses them.

    Args:
        files: Changed files, from the top folder.
        loaded: Files that runs loaded.
        is_built: Whether a command builds something from the files.
    """
    idle = _TEXTS if is_built else (*_TEXTS, ".py")
    return any(each in loaded or not each.endswith(idle) for each in files)


def _check_contained(good: Revision, bad: Revision) -> None:
    try:
        common = git(bad.root, "merge-base", good.commit, bad.commit)
    except UsageError as error:
        raise UsageError(f"{good.ref} and {bad.ref} have no common commit") from error
    if common == good.commit:
        return
    if common == bad.commit:
        raise UsageError(f"{bad.ref} is older than {good.ref}: give the good revision first")
    raise UsageError(
        f"{bad.ref} does not contain {good.ref}: give their common commit {common[:12]} as GOOD"
    )


def _files(root: str, span: str, chosen: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the files that each commit changes; for a merge, against its first parent."""
    words = ["--diff-merges=first-parent", "--name-only", "--no-renames", "--format=%x01%H", span]
    found: dict[str, set[str]] = {}
    files: set[str] = set()
    for word in git(root, "log", "-z", *_PLAIN, *chosen, *words).split("\0"):
        if word.lstrip("\n").startswith("\1"):
            files = found.setdefault(word.lstrip("\n")[1:], set())
        elif word:
            files.add(word.removeprefix("\n"))
    return {commit: frozenset(each) for commit, each in found.items()}


def _versions(package: str) -> list[str]:
    """Return all versions that pip could install, oldest first."""
    if package.startswith("-") or not package:
        raise UsageError(f"--package {package!r} is not the name of a package")
    words = ["-m", "pip", "index", "versions", "--pre", "--disable-pip-version-check", package]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C", "PIP_NO_COLOR": "1"},
    )
    if done.returncode != 0:
        error = TargetFailedError(
            f"`pip index versions {visible(package)}` ended with exit code {done.returncode}:"
        )
        error.add_note(done.stderr.decode("utf-8", "replace").strip())
        raise error
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        name, _, rest = line.partition(":")
        if name.strip() == "Available versions":
            return [each.strip() for each in rest.split(",")][::-1]
    raise TargetFailedError(f"`pip index versions {visible(package)}` lists no versions")
