"""Every command shows the same values of the same samples, or none if a file has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from fakes.earlier import as_open_below
from fakes.timed import profile_of_times

from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.invariants import violations
from proton_bench.model.profile import Profile

Command = Callable[..., "CompletedProcess[str]"]
DATA = Path(__file__).parents[1] / "data"
SECOND_NS = 10**9


def mixed(generator: np.random.Generator, slower: float = 1.0) -> list[float]:
    """Return the times of a product of large matrices, and then of 1500 small ones."""
    return [3e8, *(slower * 25_000.0 * np.exp(generator.normal(0.0, 0.02, 1500)))]


def write_runs(folder: Path, times: Sequence[list[float]], change: Any = None) -> list[Path]:
    folder.mkdir()
    files = []
    for number, launches in enumerate(times):
        start = (number + 100 * sum(map(ord, folder.name))) * SECOND_NS
        facts = {"start_time_ns": start, "end_time_ns": start + SECOND_NS // 2, "pid": start}
        profile = profile_of_times({"step/mm": launches}, provenance=facts)
        files.append(folder / f"{number}.proton")
        write_profile(change(profile) if change else profile, files[-1])
    return files


def open_below(profile: Profile) -> Profile:
    """Return the profile as an earlier version kept it, with its lower half in one bucket."""
    ((name, table),) = profile.distributions.items()
    entries: Mapping[int, Distribution] = {
        row: as_open_below(entry, len(entry.bucket_index) // 3) for row, entry in table
    }
    return replace(profile, distributions={name: DistributionTable.from_mapping(entries)})


def medians(proton_here: Command, file: Path) -> dict[str, float | None]:
    """Return the median of the kernel in ns as each command shows it."""
    view = json.loads(proton_here("view", "--json", "-m", "median_time/ns", file).stdout)
    query = json.loads(
        proton_here("query", "--json", file, "SELECT median FROM distributions").stdout
    )
    return {"view": view["rows"][-1]["values"][0], "query": query["rows"][0][0]}


def test_the_median_of_a_large_and_many_small_products_is_that_of_the_small_ones(
    tmp_path: Path, proton_here: Command
) -> None:
    generator = np.random.default_rng(1)
    times = [mixed(generator) for _ in range(6)]
    base = write_runs(tmp_path / "base", times)
    write_runs(tmp_path / "again", [mixed(generator) for _ in range(6)])
    write_runs(tmp_path / "doubled", [mixed(generator, 2.0) for _ in range(6)])

    shown = medians(proton_here, base[0])
    same = proton_here("gate", "--json", tmp_path / "base", tmp_path / "again")
    slower = proton_here("gate", "--json", tmp_path / "base", tmp_path / "doubled")
    assert (same.returncode, slower.returncode) == (0, 1)
    (row,) = [row for row in json.loads(slower.stdout)["rows"] if row["metric"] == "median"]
    shown["gate"] = row["base"]
    expected = {"gate": np.exp(np.mean([np.log(np.median(each)) for each in times]))}
    for name, value in shown.items():
        assert value == pytest.approx(expected.get(name, np.median(times[0])), rel=0.002), name
    assert row["change"] == pytest.approx(1.0, abs=0.01)


def test_a_median_that_the_file_lacks_is_unknown_to_every_command(
    tmp_path: Path, proton_here: Command
) -> None:
    generator = np.random.default_rng(2)
    times = [mixed(generator) for _ in range(4)]
    files = write_runs(tmp_path / "old", times, open_below)
    write_runs(tmp_path / "new", [mixed(generator, 2.0) for _ in range(4)])

    assert medians(proton_here, files[0]) == {"view": None, "query": None}
    gate = proton_here("gate", "--json", tmp_path / "old", tmp_path / "new")
    assert gate.returncode == 3
    (row,) = [row for row in json.loads(gate.stdout)["rows"] if row["metric"] == "median"]
    assert (row["verdict"], row["base"]) == ("INCONCLUSIVE", None)
    assert row["reasons"][0] == "no-values"


NO_PROFILES = (
    ".cupti.gz",
    ".bin.gz",
    "file-format-schema.json",
    "operators.json",
    "upstream_surface.json",
    "libraries.txt.gz",
)
SUFFIXES = {".proton", ".json", ".hatchet", ".hatchet_msgpack", ".chrome_trace", ".pftrace", ".gz"}


def samples_of_the_project() -> list[Path]:
    """Return the profiles and timelines in tests/data."""
    files = (each for each in DATA.rglob("*") if each.suffix in SUFFIXES and each.is_file())
    return sorted(each for each in files if not each.name.endswith(NO_PROFILES))


@pytest.mark.parametrize("file", samples_of_the_project(), ids=lambda file: str(file.name))
def test_no_sample_of_this_project_contradicts_itself(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROTON_BENCH_CHECK")
    found = violations(read_profile(file))

    # It also warns that its operator has more samples than calls.
    assert [each.row for each in found] == (
        [5] if file.parent.name == "earlier" and file.stem == "profile" else []
    )
