"""Ends of programs that leave little to import, open or find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proton_bench.formats.registry import read_profile

pytest.importorskip("proton_bench._native")

BEGIN = "import builtins, os, sys\nimport proton_bench\nwith proton_bench.scope('work'): pass\n"
LEFT = {
    "no finders": "sys.meta_path.clear()",
    "no path": "sys.path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()",
    "no modules": "sys.modules.clear()",
    "imports that fail": """
def refuse(*words, **more):
    raise KeyError(words[0])
builtins.__import__ = refuse""",
    "no descriptors": """
left = []
try:
    while True:
        left.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass""",
    "another root": "os.mkdir('root'); os.chroot('root'); os.chdir('/')",
}


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize("left", LEFT)
def test_the_profile_is_written_or_a_line_says_why_not(
    tmp_path: Path, left: str, is_strict: bool
) -> None:
    if left == "another root" and os.geteuid():
        pytest.skip("only root can change it")
    (tmp_path / "program.py").write_text(f"{BEGIN}{LEFT[left]}\n")
    strict = ["--strict"] if is_strict else []

    done = subprocess.run(
        [sys.executable, "-m", "proton_bench", "run", *strict, "-n", "out", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert "Traceback" not in done.stderr
    file, converted = tmp_path / "out.proton", tmp_path / "out.hatchet"
    is_whole = file.exists() and converted.exists()
    assert done.returncode == (74 if is_strict and not is_whole else 0)
    assert ("proton: error: " in done.stderr) is not is_whole
    assert file.exists() is (left not in ("no descriptors", "another root"))
    if file.exists():
        assert "work" in read_profile(file).strings
