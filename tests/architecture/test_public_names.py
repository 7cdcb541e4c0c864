"""A room shows at most twelve names, sorted and documented."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "proton_bench"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
MAX_NAMES = 12


def test_rooms_are_found() -> None:
    assert {"analysis", "cli", "formats", "model", "plugin", "recording", "report"} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_room_shows_at_most_twelve_sorted_names(room: str) -> None:
    names = getattr(importlib.import_module(f"proton_bench.{room}"), "__all__", [])

    assert len(names) <= MAX_NAMES
    assert list(names) == sorted(names)


@pytest.mark.parametrize("room", [*(f"proton_bench.{room}" for room in ROOMS), "proton_bench"])
def test_public_names_exist_and_are_documented(room: str) -> None:
    module = importlib.import_module(room)

    for name in getattr(module, "__all__", []):
        shown = getattr(module, name)
        if inspect.isclass(shown) or inspect.isroutine(shown):
            assert shown.__doc__, f"{room}.{name} has no docstring"


def test_top_package_names_are_sorted_and_listed_by_dir() -> None:
    import proton_bench

    assert list(proton_bench.__all__) == sorted(proton_bench.__all__)
    assert set(proton_bench.__all__) <= set(dir(proton_bench))
