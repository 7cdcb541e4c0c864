"""Evidence of effects whose errors are given."""

from __future__ import annotations

import numpy as np

from proton_bench.gate.statistics.decision import Evidence


def evidence_of(
    effect: np.ndarray,
    error: float = 0.002,
    freedom: float = 8.0,
    *,
    runs: int = 6,
    residuals: np.ndarray | None = None,
    resolution: float = 0.0,
) -> Evidence:
    """Return evidence of pairs that all lie on the side of their effect."""
    count = len(effect)
    spread = np.full(count, error * np.sqrt(runs))
    return Evidence(
        effect=effect,
        spread=spread,
        typical=spread,
        freedom=np.full(count, freedom),
        scale=np.full(count, 1.0 / runs),
        runs=np.full(count, runs),
        residuals=np.zeros((runs, count)) if residuals is None else residuals,
        first_new=0,
        separation=np.sign(effect).astype(int),
        order_effect=np.zeros(count),
        resolution=np.full(count, resolution),
        tested=np.ones(count, dtype=bool),
        steady=np.ones(count, dtype=bool),
    )
