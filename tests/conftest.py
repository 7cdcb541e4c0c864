"""Every test starts from a clean environment, so that the caller's shell cannot change a result."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine generated examples take longer than hypothesis allows by default.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_PREFIXES = ("PROTON_", "TRITON_PROTON_")
# Loading them takes most of the time of a pytest process that a test starts.
_NOT_IN_CHILDREN = ("hypothesispytest", "syrupy")
_NAMES = ("TRITON_INTERPRET", "NO_COLOR", "FORCE_COLOR", "COLUMNS")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset what this package, Triton's interpreter and terminal output read."""
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name in _NAMES:
            monkeypatch.delenv(name)
    unused = " ".join(f"-p no:{name}" for name in _NOT_IN_CHILDREN)
    monkeypatch.setenv("PYTEST_ADDOPTS", unused)
    # The choice that every release made so far; Triton 3.9 warns where it is left open.
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
