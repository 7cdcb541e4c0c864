"""Without a browser, a test that needs one is skipped with the reason, or fails on request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDY = "tests/browser/test_look.py::test_controls_have_names"


@pytest.mark.parametrize(
    ("required", "code", "said"),
    [
        ("", 0, "needs browser: chromium is not installed"),
        ("go,browser", 1, "PROTON_BENCH_REQUIRE names 'browser', but chromium is not installed"),
    ],
)
def test_missing_browser_is_reported(tmp_path: Path, required: str, code: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rsE", NEEDY],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path), "PROTON_BENCH_REQUIRE": required},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert done.returncode == code, done.stdout
    assert said in done.stdout
