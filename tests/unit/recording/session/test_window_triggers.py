"""Calls, ranges and signals that open and close recording windows."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.session import window_triggers
from proton_bench.recording.session.window_triggers import checked_trigger, watch_trigger


class Switch:
    def __init__(self) -> None:
        self.states: list[str] = []

    def switch(self, *, on: bool) -> None:
        self.states.append("on" if on else "off")

    def toggle(self) -> None:
        self.states.append("toggle")


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Switch]]:
    """Return ``watch(trigger, **modules)``, with these imported; nothing stays watched."""
    with contextlib.ExitStack() as steps:

        def begin(trigger: str, **modules: ModuleType) -> Switch:
            for name, module in modules.items():
                monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
            switch = Switch()
            steps.callback(watch_trigger(trigger, switch))
            return switch

        yield begin


def module(name: str, **contents: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(contents)
    return made


@pytest.mark.parametrize("text", ["cuda", "nvtx:a:b", "SIGUSR2", "SIGHUP"])
def test_triggers_are_taken_as_they_are(text: str) -> None:
    assert checked_trigger(text) == text


def test_the_path_of_a_file_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert checked_trigger("file:on") == f"file:{tmp_path / 'on'}"


@pytest.mark.parametrize(
    "text", ["", "x", "nvtx:", "file:", "SIGKILL", "SIGINT", "SIGSEGV", "SIGNOTHING", "SIG_DFL"]
)
def test_unknown_triggers_name_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError, match="cuda, nvtx:NAME"):
        checked_trigger(text)


def test_profiler_calls_of_torch(watch: Callable[..., Switch]) -> None:
    calls: list[str] = []
    cudart = SimpleNamespace(
        cudaProfilerStart=lambda: calls.append("start"),
        cudaProfilerStop=lambda: calls.append("stop"),
    )
    switch = watch("cuda", torch=module("torch", _C=SimpleNamespace(_cudart=cudart)))

    cudart.cudaProfilerStart()
    cudart.cudaProfilerStop()

    assert (switch.states, calls) == (["on", "off"], ["start", "stop"])


def test_profiler_calls_through_ctypes(
    watch: Callable[..., Switch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_triggers, "_PROFILER_CALLS", {"getpid": True, "abs": False})
    switch = watch("cuda")
    library = ctypes.CDLL(None)

    library.abs.restype = ctypes.c_long
    found = (library.getpid(), library.abs(-3), library["getpid"](), library.getppid())

    assert found == (os.getpid(), 3, os.getpid(), os.getppid())
    assert switch.states == ["on", "off", "on"]


def test_a_window_is_as_long_as_the_outermost_range_of_the_name(
    watch: Callable[..., Switch],
) -> None:
    def push(msg: str) -> str:
        return msg

    nvtx = module("torch.cuda.nvtx", range_push=push, range_pop=lambda: None)
    switch = watch("nvtx:a", torch__cuda__nvtx=nvtx)

    assert [nvtx.range_push(name) for name in ("b", "a", "a", "c")] == ["b", "a", "a", "c"]
    assert nvtx.range_push(msg="d") == "d"
    for _ in range(6):
        nvtx.range_pop()

    assert switch.states == ["on", "on", "on", "off"]


def test_ranges_of_nvidias_package(watch: Callable[..., Switch]) -> None:
    class annotate:  # noqa: N801 - its name there
        def __init__(self, message: str) -> None:
            self.attributes = SimpleNamespace(message=message)

        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    nvtx = module("nvtx", annotate=annotate, push_range=lambda message: 1, pop_range=lambda: 0)
    switch = watch("nvtx:a", nvtx=nvtx)

    with nvtx.annotate("b"), nvtx.annotate("a"):
        assert switch.states == ["on"]
    nvtx.push_range(message="a")
    nvtx.pop_range()

    assert switch.states == ["on", "off", "on", "off"]


def test_what_was_changed_is_changed_back() -> None:
    before = ctypes.CDLL.__getitem__

    watch_trigger("cuda", Switch())()

    assert ctypes.CDLL.__getitem__ is before


def test_a_signal_toggles(watch: Callable[..., Switch]) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    try:
        switch = watch("SIGUSR2")
        signal.raise_signal(signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, before)

    assert switch.states == ["toggle"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_handler_of_the_program_is_put_back(is_kept: bool) -> None:
    def theirs(*_: object) -> None: ...

    before = signal.signal(signal.SIGUSR2, theirs if is_kept else signal.SIG_DFL)
    try:
        switch = Switch()
        watch_trigger("SIGUSR2", switch)()
        after = signal.getsignal(signal.SIGUSR2)
        assert (after is theirs) == is_kept
        assert after is not signal.SIG_DFL  # a late signal ends no program
    finally:
        signal.signal(signal.SIGUSR2, before)
