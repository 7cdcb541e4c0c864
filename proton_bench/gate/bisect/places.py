"""Where revisions run: a checkout, an environment, and what the command is there."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from proton_bench.analysis.run import Run
from proton_bench.gate.bisect.history import Candidate
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.experiment.arm import Arm
from proton_bench.gate.experiment.loaded import LoadedModule
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.processes.environment import own_environment
from proton_bench.gate.experiment.processes.worktree import (
    Revision,
    first_folders_of,
    worktree,
)
from proton_bench.gate.experiment.sides import at_home
from proton_bench.gate.experiment.slot import BASE, NEW

__all__ = ["LazyArms", "Places"]

_TREES = {BASE: "good-tree", NEW: "tree"}


class Places:
    """Prepares revisions to run in.

    Args:
        request: The search.
        folder: Folder for checkouts and environments.

    Attributes:
        root: Top folder of the repository; "" for versions of a package.
    """

    def __init__(self, request: BisectRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self.root = "" if request.package else request.commits()[1].root
        self._script = request.tracked_script()

    @contextlib.contextmanager
    def arm(self, name: str, candidate: Candidate) -> Iterator[Arm]:
        """Prepare a revision for the block; its checkout and environment are removed after it.

        Args:
            name: Side of the pairs.
            candidate: The revision.

        Raises:
            TargetFailedError: Its setup failed.
            ProtonError: It cannot be checked out, or something cannot be written.
        """
        request, label = self._request, candidate.text
        environment = self._environment(name)
        if request.package:
            wanted = shlex.quote(f"{request.package}=={candidate.name}")
            setup = f"python -m pip install --pre --disable-pip-version-check {wanted}"
            setup = f"{setup} && {request.setup}" if request.setup else setup
            here = Path(request.command.options.folder)
            with own_environment(environment, here, setup) as own:
                packages = (own.packages,)
                yield Arm(name, request.command, label, packages, own.interpreter, own.variables)
            return
        tree = self._folder / _TREES[name]
        revision = Revision(self.root, candidate.title, candidate.name)
        with worktree(revision, tree):
            front = first_folders_of(revision, tree)
            command = self._command(tree)
            arm = Arm(name, command, label, front, revision=candidate.name)
            if not request.setup:
                yield arm
                return
            with own_environment(environment, tree, request.setup) as own:
                yield replace(
                    arm,
                    first_folders=(own.packages, *front),
                    interpreter=own.interpreter,
                    environment=own.variables,
                )

    def at_home(self, run: Run) -> Run:
        """Give files of both sides the same names, so that rows match."""
        for arm, tree in _TREES.items():
            run = at_home(run, self._environment(arm), str(self._environment("own")))
            run = at_home(run, self._folder / tree, self.root) if self.root else run
        return run

    def modules_at_home(self, modules: list[dict[str, str]]) -> tuple[LoadedModule, ...]:
        """Return loaded modules with their files renamed as `at_home` does."""
        found = []
        for each in modules:
            file = each["file"]
            for tree in _TREES.values():
                away = os.path.realpath(self._folder / tree) + os.sep
                if file.startswith(away):
                    file = os.path.join(self.root, file.removeprefix(away))
            found.append(LoadedModule(each["name"], file, each["sha256"]))
        return tuple(found)

    def _environment(self, name: str) -> Path:
        return self._folder / f"{name}-environment"

    def _command(self, tree: Path) -> Command:
        """Return the command with the script of a checkout, if git has it unchanged."""
        command = self._request.command
        if not self._script:
            return command
        options = replace(command.options, target=str(tree / self._script))
        return replace(command, options=options)


class LazyArms(Mapping[str, Arm]):
    """Arms that are prepared when they are first run, and removed when the block ends.

    Args:
        places: Prepares them.
        candidates: Revisions of the arms by name.
        given: Arms that exist already.
    """

    def __init__(
        self,
        places: Places,
        candidates: Mapping[str, Candidate],
        given: Mapping[str, Arm] | None = None,
    ) -> None:
        self._places = places
        self._candidates = candidates
        self._given = {} if given is None else given
        self._made: dict[str, Arm] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> LazyArms:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def __getitem__(self, name: str) -> Arm:
        if name in self._given:
            return self._given[name]
        if name not in self._made:
            candidate = self._candidates[name]
            self._made[name] = self._stack.enter_context(self._places.arm(name, candidate))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._given), **dict.fromkeys(self._candidates)})

    def __len__(self) -> int:
        return len({*self._given, *self._candidates})
