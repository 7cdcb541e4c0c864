"""Where the spread comes from: launches, processes, what all paths share, order and position."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from benchmarks.studies.gate.study.archive import StudyError
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS, variant_name
from benchmarks.studies.gate.study.sides import paths_of
from proton_bench.analysis.run import Run
from proton_bench.gate.machine.canary_shift import log_clocks
from proton_bench.gate.statistics.location import SHORT_NS, locate
from proton_bench.gate.statistics.sample import Sample

__all__ = [
    "Launches",
    "PathSpread",
    "Shared",
    "launches_of",
    "main_paths",
    "realised",
    "shared_of",
    "spreads_of",
]

Numbers = npt.NDArray[np.float64]
Path = tuple[str, ...]

_LARGEST_TICK_BITS = 12
_NEARLY_ALL = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """All launches of a study.

    Attributes:
        paths: Paths that every process has with the same number of launches.
        times: ns of each process, path and launch.
        locations: ``ln`` of the number that the gate takes, of each process and path.
        log_clocks: ``ln`` of the SM clock of each process, NaN for unknown.
        positions: Place of each process's path in its order, from 0 to 1; NaN for unknown.
    """

    paths: list[Path]
    times: Numbers
    locations: Numbers
    log_clocks: Numbers
    positions: Numbers


@dataclass(frozen=True, slots=True)
class PathSpread:
    """How one path spreads, as standard deviations of logarithms.

    Attributes:
        path: Its names.
        time_ns: Geometric mean of its processes.
        within: Between launches of a process: a robust one, 1.4826 median absolute deviations.
        process: Of the number that the gate takes of a process.
        between: The same without what launches explain.
        cycles: The same counted in cycles of the SM clock; NaN if not measured.
        order: What running second in a pair adds.
        order_p: P-value of that, NaN of fewer than two pairs.
        position: What the last place in a process adds over the first one.
        step_ns: Tick of the timer: the largest power of two ns that nearly all times are multiples
            of, give or take 1 ns of rounding on the way to another clock.
    """

    path: Path
    time_ns: float
    within: float
    process: float
    between: float
    cycles: float
    order: float
    order_p: float
    position: float
    step_ns: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Spread that all paths of a process share, as standard deviations of logarithms.

    Attributes:
        process: Between processes.
        pair: Of one process of a pair: what two in turn do not share.
        session: What the two of a pair share; 0 if pairs are not closer than others.
        drift: What every process adds to the one before.
    """

    process: float
    pair: float
    session: float
    drift: float


def launches_of(runs: Sequence[Run]) -> Launches:
    """Read all launches.

    Raises:
        StudyError: No path is in every process, or single launches were not kept.
    """
    each = [paths_of(run) for run in runs]
    common = [path for path in each[0] if all(path in one for one in each)]
    if not common:
        raise StudyError("no path was measured in every process")
    fewest = min(len(one[path]) for one in each for path in common)
    times = np.array([[one[path][:fewest] for path in common] for one in each], dtype=np.float64)
    times = np.maximum(times, 1.0)  # an operator that takes no time has no logarithm
    short = np.median(times, axis=2).min(axis=0) < SHORT_NS
    locations = np.array(
        [
            [
                locate(Sample.of_values(line), "median", tick=0.0, short=bool(flag)).value
                for line, flag in zip(one, short, strict=True)
            ]
            for one in times
        ]
    )
    positions = np.array([_positions(run, common) for run in runs])
    return Launches(common, times, np.log(locations), log_clocks(runs), positions)


def spreads_of(launches: Launches) -> list[PathSpread]:
    """Return the spread of every path."""
    logs = np.log(launches.times)
    middles = np.median(logs, axis=2, keepdims=True)
    within = 1.4826 * np.median(np.abs(logs - middles), axis=2)
    # A median of n launches has the variance pi / 2 of their mean's.
    explained = math.pi / 2.0 * (within**2).mean(axis=0) / logs.shape[2]
    locations = launches.locations
    cycles = locations + launches.log_clocks[:, None]
    order, order_p = _order(locations)
    return [
        PathSpread(
            path=path,
            time_ns=float(np.exp(locations[:, at].mean())),
            within=float(np.sqrt((within[:, at] ** 2).mean())),
            process=_beyond(locations[:, at], 0.0),
            between=_beyond(locations[:, at], float(explained[at])),
            cycles=_beyond(cycles[:, at], float(explained[at])),
            order=float(order[at]),
            order_p=float(order_p[at]),
            position=_slope(launches.positions[:, at], locations[:, at]),
            step_ns=_step(np.rint(launches.times[:, at]).astype(np.int64).ravel()),
        )
        for at, path in enumerate(launches.paths)
    ]


