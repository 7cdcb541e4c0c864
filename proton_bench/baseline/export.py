"""Copies of saved runs outside of the store."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from proton_bench.baseline.catalogue import Catalogue
from proton_bench.baseline.durable import move, refused, write_new
from proton_bench.baseline.entry import Entry
from proton_bench.errors import UsageError
from proton_bench.formats.base import display_name

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
        raise UsageError(f"{display_name(folder)} is there already; name a new or empty folder")
    place = Path(os.path.realpath(folder))
    with refused(f"export {entry.reference}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        scratch = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        try:
            scratch.mkdir()
            for run, content in contents:
                write_new(scratch / f"{entry.name}-{run.file}", content)
            move(scratch, place)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return [folder / f"{entry.name}-{run.file}" for run, _ in contents]
