"""Times of benchmarks in the format of pytest-benchmark, for tools that read it."""

from __future__ import annotations

import datetime
import json
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proton_bench.pytest_plugin.benchmarks.record import BenchmarkRecord
from proton_bench.recording.session.provenance import git_facts

__all__ = ["pytest_benchmark_document"]

# Version of pytest-benchmark whose format this is.
_VERSION = "5.3.1"
_S_PER_NS = 1e-9


def pytest_benchmark_document(records: Sequence[BenchmarkRecord], folder: Path) -> str:
    """Return one JSON document with times in seconds for one call.

    ``ops`` is one over the median and not over the mean as there, because github-action-benchmark
    reads nothing else and one slow round should not move its chart.

    Args:
        records: What benchmarks measured.
        folder: Whose revision is named.
    """
    git = git_facts(str(folder))
    document = {
        "machine_info": {
            "node": platform.node(),
            "processor": platform.processor(),
            "machine": platform.machine(),
            "python_implementation": platform.python_implementation(),
            "python_version": platform.python_version(),
            "release": platform.release(),
            "system": platform.system(),
        },
        "commit_info": {
            "id": git.get("revision", "unknown"),
            "time": None,
            "project": folder.name,
            "branch": "(unknown)",
            "dirty": bool(git.get("dirty", False)),
        },
        "benchmarks": [_benchmark(record) for record in records],
        "datetime": datetime.datetime.now(datetime.UTC).isoformat(),
        "version": _VERSION,
    }
    return json.dumps(document, indent=1) + "\n"


def _benchmark(record: BenchmarkRecord) -> dict[str, Any]:
    test = record.node_id.rpartition("::")[2]
    parameters = dict(record.parameters)
    return {
        "group": record.group or None,
        "name": test,
        "fullname": record.node_id,
        "params": parameters or None,
        "param": ", ".join(parameters.values()) or None,
        "extra_info": {**record.to_plain()["extra_info"], "clock": record.metric},
        "options": {"warmup": bool(record.warmup), "min_rounds": len(record.gated_ns)},
        "stats": _statistics([each * _S_PER_NS for each in record.gated_ns], record),
    }


def _statistics(times: Sequence[float], record: BenchmarkRecord) -> dict[str, Any]:
    known = {key: value * _S_PER_NS for key, value in record.statistics().items()}
    q1, _, q3 = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
    reach = 1.5 * known["iqr"]
    near = [each for each in times if q1 - reach <= each <= q3 + reach]
    apart = sum(abs(each - known["mean"]) > known["stddev"] for each in times)
    return {
        **known,
        "rounds": len(times),
        "q1": q1,
        "q3": q3,
        "iqr_outliers": len(times) - len(near),
        "stddev_outliers": apart,
        "outliers": f"{apart};{len(times) - len(near)}",
        "ld15iqr": min(near, default=known["min"]),
        "hd15iqr": max(near, default=known["max"]),
        "ops": 1.0 / known["median"] if known["median"] > 0 else 0.0,
        "total": sum(times),
        "data": list(times),
        "iterations": record.calls,
    }
