"""The Tritons to test with: the installed one, and those of ``PROTON_BENCH_TRITONS=folder:folder``.

A folder is what ``pip install --target`` filled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TRITONS = ("", *filter(None, os.environ.get("PROTON_BENCH_TRITONS", "").split(os.pathsep)))
_ROOT = Path(__file__).parents[2]


def run_on(triton: str, cache: Path, program: str, *arguments: str) -> Any:
    """Run a program of this folder that prints JSON, on one of ``TRITONS``."""
    folders = [triton, str(_ROOT / "tests"), str(_ROOT / "plugins"), str(_ROOT)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        "TRITON_CACHE_DIR": str(cache),
        "TRITON_DEFAULT_FP_FUSION": "1",  # 3.9 warns about its coming default
    }
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, str(_ROOT / "tests" / "fakes" / program), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])
