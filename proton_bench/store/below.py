"""What the rows below a row have together, so that a question about a scope reads its row alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from proton_bench.model import preorder
from proton_bench.model.columns import Array
from proton_bench.model.profile import Profile
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import BELOW

__all__ = ["Flags", "Numbers", "are_above", "below"]

Flags = npt.NDArray[np.bool_]
# Numbers of rows, and which of them are known.
Numbers = tuple[Array, Flags]
# Between which places of rows those below each row are.
Span = tuple[Array, Array]
_MOST_INTEGER = 2.0**62


def are_above(profile: Profile, flags: Flags) -> Flags:
    """Return which rows of a profile have flagged rows below them."""
    running = _running(flags)
    found: Flags = running[profile.subtree_end] > running[1:]
    return found


def below(
    profile: Profile, rows: Array, *, values: Numbers, calls: Mapping[str, Numbers]
) -> pa.StructArray:
    """Return the column ``below`` of rows, none where no row below has a value.

    Calls below a row that has calls are parts of these, and left out.

    Args:
        profile: The profile.
        rows: The rows that have a value, or rows below them that have.
        values: Their values.
        calls: Their columns ``count``, ``min`` and ``max``, as far as they are known.
    """
    places = np.arange(len(rows))
    # Rows below one are those between these places.
    span = places + 1, np.searchsorted(rows, profile.subtree_end[rows])
    number = _differences(values[1], span)
    is_apart = number > 0
    if "count" in calls:
        counts, are_known = calls["count"]
        is_apart &= ~((counts > 0) & are_known)
    columns = {"value": pa.array(_sums(profile, rows, values, span=span).astype("f8"))}
    for name in ("count", "min", "max"):
        if name not in calls:
            columns[name] = pa.nulls(len(rows), BELOW.field(name).type)
            continue
        known = _differences(calls[name][1], span)
        if name == "count":
            found, is_known = _sums(profile, rows, calls[name], span=span), known > 0
        else:
            found, is_known = _extremes(calls[name], span, is_least=name == "min"), known == number
        columns[name] = pa.array(found, mask=~(is_known & is_apart))
    return pa.StructArray.from_arrays(
        [columns[field.name] for field in BELOW], fields=list(BELOW), mask=pa.array(number == 0)
    )


def _running(values: Array) -> Array:
    running = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=running[1:])
    return running


def _differences(values: Array, span: Span) -> npt.NDArray[np.int64]:
    running = _running(values)
    found: npt.NDArray[np.int64] = running[span[1]] - running[span[0]]
    return found


def _sums(profile: Profile, rows: Array, values: Numbers, *, span: Span) -> Array:
    """Return the sums of the values below rows: exact ones of integers."""
    own = np.where(values[1], values[0], 0)
    if own.dtype.kind == "i" and float(np.abs(own.astype("f8")).sum()) < _MOST_INTEGER:
        return _differences(own, span)
    # Differences of one running sum would lose small values.
    spread = np.zeros(len(profile))
    spread[rows] = own
    totals = preorder.sums(profile.parents, spread)
    return np.bincount(profile.parents[1:], totals[1:], minlength=len(profile))[rows]


def _extremes(values: Numbers, span: Span, *, is_least: bool) -> Array:
    """Return the least or largest value below rows, from those of runs of 1, 2, 4, ... rows."""
    join, rest = (np.minimum, np.inf) if is_least else (np.maximum, -np.inf)
    begins, ends = span
    found, of_run, length = np.full(len(begins), rest), np.where(values[1], values[0], rest), 1
    while len(rows := np.flatnonzero(ends - begins >= length)):
        # Two runs cover what is at most twice as long; longer ones are looked up later.
        found[rows] = join(of_run[begins[rows]], of_run[ends[rows] - length])
        of_run, length = join(of_run[:-length], of_run[length:]), 2 * length
    return found
