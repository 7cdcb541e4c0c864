"""Rounds of a benchmark as a file: written after every round, read by the report and --resume.

One JSON object: ``schema``, ``version``, ``machine`` and ``settings`` (mappings), ``rounds``. A
round has ``number``, ``seconds`` (how long it took), ``arms``: arm -> {"error": text or null} and
what the benchmark adds to it.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar


class SchemaError(SystemExit):
    """A file does not hold what a benchmark writes; ends the command with its message."""


@dataclass(slots=True)
class RoundResults:
    """All rounds so far."""

    SCHEMA: ClassVar[str]
    VERSION: ClassVar[int] = 1

    machine: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write the file in one step, so that a killed run leaves the last complete file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(self.document()), encoding="utf-8")
        partial.replace(path)

    def document(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {"schema": self.SCHEMA, "version": self.VERSION, **asdict(self)}

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            SchemaError: It is another benchmark's, or of another version.
        """
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("schema") != cls.SCHEMA:
            raise SchemaError(f"{path} holds no results of {cls.SCHEMA}")
        if document.get("version") != cls.VERSION:
            raise SchemaError(f"{path} has version {document.get('version')}, not {cls.VERSION}")
        results = cls(document["machine"], document["settings"], document["rounds"])
        results.check(path)
        return results

    def check(self, path: Path) -> None:
        """Refuse rounds that lack something.

        Raises:
            SchemaError: They do.
        """

    def errors(self) -> Mapping[str, str]:
        """Return the last error of each arm that had one."""
        return {
            arm: result["error"]
            for each in self.rounds
            for arm, result in each["arms"].items()
            if result["error"]
        }


_R = TypeVar("_R", bound=RoundResults)


def merged(parts: Sequence[_R]) -> _R:
    """Return all rounds of several results, those of the first machine and settings in front."""
    rounds = [each for part in parts for each in part.rounds]
    return type(parts[0])(parts[0].machine, parts[0].settings, rounds)


def machine() -> dict[str, Any]:
    """Return the machine and the versions."""
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


def measure(
    options: argparse.Namespace,
    results: RoundResults,
    once: Callable[[random.Random], Mapping[str, Any]],
) -> None:
    """Measure rounds until there are enough or time is up, and save each.

    Args:
        options: Command line: rounds, budget_seconds, seed, json.
        results: Earlier rounds; new ones are added.
        once: Measures one round.
    """
    begin, longest = time.monotonic(), 0.0
    while len(results.rounds) < options.rounds:
        spent = time.monotonic() - begin
        if spent + longest > options.budget_seconds:
            print(f"{spent:.0f} s are spent: stopped before the next round", flush=True)
            return
        number, began = len(results.rounds), time.monotonic()
        arms = once(random.Random(f"{options.seed}/{number}"))
        seconds = time.monotonic() - began
        # The first one fills the caches of compilers; the next is faster.
        longest = max(longest, seconds) if number else seconds / 2
        results.rounds.append({"number": number, "seconds": seconds, "arms": arms})
        results.save(options.json)
        print(f"round {number + 1}: {seconds:.0f} s", flush=True)
