"""One side of an experiment: a command and the origin of its modules."""

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
        label: Its description: a revision, a command, the working tree.
        first_folders: Folders that come first in the module search path.
        interpreter: Python of its own environment; "" for this one.
        environment: Variables that differ from those of this process.
        revision: Commit of its checkout; "" for the code in the current folder.
    """

    name: str
    command: Command
    label: str = ""
    first_folders: tuple[str, ...] = ()
    interpreter: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    revision: str = ""
