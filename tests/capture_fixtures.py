"""Fixtures for everything that opens sessions in the test's own process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proton_bench.flags import flags
from proton_bench.plugin import Availability, Backend, Mode, ModeSpec
from proton_bench.recording.kernels.hooks import HookManager
from proton_bench.recording.session.recording import live_sessions


@dataclass
class FakeCollector:
    """Notes its calls; ``fail_on`` names the call that raises."""

    name: str
    calls: list[str]
    fail_on: str = ""

    def start(self) -> None:
        self._note("start")

    def flush(self) -> None:
        self._note("flush")

    def stop(self) -> None:
        self._note("stop")

    def _note(self, call: str) -> None:
        if call == self.fail_on:
            raise RuntimeError(f"{self.name} fails on {call}")
        self.calls.append(f"{self.name}.{call}")


@dataclass
class FakeBackends:
    """Backends of one test, and one list of the calls to their collectors."""

    calls: list[str] = field(default_factory=list)
    fail_on: dict[str, str] = field(default_factory=dict)

    def make(self, name: str, **facts: Any) -> Backend:
        def open_collector(mode: Mode) -> FakeCollector:
            self.calls.append(f"{name}.open({mode.text})")
            if self.fail_on.get(name) == "open":
                raise RuntimeError(f"{name} fails on open")
            return FakeCollector(name, self.calls, self.fail_on.get(name, ""))

        return Backend(
            name=name,
            summary="for a test",
            availability=lambda: Availability(available=True, reason="a test made it"),
            open=open_collector,
            modes=(ModeSpec("slow", {"interval": "ns"}), ModeSpec("fast")),
            **facts,
        )

    def resolve(self, text: str | None = None) -> tuple[Backend, ...]:
        return tuple(self.make(name) for name in (text or "fake").split("+"))


@pytest.fixture(autouse=True)
def no_session_left() -> Iterator[None]:
    """Discard what a test left behind."""
    yield
    flags.command_line = False
    for session in live_sessions():
        session.finalize(formats=())
    HookManager.unregister()


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> FakeBackends:
    """Give every backend a collector that only notes its calls."""
    backends = FakeBackends()
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", backends.resolve)
    return backends


def read_tree(path: str | Path) -> dict[str, Any]:
    """Return the root node of a ``.hatchet`` file."""
    root: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))[0]
    return root


def child(node: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the node below ``node`` at a path of frame names."""
    for name in names:
        node = next(each for each in node["children"] if each["frame"]["name"] == name)
    return node


def names(node: dict[str, Any]) -> list[str]:
    """Return the frame names of a node's children."""
    return [each["frame"]["name"] for each in node["children"]]
