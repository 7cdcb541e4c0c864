"""Which changed files both sides ran in the same version."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fakes.gated import profile_of_times

from proton_bench.errors import OutputError, ProfileFormatError, UsageError
from proton_bench.formats.registry import write_profile
from proton_bench.gate.loaded import LoadedModule, changed_meanwhile, loaded_alike, loads_any
from proton_bench.gate.runs import KeptRun, KeptRuns
from proton_bench.gate.slot import Slot, Stage, pairs

ROOT = "/repo"


def module(name: str, file: str, sha256: str = "1") -> LoadedModule:
    return LoadedModule(name, file, sha256)


def test_different_versions_of_a_changed_file_are_what_is_wanted() -> None:
    base = [module("pkg.core", "/tree/pkg/core.py", "old")]
    new = [module("pkg.core", "/repo/pkg/core.py", "new")]

    assert loaded_alike(base, new, ["pkg/core.py"], root=ROOT) == []


@pytest.mark.parametrize(
    ("name", "file", "changed"),
    [
        ("pkg.core", "/repo/pkg/core.py", "pkg/core.py"),
        ("pkg.core", "/repo/src/pkg/core.py", "src/pkg/core.py"),
        ("pkg", "/repo/pkg/__init__.py", "pkg/__init__.py"),
        ("thing", "/repo/thing.py", "thing.py"),
        ("pkg.core", "/env/site-packages/pkg/core.py", "src/pkg/core.py"),
        ("pkg", "/env/site-packages/pkg/__init__.py", "lib/pkg/__init__.py"),
    ],
)
def test_one_version_on_both_sides_is_found(name: str, file: str, changed: str) -> None:
    both = [module(name, file)]

    assert loaded_alike(both, both, ["README.md", changed], root=ROOT) == [changed]


@pytest.mark.parametrize(
    ("name", "file", "changed"),
    [
        ("pkg.core", "/repo/pkg/core.py", "pkg/other.py"),
        ("yaml", "/env/site-packages/yaml.py", "tools/yaml.py"),  # a name alone proves nothing
        ("other.core", "/env/site-packages/other/core.py", "pkg/core.py"),
        ("__main__", "/repo/bench.py", "bench.py"),
        ("__mp_main__", "/repo/bench.py", "bench.py"),
        ("test_core", "/repo/tests/test_core.py", "tests/test_core.py"),
        ("conftest", "/repo/conftest.py", "conftest.py"),
    ],
)
def test_what_did_not_change_or_measures_is_left_alone(name: str, file: str, changed: str) -> None:
    both = [module(name, file)]

    assert loaded_alike(both, both, [changed], root=ROOT) == []


def test_a_module_of_one_side_alone_says_nothing() -> None:
    new = [module("pkg.core", "/repo/pkg/core.py")]

    assert loaded_alike([], new, ["pkg/core.py"], root=ROOT) == []


def test_installed_copies_without_a_hash_are_read(tmp_path: Path) -> None:
    modules = []
    for side, text in (("one", "a"), ("two", "a"), ("three", "b")):
        file = tmp_path / side / "pkg" / "core.py"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        modules.append([module("pkg.core", str(file), "")])
    one, two, three = modules

    assert loaded_alike(one, two, ["src/pkg/core.py"], root=ROOT) == ["src/pkg/core.py"]
    assert loaded_alike(one, three, ["src/pkg/core.py"], root=ROOT) == []


def test_files_that_are_gone_are_alike_where_they_are_the_same_file() -> None:
    both = [module("pkg.core", "/nowhere/pkg/core.py", "")]

    assert loaded_alike(both, both, ["pkg/core.py"], root=ROOT) == ["pkg/core.py"]


def test_files_that_were_edited_between_runs_are_found() -> None:
    runs = [
        [module("a", "/repo/a.py", "1"), module("b", "/repo/b.py", "1")],
        [module("a", "/repo/a.py", "2"), module("b", "/repo/b.py", "1")],
        [module("a", "/env/a.py", "")],
    ]

    assert changed_meanwhile(runs) == ["/repo/a.py"]
    assert changed_meanwhile(runs[:1]) == []


def test_a_change_that_no_side_loads_is_known() -> None:
    modules = [module("pkg.core", "/tree/pkg/core.py"), module("__main__", "/repo/bench.py")]
    places = (ROOT, "/tree")

    assert loads_any(modules, ["pkg/core.py"], places=places)
    assert loads_any(modules, ["bench.py"], places=places)
    assert not loads_any(modules, ["README.md", "csrc/core.cu"], places=places)


SLOTS = pairs(Stage.PAIR, 2, "20250102-030405")


def keep(kept: KeptRuns, slot: Slot, *times: float) -> KeptRun:
    """Keep a run with one profile for each time."""
    names = []
    for number, time in enumerate(times):
        names.append(f"{slot.name}.pid{number}.proton")
        write_profile(profile_of_times({"k": [time]}), kept.folder / names[-1])
    run = KeptRun(slot, tuple(names), 1.5)
    kept.add(run)
    return run


def test_an_experiment_is_found_again_as_it_was(tmp_path: Path) -> None:
    kept = KeptRuns.create(tmp_path / "x", {"doing": "ab"})
    runs = [keep(kept, slot, 100.0) for slot in SLOTS[:3]]

    again = KeptRuns.open(tmp_path / "x")

    assert again.description == {"doing": "ab"}
    assert [each in again for each in SLOTS] == [True, True, True, False]
    assert again.of(Stage.PAIR, "base") == tuple(run for run in runs if run.slot.arm == "base")
    assert again.of(Stage.WARM_UP) == ()
    assert again.read(runs[1]).profile.columns["time (ns)"].values.max() == 100.0


def test_processes_of_one_run_are_merged(tmp_path: Path) -> None:
    kept = KeptRuns.create(tmp_path, {})

    run = kept.read(keep(kept, SLOTS[0], 100.0, 50.0))

    assert run.profile.inclusive("time (ns)")[0] == 150.0


def test_runs_whose_files_are_gone_are_run_again(tmp_path: Path) -> None:
    kept = KeptRuns.create(tmp_path, {})
    lost, _ = keep(kept, SLOTS[0], 1.0), keep(kept, SLOTS[1], 1.0)
    (tmp_path / lost.files[0]).unlink()

    again = KeptRuns.open(tmp_path)

    assert SLOTS[0] not in again
    assert SLOTS[1] in again


def test_a_second_experiment_in_one_folder_is_refused(tmp_path: Path) -> None:
    KeptRuns.create(tmp_path, {})

    with pytest.raises(UsageError, match="already has an experiment"):
        KeptRuns.create(tmp_path, {})


def test_two_processes_never_run_one_experiment(tmp_path: Path) -> None:
    kept = KeptRuns.create(tmp_path, {})

    with (
        kept.in_use(),
        pytest.raises(UsageError, match="is in use by another process"),
        KeptRuns.open(tmp_path).in_use(),
    ):
        pass
    with KeptRuns.open(tmp_path).in_use():
        pass


def test_a_folder_without_an_experiment_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json"):
        KeptRuns.open(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("proton_bench.experiment", "another"),
        lambda text: text.replace('"stage": "pair"', '"stage": "dancing"'),
        lambda text: json.dumps({**json.loads(text), "runs": 3}),
        lambda text: json.dumps({**json.loads(text), "version": []}),
        lambda text: text.replace("pair-001-base.pid0.proton", "../elsewhere.proton"),
        lambda text: "[]",
    ],
)
def test_a_damaged_manifest_is_reported(tmp_path: Path, damage: Any) -> None:
    keep(KeptRuns.create(tmp_path, {}), SLOTS[0], 1.0)
    manifest = tmp_path / "manifest.json"
    text = manifest.read_text()
    damaged = damage(text)
    assert damaged != text
    manifest.write_text(damaged)

    with pytest.raises(ProfileFormatError):
        KeptRuns.open(tmp_path)


def test_a_run_does_not_count_where_the_manifest_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptRuns.create(tmp_path, {})
    keep(kept, SLOTS[0], 1.0)

    def full(handle: int) -> None:
        raise OSError(28, "no room")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="no room"):
            keep(kept, SLOTS[1], 1.0)

    assert SLOTS[1] not in kept
    assert len(KeptRuns.open(tmp_path)) == 1
