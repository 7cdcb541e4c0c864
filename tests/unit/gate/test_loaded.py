"""Which changed files both sides ran in the same version."""

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.gate.loaded import (
    LoadedModule,
    changed_meanwhile,
    loaded_alike,
    loads_any,
)

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
