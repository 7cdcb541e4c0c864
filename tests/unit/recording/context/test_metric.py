"""Names and values that users pass as metrics."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_fixtures import FakeBackends

from proton_bench.errors import MetricError
from proton_bench.recording.context.metric import (
    add_scope_metrics,
    normalize_metrics,
    parse_metric_name,
)
from proton_bench.recording.session.options import SessionOptions
from proton_bench.recording.session.recording import open_session


@pytest.mark.parametrize(
    ("key", "name", "aggregation"),
    [
        ("flops", "flops", "inc"),
        ("x (inc)", "x", "inc"),
        ("z (ns)(exc)", "z (ns)", "exc"),
        ("z (ns) (exc) ", "z (ns)", "exc"),
        ("lr(pty)", "lr", "pty"),
        ("(odd) name", "(odd) name", "inc"),
    ],
)
def test_suffix_becomes_the_aggregation(key: str, name: str, aggregation: str) -> None:
    assert parse_metric_name(key) == (name, aggregation)


@pytest.mark.parametrize("key", ["", "  ", "(exc)", 3])
def test_name_that_is_not_a_name_is_refused(key: Any) -> None:
    with pytest.raises(MetricError, match="metric name"):
        parse_metric_name(key)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3),
        (2.5, 2.5),
        (True, 1),
        ([1, 2], [1, 2]),
        ((1, 2.5), [1.0, 2.5]),
        (np.int32(7), 7),
        (np.float32(0.5), 0.5),
        (np.array(4), 4),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (np.array([8.0]), 8.0),
        (np.array([[3]]), 3),
        ([8.0], [8.0]),
        ([np.int64(1), np.int64(2)], [1, 2]),
        (Fraction(1, 4), 0.25),
    ],
)
def test_value_becomes_plain(value: object, plain: object) -> None:
    ((_, _, normalized),) = normalize_metrics({"a": value})

    assert normalized == plain
    assert type(normalized) is type(plain)


@pytest.mark.parametrize(
    "value", ["text", None, {}, object(), [], [[1]], np.zeros((2, 2)), 1j, ["a"], b"x"]
)
def test_value_that_is_not_a_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(MetricError, match="'speed'"):
        normalize_metrics({"speed": value})


def test_integers_beyond_64_bits_are_floats() -> None:
    assert normalize_metrics({"a": 2**63, "b": [1, -(2**70)]}) == [
        ("a", "inc", 2.0**63),
        ("b", "inc", [1.0, -(2.0**70)]),
    ]


@pytest.mark.parametrize("suffix", ["exc", "pty"])
def test_a_text_is_the_value_of_what_is_not_summed(suffix: str) -> None:
    assert normalize_metrics({f"dtype ({suffix})": "fp16"}) == [("dtype", suffix, "fp16")]


@pytest.mark.parametrize("name", ["flops", "flops8", "flops16", "flops32", "flops64"])
def test_flops_are_always_floats(name: str) -> None:
    assert normalize_metrics({name: 3}) == [(name, "inc", 3.0)]
    assert isinstance(normalize_metrics({name: 3})[0][2], float)


def test_bytes_are_always_integers() -> None:
    ((_, _, value),) = normalize_metrics({"bytes": 12.0})

    assert value == 12
    assert isinstance(value, int)


def test_bytes_that_are_not_a_number_are_refused() -> None:
    with pytest.raises(MetricError, match="'bytes'"):
        normalize_metrics({"bytes": float("nan")})


def test_cpu_tensors_become_scalars_and_vectors() -> None:
    torch = pytest.importorskip("torch")

    metrics = normalize_metrics(
        {"mean": torch.tensor(0.5), "n": torch.tensor(3), "v": torch.arange(3)}
    )

    assert metrics == [("mean", "inc", 0.5), ("n", "inc", 3), ("v", "inc", [0, 1, 2])]


def test_array_that_cannot_be_read_is_named() -> None:
    class Captured:
        def tolist(self) -> list[float]:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(MetricError, match=r"'loss'.*stream is capturing"):
        normalize_metrics({"loss": Captured()})


def test_metrics_that_are_not_a_mapping_are_refused() -> None:
    with pytest.raises(MetricError, match="mapping"):
        normalize_metrics([("a", 1)])  # type: ignore[arg-type]


def test_nothing_is_read_while_no_session_is_active(tmp_path: Path, fakes: FakeBackends) -> None:
    session = open_session(SessionOptions(name=tmp_path / "x"))
    session.deactivate()
    read: list[str] = []

    class Watched:
        def tolist(self) -> float:
            read.append("tolist")
            return 1.0

    add_scope_metrics({"a": Watched()})

    assert read == []
