"""Stores: an empty one, and copies of those of a module; without libraries nothing is collected."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

IS_INSTALLED = all(find_spec(name) for name in ("deltalake", "duckdb", "pyarrow"))
collect_ignore_glob = [] if IS_INSTALLED else ["test_*.py", "*/test_*.py"]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    from proton_bench.store.store import Store

    return Store.create(tmp_path / "store")


@pytest.fixture
def fleet(written: Path, tmp_path: Path) -> Any:
    """A copy of the store that a module has written in its fixture ``written``."""
    from proton_bench.store.store import Store

    shutil.copytree(written, tmp_path / "fleet")
    return Store.open(tmp_path / "fleet")
