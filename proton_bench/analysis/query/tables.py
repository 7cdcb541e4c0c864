"""The tables that a query sees: their columns and types."""

from __future__ import annotations

import re

from proton_bench.analysis.choices import QUANTILES

__all__ = ["TABLES"]

# `nodes` has a column more for each metric: `wide_columns`.
_COLUMNS = {
    "runs": "run VARCHAR, file VARCHAR, nodes BIGINT, partial BOOLEAN, dropped BIGINT, "
    "start_time_ns BIGINT, end_time_ns BIGINT, estimated_cost_ns BIGINT, "
    "estimated_cost_share DOUBLE, backend VARCHAR, mode VARCHAR, host VARCHAR, pid BIGINT, "
    "rank BIGINT, provenance VARCHAR",
    "nodes": "run VARCHAR, node BIGINT, parent BIGINT, subtree_end BIGINT, depth BIGINT, "
    "name VARCHAR, kind VARCHAR, frame BIGINT, device BIGINT, variant BIGINT",
    "metrics": "run VARCHAR, node BIGINT, metric VARCHAR, unit VARCHAR, aggregation VARCHAR, "
    "value DOUBLE, inclusive DOUBLE, text VARCHAR, vector DOUBLE[]",
    "frames": "run VARCHAR, frame BIGINT, name VARCHAR, stable_name VARCHAR, file VARCHAR, "
    "line BIGINT, function VARCHAR, nodes BIGINT",
    "devices": "run VARCHAR, device BIGINT, kind VARCHAR, index BIGINT, arch VARCHAR, "
    "num_sms BIGINT, clock_rate_khz BIGINT, memory_clock_rate_khz BIGINT, bus_width_bits BIGINT, "
    "busy_ns BIGINT, idle_ns BIGINT, waiting_ns BIGINT",
    "variants": "run VARCHAR, variant BIGINT, code_hash VARCHAR, grid BIGINT[], block BIGINT[], "
    "shared_bytes BIGINT, registers BIGINT, signature VARCHAR, raw_name VARCHAR, config VARCHAR, "
    "local_bytes BIGINT, instructions MAP(VARCHAR, BIGINT)",
    "distributions": "run VARCHAR, node BIGINT, metric VARCHAR, n BIGINT, sum DOUBLE, "
    "minimum DOUBLE, maximum DOUBLE, geometric_mean DOUBLE, "
    + ", ".join(f"{each} DOUBLE" for each in QUANTILES),
}

# Table -> column -> type.
TABLES: dict[str, dict[str, str]] = {
    table: dict(each.split(" ", 1) for each in re.split(r", (?=\w+ )", columns))
    for table, columns in _COLUMNS.items()
}
