"""Copies saved runs out of the store."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.gate.baseline.catalogue import Catalogue
from proton_bench.gate.baseline.entry import Entry
from proton_bench.support.files import Folder, refused
from proton_bench.support.text import visible

__all__ = ["export_entry"]


def export_entry(catalogue: Catalogue, entry: Entry, folder: Path) -> list[Path]:
    """Copy the runs of an entry to a folder, all of them or none.

    Raises:
        UsageError: The folder is there and not empty.
        ProfileFormatError: A saved run is damaged.
        OutputError: The folder cannot be written.
    """
    contents = catalogue.contents(entry)
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{visible(folder)} is there already; name a new or empty folder")
    place = Path(os.path.realpath(folder))
    files = {f"{entry.name}-{run.file}": content for run, content in contents}
    with refused(f"export {entry.reference}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with Folder.of_user(place.parent) as above:
            _put(above, place.name, files)
    return [folder / name for name in files]


def _put(above: Folder, name: str, files: Mapping[str, bytes]) -> None:
    scratch = f".proton-tmp-{secrets.token_hex(8)}"
    with above.undone(scratch):
        above.make(scratch)
        with above.folder(scratch) as folder:
            for file, content in files.items():
                folder.write(file, content)
        above.move(scratch, above, name)
