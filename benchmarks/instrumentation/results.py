"""Results as a file: written after every round, read by the report and to go on.

One JSON object: ``schema``, ``version``, ``machine`` and ``settings`` (mappings), and ``rounds``. A
round has ``number``, ``seconds`` and ``arms``: arm -> {"error": text or null, "works": {work: [what
the worker answered to each pair]}}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Results"]

SCHEMA = "proton_bench.instrumentation"
VERSION = 1


@dataclass(slots=True)
class Results:
    """What was measured so far."""

    machine: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the file in one step, so that whoever is killed leaves the last complete one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        document = {"schema": SCHEMA, "version": VERSION, **asdict(self)}
        partial.write_text(json.dumps(document), encoding="utf-8")
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a file.

        Raises:
            SystemExit: It is none of ours, or of another version.
        """
        document = json.loads(path.read_text(encoding="utf-8"))
        found = (document.get("schema"), document.get("version"))
        if found != (SCHEMA, VERSION):
            raise SystemExit(f"{path} holds {found}, not {(SCHEMA, VERSION)}")
        return cls(document["machine"], document["settings"], document["rounds"])

    def of(self, arm: str, work: str) -> list[list[dict[str, Any]]]:
        """Return the pairs of each round that has some."""
        found = (each["arms"].get(arm, {}).get("works", {}).get(work) for each in self.rounds)
        return [pairs for pairs in found if pairs]

    def errors(self) -> Mapping[str, str]:
        """Return the last error of each arm that had one."""
        return {
            arm: result["error"]
            for each in self.rounds
            for arm, result in each["arms"].items()
            if result["error"]
        }
