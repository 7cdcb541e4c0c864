"""pyproject.toml, constraints.txt, requirements.txt, CHANGELOG.md and the Makefile agree."""

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

# Every file that pip may download for a line: name==version ; marker \ --hash=... \ --hash=...
HASHED = [
    line.split()
    for line in (ROOT / "requirements.txt")
    .read_text(encoding="utf-8")
    .replace("\\\n", "")
    .splitlines()
    if line and not line.startswith("#")
]
# Each index has its own builds of these packages.
BUILD_OF_TORCH = re.compile(r"torch|cuda-.*|nvidia-(?!ml-py$).*")
# Requirements of other platforms and interpreters only.
ELSEWHERE = {"appnope", "colorama"}


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


def test_every_version_has_its_hashes_but_torch() -> None:
    hashed = {
        name: Version(version) for name, version in (words[0].split("==") for words in HASHED)
    }
    expected = {name: pin for name, pin in PINS.items() if not BUILD_OF_TORCH.fullmatch(name)}

    assert {name: pin for name, pin in hashed.items() if name not in ELSEWHERE} == expected
    for words in HASHED:
        hashes = [word for word in words if word.startswith("--hash=")]
        assert hashes, words[0]
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", word) for word in hashes), words[0]


def test_the_demo_has_the_same_hashes() -> None:
    demo = (ROOT / "requirements-demo.txt").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.split() for line in demo.splitlines() if line and not line.startswith("#")]
    hashes = {words[0]: {word for word in words if "--hash" in word} for words in HASHED}

    assert {name.split("==")[0] for name, *_ in lines} >= {"triton", "pytest", "scikit-build-core"}
    for name, *words in lines:
        assert {word for word in words if "--hash" in word} == hashes[name]


def test_make_installs_nothing_before_the_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo, everything = (
        re.findall(r"\$\(PIP\) install (.*)", makefile.split(f"\n$({name}):")[1].split("\n\n")[0])
        for name in ("DEMO", "INSTALLED")
    )

    compiling, recorder, hashed, torch = demo
    assert compiling.endswith("--require-hashes -r build/compiling.txt")
    assert hashed.startswith("--no-compile --require-hashes -r requirements-demo.txt")
    assert "-c constraints.txt" in torch
    assert "--no-deps" in recorder
    (rest,) = everything
    assert rest.endswith("--require-hashes -r requirements.txt")


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

    for target in ("demo", "test", "matrix", "wheels", "lint", "docs", "bench"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
        assert f"make {target}" in readme
