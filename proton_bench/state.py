"""States, under upstream's submodule name; ``proton_bench.state`` itself is the class."""

from __future__ import annotations

from proton_bench.flags import flags
from proton_bench.recording.context.state import METADATA_STATE as COMPUTE_METADATA_SCOPE_NAME
from proton_bench.recording.context.state import (
    METADATA_STATE_PREFIX as COMPUTE_METADATA_SCOPE_PREFIX,
)
from proton_bench.recording.context.state import (
    enter_state,
    exit_state,
    get_metadata_state_name,
    metadata_state,
    state,
)

__all__ = [
    "COMPUTE_METADATA_SCOPE_NAME",
    "COMPUTE_METADATA_SCOPE_PREFIX",
    "enter_state",
    "exit_state",
    "flags",
    "get_metadata_state_name",
    "metadata_state",
    "state",
]
