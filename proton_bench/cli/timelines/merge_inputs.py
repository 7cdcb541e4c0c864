"""Chooses one file per process if a pattern matches several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proton_bench.cli.boundary import warn
from proton_bench.errors import UsageError
from proton_bench.formats.registry import PARTIAL
from proton_bench.support.text import visible

__all__ = ["best_of_each"]

# Suffixes that a run writes, the most complete first.
_OF_PROFILES = (".proton", ".pftrace", ".chrome_trace", ".hatchet_msgpack", ".hatchet")


def best_of_each(files: Sequence[Path], wanted: Sequence[str] = _OF_PROFILES) -> list[Path]:
    """Return one file for each recording, and report the others.

    ``run.proton`` and ``run.hatchet`` are of one run; so is ``run.partial.proton``, which is used
    if there is no complete file.

    Args:
        files: What the user named.
        wanted: Suffixes, the best first; files with other suffixes are always returned.

    Raises:
        UsageError: A file is named twice.
    """
    seen: set[Path] = set()
    best: dict[Path, tuple[int, Path]] = {}
    for file in files:
        place = _resolved(file)
        if place in seen:
            raise UsageError(f"{visible(file)} is named twice; it would count twice")
        seen.add(place)
        suffix = next((each for each in wanted if file.name.endswith(each)), None)
        if suffix is None:
            best[place] = (0, file)
            continue
        stem = place.name.removesuffix(suffix)
        worth = wanted.index(suffix) + len(wanted) * stem.endswith(PARTIAL)
        run = place.with_name(stem.removesuffix(PARTIAL))
        before = best.get(run)
        if before is not None:
            taken, other = sorted([before, (worth, file)], key=lambda each: each[0])
            best[run] = taken
            warn(
                f"{visible(other[1])} is left out, because {visible(taken[1])} is of the same "
                "process"
            )
        else:
            best[run] = (worth, file)
    return [file for _, file in best.values()]


def _resolved(file: Path) -> Path:
    try:
        return file.resolve()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        raise UsageError(
            f"cannot read {visible(file)}: it is not the name of a file; name one that exists"
        ) from None
