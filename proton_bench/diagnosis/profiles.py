"""Checks the numbers of profiles for consistency, for ``proton doctor FILE``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proton_bench.diagnosis.finding import Diagnosis, Finding, Section, Status
from proton_bench.formats.registry import read_profile
from proton_bench.model.metrics.invariants import Violation, violations
from proton_bench.model.profile import Profile

_MOST = 20


def examine_files(files: Sequence[str]) -> Diagnosis:
    """Return a section for each profile.

    Raises:
        UsageError: A file cannot be opened.
        ProfileFormatError: A file is not a profile.
    """
    return Diagnosis(tuple(Section(file, tuple(_findings(read_profile(file)))) for file in files))


def _findings(profile: Profile) -> Iterator[Finding]:
    found = violations(profile)
    samples = sum(len(table) for table in profile.distributions.values())
    if not found:
        yield Finding(
            "numbers",
            Status.OK,
            f"{len(profile)} rows and {samples} distributions are consistent",
        )
    for each in found[:_MOST]:
        yield Finding(f"row {each.row}", Status.PROBLEM, _sentence(profile, each))
    if len(found) > _MOST:
        yield Finding("more", Status.PROBLEM, f"{len(found) - _MOST} more are not shown")


def _sentence(profile: Profile, found: Violation) -> str:
    path = " > ".join(profile.path(found.row)) or "the root"
    return f"{found.metric}: {found.rule} does not hold: {found.numbers}; {path}"
