from __future__ import annotations

import io

import pytest
from fakes.partials import partial_at
from published import published

from proton_bench.analysis.live import last_seconds
from proton_bench.report.text.live import LiveReport, live_document
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document

LAST = last_seconds(
    partial_at(10, kernels={"a": 10**8}, busy_ns=10**8, steps=1),
    partial_at(12, kernels={"a": 11 * 10**8}, busy_ns=11 * 10**8, steps=11),
)


def test_the_document_is_as_published() -> None:
    document = published(encode_document(live_document(LiveReport("x", LAST, 5), 7)))

    assert (document["pid"], document["busy"], document["steps"]) == (7, {"CUDA:0": 0.5}, 10)
    assert document["kernels"] == [{"name": "a", "time_ns": 1e9, "count": 1000}]


@pytest.mark.parametrize(
    ("is_over", "text"), [(False, "waiting for the next file"), (True, "the recording is over")]
)
def test_one_file_alone_has_no_rates(*, is_over: bool, text: str) -> None:
    first = partial_at(10, kernels={"a": 10**8}, steps=1)
    out = io.StringIO()

    print_report(
        open_console(out), LiveReport("x.proton", last_seconds(first, first), 5, is_over=is_over)
    )

    (line,) = out.getvalue().splitlines()
    assert text in line
    assert "per second" not in line


def test_text_says_how_busy_the_gpu_was_and_what_ran() -> None:
    out = io.StringIO()
    print_report(open_console(out), LiveReport("x.proton", LAST, 10**9))
    lines = out.getvalue().splitlines()

    assert lines[0] == "x.proton  CUDA:0 busy 50.0 %; 5 steps per second; last 2 s, 1 s ago"
    assert any(line.endswith("  a") for line in lines)
    assert any("model.* (Linear)" in line for line in lines)
