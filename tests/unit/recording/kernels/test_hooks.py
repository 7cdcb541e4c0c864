"""Launch hooks: which are on, for which sessions, and the order of calls."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from proton_bench.recording.kernels.hooks import Hook, HookManager, TritonHeads


class NotingHook(Hook):
    """Notes its calls in a list that several hooks may share."""

    def __init__(self, name: str, notes: list[str], priority: int = 0) -> None:
        self.name = name
        self.notes = notes
        self.priority = priority
        self.fails_on = ""

    def init_handle(
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        self._note(f"load {name}")

    def enter(self, metadata: Any) -> None:
        self._note("enter")

    def exit(self, metadata: Any) -> None:
        self._note("exit")

    def activate(self) -> None:
        self._note("activate")

    def deactivate(self) -> None:
        self._note("deactivate")

    def release(self) -> None:
        self._note("release")

    def _note(self, what: str) -> None:
        self.notes.append(f"{self.name} {what}")
        if what == self.fails_on:
            raise RuntimeError(f"{self.name} fails on {what}")


@pytest.fixture
def notes() -> list[str]:
    return []


def test_hook_of_two_sessions_is_switched_on_once(notes: list[str]) -> None:
    hook = NotingHook("a", notes)

    HookManager.register(hook, 0)
    HookManager.register(hook, 0)
    HookManager.register(hook, 1)

    assert HookManager.active_hooks == [hook]
    assert HookManager.session_hooks == {0: {hook: True}, 1: {hook: True}}
    assert notes == ["a activate"]


def test_hook_is_switched_off_after_its_last_session(notes: list[str]) -> None:
    hook = NotingHook("a", notes)
    HookManager.register(hook, 0)
    HookManager.register(hook, 1)

    HookManager.unregister(0)
    still_active = list(HookManager.active_hooks)
    HookManager.unregister(1)

    assert still_active == [hook]
    assert HookManager.active_hooks == []
    assert notes == ["a activate", "a deactivate", "a release"]


def test_deactivated_session_keeps_its_hooks_for_later(notes: list[str]) -> None:
    hook = NotingHook("a", notes)
    HookManager.register(hook, 0)

    HookManager.deactivate(0)
    HookManager.deactivate(0)
    while_off = (list(HookManager.active_hooks), dict(HookManager.session_hooks[0]))
    HookManager.activate()
    HookManager.activate(0)

    assert while_off == ([], {hook: False})
    assert HookManager.active_hooks == [hook]
    assert notes == ["a activate", "a deactivate", "a activate"]


def test_hook_stays_on_while_another_session_uses_it(notes: list[str]) -> None:
    hook = NotingHook("a", notes)
    HookManager.register(hook, 0)
    HookManager.register(hook, 1)

    HookManager.deactivate(0)

    assert HookManager.active_hooks == [hook]
    assert notes == ["a activate"]


def test_unknown_sessions_have_no_hooks() -> None:
    HookManager.activate(7)
    HookManager.deactivate(7)
    HookManager.unregister(7)

    assert dict(HookManager.session_hooks) == {}


def test_higher_priority_enters_first_and_exits_last(notes: list[str]) -> None:
    HookManager.register(NotingHook("low", notes), 0)
    HookManager.register(NotingHook("high", notes, priority=100), 0)
    notes.clear()
    launch = SimpleNamespace(data={}, get=dict)

    HookManager.enter(launch)
    HookManager.exit(launch)
    HookManager.init_handle(None, None, "k", {}, "")

    assert notes == [
        "high enter",
        "low enter",
        "low exit",
        "high exit",
        "high load k",
        "low load k",
    ]


def test_unloading_is_optional_for_a_hook(notes: list[str]) -> None:
    HookManager.register(NotingHook("a", notes), 0)
    notes.clear()

    HookManager.destroy_handle(None, None, "k", {}, "")

    assert notes == []


def test_hook_that_fails_to_switch_on_is_off(notes: list[str]) -> None:
    hook = NotingHook("a", notes)
    hook.fails_on = "activate"

    with pytest.raises(RuntimeError, match="fails on activate"):
        HookManager.register(hook, 0)

    assert HookManager.active_hooks == []
    assert not HookManager.session_hooks.get(0)


def test_hook_that_fails_to_switch_off_does_not_keep_the_others_on(notes: list[str]) -> None:
    good, bad = NotingHook("good", notes), NotingHook("bad", notes)
    bad.fails_on = "deactivate"
    HookManager.register(good, 0)
    HookManager.register(bad, 0)

    with pytest.raises(RuntimeError, match="bad fails"):
        HookManager.unregister()

    assert HookManager.active_hooks == []
    assert "good deactivate" in notes


class Chain:
    """A hook chain as Triton has it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def add(self, function: Any) -> None:
        if function not in self.calls:
            self.calls.append(function)

    def remove(self, function: Any) -> None:
        if function in self.calls:
            self.calls.remove(function)


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Chain:
    """A ``triton.knobs`` of which only the launch hook exists."""
    knobs: Any = types.ModuleType("triton.knobs")
    knobs.__spec__ = importlib.machinery.ModuleSpec("triton.knobs", None)
    knobs.HookChain = Chain
    knobs.runtime = types.SimpleNamespace(launch_enter_hook=Chain(), kernel_unload_hook=None)
    monkeypatch.setitem(sys.modules, "triton.knobs", knobs)
    launch_chain: Chain = knobs.runtime.launch_enter_hook
    return launch_chain


def _head(metadata: object) -> None:
    del metadata


def test_head_stands_beside_the_hooks_of_others(chain: Chain) -> None:
    chain.add(print)
    heads = TritonHeads({"launch_enter_hook": _head})

    heads.attach()
    heads.attach()
    while_attached = list(chain.calls)
    heads.detach()

    assert while_attached == [print, _head]
    assert chain.calls == [print]


def test_chain_that_this_triton_does_not_have_is_left_out(chain: Chain) -> None:
    heads = TritonHeads(
        {"kernel_unload_hook": _head, "not_a_hook": _head, "launch_enter_hook": _head}
    )

    heads.attach()

    assert chain.calls == [_head]


def test_replaced_head_keeps_its_place(chain: Chain) -> None:
    heads = TritonHeads({"launch_enter_hook": _head})
    heads.attach()
    chain.add(print)

    heads.replace("launch_enter_hook", repr)
    while_attached = list(chain.calls)
    heads.detach()
    heads.replace("launch_enter_hook", _head)
    heads.attach()

    assert while_attached == [repr, print]
    assert chain.calls == [print, _head]


def test_function_in_the_place_of_a_chain_stays_and_comes_back(chain: Chain) -> None:
    runtime = sys.modules["triton.knobs"].runtime
    runtime.launch_enter_hook = print
    heads = TritonHeads({"launch_enter_hook": _head})

    heads.attach()
    while_attached = list(runtime.launch_enter_hook.calls)
    heads.detach()

    assert while_attached == [print, _head]
    assert runtime.launch_enter_hook is print


def test_detached_head_is_not_added_when_triton_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "triton.knobs", raising=False)
    finders = list(sys.meta_path)
    heads = TritonHeads({"launch_enter_hook": _head})

    heads.attach()
    waiting = len(sys.meta_path)
    heads.detach()

    assert waiting == len(finders) + 1
    assert sys.meta_path == finders