def shared_of(launches: Launches) -> Shared:
    """Return what all paths share: the median over the paths of each process."""
    away = launches.locations - np.median(launches.locations, axis=0)
    common = np.median(away, axis=1)
    if len(common) < 4:
        return Shared(math.nan, math.nan, math.nan, math.nan)
    pairs = len(common) // 2
    differences = common[1 : 2 * pairs : 2] - common[0 : 2 * pairs : 2]
    pair = float(np.std(differences, ddof=1)) / math.sqrt(2.0)
    process = float(np.std(common, ddof=1))
    session = math.sqrt(max(process**2 - pair**2, 0.0))
    return Shared(process, pair, session, float(np.polyfit(np.arange(len(common)), common, 1)[0]))


def realised(launches: Launches) -> dict[tuple[str, float], float]:
    """Return by how much each slowed kernel really is slower: a median over the processes.

    The kernel is the longest path below its scope.

    Raises:
        StudyError: A variant has no path that every process measured.
    """
    longest = main_paths(launches)
    found = {}
    for work in sorted({path[0] for path in launches.paths}):
        lacking = {BASE, *map(variant_name, SLOWDOWNS)} - {
            own for name, own in longest if name == work
        }
        if lacking:
            raise StudyError(f"{work} has no launches of {', '.join(sorted(lacking))} everywhere")
        base = longest[work, BASE]
        for slowdown in SLOWDOWNS:
            slow = longest[work, variant_name(slowdown)]
            ratio = launches.locations[:, slow] - launches.locations[:, base]
            found[work, slowdown] = math.expm1(float(np.median(ratio)))
    return found


def main_paths(launches: Launches) -> Mapping[tuple[str, str], int]:
    """Return the place of the longest path of every kernel and variant."""
    found: dict[tuple[str, str], int] = {}
    middles = launches.locations.mean(axis=0)
    for at, path in enumerate(launches.paths):
        key = (path[0], path[1])
        if key not in found or middles[at] > middles[found[key]]:
            found[key] = at
    return found


def _step(times_ns: npt.NDArray[np.int64]) -> int:
    """Return the tick; below 16 ns one of rounding would make too many numbers fit."""
    for bits in range(_LARGEST_TICK_BITS, 3, -1):
        off = (times_ns + 1) % (1 << bits)
        if float((off <= 2).mean()) >= _NEARLY_ALL:
            return 1 << bits
    return int(np.gcd.reduce(times_ns))


def _order(locations: Numbers) -> tuple[Numbers, Numbers]:
    pairs = len(locations) // 2
    later = locations[1 : 2 * pairs : 2] - locations[0 : 2 * pairs : 2]
    if pairs < 2:
        return later.mean(axis=0), np.full(later.shape[1], np.nan)
    return later.mean(axis=0), np.asarray(stats.ttest_1samp(later, 0.0, axis=0).pvalue)


def _beyond(values: Numbers, explained: float) -> float:
    if len(values) < 2 or not np.isfinite(values).all():
        return math.nan
    return math.sqrt(max(float(np.var(values, ddof=1)) - explained, 0.0))


def _slope(places: Numbers, values: Numbers) -> float:
    if not np.isfinite(places).all() or np.ptp(places) == 0.0:
        return math.nan
    return float(np.polyfit(places, values, 1)[0])


def _positions(run: Run, paths: Sequence[Path]) -> list[float]:
    study = run.profile.provenance.get("study")
    order = list(study.get("order", ())) if isinstance(study, Mapping) else []
    places = {name: at / max(len(order) - 1, 1) for at, name in enumerate(order)}
    return [places.get("/".join(path[:2]), math.nan) for path in paths]
