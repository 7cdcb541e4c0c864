"""Passes in Triton's interpreter: kernels compute the same, and everything is put back."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.tritons import TRITONS, run_on

pytest.importorskip("proton_bench._native")
pytest.importorskip("torch")
pytest.importorskip("triton")

SCOPES = ["loop.0", "load.0", "atomic.0"]


@pytest.fixture(scope="module", params=TRITONS, ids=lambda folder: folder or "installed")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("interpreted")
    return run_on(request.param, folder / "cache", "interpreted_passes.py", str(folder))


def test_kernels_with_breaks_and_else_compute_the_same(found: dict[str, Any]) -> None:
    assert found["computed"]
    assert found["scopes"] == SCOPES


def test_a_kernel_that_fails_leaves_no_scope_open(found: dict[str, Any]) -> None:
    assert found["failed"] == ["loop.0", "load.0"]
    assert found["open"] == 0


def test_nothing_stays_behind(found: dict[str, Any]) -> None:
    assert found["after"] == []
    assert found["restored"]
    assert not found["globals"]
