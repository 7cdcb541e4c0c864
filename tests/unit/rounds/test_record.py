from __future__ import annotations

import json

from fakes.benchmarks import record_of

from proton_bench.rounds.record import BenchmarkRecord


def test_a_record_survives_json() -> None:
    record = record_of(extra_info={"sizes": [1, 2], "note": "x", "none": None})

    assert BenchmarkRecord.from_plain(json.loads(json.dumps(record.to_plain()))) == record


def test_what_json_cannot_hold_becomes_text() -> None:
    plain = record_of(extra_info={1: {2}, "deep": {"of": (print, 1.5)}}).to_plain()

    assert plain["extra_info"] == {"1": "{2}", "deep": {"of": ["<built-in function print>", 1.5]}}
    json.dumps(plain)


def test_statistics_are_of_the_clock_that_is_gated() -> None:
    record = record_of(cpu_ns=(1.0,) * 4, gpu_ns=(10.0, 20.0, 30.0, 40.0), metric="cuda")

    found = record.statistics()

    assert (found["min"], found["max"], found["mean"], found["median"]) == (10.0, 40.0, 25.0, 25.0)
    assert found["iqr"] == 25.0
    assert record_of(metric="cuda").gated_ns == record_of().cpu_ns


def test_one_round_has_no_spread() -> None:
    found = record_of(cpu_ns=(5.0,)).statistics()

    assert (found["median"], found["stddev"], found["iqr"]) == (5.0, 0.0, 0.0)
