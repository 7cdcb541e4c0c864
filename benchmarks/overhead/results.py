"""Results as a file: written after every round, read by the report and to go on.

One JSON object: ``schema``, ``version``, ``machine`` and ``settings`` (mappings), and ``rounds``. A
round has ``number``, ``seconds`` (how long it took) and ``arms``: arm -> {"error": text or null,
"workloads": {workload: {"bare": [seconds per unit of each block], "profiled": [...], "finalize_s",
"bytes", "kernels"}}}.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Results", "SchemaError", "machine", "merged"]

SCHEMA = "proton_bench.overhead"
VERSION = 1
_WORKLOAD_KEYS = {"bare", "profiled", "finalize_s", "bytes", "kernels"}


class SchemaError(ValueError):
    """A file does not hold what this module writes."""


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
        partial.write_text(json.dumps(self.document()), encoding="utf-8")
        partial.replace(path)

    def document(self) -> dict[str, Any]:
        """Return what is written."""
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "machine": self.machine,
            "settings": self.settings,
            "rounds": self.rounds,
        }

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a file.

        Raises:
            SchemaError: It is none of ours, or of another version.
        """
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise SchemaError(f"{path} holds no results of benchmarks.overhead")
        if document.get("version") != VERSION:
            raise SchemaError(f"{path} has version {document.get('version')}, not {VERSION}")
        results = cls(document["machine"], document["settings"], document["rounds"])
        for name, measured in results.all_measured():
            missing = _WORKLOAD_KEYS - set(measured)
            if missing:
                raise SchemaError(f"{path}: {name} lacks {sorted(missing)}")
        return results

    def all_measured(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield "arm/workload" and what was measured, of every round."""
        for each in self.rounds:
            for arm, result in each["arms"].items():
                for workload, measured in result["workloads"].items():
                    yield f"{arm}/{workload}", measured

    def of(self, arm: str, workload: str) -> dict[int, dict[str, Any]]:
        """Return what was measured, by place of the round in the list."""
        found = {}
        for place, each in enumerate(self.rounds):
            measured = each["arms"].get(arm, {}).get("workloads", {}).get(workload)
            if measured and measured["bare"] and measured["profiled"]:
                found[place] = measured
        return found

    def errors(self) -> Mapping[str, str]:
        """Return the last error of each arm that had one."""
        return {
            arm: result["error"]
            for each in self.rounds
            for arm, result in each["arms"].items()
            if result["error"]
        }


def merged(parts: Iterable[Results]) -> Results:
    """Return all rounds of several results, those of the first machine and settings in front."""
    parts = list(parts)
    rounds = [each for part in parts for each in part.rounds]
    return Results(parts[0].machine, parts[0].settings, rounds)


def machine() -> dict[str, Any]:
    """Return what figures depend on."""
    import torch
    import triton

    has_gpu = torch.cuda.is_available()
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "gpu": torch.cuda.get_device_name() if has_gpu else "",
    }
