"""Every test starts from a clean environment, so that the caller's shell cannot change a result."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# On a busy machine generated examples take longer than hypothesis allows by default.
settings.register_profile(
    "patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
# With `--hypothesis-profile=thorough`, before a release or after a change of what is generated.
settings.register_profile("thorough", settings.get_profile("patient"), max_examples=500)
settings.load_profile("patient")

_PREFIXES = ("PROTON_", "TRITON_PROTON_")
_NAMES = ("TRITON_INTERPRET", "NO_COLOR", "FORCE_COLOR", "COLUMNS")


@pytest.fixture(scope="session")
def child_options() -> str:
    """Options that keep a pytest process from loading what takes most of its time."""
    return "-p no:hypothesispytest -p no:syrupy"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, child_options: str) -> None:
    """Unset what this package, Triton's interpreter and terminal output read."""
    for name in list(os.environ):
        if name.startswith(_PREFIXES) or name in _NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_ADDOPTS", child_options)
    # The choice that every release made so far; Triton 3.9 warns where it is left open.
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
