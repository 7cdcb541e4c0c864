"""Files that one call reads share a budget, as those of a command do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from proton_bench.analysis.run import Run
from proton_bench.analysis.run_files import read_runs
from proton_bench.diagnosis.profiles import examine_files
from proton_bench.errors import ProfileFormatError
from proton_bench.formats import budget
from proton_bench.formats.registry import write_profile
from proton_bench.gate.baseline.reference import read_base, read_sides
from proton_bench.gate.baseline.store import BaselineStore
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.profile import Profile

FILES, COLUMNS = 40, 100


def wide_profile() -> Profile:
    builder = ProfileBuilder()
    builder.add(0, "k", metrics={f"m{number}": 1 for number in range(COLUMNS)})
    return builder.build(provenance={"start_time_ns": 5})


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files of which two have more together than they may share, and each is small enough."""
    monkeypatch.setattr(budget, "_FULL_FILES", 0.1)
    names = [str(tmp_path / f"{number}.proton") for number in range(FILES)]
    for name in names:
        write_profile(wide_profile(), Path(name))
    return names


@pytest.mark.parametrize(
    "read",
    [
        lambda names, _: read_runs([Path(name) for name in names]),
        lambda names, store: read_base(names, [], store),
        lambda names, store: read_sides(names[: len(names) // 2], names[len(names) // 2 :], store),
        lambda names, _: examine_files(names),
    ],
    ids=["read_runs", "read_base", "read_sides", "examine_files"],
)
def test_files_of_one_call_share_a_budget(
    read: Callable[[list[str], BaselineStore], object], names: list[str], tmp_path: Path
) -> None:
    store = BaselineStore(tmp_path / "store")

    for two in zip(names[::2], names[1::2], strict=True):
        read(list(two), store)
    with pytest.raises(ProfileFormatError):
        read(names, store)


def test_runs_of_one_baseline_share_a_budget(names: list[str], tmp_path: Path) -> None:
    store = BaselineStore(tmp_path / "store")
    store.save("few", [Run(wide_profile(), "a")] * 2)
    store.save("many", [Run(wide_profile(), name) for name in names])

    for _ in range(FILES):
        assert len(store.load_entry("few", store.catalogue.entry("few").id)) == 2
    with pytest.raises(ProfileFormatError):
        store.load_entry("many", store.catalogue.entry("many").id)


def test_calls_within_a_command_share_its_budget(names: list[str]) -> None:
    @budget.one_command()
    def read_all() -> None:
        for name in names:
            read_runs([Path(name)])

    with pytest.raises(ProfileFormatError):
        read_all()
