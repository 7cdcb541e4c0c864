from __future__ import annotations

import pytest

from proton_bench.errors import UsageError
from proton_bench.recording.session.output_format import (
    check_formats,
    chosen_trace_formats,
    default_formats,
    suffix_of,
    trace_formats_of,
)

VARIABLE = "PROTON_BENCH_TRACE_FORMATS"


def test_an_unknown_format_is_named_with_the_choices() -> None:
    with pytest.raises(UsageError, match="Unknown output format: csv; choose from: hatchet"):
        check_formats(["hatchet", "csv"])
    with pytest.raises(UsageError, match=r"choose from: .*chrome_trace, perfetto"):
        check_formats(["csv"], "trace")


@pytest.mark.parametrize("name", ["chrome_trace", "perfetto"])
def test_a_timeline_needs_a_session_that_keeps_one(name: str) -> None:
    check_formats([name, "proton"], "trace")
    with pytest.raises(UsageError, match=f"{name} needs a timeline: .*data='trace'"):
        check_formats([name])


def test_a_format_that_was_not_streamed_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match=f"perfetto cannot be written at the end.*{VARIABLE}="):
        check_formats(["perfetto"], "trace", ("chrome_trace",))


def test_upstreams_formats_are_the_default() -> None:
    assert default_formats("tree") == ("hatchet",)
    assert default_formats("trace") == ("chrome_trace",)
    assert default_formats("trace", ("perfetto", "chrome_trace")) == ("perfetto", "chrome_trace")


def test_formats_of_timelines_and_of_trees_are_distinguished() -> None:
    formats = ("proton", "perfetto", "chrome_trace", "hatchet")

    assert trace_formats_of(formats, "trace") == ("perfetto", "chrome_trace")
    assert trace_formats_of(formats, "tree") == ()
    assert [suffix_of(name) for name in formats[:3]] == ["proton", "pftrace", "chrome_trace"]


def test_the_environment_names_the_formats_of_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_trace_formats("perfetto") == ("perfetto",)
    monkeypatch.setenv(VARIABLE, "chrome_trace, perfetto")
    assert chosen_trace_formats("perfetto") == ("chrome_trace", "perfetto")
    monkeypatch.setenv(VARIABLE, "hatchet")
    with pytest.raises(UsageError, match=f"{VARIABLE}='hatchet' names 'hatchet'; choose from: ch"):
        chosen_trace_formats("perfetto")
