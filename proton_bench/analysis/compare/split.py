"""A change as launches times latency.

With n launches of t each, T = n t. For a base (n0, t0) and a new (n1, t1) side::

    T1 - T0  =  (t0 + t1) / 2 * (n1 - n0)  +  (n0 + n1) / 2 * (t1 - t0)
                more or fewer launches        slower or faster launches

The two parts add up to the change exactly, and swapping the sides flips both signs. A side without
launches gets the other side's t, so new and removed rows are changes of launches alone. Rows with a
value but without launches are in neither part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Split", "split"]

Values = npt.NDArray[Any]

# A part may be much larger than the change; larger ones do not stay whole numbers.
_LARGEST = 2.0**60


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Parts of each row's change; whole numbers if the change is one.

    Attributes:
        launches: Change by more or fewer launches.
        latency: Change by slower or faster launches.
        rest: Change without launches; the three add up to the change.
    """

    launches: Values
    latency: Values
    rest: Values


def split(base: Values, new: Values, *, base_count: Values, new_count: Values) -> Split:
    """Return the parts of ``new - base`` for each row.

    Args:
        base: Values of the base in all launches.
        new: New values.
        base_count: Launches in the base, 0 for none or unknown.
        new_count: Launches now.
    """
    change = new - base
    base_each, new_each = _per_launch(base, base_count), _per_launch(new, new_count)
    base_each = np.where(base_count > 0, base_each, new_each)
    new_each = np.where(new_count > 0, new_each, base_each)
    launches = (base_each + new_each) / 2.0 * (new_count - base_count)
    if change.dtype.kind == "i" and bool((np.abs(launches) < _LARGEST).all()):
        launches = np.rint(launches).astype(np.int64)
    # Exact: dividing and multiplying again would lose digits.
    launches = np.where((base_count > 0) & (new_count > 0), launches, change)
    known = (base_count > 0) | (new_count > 0)
    nothing = np.zeros_like(change)
    return Split(
        launches=np.where(known, launches, nothing),
        latency=np.where(known, change - launches, nothing),
        rest=np.where(known, nothing, change),
    )


def _per_launch(values: Values, counts: Values) -> Values:
    each = np.zeros(len(values), dtype=np.float64)
    np.divide(values, counts, out=each, where=counts > 0)
    return each
