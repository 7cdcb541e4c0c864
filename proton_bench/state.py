"""States, under upstream's submodule name; ``proton_bench.state`` itself is the class."""

from __future__ import annotations

from proton_bench.capture.state import (
    METADATA_STATE,
    enter_state,
    exit_state,
    metadata_state,
    state,
)

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "enter_state",
    "exit_state",
    "metadata_state",
    "state",
]

COMPUTE_METADATA_SCOPE_NAME = METADATA_STATE
