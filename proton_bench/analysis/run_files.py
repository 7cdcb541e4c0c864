"""Runs from files and from folders, one file for each run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import drop_metadata, drop_trials
from proton_bench.errors import UsageError
from proton_bench.formats.registry import PARTIAL, read_profile
from proton_bench.support.text import visible

__all__ = ["best_of", "files_of", "read_runs"]

# Suffixes of recordings, best first: several of one run count as one run.
_SUFFIXES = (".proton", ".hatchet_msgpack", ".hatchet", ".pftrace", ".chrome_trace")


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs of files and of folders, those of a folder sorted by name.

    Raises:
        UsageError: A file is missing, empty, or named twice.
        ProfileFormatError: A file is corrupt, or not a profile.
    """
    files = [file for path in paths for file in (files_of(path) if path.is_dir() else [path])]
    seen: set[Path] = set()
    for file in files:
        place = file.resolve()
        if place in seen:
            raise UsageError(f"{visible(file)} is named twice; name each run once")
        seen.add(place)
    return [_read(file) for file in files]


def best_of(files: Sequence[Path]) -> Path:
    """Return the most complete of these files of one run; of equal ones, the last."""
    return max(reversed(files), key=lambda file: -_rank(file))


def files_of(folder: Path) -> list[Path]:
    """Return one file for each run: the best of several formats, complete before partial."""
    best: dict[str, tuple[int, Path]] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix not in _SUFFIXES or file.name == file.suffix or not file.is_file():
            continue
        is_partial = PurePath(file.stem).suffix == PARTIAL
        run = PurePath(file.stem).stem if is_partial else file.stem
        rank = _rank(file) + len(_SUFFIXES) * is_partial
        if run not in best or rank < best[run][0]:
            best[run] = (rank, file)
    return [file for _, file in best.values()]


def _rank(file: Path) -> int:
    return _SUFFIXES.index(file.suffix) if file.suffix in _SUFFIXES else len(_SUFFIXES)


def _read(file: Path) -> Run:
    profile = read_profile(file)
    columns = drop_trials(drop_metadata(profile)).columns.values()
    if not any(column.valid.any() for column in columns):
        raise UsageError(
            f"{visible(file)} is empty: it has no values; check that the run launched something"
        )
    return Run(profile, str(file))
