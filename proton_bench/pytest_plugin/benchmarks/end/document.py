"""Times of benchmarks and the gate's verdict as one JSON document."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proton_bench.rounds.record import REPLICATE, BenchmarkRecord
from proton_bench.support.files import write_file

SCHEMA = "proton_bench.benchmarks"
VERSION = (1, 1)


def write_document(
    path: Path, records: Sequence[BenchmarkRecord], gate: Mapping[str, Any] | None
) -> None:
    """Write the records of benchmarks; the file is complete or missing.

    Args:
        path: File to write.
        records: The benchmarks.
        gate: The verdict as `proton gate --json` prints it, None without a gate.

    Raises:
        OutputError: It cannot be written.
    """
    document = {
        "schema": SCHEMA,
        "version": list(VERSION),
        "replicate": REPLICATE,
        "machine": {
            "host": platform.node(),
            "system": platform.platform(),
            "python": platform.python_version(),
        },
        "benchmarks": [_benchmark(record) for record in records],
        "gate": gate,
    }
    write_file(path, json.dumps(document, indent=1) + "\n")


def _benchmark(record: BenchmarkRecord) -> dict[str, Any]:
    plain = record.to_plain()
    del plain["path"]
    return {**plain, "replicates": 1, "statistics_ns": record.statistics()}
