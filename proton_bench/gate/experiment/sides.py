"""Prepares both sides of a request: worktree, environments, folders of modules."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.processes.environment import own_environment
from proton_bench.gate.experiment.processes.worktree import first_folders_of, worktree
from proton_bench.gate.experiment.request import Request
from proton_bench.gate.experiment.slot import BASE, NEW

__all__ = ["TREE", "at_home", "sides"]

TREE = "base-tree"


@contextlib.contextmanager
def sides(request: Request, folder: Path) -> Iterator[Mapping[str, Arm]]:
    """Yield the sides by name; their worktree and environments are removed after the block.

    Args:
        request: What is compared.
        folder: Of the experiment.

    Raises:
        ProtonError: A side cannot be prepared; nothing is left behind.
    """
    base = Arm(BASE, request.base or request.command, label="same code")
    new = Arm(NEW, request.command, label="working tree" if request.revision else "")
    if request.base is not None:
        base = Arm(BASE, request.base, label=request.base.text)
    revision = request.revision
    if revision is None:
        yield {BASE: base, NEW: new}
        return
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(worktree(revision, folder / TREE))
        script = request.command.script
        first_folders = {BASE: first_folders_of(revision, tree, script=script), NEW: ()}
        places = {BASE: tree, NEW: Path(revision.root)}
        labels = {BASE: revision.label, NEW: new.label}
        commits = {BASE: revision.commit, NEW: ""}
        found = {}
        for name in (BASE, NEW):
            arm = Arm(
                name, request.command, labels[name], first_folders[name], revision=commits[name]
            )
            if request.setup:
                own = stack.enter_context(
                    own_environment(folder / f"{name}-environment", places[name], request.setup)
                )
                # Packages built for this side come even before its sources.
                front = (own.packages, *first_folders[name])
                arm = replace(
                    arm,
                    first_folders=front,
                    interpreter=own.interpreter,
                    environment=own.variables,
                )
            found[name] = arm
        yield found


def at_home(run: Run, tree: Path, root: str) -> Run:
    """Rename files of the base's tree to those of the working tree, so that their rows match.

    Args:
        run: A run of either side.
        tree: Folder of the base's version.
        root: Top folder of the working tree.
    """
    profile, away = run.profile, str(tree)
    if not any(away in text for text in profile.strings):
        return run
    strings = tuple(text.replace(away, root) for text in profile.strings)
    return Run(replace(profile, strings=strings), run.source)
