"""Policy options of commands, in addition to the policy file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proton_bench.errors import UsageError
from proton_bench.gate.policy.policy import Policy, policy_from_table, read_policy

__all__ = ["PolicyWords"]


@dataclass(frozen=True, slots=True)
class PolicyWords:
    """The policy options.

    Attributes:
        file: A TOML file instead of the project's.
        thresholds: Expressions, which win over those of the file and of markers.
        settings: ``KEY=VALUE``, the values as in TOML.
    """

    file: Path | None
    thresholds: Sequence[str] = ()
    settings: Sequence[str] = ()

    def policy(self, of_project: Path | None) -> Policy:
        """Return the policy of the file, overridden by these options.

        Args:
            of_project: The project's file, or None.

        Raises:
            UsageError: Something cannot be read; the message says where.
        """
        file = self.file or of_project
        policy = read_policy(file) if file is not None else Policy()
        table = dict(_setting(text) for text in self.settings)
        return policy_from_table(table, "command line", policy).with_thresholds(self.thresholds)


def _setting(text: str) -> tuple[str, Any]:
    """Read ``KEY=VALUE``; a value that is not valid TOML is a text."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise UsageError(f"--set {text!a} is not KEY=VALUE, such as share=1%")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return key.strip(), value.strip()
