"""The files and commands of the tutorials work in their order on this machine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")

pytestmark = pytest.mark.long
PAGES = Path(__file__).parents[2] / "docs" / "tutorials"
BLOCK = re.compile(r"(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = ("git ", "mkdir ", "printf ", "proton ")
FAILS = "  # exits with 1"
# The gate about times takes minutes, and its result depends on the machine.
TIMES = "proton ab -- speed.py"
# What commands print, in their order and among other things.
SHOWN = {
    "first_profile": ["Sequential", "aten::addmm", "update", "scoped.html"],
    "why_is_it_slow": ["normalize", "evidence: normalize", "ROOT", "aten::mm"],
    "first_gate": [
        "aten::softmax",
        "FAIL: 2 structural changes are not allowed, first NEW attention > ",
        "PASS: launches are as allowed",
    ],
}


def steps(page: str) -> list[tuple[str, str]]:
    """Return (name of a file, content) and ("", commands) in the order of the page."""
    blocks = BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))
    return [
        (name, text)
        for name, _, text in blocks
        if name.endswith(".py") or text.startswith(COMMANDS)
    ]


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which git knows an author and proton is this package's."""
    proton = folder / "proton"
    proton.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m proton_bench "$@"\n')
    proton.chmod(0o755)
    author = {
        f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {**os.environ, **author, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_every_tutorial_is_followed() -> None:
    assert SHOWN.keys() == {page.stem for page in PAGES.glob("*.md")}


@pytest.mark.nightly(keep=1)
@pytest.mark.parametrize("page", SHOWN)
def test_the_tutorial_can_be_followed(page: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    known = environment(tmp_path / "bin")
    folder = tmp_path
    printed = []
    for name, text in steps(page):
        if name:
            (folder / name).write_text(text)
            continue
        for line in text.splitlines():
            command, fails, _ = line.partition(FAILS)
            if command.startswith(TIMES):
                continue
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=known, capture_output=True, text=True
            )
            assert done.returncode == bool(fails), (command, done.stdout, done.stderr)
            printed.append(done.stdout)
            if command.startswith("mkdir "):
                folder = tmp_path / "attention"

    expected = iter(SHOWN[page])
    awaited = next(expected)
    for text in printed:
        if awaited in text:
            awaited = next(expected, "")
    assert not awaited, printed
