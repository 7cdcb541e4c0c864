"""Profiles of processes, cut to the paths that a gate is to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.studies.gate.study.archive import StudyError
from benchmarks.studies.gate.study.plan import BASE, CANARY, FLUSH, SLOWDOWNS, variant_name
from proton_bench.analysis.run import Run
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

__all__ = ["METRIC", "Rename", "cut", "paths_of", "slowed_naming", "works_of"]

METRIC = "time (ns)"
# From work and variant to the variant that a side shows it as, None to leave it out.
Rename = Callable[[str, str], str | None]


def works_of(runs: Sequence[Run]) -> list[str]:
    """Return the names of all kernels of a study.

    Raises:
        StudyError: There are no runs, or one lacks a variant of a kernel.
    """
    if not runs:
        raise StudyError("the study holds no runs: measure first")
    wanted = {BASE, *map(variant_name, SLOWDOWNS)}
    for run in runs:
        variants: dict[str, set[str]] = {}
        for work, variant in _scopes(run.profile).values():
            variants.setdefault(work, set()).add(variant)
        lacking = [work for work, known in variants.items() if wanted - known]
        if lacking or not variants:
            raise StudyError(f"{run.source} lacks variants of {', '.join(lacking) or 'everything'}")
    return sorted(variants)


def cut(run: Run, rename: Rename, *, coded: bool = True, clocked: bool = True) -> Run:
    """Return a run with some of its paths, and the canary.

    Args:
        run: What was recorded.
        rename: What to keep, and as what.
        coded: Whether the hashes of compiled code stay; without them nothing shows that two sides
            run the same code, as after a rebuild.
        clocked: Whether the SM clock stays.
    """
    profile = run.profile
    scopes = _scopes(profile)
    builder = ProfileBuilder()
    builder.declare(METRIC, Aggregation.INCLUSIVE)
    builder.declare("count", Aggregation.INCLUSIVE)
    places: dict[int, int] = {0: 0}
    tops: dict[tuple[str, ...], int] = {(): 0}
    for row in range(1, len(profile)):
        above = int(profile.parents[row])
        if row in scopes:
            work, variant = scopes[row]
            shown = rename(work, variant)
            if shown is not None:
                places[row] = _scope(builder, tops, (work, shown))
        elif above == 0 and profile.name(row) == CANARY:
            places[row] = _scope(builder, tops, (CANARY,))
        elif above > 0 and above in places:
            places[row] = _copied(builder, profile, row, above=places[above], coded=coded)
    facts = profile.provenance.to_plain()
    if not clocked:
        facts.pop("canary", None)
    built = builder.build(provenance=facts, dropped=profile.dropped, partial=profile.partial)
    return Run(built, run.source)


def _copied(builder: ProfileBuilder, profile: Profile, row: int, *, above: int, coded: bool) -> int:
    at, code = int(profile.device_rows[row]), int(profile.variant_rows[row])
    place = builder.add(
        above,
        profile.name(row),
        profile.kind(row),
        metrics=_values(profile, row),
        device=profile.devices[at] if at >= 0 else None,
        variant=profile.variants[code] if coded and code >= 0 else None,
    )
    table = profile.distributions.get(METRIC)
    samples = table.get(row) if table is not None else None
    if samples is not None:
        builder.set_distribution(place, METRIC, samples)
    return place


def slowed_naming(work: str, slowdown: float, *, new: bool) -> Rename:
    """Return the naming of a side: the new one shows a slowed variant of ``work`` as its base.

    The slowed variant itself is left out of both sides, so that nothing is in a gate twice.
    """
    slow = variant_name(slowdown)

    def rename(name: str, variant: str) -> str | None:
        if name != work:
            return variant
        if variant == slow:
            return BASE if new else None
        if variant == BASE:
            return None if new else BASE
        return variant

    return rename


def paths_of(run: Run) -> dict[tuple[str, ...], tuple[float, ...]]:
    """Return the launches of paths below a variant whose profile keeps all of them one by one."""
    profile, found = run.profile, {}
    scopes = _scopes(profile)
    table = profile.distributions.get(METRIC)
    inside: dict[int, tuple[str, ...]] = {}
    for row in range(1, len(profile)):
        above = int(profile.parents[row])
        if row in scopes:
            inside[row] = scopes[row]
            continue
        if above not in inside:
            continue
        inside[row] = (*inside[above], profile.name(row))
        samples = table.get(row) if table is not None else None
        if samples is None or samples.has_sketch or samples.moments_only:
            continue
        # Variants of one kernel are rows with one path.
        found[inside[row]] = (*found.get(inside[row], ()), *map(float, samples.samples))
    return found


def _scopes(profile: Profile) -> dict[int, tuple[str, str]]:
    """Return work and variant of each row that is the scope of a variant."""
    found = {}
    for row in range(1, len(profile)):
        above = int(profile.parents[row])
        if above > 0 and int(profile.parents[above]) == 0:
            work = profile.name(above)
            if work not in {CANARY, FLUSH}:
                found[row] = (work, profile.name(row))
    return found


def _scope(builder: ProfileBuilder, tops: dict[tuple[str, ...], int], path: tuple[str, ...]) -> int:
    for depth in range(1, len(path) + 1):
        if path[:depth] not in tops:
            tops[path[:depth]] = builder.add(tops[path[: depth - 1]], path[depth - 1])
    return tops[path]


def _values(profile: Profile, row: int) -> Mapping[str, float]:
    found = {}
    for name in (METRIC, "count"):
        column = profile.columns.get(name)
        value = column.get(row) if column is not None else None
        if isinstance(value, int | float):
            found[name] = value
    return found
