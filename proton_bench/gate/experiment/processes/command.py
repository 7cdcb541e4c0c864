"""A command as `proton run` would execute it, ready to be executed many times."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from proton_bench.recording.launcher.run_options import RunOptions, runner_command
from proton_bench.recording.launcher.target import TargetKind

__all__ = ["FORMATS", "Command"]

FORMATS = ("proton",)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and how to record it.

    Attributes:
        options: As `proton run` reads them; names of output are filled in for each run.
        arguments: The target's own arguments.
        flags: Options for the interpreter.
    """

    options: RunOptions
    arguments: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def line(
        self,
        name: str,
        *,
        first_folders: tuple[str, ...] = (),
        revision: str = "",
        interpreter: str = "",
    ) -> list[str]:
        """Return the command line of one run.

        Args:
            name: Absolute output path without a suffix.
            first_folders: Folders that modules are looked for in first.
            revision: Commit that they are a checkout of, "" for none.
            interpreter: Python to use instead of this one.
        """
        options = replace(
            self.options,
            name=name,
            template=_literal(name),
            formats=FORMATS,
            quiet=True,
            strict=True,
            first_folders=first_folders,
            revision=revision,
            modules_file=f"{name}.modules.json",
            canary=True,
        )
        line = runner_command(options, self.arguments, self.flags)
        return [interpreter or line[0], *line[1:]]

    @property
    def text(self) -> str:
        """The target and its arguments as text."""
        is_pytest = self.options.kind is TargetKind.PYTEST
        target = "pytest" if is_pytest else self.options.target or str(self.options.kind)
        return shlex.join([target, *self.arguments])

    @property
    def script(self) -> str:
        """Path of the script that is measured, "" for another target."""
        options = self.options
        is_script = options.kind is TargetKind.SCRIPT
        return os.path.join(options.folder, options.target) if is_script else ""

    def to_document(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "options": json.loads(self.options.to_json()),
            "arguments": list(self.arguments),
            "flags": list(self.flags),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Command:
        """Return the command from `to_document`."""
        options = RunOptions.from_json(json.dumps(document["options"]))
        return cls(options, tuple(document["arguments"]), tuple(document["flags"]))


def _literal(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}")
