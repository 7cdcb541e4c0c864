"""Runs all checks once. A new section is one line here."""

from __future__ import annotations

import os
import sys

from proton_bench.diagnosis.backends import backend_section, examined_sections, plugin_section
from proton_bench.diagnosis.finding import Diagnosis
from proton_bench.diagnosis.gpu import gpu_section
from proton_bench.diagnosis.machine import (
    folder_section,
    interpreter_section,
    native_section,
)
from proton_bench.diagnosis.packages import extra_section, version_section
from proton_bench.diagnosis.scripts import environment_place, script_section
from proton_bench.diagnosis.variables import variable_section
from proton_bench.plugin.manager import get_plugin_manager

__all__ = ["examine"]


def examine() -> Diagnosis:
    """Check this installation and this machine; nothing is changed.

    No driver is started in this process; backends test theirs in child processes.
    """
    # Before any plugin is loaded, because a plugin may import triton.
    interpreter = interpreter_section(os.environ, frozenset(sys.modules))
    manager = get_plugin_manager()
    backends = (backend_section(manager), *examined_sections(manager))
    return Diagnosis(
        (
            version_section(),
            native_section(),
            interpreter,
            script_section(environment_place()),
            gpu_section(),
            *backends,
            # After the backends, because loading them may find a plugin broken.
            plugin_section(manager),
            extra_section(),
            variable_section(os.environ),
            folder_section(),
        )
    )
