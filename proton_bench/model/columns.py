"""A profile as columns of one length: CSV, Parquet, SQL and data frames are renderings of these.

An array has a type and missing values: numbers are masked, objects (texts, vectors) are None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.model.arrays import Array, Mask
from proton_bench.model.frame import KIND_NAMES
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile


def row_columns(profile: Profile) -> dict[str, Array]:
    """Return the facts of each row; devices and variants as indexes of the profile's tables."""
    return {
        "parent": masked(profile.parents, profile.parents >= 0),
        "depth": profile.depths(),
        "name": chosen(profile.strings, profile.frames),
        "kind": chosen(KIND_NAMES, profile.kinds),
        "device": masked(profile.device_rows, profile.device_rows >= 0),
        "variant": masked(profile.variant_rows, profile.variant_rows >= 0),
    }


def metric_columns(profile: Profile) -> Iterator[tuple[str, str, Array]]:
    """Yield each metric's name, "" and the rows' own values; then the sums over subtrees.

    Sums have ``" (inc)"`` instead of "". Missing values are masked. Vectors are tuples.
    """
    for name, column in profile.columns.items():
        if not column.kind.is_number:
            yield name, "", objects(column.to_list())
            continue
        yield name, "", masked(column.values, column.valid)
        if column.spec.aggregation is Aggregation.INCLUSIVE:
            yield name, " (inc)", masked(profile.inclusive(name), profile.covered(name))


def masked(values: Array, known: Mask) -> Array:
    """Return values with a mask over unknown ones, if there are any."""
    return values if bool(known.all()) else np.ma.array(values, mask=~known)


def objects(values: Sequence[Any]) -> Array:
    """Return an array of texts or vectors; numpy would make a matrix of vectors of one length."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def chosen(values: Sequence[Any], places: Array) -> Array:
    """Return the value at each index, None for -1."""
    return objects([*values, None])[places]


def array_of(dtype: npt.DTypeLike, values: Sequence[Any]) -> Array:
    """Return an array of this type, with None masked."""
    if np.dtype(dtype) == object:
        return objects(values)
    numbers = np.array([value or 0 for value in values], dtype=dtype)
    return masked(numbers, np.array([value is not None for value in values], dtype=np.bool_))
