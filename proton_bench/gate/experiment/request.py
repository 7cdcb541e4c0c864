"""The options of `proton ab`, kept in the manifest so that it can continue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from proton_bench.gate.experiment.processes.command import Command
from proton_bench.gate.experiment.processes.worktree import Revision
from proton_bench.gate.policy import Policy, parse_threshold

__all__ = ["Request"]

_THRESHOLDS = ("thresholds", "overriding")


@dataclass(frozen=True, slots=True)
class Request:
    """A requested experiment.

    Attributes:
        command: What the new side runs.
        base: What the base runs; None means the same.
        revision: Version of the repository that the base loads; None means the same.
        setup: Command that sets up an environment for each side; "" for none.
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
