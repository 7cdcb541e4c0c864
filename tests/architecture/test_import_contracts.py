"""The import contracts of pyproject.toml hold for the tree as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_import_contract_is_kept() -> None:
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
