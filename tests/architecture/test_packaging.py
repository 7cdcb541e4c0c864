"""pyproject.toml, constraints.txt, CHANGELOG.md and the Makefile agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PINS = {
    canonicalize_name(name): Version(version)
    for name, _, version in (line.partition("==") for line in LINES)
}


def requirements() -> list[Requirement]:
    """Return every requirement of the package, of its extras and of its build."""
    extras = PROJECT["optional-dependencies"]
    lists = [PROJECT["dependencies"], PYPROJECT["build-system"]["requires"], *extras.values()]
    found = [Requirement(text) for texts in lists for text in texts]
    return [item for item in found if canonicalize_name(item.name) != PROJECT["name"]]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_every_requirement_has_a_tested_version_that_fits(requirement: Requirement) -> None:
    assert PINS[canonicalize_name(requirement.name)] in requirement.specifier


def test_constraints_are_exact_versions_for_every_user() -> None:
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in LINES), "no local version tags"
    assert PINS["torch"] == Version("2.13.0")
    assert PINS["triton"] == Version("3.7.1")


def test_extra_all_names_every_other_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = (Requirement(text) for text in extras["all"])

    assert everything.extras == extras.keys() - {"all"}


def test_changelog_describes_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert f"## {PROJECT['version']}" in text


def test_package_knows_its_version() -> None:
    import proton_bench

    assert proton_bench.__version__ == PROJECT["version"]


def test_make_targets_stand_in_readme() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    for target in ("demo", "test", "test-pandas3", "lint", "docs", "bench"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert f"make {target}" in readme
