"""Extra time changes of another binary of the same source.

Variants of a kernel differ in one constant, the iterations that are added, so their times lie on a
straight line but for what registers, alignment and scheduling of each binary do. How far off the
line they are is a lower bound of what a margin has to cover.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.studies.gate.study.components import Launches, main_paths
from benchmarks.studies.gate.study.plan import BASE, SLOWDOWNS, variant_name

__all__ = ["off_the_line"]


def off_the_line(launches: Launches) -> Mapping[str, float]:
    """Return for each kernel how far its variants are off their straight line at most, as a part.

    Kernels that lack a variant are left out.
    """
    places = main_paths(launches)
    times = np.exp(launches.locations.mean(axis=0))
    parts = np.array([0.0, *SLOWDOWNS])
    names = [BASE, *map(variant_name, SLOWDOWNS)]
    found = {}
    for work in sorted({path[0] for path in launches.paths}):
        if any((work, name) not in places for name in names):
            continue
        measured = np.array([times[places[work, name]] for name in names])
        line = np.polyval(np.polyfit(parts, measured, 1), parts)
        found[work] = float(np.abs(measured / line - 1.0).max())
    return found
