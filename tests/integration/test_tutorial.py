"""The files and commands of the tutorial work in their order on this machine."""

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
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "first_gate.md"
BLOCK = re.compile(r"(?:`([\w.]+)`:\n\n)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = ("git ", "mkdir ", "printf ", "proton ")
FAILS = "  # exits with 1"
# The gate about times takes minutes, and its result depends on the machine.
TIMES = "proton ab -- speed.py"


def steps() -> list[tuple[str, str]]:
    """Return (name of a file, content) and ("", commands) in the order of the page."""
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
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


def test_the_tutorial_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    known = environment(tmp_path / "bin")
    folder = tmp_path
    said = []
    for name, text in steps():
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
            said.append(done.stdout)
            if command.startswith("mkdir "):
                folder = tmp_path / "attention"

    tree, changed, restored = said[-5], said[-4], said[-1]
    assert "aten::softmax" in tree
    assert changed.startswith("FAIL: 2 structural changes are not allowed, first NEW attention > ")
    assert restored.startswith("PASS: launches are as allowed")
