"""Tells programs that look at ``HookManager`` that kernels are instrumented.

Upstream's instrumentation is a launch hook, so programs, torch's Inductor among them, look at
the active hooks to find out whether a session is there already. Ours is none: it costs launches
nothing in Python.
"""

from __future__ import annotations

from typing import Any

from proton_bench.capture.hooks import Hook, HookManager, LaunchMetadata

__all__ = ["Announcement"]


class Announcement(Hook):
    """Stands among the active hooks between ``activate`` and ``deactivate``; nobody calls it."""

    is_called = False

    def activate(self) -> None:
        """Appear among the active hooks."""
        HookManager.active_hooks = [*HookManager.active_hooks, self]

    def deactivate(self) -> None:
        """Disappear."""
        HookManager.active_hooks = [each for each in HookManager.active_hooks if each is not self]

    def init_handle(  # noqa: PLR0917 - Triton's signature
        self, module: Any, function: Any, name: str, metadata_group: Any, hash: str
    ) -> None:
        """Do nothing."""

    def enter(self, metadata: LaunchMetadata) -> None:
        """Do nothing."""

    def exit(self, metadata: LaunchMetadata) -> None:
        """Do nothing."""
