"""A collector that instruments kernels shows itself among the active hooks, and costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from proton_bench.capture import hooks
from proton_bench.capture.announcement import Announcement
from proton_bench.capture.hooks import Hook, HookManager


class Counting(Hook):
    def __init__(self) -> None:
        self.launches = 0

    def init_handle(self, *_: Any) -> None: ...

    def enter(self, metadata: Any) -> None:
        self.launches += 1

    def exit(self, metadata: Any) -> None: ...

    def activate(self) -> None: ...

    def deactivate(self) -> None: ...


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What Triton calls at a launch."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(hooks._heads, "attach", lambda: found.update(attached=True))
    monkeypatch.setattr(hooks._heads, "detach", lambda: found.update(attached=False))
    monkeypatch.setattr(hooks._heads, "replace", found.__setitem__)
    yield found
    HookManager.unregister()
    HookManager.active_hooks = []


def test_programs_see_it_while_kernels_are_instrumented(replaced: dict[str, Any]) -> None:
    announcement = Announcement()

    announcement.activate()
    during = list(HookManager.active_hooks)
    announcement.deactivate()

    assert (during, HookManager.active_hooks) == ([announcement], [])
    assert replaced == {}


def test_a_launch_hook_beside_it_is_still_called_by_triton_itself(replaced: dict[str, Any]) -> None:
    announcement, hook = Announcement(), Counting()
    announcement.activate()

    HookManager.register(hook, 7)

    assert replaced["launch_enter_hook"] == hook.enter
    assert replaced["attached"] is True


def test_the_last_launch_hook_detaches_though_it_stays(replaced: dict[str, Any]) -> None:
    announcement, hook = Announcement(), Counting()
    HookManager.register(hook, 7)
    announcement.activate()

    HookManager.unregister(7)

    assert replaced["attached"] is False
    assert HookManager.active_hooks == [announcement]
