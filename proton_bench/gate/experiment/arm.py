"""One side of an experiment: a command and the place that its modules come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proton_bench.gate.experiment.processes.command import Command

__all__ = ["Arm"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One side.

    Attributes:
        name: ``base`` or ``new``.
        command: What to run.
        label: What it is, for people: a revision, a command, the working tree.
        first_folders: Folders that modules are looked for in first.
        interpreter: Python of an environment of its own; "" for this one.
        environment: Variables that differ from this process's.
    """

    name: str
    command: Command
    label: str = ""
    first_folders: tuple[str, ...] = ()
    interpreter: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
