"""A profile below one more row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.frame import FrameKind, StringTable
from proton_bench.model.metrics.distribution_table import DistributionTable
from proton_bench.model.metrics.metric import MetricColumn, ValueKind
from proton_bench.model.profile import Profile

__all__ = ["nest_below"]


def nest_below(profile: Profile, name: str, kind: FrameKind = FrameKind.SCOPE) -> Profile:
    """Return the profile with one new row below its root that contains all others.

    The root's own values move to that row. The total use of devices is also that of the new row;
    the former top-level scopes lose theirs.

    Args:
        profile: The profile.
        name: Name of the new row.
        kind: Its kind.
    """
    table = StringTable()
    for text in profile.strings:
        table.index(text)
    frame = table.index(name)
    strings = table.texts()
    # The new root comes first, and the old one becomes the new row.
    parents = np.concatenate([[-1, 0], profile.parents[1:] + 1])
    whole = [use for use in profile.device_use if use.scope is None]
    return replace(
        profile,
        strings=strings,
        parents=parents.astype("<i4"),
        frames=_below(profile.frames, profile.frames[0], own=frame),
        kinds=_below(profile.kinds, FrameKind.ROOT, own=kind),
        device_rows=_below(profile.device_rows, -1),
        variant_rows=_below(profile.variant_rows, -1),
        columns={each.spec.name: _column(each, strings) for each in profile.columns.values()},
        distributions={
            metric: DistributionTable.from_mapping({row + 1: entry for row, entry in entries})
            for metric, entries in profile.distributions.items()
        },
        device_use=(*whole, *(replace(use, scope=name) for use in whole)),
    )


def _below(rows: npt.NDArray[Any], root: int, own: int | None = None) -> npt.NDArray[Any]:
    found = np.concatenate([[root], rows]).astype(rows.dtype)
    if own is not None:
        found[1] = own
    return found


def _column(column: MetricColumn, strings: tuple[str, ...]) -> MetricColumn:
    valid = np.concatenate([[False], column.valid])
    if column.offsets is not None:
        return replace(column, valid=valid, offsets=np.concatenate([[0], column.offsets]))
    is_text = column.kind is ValueKind.STR
    values = _below(column.values, -1 if is_text else 0)
    return replace(column, valid=valid, values=values, strings=strings if is_text else ())
