"""The documents build without a warning, and references hold what docstrings say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_documents_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")

    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(tmp_path / "cache")]
        + [str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    hooks = (tmp_path / "html" / "reference" / "hooks.html").read_text(encoding="utf-8")
    assert 'id="proton_bench.plugin.hookspecs.proton_backends"' in hooks
    assert "AcmeCollector" in hooks
