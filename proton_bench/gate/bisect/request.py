"""What `proton bisect` was asked, kept in the manifest so that the same command continues."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.gate.bisect.history import Candidate, History
from proton_bench.gate.bisect.revisions import commits_between, versions_between
from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.processes.worktree import Revision, find_revision, git
from proton_bench.gate.experiment.request import Request
from proton_bench.gate.policy.policy import Policy
from proton_bench.model.frame import escape_surrogates

__all__ = ["BisectRequest"]


@dataclass(frozen=True, slots=True)
class BisectRequest:
    """A requested search.

    Attributes:
        command: What to measure.
        good: Commit, branch, tag or version that is not slower.
        bad: One that is.
        package: Package whose versions are searched; "" for the commits of the repository.
        first_parent: Whether a merge is one step.
        setup: Command that sets up an environment for each revision; "" for none.
        runs: Pairs of the proof; 0 adds pairs until it is decided, as `proton ab` does.
        policy: The policy of the proof.
    """

    command: Command
    good: str
    bad: str
    package: str = ""
    first_parent: bool = False
    setup: str = ""
    runs: int = 0
    policy: Policy = field(default_factory=Policy)

    @property
    def proof(self) -> Request:
        """The experiment that proves the regression."""
        return Request(command=self.command, runs=self.runs, policy=self.policy)

    def history(self) -> tuple[Candidate, History]:
        """Return the good revision and what follows up to the bad one.

        Raises:
            UsageError: There is nothing between them, or they are unknown.
            TargetFailedError: pip fails.
        """
        if self.package:
            history = versions_between(self.package, self.good, self.bad)
            return Candidate(self.good, f"{self.package} {self.good}"), history
        good, bad = self.commits()
        history = commits_between(good, bad, first_parent=self.first_parent)
        return Candidate(good.commit, escape_surrogates(good.ref)), history

    def commits(self) -> tuple[Revision, Revision]:
        """Return the good and the bad commit.

        Raises:
            UsageError: One is unknown, or there is no repository.
        """
        folder = self.command.options.folder
        return find_revision(self.good, folder), find_revision(self.bad, folder)

    def tracked_script(self) -> str:
        """Return the script from the top folder if both ends have it, and nobody edits it.

        Then each revision runs its own one.
        """
        if self.package or not self.command.script:
            return ""
        ends = self.commits()
        root = ends[1].root
        script = os.path.relpath(os.path.realpath(self.command.script), root)
        if script.startswith(os.pardir):
            return ""
        try:
            for end in ends:
                git(root, "cat-file", "-e", f"{end.commit}:{script}")
            edited = git(root, "status", "--porcelain", "--", f":(literal,top){script}")
        except UsageError:
            return ""
        return "" if edited else script

    def _own_script(self) -> str:
        """Return the digest of the script that all revisions run, "" if each has its own one."""
        if not self.command.script or self.tracked_script():
            return ""
        try:
            content = Path(self.command.script).read_bytes()
        except OSError:
            return ""
        return hashlib.sha256(content).hexdigest()

    def to_document(self) -> dict[str, Any]:
        """Return JSON values. Equal documents are the same search, with as many pairs or more."""
        if self.package:
            ends = [self.good, self.bad]
        else:
            ends = [each.commit for each in self.commits()]
        options = replace(self.command.options, command=())
        proof = self.proof.to_document()
        del proof["runs"]
        return {
            **proof,
            "doing": "bisect",
            "command": replace(self.command, options=options).to_document(),
            "good": ends[0],
            "bad": ends[1],
            "package": self.package,
            "first_parent": self.first_parent,
            "setup": self.setup,
            "script": self._own_script(),
        }
