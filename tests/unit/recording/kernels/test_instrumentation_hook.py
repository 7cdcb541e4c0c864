"""A collector that instruments kernels shows itself among the active hooks, and costs nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from proton_bench.errors import UsageError
from proton_bench.mode import MMA, Default, Optimize
from proton_bench.recording.kernels import hooks
from proton_bench.recording.kernels.hooks import Hook, HookManager
from proton_bench.recording.kernels.instrumentation_hook import InstrumentationHook, pack_header


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
    disappear = InstrumentationHook.announce()

    during = list(HookManager.active_hooks)
    count = InstrumentationHook.active_count
    disappear()

    assert [type(each) for each in during] == [InstrumentationHook]
    assert (count, InstrumentationHook.active_count) == (1, 0)
    assert HookManager.active_hooks == []
    assert replaced == {}


def test_a_launch_hook_beside_it_is_still_called_by_triton_itself(replaced: dict[str, Any]) -> None:
    hook = Counting()
    disappear = InstrumentationHook.announce()

    HookManager.register(hook, 7)
    disappear()

    assert replaced["launch_enter_hook"] == hook.enter
    assert replaced["attached"] is True


def test_the_last_launch_hook_detaches_though_it_stays(replaced: dict[str, Any]) -> None:
    hook = Counting()
    HookManager.register(hook, 7)
    disappear = InstrumentationHook.announce()

    HookManager.unregister(7)

    assert replaced["attached"] is False
    assert [type(each) for each in HookManager.active_hooks] == [InstrumentationHook]
    disappear()


class Collecting:
    """A collector and its backend; notes its calls."""

    name = "instrumentation"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def open(self, mode: Any) -> Collecting:
        self.seen.append(mode.text)
        self._disappear: Any = None
        return self

    def start(self) -> None:
        self._disappear = InstrumentationHook.announce()
        self.seen.append("start")

    def flush(self) -> None: ...

    def stop(self) -> None:
        self._disappear()
        self.seen.append("stop")


@pytest.fixture
def collecting(monkeypatch: pytest.MonkeyPatch) -> Collecting:
    made = Collecting()
    monkeypatch.setattr("proton_bench.plugin.manager.resolve_backend", lambda text: (made,))
    monkeypatch.setattr(
        "proton_bench.recording.kernels.instrumentation_hook.assign_modes",
        lambda backends, text: [type("Mode", (), {"text": text})()],
    )
    return made


def test_one_that_is_registered_has_kernels_collected(
    collecting: Collecting, replaced: dict[str, Any]
) -> None:
    hook = InstrumentationHook("default:optimizations=clock32")

    HookManager.register(hook, 2)
    active = list(HookManager.active_hooks)
    is_called = "attached" in replaced
    HookManager.unregister(2)

    assert (active, is_called) == ([hook], False)
    assert collecting.seen == [str(Default(optimizations="clock32")), "start", "stop"]
    assert (HookManager.active_hooks, InstrumentationHook.active_count) == ([], 0)


@pytest.mark.usefixtures("replaced", "collecting")
def test_two_at_once_are_refused_and_the_first_stays() -> None:
    first = InstrumentationHook(None)
    HookManager.register(first, 2)

    with pytest.raises(RuntimeError, match="Only one instance of the instrumentation hook can be"):
        HookManager.register(InstrumentationHook(""), 3)
    active = list(HookManager.active_hooks)
    HookManager.unregister()

    assert active == [first]
    assert InstrumentationHook.active_count == 0


@pytest.mark.usefixtures("replaced", "collecting")
def test_a_session_that_instruments_keeps_others_out() -> None:
    disappear = InstrumentationHook.announce()

    with pytest.raises(RuntimeError, match="Only one instance"):
        HookManager.register(InstrumentationHook("mma"), 3)
    disappear()


def test_followers_hear_when_buffers_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bool] = []
    monkeypatch.setattr(InstrumentationHook, "followers", [heard.append])

    InstrumentationHook.enable_host_buffer = True
    InstrumentationHook.enable_host_buffer = False

    assert heard == [True, False]


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        (None, Default()),
        ("", Default()),
        ("mma", MMA()),
        (MMA(buffer_size=64), MMA(buffer_size=64)),
        ("default:buffer_size=4096:granularity=warp", Default(buffer_size=4096)),
        ("default:optimizations=clock32", Default(optimizations=[Optimize.CLOCK32])),
    ],
)
def test_a_mode_is_a_text_or_an_object(given: Any, mode: Any) -> None:
    assert InstrumentationHook(given).mode == mode


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("default:clock32", "Malformed instrumentation option: 'clock32'"),
        ("cycles", "Unknown mode: cycles"),
        ("default:granularity=lane", "Unknown granularity: lane"),
        ("default:colour=red", "no option 'colour'"),
    ],
)
def test_a_mode_that_is_wrong_is_named(given: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        InstrumentationHook(given)


def test_a_host_buffer_begins_with_ten_numbers_and_the_warps() -> None:
    header = pack_header(1024, device="cuda", warps=4, scratch_bytes=256, warp_ids=(0, 2))

    numbers = struct.unpack("12I", header)
    assert numbers == (1, 4, 48, 48, 1024, 1, 4, 4, 256, 2, 0, 2)
