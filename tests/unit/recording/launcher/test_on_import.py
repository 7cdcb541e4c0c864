"""Calling back when a module is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from proton_bench.recording.launcher.on_import import ImportCallback


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that can be imported and is not."""
    name = f"watched_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text("answer = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    finders = list(sys.meta_path)
    yield name
    sys.modules.pop(name, None)
    sys.meta_path[:] = finders


def test_function_runs_after_the_module_did(module_name: str) -> None:
    answers: list[int] = []
    ImportCallback(module_name, lambda module: answers.append(module.answer))

    module = importlib.import_module(module_name)

    assert answers == [42]
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_function_runs_at_once_for_a_loaded_module(module_name: str) -> None:
    module = importlib.import_module(module_name)
    seen: list[ModuleType] = []

    ImportCallback(module_name, seen.append)

    assert seen == [module]


def test_function_runs_once(module_name: str) -> None:
    seen: list[ModuleType] = []
    ImportCallback(module_name, seen.append)

    module = importlib.import_module(module_name)
    importlib.reload(module)

    assert seen == [module]


def test_cancelled_callback_does_not_run(module_name: str) -> None:
    seen: list[ModuleType] = []
    callback = ImportCallback(module_name, seen.append)

    callback.cancel()
    callback.cancel()
    importlib.import_module(module_name)

    assert seen == []


def test_two_callbacks_for_one_module_both_run(module_name: str) -> None:
    seen: list[str] = []
    ImportCallback(module_name, lambda _: seen.append("first"))
    ImportCallback(module_name, lambda _: seen.append("second"))

    importlib.import_module(module_name)

    assert sorted(seen) == ["first", "second"]


def test_module_that_does_not_exist_is_still_missing() -> None:
    callback = ImportCallback("no_such_module_anywhere", lambda _: None)

    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("no_such_module_anywhere")

    callback.cancel()
    assert callback not in sys.meta_path
