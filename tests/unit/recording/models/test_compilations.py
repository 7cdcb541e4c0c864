from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest

import proton_bench as proton
from proton_bench.formats.registry import read_profile
from proton_bench.recording.models.torch_context import COMPILATION, watch_compilations

pytest.importorskip("proton_bench._native")

Callback = Callable[[object], None]


@dataclass
class Handler:
    """What Dynamo calls back when a compilation begins and ends."""

    begin: list[Callback] = field(default_factory=list)
    end: list[Callback] = field(default_factory=list)

    def register_start_callback(self, callback: Callback) -> None:
        self.begin.append(callback)

    def register_end_callback(self, callback: Callback) -> None:
        self.end.append(callback)

    def remove_start_callback(self, callback: Callback) -> None:
        self.begin.remove(callback)

    def remove_end_callback(self, callback: Callback) -> None:
        self.end.remove(callback)

    def compile(self) -> None:
        for each in (*self.begin, *self.end):
            each(None)


def test_each_compilation_is_a_scope_until_it_is_unwatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Handler()
    module = ModuleType("torch._dynamo.callback")
    module.callback_handler = handler  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    session = proton.start(tmp_path / "run", backend="cpu")
    unwatch = watch_compilations(module)
    with proton.scope("model"):
        handler.compile()
        handler.compile()
        for end in handler.end:  # an end without a beginning
            end(None)
    unwatch()
    handler.compile()
    proton.finalize(session, "proton")

    profile = read_profile(tmp_path / "run.proton")
    (row,) = [row for row in range(len(profile)) if profile.name(row) == COMPILATION]
    assert profile.name(int(profile.parents[row])) == "model"
    assert dict(profile.distributions["wall (ns)"])[row].n == 2
    assert not handler.begin
    assert not handler.end
