"""The tables of a store and their columns.

A profile counts when it stands in ``profiles``, which is written last. Its samples have its id and
the id of the same batch: those of another batch are of a writer that was killed, or that added the
same profile at the same time.
"""

from __future__ import annotations

from proton_bench.store.engines import pyarrow as pa

# A reader rejects another major version.
VERSION = (1, 0)

# Buckets of `Distribution` with the ratio `SKETCH_GAMMA`. Their counts add up exactly.
SKETCH = pa.struct(
    {
        "collapses": pa.int16(),
        "zero_count": pa.int64(),
        "index": pa.list_(pa.int32()),
        "count": pa.list_(pa.int64()),
    }
)
# What the rows below one have together: their values, and their calls as in ``samples``.
BELOW = pa.struct(
    {"value": pa.float64(), "count": pa.int64(), "min": pa.float64(), "max": pa.float64()}
)
# Where these calls count: those below a row with calls are parts of them.
CALLED_BELOW = "below IS NOT NULL AND (below.count IS NOT NULL OR coalesce(count, 0) = 0)"
_DEVICE = pa.struct(
    {
        "kind": pa.string(),
        "index": pa.int64(),
        "arch": pa.string(),
        "num_sms": pa.int64(),
        "clock_rate_khz": pa.int64(),
        "memory_clock_rate_khz": pa.int64(),
        "bus_width_bits": pa.int64(),
    }
)
VARIANT = pa.struct(
    {
        "code_hash": pa.string(),
        "grid": pa.list_(pa.int64()),
        "block": pa.list_(pa.int64()),
        "shared_bytes": pa.int64(),
        "signature": pa.string(),
        "registers": pa.int64(),
        "raw_name": pa.string(),
        "config": pa.string(),
        "local_bytes": pa.int64(),
        "instructions": pa.map_(pa.string(), pa.int64()),
    }
)
# The key of a profile in every table but ``stacks``.
_KEY = {
    "date": pa.date32(),  # UTC, of the start
    "job": pa.string(),
    "profile_id": pa.string(),
    "batch": pa.string(),
}
# One number of one row of a profile. A row without one has a line if rows below it have some.
_SAMPLES = pa.schema(
    {
        **_KEY,
        "node": pa.int32(),
        "stack_hash": pa.int64(),
        "device": pa.int32(),  # index in the profile's ``devices``
        "variant": pa.int32(),  # index in the profile's ``variants``
        "code_hash": pa.string(),
        "sample_type": pa.string(),  # "time" of "time (ns)"
        "sample_unit": pa.string(),  # "ns", "" for none
        "aggregation": pa.string(),  # "inc", "exc" or "pty"
        "value": pa.float64(),
        "text": pa.string(),
        "count": pa.int64(),
        "min": pa.float64(),
        "max": pa.float64(),
        "sketch": SKETCH,
        "below": BELOW,  # of a metric that adds up
    }
)
SCHEMAS = {
    "samples": _SAMPLES,
    # Those of sums of profiles, apart: a question that sums answer reads no others.
    "sums": _SAMPLES,
    # A row of a call-path tree by its names from the root down; the hash covers parent, name, kind.
    "stacks": pa.schema(
        {
            "stack_hash": pa.int64(),
            "parent_hash": pa.int64(),  # none for the root
            "depth": pa.int32(),
            "name": pa.string(),
            "kind": pa.string(),
            "file": pa.string(),
            "line": pa.int64(),
        }
    ),
    # A timeline beside its profile: where it is, not its events.
    "timelines": pa.schema(
        {**_KEY, "uri": pa.string(), "format": pa.string(), "size_bytes": pa.int64()}
    ),
    "profiles": pa.schema(
        {
            **_KEY,
            "time_unix_nano": pa.int64(),
            "duration_nano": pa.int64(),
            "run": pa.string(),
            "rank": pa.int64(),
            "world_size": pa.int64(),
            "host": pa.string(),
            "pid": pa.int64(),
            "commit": pa.string(),
            "dirty": pa.bool_(),
            "branch": pa.string(),
            "gpu_uuid": pa.string(),
            "arch": pa.string(),
            "driver": pa.string(),
            "nodes": pa.int64(),  # rows of the profile
            "samples": pa.int64(),  # its rows in ``samples``
            "partial": pa.bool_(),
            "dropped": pa.map_(pa.string(), pa.int64()),
            # Ids of the profiles that it sums; none for a recorded one.
            "members": pa.list_(pa.string()),
            "integer_metrics": pa.list_(pa.string()),  # full names
            # Sum of each metric that adds up, by its full name.
            "totals": pa.map_(pa.string(), pa.float64()),
            "devices": pa.list_(_DEVICE),
            "variants": pa.list_(VARIANT),
            "device_use": pa.string(),  # JSON
            "attributes": pa.string(),  # JSON: the provenance
            "source": pa.string(),
        }
    ),
}
# In the order in which they are written.
TABLES = tuple(SCHEMAS)
PARTITIONS = {table: [] if table == "stacks" else ["date", "job"] for table in TABLES}
