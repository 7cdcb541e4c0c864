"""Warnings about profiles with scopes inside kernels: lost records and slower kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proton_bench.analysis.kernels.scope_cycles import INSTRUMENTED, KEPT, LOST, own_counts
from proton_bench.model.profile import Profile
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

__all__ = ["inside_notes"]

_TIME = "time (ns)"
_MAX_KERNELS = 5
_REMEDY = "a larger buffer_size, fewer warps (sampling_options) or fewer scopes keep more"


def inside_notes(profile: Profile) -> tuple[str, ...]:
    """Return a sentence for each kernel that lost records, and one about slowed-down times."""
    return (*_lost(profile), *_perturbed(profile))


def _lost(profile: Profile) -> Iterator[str]:
    lost, kept = own_counts(profile, LOST), own_counts(profile, KEPT)
    rows = np.flatnonzero(lost)
    for row in rows[np.argsort(-lost[rows], kind="stable")][:_MAX_KERNELS]:
        share = 100.0 * kept[row] / (kept[row] + lost[row])
        warps = count_text(int(own_counts(profile, "lossy_warps")[row]), "warp")
        programs = count_text(int(own_counts(profile, "lossy_programs")[row]), "program")
        yield (
            f"LOST: {visible(profile.name(int(row)))} keeps {share:.3g} % of the records inside "
            f"it; {count_text(int(lost[row]), 'older record')} of {warps} in {programs} were "
            f"overwritten: {_REMEDY}"
        )
    if len(rows) > _MAX_KERNELS:
        yield f"LOST: records inside {count_text(len(rows) - _MAX_KERNELS, 'more kernel')}"


def _perturbed(profile: Profile) -> Iterator[str]:
    time = profile.columns.get(_TIME)
    if time is None:
        return
    timed = (own_counts(profile, INSTRUMENTED) > 0) & time.valid
    if timed.any():
        kernels = count_text(int(timed.sum()), "kernel")
        yield f"PERTURBED: the time of {kernels} includes the cost of recording the scopes inside"
