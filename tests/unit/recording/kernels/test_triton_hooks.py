"""Functions in Triton's hook chains, with a stand-in for ``triton.knobs``."""

from __future__ import annotations

import importlib.machinery
import sys
import types
from typing import Any

import pytest

from proton_bench.recording.kernels.hooks import TritonHeads


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
