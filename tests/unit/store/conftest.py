"""An empty store; without its libraries nothing here is collected."""

from __future__ import annotations

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
