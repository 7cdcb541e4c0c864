"""All profiles of a study in one file, replaced as a whole after every process.

``study.zip``: ``study.json`` with schema, version and settings, and ``runs/NNN.proton``. A stopped
study keeps its measurements.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from proton_bench.analysis.run import Run
from proton_bench.formats.registry import read_profile

__all__ = ["FILE_NAME", "LARGEST_BYTES", "Archive", "StudyError"]

FILE_NAME = "study.zip"
LARGEST_BYTES = 16 << 20
_SCHEMA = "proton_bench.gate_study"
_VERSION = 1
_ABOUT = "study.json"


class StudyError(ValueError):
    """A study cannot be measured, read or resumed; the message says what to do."""


@dataclass(slots=True)
class Archive:
    """A study.

    Attributes:
        settings: How it is measured.
        runs: Bytes of the profile of each process by its number.
    """

    settings: dict[str, Any]
    runs: dict[int, bytes] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write the file in one step.

        Raises:
            StudyError: It would exceed the size limit.
            OSError: It cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / FILE_NAME
        partial = target.with_name(target.name + ".partial")
        about = {"schema": _SCHEMA, "version": _VERSION, "settings": self.settings}
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
                file.writestr(_ABOUT, json.dumps(about))
                for number, profile in sorted(self.runs.items()):
                    file.writestr(f"runs/{number:03d}.proton", profile)
            size = partial.stat().st_size
            if size > LARGEST_BYTES:
                raise StudyError(
                    f"{len(self.runs)} runs take {size} bytes, more than {LARGEST_BYTES}: "
                    f"{target} keeps the ones before; begin another folder for more"
                )
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> Archive:
        """Read a study from its folder or file.

        Raises:
            StudyError: The file is missing, damaged, or not a study.
        """
        file_path = path / FILE_NAME if path.is_dir() else path
        try:
            with zipfile.ZipFile(file_path) as file:
                about = json.loads(file.read(_ABOUT))
                runs = {
                    int(Path(name).stem): file.read(name)
                    for name in file.namelist()
                    if name.startswith("runs/")
                }
        except FileNotFoundError as error:
            raise StudyError(f"{file_path} does not exist: measure first") from error
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise StudyError(f"{file_path} cannot be read as a study: {error}") from error
        if not isinstance(about, Mapping) or about.get("schema") != _SCHEMA:
            raise StudyError(f"{file_path} holds no study of the gate")
        if about.get("version") != _VERSION:
            raise StudyError(f"{file_path} has version {about.get('version')}, not {_VERSION}")
        return cls(dict(about.get("settings", {})), runs)

    def profiles(self) -> list[Run]:
        """Return all runs in the order in which they were recorded.

        Raises:
            ProfileFormatError: One is damaged.
        """
        with TemporaryDirectory(prefix="gate_study_") as folder:
            found = []
            for number, profile in sorted(self.runs.items()):
                path = Path(folder) / f"{number:03d}.proton"
                path.write_bytes(profile)
                found.append(Run(read_profile(path), path.name))
            return found
