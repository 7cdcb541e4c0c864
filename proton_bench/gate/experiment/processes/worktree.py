"""Another revision of the repository beside the working tree, and their differences."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proton_bench.errors import UsageError

__all__ = [
    "Revision",
    "changed_files",
    "find_revision",
    "first_folders_of",
    "git",
    "worktree",
]

# Usual folders of packages in repositories.
_SOURCES = ("", "src", "python")
# Variables that git sets for hooks, which would name another repository.
_GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit of a repository.

    Attributes:
        root: Top folder of the working tree.
        ref: As given by the user.
        commit: Its full hash.
    """

    root: str
    ref: str
    commit: str

    @property
    def label(self) -> str:
        """The same as text."""
        return f"{self.ref}, {self.commit[:10]}"


def find_revision(ref: str, folder: str) -> Revision:
    """Return the commit of a name in the repository around a folder.

    Raises:
        UsageError: The folder is not in a repository, or there is no such commit.
    """
    try:
        root = git(folder, "rev-parse", "--show-toplevel")
    except UsageError as error:
        raise UsageError(
            f"{error}; outside a repository `proton ab --base CMD` compares commands"
        ) from error
    if not ref or ref.startswith("-"):
        raise UsageError(f"--base-ref {ref!r} is not a revision")
    try:
        commit = git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except UsageError as error:
        if ref == "HEAD":
            raise UsageError(
                f"{root!a} has no commit yet; compare commands, with --base CMD"
            ) from error
        raise UsageError(
            f"there is no commit {ref!r} in {root!a}; fetch it with `git fetch origin`"
        ) from error
    return Revision(os.path.realpath(root), ref, commit)


def changed_files(revision: Revision) -> frozenset[str]:
    """Return the files that differ between a revision and the working tree, from the top folder.

    Raises:
        UsageError: git fails.
    """
    listed = git(revision.root, "diff", "--name-only", "--no-renames", "-z", revision.commit, "--")
    return frozenset(each for each in listed.split("\0") if each)


@contextlib.contextmanager
def worktree(revision: Revision, folder: Path) -> Iterator[Path]:
    """Check a revision out into a folder for the block; the folder is removed at its end.

    Raises:
        UsageError: git fails.
    """
    _remove(revision, folder)  # left over by a killed process
    try:
        git(revision.root, "worktree", "add", "--detach", "--force", str(folder), revision.commit)
        yield folder
    finally:
        _remove(revision, folder)


def first_folders_of(revision: Revision, tree: Path, *, script: str = "") -> tuple[str, ...]:
    """Return the folders of a checked-out revision that come first in the module search path.

    They are the counterpart of the script's folder, which Python puts first, the top folder, `src`,
    `python`, and counterparts of the working tree's folders on this process's path.

    Args:
        revision: The revision.
        tree: Its folder.
        script: Path of the measured script, "" for another target.
    """
    own = [os.path.dirname(os.path.realpath(script))] if script else []
    first, others = (_inside(folders, revision.root) for folders in (own, sys.path))
    candidates = [
        tree / each for each in (*first, *_SOURCES, *others) if "site-packages" not in each
    ]
    found = [str(each) for each in candidates if each.is_dir()]
    packages = [each for each in found if os.path.exists(os.path.join(each, "__init__.py"))]
    return tuple(dict.fromkeys(each for each in found if each not in packages))


def _inside(folders: Sequence[str], root: str) -> list[str]:
    """Return the folders below a root, relative to it."""
    found = map(os.path.realpath, folders)
    return [os.path.relpath(each, root) for each in found if _is_below(each, root)]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)


def _remove(revision: Revision, folder: Path) -> None:
    """Remove a folder that git knows as a worktree, and nothing else."""
    place = os.path.realpath(folder)
    with contextlib.suppress(UsageError):
        known = git(revision.root, "worktree", "list", "--porcelain").splitlines()
        if f"worktree {place}" in known and not folder.is_symlink():
            git(revision.root, "worktree", "remove", "--force", "--force", place)
        git(revision.root, "worktree", "prune")


# Settings with which a repository can make git start programs.
_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def git(folder: str, *words: str) -> str:
    """Return what git prints in a folder, without the last line breaks.

    Raises:
        UsageError: It cannot be started, or fails.
    """
    environment = {name: os.environ[name] for name in os.environ if name not in _GIT_VARIABLES}
    try:
        done = subprocess.run(
            ["git", *_HARMLESS, "-C", folder or ".", *words],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**environment, "LC_ALL": "C", "GIT_LFS_SKIP_SMUDGE": "1"},
        )
    except OSError as error:
        raise UsageError(f"git cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "backslashreplace").strip()
        raise UsageError(f"git {words[0]} failed in {folder!a}: {said}")
    return os.fsdecode(done.stdout).rstrip("\n")
