from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from proton_bench.plugin.installed import may_have_plugins

GROUP = "acme_of_this_test"


def install(folder: Path, name: str, entry_points: str) -> None:
    (folder / name).mkdir()
    (folder / name / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    may_have_plugins.cache_clear()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    monkeypatch.setattr(
        sys, "meta_path", [each for each in sys.meta_path if isinstance(each, type)]
    )
    return tmp_path


@pytest.mark.parametrize("name", ["x-1.dist-info", "x.egg-info", "EGG-INFO"])
def test_a_package_that_offers_plugins_is_found(folder: Path, name: str) -> None:
    install(folder, name, f"[{GROUP}]\nacme = acme\n")

    assert may_have_plugins(GROUP)


def test_packages_that_offer_something_else_are_not(folder: Path) -> None:
    install(folder, "x-1.dist-info", f"[pytest11]\n{GROUP} = {GROUP}.plugin\n")
    install(folder, "y", f"[{GROUP}]\nacme = acme\n")
    (folder / "z-1.dist-info").mkdir()

    assert not may_have_plugins(GROUP)


def test_the_current_folder_counts_where_it_is_on_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [""])
    assert not may_have_plugins(GROUP)

    may_have_plugins.cache_clear()
    install(folder, "x-1.dist-info", f"[{GROUP}]\nacme = acme\n")
    assert may_have_plugins(GROUP)


def test_an_archive_on_the_path_may_have_some(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(folder / "x.zip", "w"):
        monkeypatch.setattr(sys, "path", [str(folder / "x.zip")])

    assert may_have_plugins(GROUP)


@pytest.mark.usefixtures("folder")
def test_who_finds_packages_in_a_way_of_its_own_may_have_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Finder:
        def find_distributions(self) -> None: ...

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])

    assert may_have_plugins(GROUP)
