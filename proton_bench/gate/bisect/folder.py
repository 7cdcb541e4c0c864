"""The folder of a search, which the same command finds again."""

from __future__ import annotations

import json
from pathlib import Path

from proton_bench.errors import ProtonError
from proton_bench.gate.bisect.request import BisectRequest
from proton_bench.gate.experiment.folders.kept_runs import MANIFEST, KeptRuns
from proton_bench.gate.experiment.folders.store import new_folder

__all__ = ["open_folder"]

_KIND = "bisect"


def open_folder(request: BisectRequest, store: Path, *, restart: bool) -> KeptRuns:
    """Return the newest folder of the same search, else a new one.

    Args:
        request: The search.
        store: The project's ``.proton``.
        restart: Whether to begin a new one in any case.

    Raises:
        UsageError: A revision is unknown, or a folder is a link.
        OutputError: It cannot be made.
    """
    description = json.loads(json.dumps(request.to_document()))
    folders = [] if restart else sorted((store / _KIND).glob(f"*/{MANIFEST}"), reverse=True)
    for manifest in folders:
        try:
            kept = KeptRuns.open(manifest.parent)
        except ProtonError:
            continue  # damaged: it stays where it is
        if kept.description == description:
            return kept
    return KeptRuns.create(new_folder(_KIND, store), description)
