"""Runs all checks once. A new section is one line here."""

from __future__ import annotations

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.diagnosis.packages import native_finding, version_section
from proton_bench.diagnosis.scripts import environment_place, script_section

__all__ = ["examine"]


def examine() -> Diagnosis:
    """Check this installation and this machine; nothing is changed and no driver is started."""
    native = native_finding()
    found = (
        version_section(native),
        script_section(environment_place()),
        *(_recording_sections() if native.usable else (_NO_BACKENDS,)),
    )
    return Diagnosis(tuple(section for section in found if section.findings))


_NO_BACKENDS = Section(
    "backends",
    (
        Finding(
            "none",
            Status.ABSENT,
            "nothing can be recorded without the native module",
        ),
    ),
)


def _recording_sections() -> tuple[Section, ...]:
    # These import what records, which an installation for analysis alone does not have.
    from proton_bench.diagnosis.backends import backend_section
    from proton_bench.diagnosis.calibration import ceiling_section
    from proton_bench.plugin.manager import get_plugin_manager

    return ceiling_section(), backend_section(get_plugin_manager())
