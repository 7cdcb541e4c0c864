"""All results from the profiles of a study, as tables and as JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.studies.gate.study.archive import Archive, StudyError
from benchmarks.studies.gate.study.components import (
    PathSpread,
    Shared,
    launches_of,
    main_paths,
    realised,
    shared_of,
    spreads_of,
)
from benchmarks.studies.gate.study.defaults import Advice, advise
from benchmarks.studies.gate.study.gates import (
    DEFAULT,
    LOWER,
    STRICT,
    Block,
    Power,
    Tally,
    blocks_of,
    judge_aa,
    judge_power,
)
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS
from benchmarks.studies.gate.study.rebuilt import off_the_line
from benchmarks.studies.gate.study.rivals import Rival, rivals
from benchmarks.studies.gate.study.sides import works_of
from benchmarks.studies.gate.study.simulated import Simulated, machine_of, simulations
from benchmarks.studies.gate.study.tables import (
    advice_table,
    cycles_table,
    lower_table,
    order_line,
    power_table,
    rebuilt_line,
    rivals_table,
    shared_line,
    simulated_table,
    spread_table,
    tally_table,
)
from proton_bench.analysis.run import Run
from proton_bench.gate.machine.rate import Rate

__all__ = ["Analysis", "analyse", "examine"]

REBUILT = "every path, no floors, as if the code were rebuilt"


@dataclass(frozen=True, slots=True)
class Analysis:
    """All results of a study."""

    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    processes: int
    pairs: int
    spreads: Sequence[PathSpread]
    kernels: Sequence[PathSpread]
    shared: Shared
    realised: Mapping[tuple[str, float], float]
    rebuilt: Mapping[str, float]
    unchanged: Mapping[str, Tally]
    power: Mapping[tuple[str, float], Power]
    power_by_time: Mapping[tuple[str, float], Power] | None
    lower_unchanged: Mapping[float, Tally]
    lower_power: Mapping[float, Mapping[tuple[str, float], Power]]
    rivals: Sequence[Rival]
    simulated: Sequence[Simulated]
    advice: Sequence[Advice]


def analyse(options: argparse.Namespace, target: Path) -> None:
    """Print tables of one or more archives and write all of it as JSON.

    Raises:
        StudyError: There is nothing to analyse, or archives were measured in different ways.
    """
    found = examine([Archive.load(path) for path in options.folders], options)
    print(_report(found))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(_plain(found), indent=1, allow_nan=False), encoding="utf-8")


def examine(archives: Sequence[Archive], options: argparse.Namespace) -> Analysis:
    """Compute everything; gates never cross from one archive into another.

    Raises:
        StudyError: There is nothing to analyse, or archives were measured in different ways.
    """
    _check_alike(archives)
    runs: list[Run] = []
    blocks: list[Block] = []
    for archive in archives:
        part = archive.profiles()
        works_of(part)
        blocks += blocks_of(part, options.pairs)
        runs += part[: len(part) // (2 * options.pairs) * 2 * options.pairs]
    works = [] if options.unchanged else works_of(runs)
    launches = launches_of(runs)
    spreads, shared = spreads_of(launches), shared_of(launches)
    clocked = bool(np.isfinite(launches.log_clocks).all())
    simulated = (
        simulations(machine_of(spreads, shared), gates=options.gates, seed=options.seed)
        if options.gates
        else []
    )
    return Analysis(
        settings=archives[0].settings,
        machine=_machine(runs[0]),
        processes=len(runs),
        pairs=options.pairs,
        spreads=spreads,
        kernels=[
            spreads[at] for (_, variant), at in main_paths(launches).items() if variant == BASE
        ],
        shared=shared,
        realised=realised(launches),
        rebuilt=off_the_line(launches),
        unchanged=_unchanged(blocks, clocked=clocked),
        power=judge_power(blocks, works),
        power_by_time=judge_power(blocks, works, clocked=False) if clocked and works else None,
        lower_unchanged={
            part: judge_aa(blocks, policy, coded=False) for part, policy in LOWER.items() if works
        },
        lower_power={
            part: judge_power(blocks, works, policy) for part, policy in LOWER.items() if works
        },
        rivals=rivals(launches, options.pairs, () if options.unchanged else SLOWDOWNS),
        simulated=simulated,
        advice=advise(spreads, launches=launches, simulated=simulated),
    )


def _check_alike(archives: Sequence[Archive]) -> None:
    kinds = {json.dumps({**archive.settings, "seed": None}, sort_keys=True) for archive in archives}
    if len(kinds) > 1:
        raise StudyError(f"studies were measured in different ways: {'; '.join(sorted(kinds))}")


def _unchanged(blocks: Sequence[Block], *, clocked: bool) -> dict[str, Tally]:
    found = {
        "default": judge_aa(blocks, DEFAULT, coded=True),
        "default, as if the code were rebuilt": judge_aa(blocks, DEFAULT, coded=False),
        REBUILT: judge_aa(blocks, STRICT, coded=False),
    }
    if clocked:
        time_alone = judge_aa(blocks, STRICT, coded=False, clocked=False)
        found[f"{REBUILT}, by time alone"] = time_alone
    return found


def _machine(run: Run) -> dict[str, Any]:
    facts = run.profile.provenance.to_plain()
    gpus = facts.get("gpus_at_start") or [{}]
    known = {key: facts.get(key) for key in ("python", "torch", "triton", "system", "proton_bench")}
    return {**known, "gpu": gpus[0].get("name", ""), "driver": gpus[0].get("driver", "")}


def _report(found: Analysis) -> str:
    """Return all tables as Markdown."""
    gates = next(iter(found.unchanged.values())).gates
    parts = [
        f"{found.processes} processes, {gates} gates of {found.pairs} pairs that share none: "
        + ", ".join(f"{key} {value}" for key, value in found.machine.items() if value),
        "Spread of kernels as they are:\n\n" + spread_table(found.kernels),
        order_line(found.spreads),
        shared_line(found.shared),
        rebuilt_line(found.rebuilt),
        "Nothing changed:\n\n" + tally_table(found.unchanged),
    ]
    if found.power:
        table = power_table(found.power, found.realised)
        parts.append("One kernel slowed, found (really slower by):\n\n" + table)
    if found.power_by_time is not None:
        parts.append("Cycles:\n\n" + cycles_table(found.power_by_time, found.power))
    if found.lower_unchanged:
        table = lower_table(found.lower_unchanged, found.lower_power)
        parts.append("Lower thresholds, every path:\n\n" + table)
    parts.append(
        "Rules on identical data:\n\n"
        + rivals_table(found.rivals, found.unchanged[REBUILT], found.power)
    )
    if found.simulated:
        parts.append(
            "**Simulated, not measured**, with these spreads:\n\n"
            + simulated_table(found.simulated)
        )
    parts.append("Defaults:\n\n" + advice_table(found.advice))
    return "\n\n".join(parts)


def _plain(value: Any) -> Any:
    """Return what JSON can hold; NaN becomes null, keys of several parts are joined by a slash."""
    if isinstance(value, Rate):
        return {"events": value.events, "trials": value.trials, "bounds": list(value.bounds())}
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _key(key: Any) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
