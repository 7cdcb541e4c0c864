"""States: a frame below all launches of the thread until the state is left."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar, cast

from proton_bench.recording.context.compiled import follow_dynamo
from proton_bench.recording.native import native

_F = TypeVar("_F", bound=Callable[..., object])

# The native module makes two frames of "<this>:<kernel>".
METADATA_STATE = "__proton_launch_metadata"
METADATA_STATE_PREFIX = f"{METADATA_STATE}:"


def enter_state(name: str) -> None:
    """Put the calling thread into a state; ``exit_state`` restores the previous one.

    Args:
        name: Name of the frame.
    """
    native.enter_state(name)


def exit_state() -> None:
    """Leave the innermost state of the calling thread.

    Raises:
        ScopeError: The thread is in no state.
    """
    native.exit_state()


class state:
    """Context manager and decorator around ``enter_state`` and ``exit_state``.

    Args:
        name: Name of the frame.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> state:
        enter_state(self.name)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        exit_state()

    def __call__(self, func: _F) -> _F:
        """Run every call of ``func`` in the state, which is left on an exception too.

        A coroutine function is in the state until it returns.
        """
        if inspect.iscoroutinefunction(func):

            @functools.wraps(func)
            async def run_coroutine(*args: object, **kwargs: object) -> object:
                with self:
                    return await func(*args, **kwargs)

            return cast("_F", run_coroutine)

        @functools.wraps(func)
        def run(*args: object, **kwargs: object) -> object:
            with self:
                return func(*args, **kwargs)

        return cast("_F", run)


class metadata_state(state):
    """State for computing launch metadata, which separates its kernels from the target's.

    Args:
        kernel_name: Kernel of the launch metadata; adds a frame.
    """

    def __init__(self, kernel_name: str | None = None) -> None:
        super().__init__(get_metadata_state_name(kernel_name))


def get_metadata_state_name(kernel_name: str | None = None) -> str:
    """Return the name of the state in which launch metadata is computed.

    Args:
        kernel_name: Kernel of the launch metadata.
    """
    return f"{METADATA_STATE_PREFIX}{kernel_name}" if kernel_name else METADATA_STATE


follow_dynamo(sys.modules[__name__])
