"""A profile with the name of its file, and reading the runs that words of a command name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from proton_bench.analysis.view.select import drop_metadata, drop_trials
from proton_bench.errors import EmptyProfileError, UsageError
from proton_bench.formats.registry import PARTIAL, read_profile
from proton_bench.model.device import UNNAMED_KIND, Device
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One run of a comparison.

    Attributes:
        profile: What was recorded.
        source: Name of its file.
    """

    profile: Profile
    source: str


def check_devices(runs: Sequence[Run]) -> None:
    """Check that all runs used devices of the same kind and architecture.

    If a run used several, their numbers have to match too.

    Raises:
        UsageError: Two runs did not; the message names both.
    """
    known: dict[str, tuple[str, dict[int, str]]] = {}
    first: tuple[str, set[str]] | None = None
    for run in runs:
        own = _models(run.profile)
        if own and first is None:
            first = (run.source, set(own))
        if own and first is not None and not own.keys() & first[1]:
            raise _incomparable((first[0], _listed(first[1])), (run.source, _listed(set(own))))
        for kind, models in own.items():
            source, before = known.setdefault(kind, (run.source, models))
            if not _fit(before, models):
                raise _incomparable(
                    (source, _described(before, models)), (run.source, _described(models, before))
                )


def _models(profile: Profile) -> dict[str, dict[int, str]]:
    """Return what each device is by its number, for each kind."""
    found: dict[str, dict[int, str]] = {}
    for device in profile.devices:
        if device.kind != UNNAMED_KIND:
            found.setdefault(device.kind, {})[device.index] = _model(device)
    return found


def _fit(one: Mapping[int, str], other: Mapping[int, str]) -> bool:
    """Return whether two runs used the same models, with the same numbers if these count."""
    if set(one.values()) != set(other.values()):
        return False
    return all(one[index] == other[index] for index in one.keys() & other.keys())


def _described(models: Mapping[int, str], others: Mapping[int, str]) -> str:
    if set(models.values()) != set(others.values()):
        return _listed(set(models.values()))
    return " and ".join(f"{model} as number {index}" for index, model in sorted(models.items()))


def _listed(kinds: set[str]) -> str:
    return " and ".join(sorted(kinds))


def _model(device: Device) -> str:
    parts = [device.kind]
    if device.arch:
        parts.append(f"architecture {device.arch}")
    if device.num_sms:
        parts.append(f"{device.num_sms} multiprocessors")
    return ", ".join(parts)


def _incomparable(one: tuple[str, str], other: tuple[str, str]) -> UsageError:
    return UsageError(
        f"{one[0]!a} ran on {one[1]} and {other[0]!a} on {other[1]}: times of different devices "
        "say little about a change of the program; give --ignore-devices to compare them anyway"
    )


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
        raise EmptyProfileError(
            f"{visible(file)} is empty: it has no values; check that the run launched something"
        )
    return Run(profile, str(file))
