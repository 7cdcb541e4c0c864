"""Noise of this machine, measured by `proton noise` and stored below ``.proton/noise``.

One file for each machine and device, because a project may be measured on several: ab and gate use
the one for the machine of their runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proton_bench.analysis.run import Run
from proton_bench.errors import UsageError
from proton_bench.gate.experiment.folders.json_files import read_json, write_json
from proton_bench.gate.experiment.folders.store import shown
from proton_bench.gate.machine.fingerprint import machine_of
from proton_bench.gate.machine.noise import Noise
from proton_bench.model.profile import Profile
from proton_bench.support.files import Folder, refused

__all__ = ["noise_of_runs", "save_noise", "stored_noise"]

_FOLDER = "noise"


def save_noise(noise: Noise, store: Path, *, facts: dict[str, Any]) -> Path:
    """Store noise as the prior of its machine and return the file.

    Args:
        noise: What was measured.
        store: Folder ``.proton``.
        facts: Further facts to write, for people.

    Raises:
        UsageError: A folder above it is a link.
        OutputError: It cannot be written.
    """
    path = store / _FOLDER / f"{_digest(noise.machine)}.json"
    with (
        refused(f"write {str(path)!a}"),
        Folder.open(store, create=True) as project,
        project.folder(_FOLDER, create=True),
    ):
        write_json(path, {**noise.to_document(), "measured": facts})
    return path


def stored_noise(profile: Profile, store: Path) -> Noise | None:
    """Return stored noise of the machine of a profile, or None.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: It is corrupt, something else, or of a version that is not known.
    """
    path = store / _FOLDER / f"{_digest(machine_of(profile))}.json"
    try:
        document = read_json(path)
    except UsageError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise
    return Noise.from_document(document, shown(path))


def noise_of_runs(runs: Sequence[Run], store: Path) -> Noise | None:
    """Return stored noise of the one machine that recorded these runs, or None."""
    found = stored_noise(runs[0].profile, store) if runs else None
    if found is None or not all(found.fits(machine_of(run.profile)) for run in runs):
        return None
    return found


def _digest(machine: Any) -> str:
    text = json.dumps(dict(machine), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
