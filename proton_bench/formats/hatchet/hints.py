"""Decides how metrics of the hatchet formats add up, which these files only hint at.

Upstream writes a 0 for an inclusive metric into the metrics of ROOT. Triton 3.6.0 does so for every
metric that is not exclusive, properties too; 3.9.0 only for its own metrics, so inclusive,
exclusive and property metrics of the user cannot be distinguished. We assume:

1. the key ``aggregations`` of ROOT, which we write if the rules below would be wrong;
2. texts are properties, and so are the names in ``_PROPERTIES``;
3. metrics hinted at ROOT are inclusive;
4. vectors are inclusive, but never hinted, because hatchet fails to add them to a 0;
5. the names in ``EXCLUSIVE_NAMES`` are exclusive: each row includes the rows below (3.9.0 hints at
cycles anyway, which counts nested scopes twice); 6. if ROOT hints at some user metric, the others
are exclusive (3.6.0 and proton_bench); 7. else they are inclusive (3.9.0), as almost all metrics of
launch hooks are.
"""

from __future__ import annotations

from collections.abc import Mapping

from proton_bench.model.metrics.metric import Aggregation, ValueKind
from proton_bench.model.metrics.spans import WALL

_PROPERTIES = frozenset(
    {
        "device_id", "device_type", "stream_id", "is_metric_kernel", "kernel_id", "kernel_name",
        "block_id", "processor_id", "unit_id", "end_unit_id", "is_async", "start_time (ns)",
        "end_time (ns)", "start_cycle", "end_cycle", "init_time", "pre_final_time",
        "post_final_time",
    }
)  # fmt: skip
EXCLUSIVE_NAMES = frozenset({"cpu_time (ns)", WALL, "cycles", "normalized_cycles"})
_BUILT_IN = frozenset(
    {"count", "time (ns)", "cycles", "normalized_cycles", "num_samples", "num_stalled_samples"}
)


def assumed_aggregations(
    kinds: Mapping[str, ValueKind], hinted: frozenset[str]
) -> dict[str, Aggregation]:
    """Return how each metric adds up by rules 2 to 7, from its type and the hints at ROOT."""
    user_hints = any(not _is_built_in(name) for name in hinted)
    rest = Aggregation.EXCLUSIVE if user_hints else Aggregation.INCLUSIVE
    assumed: dict[str, Aggregation] = {}
    for name, kind in kinds.items():
        if kind is ValueKind.STR or name in _PROPERTIES:
            assumed[name] = Aggregation.PROPERTY
        elif name in hinted or kind.is_vector:
            assumed[name] = Aggregation.INCLUSIVE
        elif name in EXCLUSIVE_NAMES:
            assumed[name] = Aggregation.EXCLUSIVE
        else:
            assumed[name] = rest
    return assumed


def _is_built_in(name: str) -> bool:
    return name in _BUILT_IN or name.startswith("stalled_")
