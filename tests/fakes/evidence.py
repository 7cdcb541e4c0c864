"""Evidence of effects whose errors are given."""

from __future__ import annotations

import numpy as np

from proton_bench.gate.statistics.contrast import Contrast
from proton_bench.gate.statistics.moderation import Moderated
from proton_bench.gate.statistics.timing import Evidence

__all__ = ["evidence_of"]


def evidence_of(
    effect: np.ndarray,
    error: float = 0.002,
    freedom: float = 8.0,
    *,
    runs: int = 6,
    residuals: np.ndarray | None = None,
) -> Evidence:
    """Return evidence of pairs that all lie on the side of their effect."""
    count = len(effect)
    full = np.full(count, float(runs))
    contrast = Contrast(
        effect=effect,
        variance=np.full(count, error**2 * runs),
        freedom=full - 1,
        scale=1 / full,
        order_effect=full * 0,
        runs=full.astype(int),
        residuals=np.zeros((runs, count)) if residuals is None else residuals,
        first_new=0,
        separation=np.sign(effect).astype(int),
    )
    noise = Moderated(
        contrast.variance,
        np.full(count, freedom),
        prior_variance=contrast.variance,
        prior_freedom=np.full(count, freedom - runs + 1.0),
        most_freedom=np.full(count, 2.0 * freedom),
    )
    return Evidence(contrast, noise, np.ones(count, dtype=bool), np.zeros(count))
