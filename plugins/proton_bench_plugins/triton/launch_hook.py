"""Reads launch metadata of Triton kernels and files it on the kernel's node."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Mapping
from typing import Any

from proton_bench.capture.hooks import Hook, LaunchMetadata
from proton_bench.capture.metric import normalize_metrics
from proton_bench.capture.native import native
from proton_bench.capture.state import metadata_state
from proton_bench.errors import MetricError, ScopeError, UsageError

__all__ = ["LaunchHook"]

# What Triton itself puts into the metadata of every launch.
_RESERVED = frozenset({"name", "function", "stream"})


class _Thread(threading.local):
    """One thread's launches; a launch and its exit are on one thread and do not nest."""

    def __init__(self) -> None:
        self.is_evaluating = False
        self.open_names: list[str | None] = []  # None: the launch was left out by a filter


class LaunchHook(Hook):
    """Names each launch and adds the numbers of its ``launch_metadata`` as metrics.

    There is one instance per process. What ``launch_metadata`` launches itself stands below
    ``__proton_launch_metadata`` > kernel. A ``launch_metadata`` that raises is reported once per
    kernel on stderr, and the launch goes on without it.
    """

    priority = 100
    _instance: LaunchHook | None = None

    def __new__(cls) -> LaunchHook:
        """Return the instance of this process."""
        if cls._instance is None:
            made = super().__new__(cls)
            made._thread = _Thread()
            made._reported = set()
            made.configure()
            cls._instance = made
        return cls._instance

    _thread: _Thread
    _reported: set[str]
    _include: re.Pattern[str] | None
    _exclude: re.Pattern[str] | None

    def configure(self, *, include: str | None = None, exclude: str | None = None) -> None:
        """Choose kernels by name, until the last session that uses the hook is finalized.

        Args:
            include: Regular expression that the beginning of a kernel's name must match.
            exclude: Regular expression that it must not match.

        Raises:
            UsageError: An expression is malformed.
        """
        self._include, self._exclude = _compiled("include", include), _compiled("exclude", exclude)

    def init_handle(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str
    ) -> None:
        """Do nothing: a launch brings all that is needed."""

    def activate(self) -> None:
        """Do nothing: the hook manager connects and disconnects the hook."""

    def deactivate(self) -> None:
        """Do nothing: a launch that is under way still gets its exit."""

    def release(self) -> None:
        """Forget the filters and which kernels were reported."""
        self._reported.clear()
        self.configure()

    def enter(self, metadata: LaunchMetadata) -> None:
        """Open the kernel's frame and add its metrics."""
        thread = self._thread
        if thread.is_evaluating:
            return
        self._close_failed_launch()
        raw_name = str(metadata.data["name"])
        thread.open_names.append(None)
        if not self._wants(raw_name):
            return
        values = self._evaluate(metadata, raw_name)
        name = str(values.get("name", raw_name))
        if not self._wants(name):
            return
        native.enter_op(name)
        thread.open_names[-1] = name
        self._add_metrics(values, raw_name)

    def exit(self, metadata: LaunchMetadata) -> None:
        """Close the kernel's frame."""
        thread = self._thread
        if not thread.is_evaluating and thread.open_names and thread.open_names.pop() is not None:
            native.exit_op()

    def _wants(self, name: str) -> bool:
        if self._include is not None and self._include.match(name) is None:
            return False
        return self._exclude is None or self._exclude.match(name) is None

    def _evaluate(self, metadata: LaunchMetadata, kernel: str) -> Mapping[str, Any]:
        self._thread.is_evaluating = True
        try:
            with metadata_state(kernel):
                return metadata.get()
        except Exception as error:  # noqa: BLE001 - the target's launch must not fail because of us
            self._report(kernel, f"launch_metadata raised {type(error).__name__}: {error}")
            return metadata.data
        finally:
            self._thread.is_evaluating = False

    def _add_metrics(self, values: Mapping[str, Any], kernel: str) -> None:
        numbers = {
            key: value
            for key, value in values.items()
            if key not in _RESERVED and _is_number(value)
        }
        if not numbers:
            return
        try:
            native.add_metrics(normalize_metrics(numbers))
        except MetricError as error:
            self._report(kernel, str(error))

    def _report(self, kernel: str, what: str) -> None:
        native.add_dropped("launch metadata", 1)
        if kernel not in self._reported:
            self._reported.add(kernel)
            sys.stderr.write(f"proton: warning: no launch metadata of kernel {kernel!r}: {what}\n")

    def _close_failed_launch(self) -> None:
        """Close the frame of a launch that raised: Triton does not call its exit hook."""
        for name in self._thread.open_names:
            if name is not None:
                # A scope around the launch that was left meanwhile closed the frame with it.
                with contextlib.suppress(ScopeError):
                    native.exit_op(name)
        self._thread.open_names.clear()


def _compiled(what: str, pattern: str | None) -> re.Pattern[str] | None:
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except (re.error, TypeError) as error:
        raise UsageError(
            f"{what} pattern {pattern!r} is no regular expression: {error}; "
            "write one that matches the beginning of kernel names"
        ) from None


def _is_number(value: object) -> bool:
    is_array = hasattr(value, "tolist")
    return is_array or (hasattr(value, "__float__") and not isinstance(value, type))
