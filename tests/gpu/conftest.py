"""What the tests on a GPU share."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def only_sampler() -> Iterator[None]:
    """Wait until no other worker samples counters: a GPU serves one process at a time."""
    with Path(tempfile.gettempdir(), "proton_bench_gpu_sampler.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
