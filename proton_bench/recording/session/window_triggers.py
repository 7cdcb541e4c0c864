"""What opens and closes recording windows from outside of their options.

Calls are watched where Python programs make them, because a subscription to the driver's callbacks
would cost the program something between windows.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from proton_bench.errors import UsageError
from proton_bench.recording.launcher.on_import import ImportCallback
from proton_bench.recording.stderr import warn

# They cannot be caught, or end the program.
_REFUSED = ("SIGKILL", "SIGSTOP", "SIGINT", "SIGTERM", "SIGSEGV")
# Of the runtime and of the driver; whether a window opens.
_PROFILER_CALLS = {
    "cudaProfilerStart": True,
    "cudaProfilerStop": False,
    "cuProfilerStart": True,
    "cuProfilerStop": False,
}


class Switched(Protocol):
    """What a trigger switches."""

    def switch(self, *, on: bool) -> None:
        """Open a window, or close it; does nothing where it is so."""

    def toggle(self) -> None:
        """Do either soon. May be called by a handler of a signal."""


def checked_trigger(text: str) -> str:
    """Return the value of ``--window-on`` with an absolute path.

    Raises:
        UsageError: It names no trigger.
    """
    kind, _, name = text.partition(":")
    if kind == "file" and name:
        return f"file:{os.path.abspath(name)}"
    is_signal = text in signal.Signals.__members__ and text not in _REFUSED
    if text == "cuda" or (kind == "nvtx" and name) or is_signal:
        return text
    raise UsageError(
        f"--window-on {text!r} is unknown: give cuda, nvtx:NAME of a range, file:PATH, or a signal "
        "such as SIGUSR2"
    )


def watch_trigger(text: str, windows: Switched) -> Callable[[], None]:
    """Watch a trigger other than a file; return what ends that.

    Args:
        text: Value of ``--window-on``.
        windows: What it switches.
    """
    kind, _, name = text.partition(":")
    changes = _Changes()
    if kind == "cuda":
        changes.wrap(ctypes.CDLL, "__getitem__", functools.partial(_lookup, windows))
        changes.on_import("torch", lambda torch: _watch_cudart(changes, torch, windows))
    elif kind == "nvtx":
        ranges = _Ranges(name, windows)
        changes.on_import("torch.cuda.nvtx", lambda nvtx: _watch_torch(changes, nvtx, ranges))
        changes.on_import("nvtx", lambda nvtx: _watch_nvtx(changes, nvtx, ranges))
    elif kind != "file":
        _handle(changes, signal.Signals[kind], windows)
    return changes.close


def _handle(changes: _Changes, number: signal.Signals, windows: Switched) -> None:
    def toggle(*_: object) -> None:
        windows.toggle()

    def undo() -> None:
        # The default would end the program, should one more come.
        if callable(former) and signal.getsignal(number) is toggle:
            with contextlib.suppress(ValueError):  # not on the main thread
                signal.signal(number, former)

    try:
        former = signal.signal(number, toggle)
        changes.callback(undo)
    except ValueError:
        warn(
            f"process {os.getpid()} has no windows by {number.name}: torch was not imported on its "
            "main thread"
        )


class _Changes(contextlib.ExitStack):
    """What was changed in modules of the program, until this is closed."""

    def on_import(self, name: str, imported: Callable[[ModuleType], None]) -> None:
        self.callback(ImportCallback(name, imported).cancel)

    def wrap(self, owner: Any, name: str, wrap: Callable[..., Any]) -> None:
        """Replace a function of a module or class by what ``wrap`` makes of it, if it is there."""
        original = getattr(owner, name, None)
        if original is not None:
            setattr(owner, name, functools.wraps(original)(wrap(original)))
            self.callback(setattr, owner, name, original)


def _switching(windows: Switched, original: Callable[..., Any], *, on: bool) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if on:
            windows.switch(on=True)
        try:
            return original(*arguments, **named)
        finally:
            if not on:
                windows.switch(on=False)

    return call


def _watch_cudart(changes: _Changes, torch: ModuleType, windows: Switched) -> None:
    cudart = getattr(getattr(torch, "_C", None), "_cudart", None)
    for name, on in _PROFILER_CALLS.items():
        changes.wrap(cudart, name, functools.partial(_switching, windows, on=on))


def _lookup(windows: Switched, original: Callable[..., Any]) -> Callable[..., Any]:
    def find(library: Any, name: Any) -> Any:
        function = original(library, name)
        if name not in _PROFILER_CALLS:
            return function
        plain = type(function)

        class Watched(plain):  # type: ignore[misc, valid-type]
            _flags_, _restype_ = plain._flags_, plain._restype_
            __call__ = _switching(windows, plain.__call__, on=_PROFILER_CALLS[name])

        watched = Watched((name, library))
        watched.__name__ = name
        return watched

    return find


class _Ranges:
    """The NVTX ranges of all threads; a window is open while one with the name is."""

    def __init__(self, name: str, windows: Switched) -> None:
        self._name = name
        self._windows = windows
        self._lock = threading.RLock()
        self._open = 0
        self._local = threading.local()

    def push(self, name: object) -> None:
        matches = name == self._name
        self._stack.append(matches)
        if matches:
            self._change(1)

    def pop(self) -> None:
        if self._stack and self._stack.pop():
            self._change(-1)

    @property
    def _stack(self) -> list[bool]:
        stack: list[bool] = self._local.__dict__.setdefault("stack", [])
        return stack

    def _change(self, by: int) -> None:
        with self._lock:
            self._open += by
            self._windows.switch(on=self._open > 0)

    def pushing(
        self, original: Callable[..., Any], *, place: int = 0, key: str = "msg"
    ) -> Callable[..., Any]:
        def push(*arguments: Any, **named: Any) -> Any:
            self.push(arguments[place] if len(arguments) > place else named.get(key))
            return original(*arguments, **named)

        return push

    def popping(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def pop(*arguments: Any, **named: Any) -> Any:
            try:
                return original(*arguments, **named)
            finally:
                self.pop()

        return pop


def _watch_torch(changes: _Changes, nvtx: ModuleType, ranges: _Ranges) -> None:
    changes.wrap(nvtx, "range_push", ranges.pushing)  # torch.cuda.nvtx.range calls them, too
    changes.wrap(nvtx, "range_pop", ranges.popping)


def _watch_nvtx(changes: _Changes, nvtx: ModuleType, ranges: _Ranges) -> None:
    """Watch those of NVIDIA's package."""
    changes.wrap(nvtx, "push_range", functools.partial(ranges.pushing, key="message"))
    changes.wrap(nvtx, "pop_range", ranges.popping)

    def entering(original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(block: Any) -> Any:
            ranges.push(getattr(block.attributes, "message", None))
            return original(block)

        return enter

    annotate = getattr(nvtx, "annotate", None)
    changes.wrap(annotate, "__enter__", entering)
    changes.wrap(annotate, "__exit__", ranges.popping)
