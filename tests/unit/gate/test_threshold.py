from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proton_bench.errors import UsageError
from proton_bench.gate.policy import METRICS, Amount, Threshold, parse_threshold

# As pytest-benchmark 5.3.1 reads what stands after --benchmark-compare-fail, for the metrics of
# the gate.
PYTEST_BENCHMARK = re.compile(r"(min|mean|median):([1-9][0-9]?|100)%|(min|mean|median):[1-9]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean:5%", Threshold("mean", (Amount(5.0, "%"),))),
        ("median:2.5%&1us", Threshold("median", (Amount(2.5, "%"), Amount(1.0, "us")))),
        (
            "fwd/**/softmax*@p95:10%",
            Threshold("p95", (Amount(10.0, "%"),), selector="fwd/**/softmax*"),
        ),
        ("calls:0", Threshold("calls", (Amount(0.0),))),
        ("gbps:5%", Threshold("gbps", (Amount(5.0, "%"),))),
        ("m.py:3@f@p99.9:11%", Threshold("p99.9", (Amount(11.0, "%"),), "m.py:3@f")),
        ("5%", Threshold("", (Amount(5.0, "%"),))),
        ("fwd/*@5%", Threshold("", (Amount(5.0, "%"),), "fwd/*")),
    ],
)
def test_expressions(text: str, expected: Threshold) -> None:
    assert parse_threshold(text) == expected
    assert str(expected) == text


def test_amounts_mean_parts_and_nanoseconds() -> None:
    found = parse_threshold("median:2.5%&10%&1us&0.5ms")

    assert found.ratio == pytest.approx(0.1)
    assert found.absolute == pytest.approx(500_000.0)
    assert parse_threshold("mean:3us").ratio is None
    assert parse_threshold("mean:3%").absolute is None


def test_bare_numbers_are_seconds_of_times_and_themselves_of_others() -> None:
    assert parse_threshold("mean:0.001").absolute == pytest.approx(1e6)
    assert parse_threshold("calls:2").absolute == 2.0
    assert parse_threshold("cycles:100").absolute == 100.0


@pytest.mark.parametrize(
    ("text", "direction"),
    [("mean:5%", 1), ("flops:5%", -1), ("gbps:5%", -1), ("calls:0", 0), ("wall:5%", 1)],
)
def test_directions(text: str, direction: int) -> None:
    assert parse_threshold(text).direction == direction


@given(st.from_regex(PYTEST_BENCHMARK, fullmatch=True))
def test_what_pytest_benchmark_takes_is_taken(text: str) -> None:
    found = parse_threshold(text)

    metric, _, amount = text.partition(":")
    assert found.metric == metric
    if amount.endswith("%"):
        assert found.ratio == pytest.approx(float(amount[:-1]) / 100.0)
    else:
        assert found.absolute == pytest.approx(float(amount) * 1e9)


_TIMES = st.sampled_from(["min", "mean", "median", "p50", "p99.5", "tail", "total", "wall"])
_AMOUNTS = st.builds(
    Amount,
    st.floats(1.001, 1e12, allow_nan=False).map(lambda value: float(f"{value:.6g}")),
    st.sampled_from(["%", "ns", "us", "ms", "s", ""]),
)
_SELECTORS = st.text(min_size=0, max_size=20)


@given(_TIMES, st.lists(_AMOUNTS, min_size=1, max_size=3), _SELECTORS)
def test_every_threshold_is_read_as_it_was_written(
    metric: str, amounts: list[Amount], selector: str
) -> None:
    threshold = Threshold(metric, tuple(amounts), selector)

    assert parse_threshold(str(threshold)) == threshold


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("", 1, "a metric is missing here"),
        ("mean", 5, "':' and a number follow 'mean'"),
        ("mean:", 6, "a number is missing here"),
        ("mean: 5%", 6, "a number is missing here"),
        ("mean:5q", 7, "'q' is not a unit; units are %, ns, us, ms, s"),
        ("mean:5%&", 9, "a number is missing here"),
        ("mean:5% ", 8, "another amount may follow here"),
        ("p100:5%", 1, "'p100' is not a metric"),
        ("p0:5%", 1, "'p0' is not a metric"),
        ("pNN:5%", 1, "'pNN' is not a metric"),
        ("a/b@avg:5%", 5, "'avg' is not a metric; metrics are median, mean"),
        ("a/b@totl:5%", 5, "'totl' is not a metric; did you mean 'total'?"),
        ("@mean:5%", 1, "a selector is missing before '@'"),
        ("calls:3ns", 8, "calls is not a time"),
        ("mean:0%", 6, "only calls may have 0"),
        ("mean:1.05x", 10, "is not a unit"),
        ("mean:-5%", 6, "thresholds have no signs"),
        ("~5%", 1, "a metric is missing"),
        ("k@stddev:5%", 3, "is not a metric"),
        ("max:5%", 1, "is not a metric"),
        ("5us", 1, "without a metric"),
        ("mean:1e300", 6, "too large"),
    ],
)
def test_messages_point_at_the_column(text: str, column: int, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_threshold(text)

    first, shown, mark = caught.value.report().split("\n")
    assert f"column {column}: " in first
    assert words in first
    assert shown == f"  {text}"
    assert mark == " " * (column + 1) + "^"


@given(st.text(alphabet="median:5%&.0123xus@*/+-~ pN", max_size=30))
def test_any_text_is_a_threshold_or_an_error_with_a_column(text: str) -> None:
    message, found = "", None
    try:
        found = parse_threshold(text)
    except UsageError as error:
        message = str(error)

    if found is None:
        assert re.search(r"column \d+: ", message)
    else:
        assert found.metric.startswith("p") or found.metric in (*METRICS, "")
        assert parse_threshold(str(found)) == found


def test_a_threshold_without_a_metric_is_about_all_that_is_gated_by_default() -> None:
    found = parse_threshold("k@2%").expanded()

    assert [(str(each), each.is_written) for each in found] == [
        ("k@median:2%", True),
        ("k@total:2%", True),
        ("k@wall:6%", False),
        ("k@peak:2%", False),
    ]
    assert parse_threshold("k@mean:2%").expanded() == (parse_threshold("k@mean:2%"),)
