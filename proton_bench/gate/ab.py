"""`proton ab`: prepares two commands or versions, and compares them in turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from proton_bench.errors import ProfileFormatError
from proton_bench.gate.experiment import PairedExperiment
from proton_bench.gate.policy import Policy, parse_threshold
from proton_bench.gate.processes import (
    Command,
    Revision,
    first_folders_of,
    interruptible,
    own_environment,
    worktree,
)
from proton_bench.gate.progress import Progress
from proton_bench.gate.runs import MANIFEST, TREE, Arm, KeptRuns, Series, write_json
from proton_bench.gate.slot import BASE, NEW
from proton_bench.gate.verdict.result import Outcome

_THRESHOLDS = ("thresholds", "overriding")


@dataclass(frozen=True, slots=True)
class Request:
    """A requested experiment.

    Attributes:
        command: What the new side runs.
        base: What the base runs; None means the same.
        revision: Version of the repository that the base loads; None means the same.
        setup: Command that sets up an environment for each side, where there is a revision; "" for
            none.
        runs: Most pairs; 0 for the default.
        policy: The policy.
    """

    command: Command
    base: Command | None = None
    revision: Revision | None = None
    setup: str = ""
    runs: int = 0
    policy: Policy = field(default_factory=Policy)

    def to_document(self) -> dict[str, Any]:
        """Return JSON values."""
        policy = asdict(self.policy)
        for name in _THRESHOLDS:
            policy[name] = [str(each) for each in getattr(self.policy, name)]
        return {
            "doing": "ab",
            "command": self.command.to_document(),
            "base": self.base.to_document() if self.base else None,
            "revision": asdict(self.revision) if self.revision else None,
            "setup": self.setup,
            "runs": self.runs,
            "policy": policy,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Request:
        """Return the request from `to_document`."""
        policy = dict(document["policy"])
        for name in _THRESHOLDS:
            policy[name] = tuple(parse_threshold(text) for text in policy.get(name, ()))
        policy["quarantine"] = tuple(policy["quarantine"])
        base, revision = document["base"], document["revision"]
        return cls(
            command=Command.from_document(document["command"]),
            base=Command.from_document(base) if base else None,
            revision=Revision(**revision) if revision else None,
            setup=str(document["setup"]),
            runs=int(document["runs"]),
            policy=Policy(**policy),
        )


def begin_ab(request: Request, folder: Path, progress: Progress) -> Outcome:
    """Compare two sides and keep everything in a folder.

    Args:
        request: What is compared.
        folder: Folder of the runs.
        progress: Gets the progress.

    Raises:
        ProtonError: See `PairedExperiment.run`.
    """
    return _run(request, KeptRuns.create(folder, request.to_document()), progress)


def resume_ab(folder: Path, progress: Progress) -> Outcome:
    """Continue an interrupted experiment; see `begin_ab`.

    Raises:
        UsageError: There is none in the folder, or another process runs it.
        ProfileFormatError: Its manifest is damaged.
    """
    kept = KeptRuns.open(folder)
    try:
        request = Request.from_document(kept.description)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__} {error}"
        raise ProfileFormatError(f"{str(folder / MANIFEST)!a} is damaged: {what}") from error
    return _run(request, kept, progress)


def _run(request: Request, kept: KeptRuns, progress: Progress) -> Outcome:
    revision = request.revision
    homes = {} if revision is None else {str(kept.folder / TREE): revision.root}
    with interruptible(), kept.in_use(), _sides(request, kept.folder) as arms, progress:
        result = PairedExperiment(
            arms[BASE],
            arms[NEW],
            request.policy,
            series=Series(kept, arms, progress, homes=homes),
            runs=request.runs,
            revision=revision,
        ).run()
    write_json(kept.folder / "result.json", result.to_document())
    return Outcome(result)


@contextlib.contextmanager
def _sides(request: Request, folder: Path) -> Iterator[Mapping[str, Arm]]:
    """Yield the sides by name; their worktree and environments are removed after the block.

    Args:
        request: What is compared.
        folder: Of the experiment.

    Raises:
        ProtonError: A side cannot be prepared; nothing is left behind.
    """
    base = Arm(BASE, request.command, label="same code")
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
                arm = arm.inside(own)
            found[name] = arm
        yield found
