"""A profile as plain values, to compare two of them, and strategies that draw profiles."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device, Variant
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.profile import Profile

DEVICES = (Device("CUDA", 0, "90", 132, 1980000, 2619000, 6144), Device("HIP", 3, "gfx942"))
VARIANTS = (Variant("00ff", (4, 1, 1), (128, 1, 1), 4096, "*fp16,i32"), Variant(signature="other"))

texts = st.text(max_size=12) | st.sampled_from(
    ["a\x00b", "x\ny", "[bold]z[/]", "<b>&amp;", "é\u2028"]
)
int64s = st.integers(-(2**40), 2**40)
floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
_METRICS = {
    "time (ns)": (int64s, Aggregation.INCLUSIVE),
    "count": (st.integers(0, 2**62), Aggregation.INCLUSIVE),
    "wall (ns)": (int64s, Aggregation.EXCLUSIVE),
    "flops": (floats, Aggregation.INCLUSIVE),
    "custom": (floats, Aggregation.EXCLUSIVE),
    "note": (texts, Aggregation.PROPERTY),
    "level": (int64s, Aggregation.PROPERTY),
    "ivec": (st.lists(int64s, max_size=3), Aggregation.INCLUSIVE),
    "fvec": (st.lists(floats, min_size=1, max_size=3), Aggregation.EXCLUSIVE),
}


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """Draw a profile of up to 12 rows with devices, variants, every kind of metric, samples."""
    builder = ProfileBuilder()
    chosen = draw(st.lists(st.sampled_from(sorted(_METRICS)), unique=True, max_size=5))
    for name in chosen:
        builder.declare(name, _METRICS[name][1])
    for row in range(1, draw(st.integers(1, 12))):
        metrics = {name: draw(_METRICS[name][0]) for name in chosen if draw(st.booleans())}
        builder.add(
            draw(st.integers(0, row - 1)),
            draw(texts),
            draw(st.sampled_from(FrameKind)),
            metrics=metrics,
            device=draw(st.sampled_from([None, *DEVICES])),
            variant=draw(st.sampled_from([None, *VARIANTS])),
        )
    if draw(st.booleans()):
        samples = draw(st.lists(st.floats(-10, 1e6), max_size=80))
        row = draw(st.integers(0, len(builder) - 1))
        builder.set_distribution(row, "time (ns)", Distribution.from_samples(samples))
    facts = draw(st.dictionaries(texts, st.none() | int64s | texts | st.lists(texts, max_size=2)))
    return builder.build(
        provenance=facts,
        dropped=draw(st.dictionaries(texts, st.integers(0, 2**40), max_size=2)),
        partial=draw(st.booleans()),
    )


def view(profile: Profile) -> dict[str, Any]:
    """Return everything in a profile as plain values that compare with ``==``."""
    return {
        "rows": [
            (
                profile.path(row),
                int(profile.parents[row]),
                profile.kind(row),
                profile.device(row),
                profile.variant(row),
            )
            for row in range(len(profile))
        ],
        "metrics": {
            name: (str(column.spec.aggregation), str(column.kind), column.to_list())
            for name, column in profile.columns.items()
        },
        "distributions": {
            name: {row: distribution_view(entry) for row, entry in table}
            for name, table in profile.distributions.items()
        },
        "provenance": profile.provenance.to_plain(),
        "dropped": dict(profile.dropped),
        "device_use": profile.device_use,
        "partial": profile.partial,
        "extra": dict(profile.extra),
    }


def distribution_view(entry: Distribution) -> dict[str, Any]:
    """Return a distribution as plain values."""
    return {
        "moments": (entry.n, entry.zero_count, entry.total, entry.minimum, entry.maximum),
        "logs": (entry.sum_ln, entry.sum_ln2),
        "samples": entry.samples.tolist(),
        "buckets": (entry.bucket_index.tolist(), entry.bucket_count.tolist()),
        "collapses": entry.collapses,
        "open_below": entry.open_below,
        "gamma": entry.gamma,
    }


def inclusive_by_path(profile: Profile, metric: str) -> dict[tuple[str, ...], float]:
    """Return the inclusive sum of each path; siblings with one name are added."""
    found: dict[tuple[str, ...], float] = {}
    for row, value in enumerate(profile.inclusive(metric).tolist()):
        path = profile.path(row)
        found[path] = found.get(path, 0) + value
    return found


def close(left: dict[Any, float], right: dict[Any, float]) -> bool:
    """Return whether both hold the same keys and nearly the same values."""
    return left.keys() == right.keys() and all(
        math.isclose(left[key], right[key], rel_tol=1e-9, abs_tol=1e-6) for key in left
    )


def values_by_path(profile: Profile, metric: str) -> dict[str, Any]:
    """Return the values of a metric by the names of their path, joined by slashes."""
    values = profile.column(metric).to_list()
    return {
        "/".join(profile.path(row)): value for row, value in enumerate(values) if value is not None
    }
