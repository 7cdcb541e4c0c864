"""Facts about a thread's newest launch; upstream's ``hooks.launch``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proton_bench.metric import set_metric_kernels, transform_tensor_metrics
from proton_bench.recording.context.state import METADATA_STATE as COMPUTE_METADATA_SCOPE_NAME
from proton_bench.recording.context.state import enter_state, exit_state, metadata_state
from proton_bench.recording.kernels.hooks import Hook
from proton_bench.recording.native import native

if TYPE_CHECKING:
    LaunchHook: Any

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "Hook",
    "LaunchHook",
    "LaunchVariable",
    "enabled",
    "enter_state",
    "exit_state",
    "id",
    "in_hook",
    "metadata_state",
    "op_name",
    "set_metric_kernels",
    "transform_tensor_metrics",
]


class LaunchVariable:
    """A fact of the calling thread's newest launch, read like a ``ContextVar``.

    Args:
        name: Its name.
        place: Index of the fact in the native hook.

    Attributes:
        name: Its name.
    """

    def __init__(self, name: str, place: int) -> None:
        self.name: Final = name
        self._place = place

    def get(self, default: Any = None) -> Any:
        """Return the fact.

        Args:
            default: Result if the thread launched nothing with the hook.
        """
        found = native.newest_launch()[self._place]
        return default if found is None else found


id = LaunchVariable("id", 0)
op_name = LaunchVariable("op_name", 1)
enabled = LaunchVariable("enabled", 2)
in_hook = LaunchVariable("in_hook", 3)


def __getattr__(name: str) -> Any:
    """Look up a plugin's ``LaunchHook`` on first use."""
    if name == "LaunchHook":
        from proton_bench.recording.session.options import launch_hooks

        return launch_hooks()["triton"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
