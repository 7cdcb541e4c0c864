"""The folder of an experiment: every profile, and a manifest that assigns them to runs.

A run counts once the manifest names it. The manifest is replaced atomically after each run, so
after any interruption the next process finds the finished runs and continues after them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proton_bench.analysis.run import Run
from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.formats.registry import read_profile
from proton_bench.gate.experiment.folders.json_files import make_folder, read_json, write_json
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.experiment.slot import Slot, Stage
from proton_bench.model.profile import Profile
from proton_bench.support.files import refused
from proton_bench.support.text import visible

__all__ = ["MANIFEST", "KeptRun", "KeptRuns"]

SCHEMA = "proton_bench.experiment"
VERSION = (1, 0)
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One successful run.

    Attributes:
        slot: Its slot.
        files: Names of its profiles in the folder; several if children recorded themselves.
        seconds: Duration of its process.
    """

    slot: Slot
    files: tuple[str, ...]
    seconds: float


class KeptRuns:
    """The runs of one experiment. Use `create` or `open`.

    Attributes:
        folder: Their folder.
        description: The experiment as JSON values.
    """

    def __init__(
        self, folder: Path, description: Mapping[str, Any], runs: Mapping[Slot, KeptRun]
    ) -> None:
        self.folder = folder
        self.description = description
        self._runs = dict(runs)

    @classmethod
    def create(cls, folder: Path, description: Mapping[str, Any]) -> KeptRuns:
        """Begin an experiment in a folder.

        Raises:
            UsageError: There is one already, or there are links.
            OutputError: The folder or the manifest cannot be written.
        """
        make_folder(folder)
        if (folder / MANIFEST).exists():
            raise UsageError(f"{str(folder)!a} already has an experiment: name another folder")
        kept = cls(folder, description, {})
        kept._write()
        return kept

    @classmethod
    def open(cls, folder: Path) -> KeptRuns:
        """Open an existing experiment; runs with missing files are left out.

        Raises:
            UsageError: There is no experiment, or its folder has links.
            ProfileFormatError: Its manifest is damaged, or of an unknown version.
        """
        path = folder / MANIFEST
        if not path.exists():
            raise UsageError(f"{str(folder)!a} has no experiment: there is no {MANIFEST} in it")
        document = read_json(path)
        try:
            if document["schema"] != SCHEMA or document["version"][0] != VERSION[0]:
                raise ProfileFormatError(
                    f"{str(path)!a} is not an experiment of version {VERSION[0]}"
                )
            runs = [_read_run(each) for each in document["runs"]]
            description = dict(document["experiment"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, ProfileFormatError):
                raise
            raise ProfileFormatError(
                f"{str(path)!a} is damaged: {type(error).__name__} {error}"
            ) from error
        there = [each for each in runs if all((folder / name).is_file() for name in each.files)]
        return cls(folder, description, {each.slot: each for each in there})

    def __contains__(self, slot: object) -> bool:
        return slot in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: KeptRun) -> None:
        """Add a run.

        Raises:
            OutputError: The manifest cannot be written; the run does not count then.
        """
        self._runs[run.slot] = run
        try:
            self._write()
        except OutputError:
            del self._runs[run.slot]
            raise

    def of(self, stage: Stage, arm: str = "") -> tuple[KeptRun, ...]:
        """Return the runs of a stage in the order of their pairs, of one side or both."""
        found = [each for slot, each in self._runs.items() if slot.stage is stage]
        chosen = [each for each in found if arm in ("", each.slot.arm)]
        return tuple(sorted(chosen, key=lambda each: each.slot.pair))

    def read(self, run: KeptRun) -> Run:
        """Return the profile of a run, merged over its processes.

        Raises:
            UsageError: A file is missing.
            ProfileFormatError: A file is damaged.
        """
        paths = [self.folder / name for name in run.files]
        profiles = [read_profile(path) for path in paths]
        whole = profiles[0] if len(profiles) == 1 else Profile.merge(profiles)
        return Run(whole, visible(Path(shown(paths[0]))))

    def modules(self, run: KeptRun) -> list[dict[str, str]] | None:
        """Return name, file and hash of the modules that a run loaded, None if unknown."""
        path = self.folder / f"{run.slot.name}.modules.json"
        return read_json(path) if path.exists() else None

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Prevent other processes from continuing the same experiment.

        Raises:
            UsageError: One does already.
        """
        with refused(f"lock {str(self.folder)!a}"):
            descriptor = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UsageError(f"{str(self.folder)!a} is in use by another process") from error
            yield
        finally:
            os.close(descriptor)

    def _write(self) -> None:
        document = {
            "schema": SCHEMA,
            "version": list(VERSION),
            "experiment": self.description,
            "runs": [asdict(each) for each in self._runs.values()],
        }
        write_json(self.folder / MANIFEST, document)


def _read_run(document: Mapping[str, Any]) -> KeptRun:
    slot = document["slot"]
    files = tuple(str(name) for name in document["files"])
    if not files or any("/" in name for name in files):
        raise ValueError(f"{files} are not files of a run")
    return KeptRun(
        Slot(Stage(slot["stage"]), int(slot["pair"]), str(slot["arm"]), bool(slot["base_first"])),
        files,
        float(document["seconds"]),
    )
