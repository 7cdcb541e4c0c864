"""Rows and values for a report."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.metrics.values import MetricValues
from proton_bench.model.preorder import depths

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class MetricTree:
    """Rows and values for a report, in pre-order.

    Attributes:
        strings: Distinct names, as they are shown.
        parents: Row of each row's parent, -1 for the root.
        frames: Position of each row's name in ``strings``.
        kinds: `FrameKind` of each row as uint8.
        devices: "CUDA:0" and the like per row, "" for rows without a device.
        metrics: Values to show; the first one decides thresholds and colours.
        cut: Rows left out because they are too deep.
        unvalued: Rows left out because they have no value of these metrics.
        chains: For each row the names of the rows above it that stand in the same line, as
            positions in ``strings``; empty if each row has a line of its own.
        recorded: The recorded name for each of ``strings``; empty if these are the recorded ones.
    """

    strings: tuple[str, ...]
    parents: npt.NDArray[np.int32]
    frames: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]
    devices: tuple[str, ...]
    metrics: tuple[MetricValues, ...]
    cut: int = 0
    unvalued: int = 0
    chains: tuple[tuple[int, ...], ...] = ()
    recorded: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.parents)

    def name(self, row: int) -> str:
        """Return the row's name."""
        return self.strings[int(self.frames[row])]

    def depths(self) -> npt.NDArray[np.int32]:
        """Return for each row the number of rows above it."""
        return depths(self.parents)

    def take(self, keep: Mask, *, cut: int = 0) -> MetricTree:
        """Return the kept rows; the parent of each kept row has to be kept too."""
        rows = np.flatnonzero(keep)
        return replace(
            self,
            parents=renumbered(self.parents, keep),
            frames=self.frames[rows],
            kinds=self.kinds[rows],
            devices=tuple(self.devices[row] for row in rows.tolist()),
            metrics=tuple(metric.take(rows) for metric in self.metrics),
            cut=cut,
        )

    def reordered(self, order: npt.NDArray[np.int64]) -> MetricTree:
        """Return the same rows in another pre-order.

        Args:
            order: The row that comes first, second...; a parent stands before its rows.
        """
        places = np.empty(len(self), dtype="<i4")
        places[order] = np.arange(len(self), dtype="<i4")
        above = self.parents[order]
        return replace(
            self,
            parents=np.where(above >= 0, places[above], -1).astype("<i4"),
            frames=self.frames[order],
            kinds=self.kinds[order],
            devices=tuple(self.devices[row] for row in order.tolist()),
            metrics=tuple(metric.take(order) for metric in self.metrics),
        )


def renumbered(parents: npt.NDArray[np.int32], keep: Mask) -> npt.NDArray[np.int32]:
    """Return the parents of the kept rows, as indexes of kept rows."""
    places = np.cumsum(keep, dtype=np.int64) - 1
    above = parents[keep]
    return np.where(above >= 0, places[above], -1).astype("<i4")
