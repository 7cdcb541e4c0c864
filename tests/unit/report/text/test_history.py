from __future__ import annotations

import io
import re
from dataclasses import replace

from fakes.histories import hostile, judged, points_of_times, revision, slower, stepped

from proton_bench.gate.history.history import acknowledge
from proton_bench.report.html.document import history_page
from proton_bench.report.text.history import (
    HistoryReport,
    history_document,
    places,
    step_text,
    tool_changes,
)
from proton_bench.report.text.tree import print_report
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document


def printed(report: HistoryReport) -> str:
    file = io.StringIO()
    print_report(open_console(file), report)
    return file.getvalue()


def test_a_step_names_its_run_its_revision_and_the_range() -> None:
    found = judged(slower())
    (trace,) = found.failing

    text = step_text(trace, trace.steps[0])

    assert text.startswith("+5.")
    assert f"from run20.proton, revision {revision(20)[:12]}, 2023-11-15 18:13 UTC" in text
    assert f"began in {revision(19)[:12]}..{revision(20)[:12]}" in text
    assert text.endswith("not acknowledged")


def test_the_range_of_revisions_is_one_for_git_also_where_files_differed() -> None:
    (trace,) = judged(slower(is_dirty=True)).failing

    text = step_text(trace, trace.steps[0])

    assert f"revision {revision(20)[:12]}+, " in text
    assert f"began in {revision(19)[:12]}..{revision(20)[:12]};" in text


def test_series_that_are_too_short_beside_longer_ones_are_counted() -> None:
    other = slower(3, machine=(("GPU name", "NVIDIA H100"),))

    some = printed(HistoryReport(judged([*slower(), *other]), judged=True))

    assert "note  2 of 4 series have fewer than 8 points, too few to find a step" in some
    assert "too few" not in printed(HistoryReport(judged(slower())))


def test_versions_that_changed_with_a_step_are_named() -> None:
    points = [
        replace(each, tools={"torch": "2.7", "triton": "3"} if number >= 20 else each.tools)
        for number, each in enumerate(slower())
    ]
    (trace,) = judged(points).failing

    assert "with torch 2.6 -> 2.7" in step_text(trace, trace.steps[0])
    assert tool_changes(points[0], points[1]) == []


def test_levels_of_several_units_have_theirs_beside_the_metric() -> None:
    points = slower()
    for each, at in zip(points, range(len(points)), strict=True):
        (subject, *_) = each.values
        value = each.values[subject]
        total = replace(value, value=value.value * 1e3, as_short=value.value * 1e3, metric="total")
        points[at] = replace(each, values={**each.values, ((), 0, "total"): total})

    some = printed(HistoryReport(judged(points)))

    assert re.search(r"100\.05\d .* median \(us\)  step > a$", some, re.MULTILINE)
    assert re.search(r"100\.05\d .* total \(ms\)   whole run$", some, re.MULTILINE)


def test_a_path_that_the_last_runs_do_not_have_says_so() -> None:
    points = [
        replace(
            each, values={key: value for key, value in each.values.items() if "a" not in key[0]}
        )
        if number >= 34
        else each
        for number, each in enumerate(slower())
    ]

    found, whole = judged(points), judged(slower())
    lines = printed(HistoryReport(found)).splitlines()

    (place,) = [at for at, line in enumerate(lines) if line.endswith("step > a")]
    assert lines[place + 1] == "    not in the last 6 runs"
    assert "<li>not in the last 6 runs</li>" in history_page(found)
    series = history_document(found)["series"]
    left = {"/".join(each["path"]): each["later_points_without_it"] for each in series}
    assert (left["step/a"], left["step/b"]) == (6, 0)
    for text in (printed(HistoryReport(whole, everything=True)), history_page(whole)):
        assert "not in the last" not in text


def test_only_series_with_steps_are_shown_unless_all_are_wanted() -> None:
    found = judged(slower())

    some, every = printed(HistoryReport(found)), printed(HistoryReport(found, everything=True))

    assert "step > a" in some
    assert not re.search(r"step > b$", some, re.MULTILINE)
    assert re.search(r"step > b$", every, re.MULTILINE)


def test_machines_that_look_alike_are_told_apart() -> None:
    one, other = (
        points_of_times(
            {"step/a": stepped(20)}, machine=(("GPU ecc", ecc), ("host", "here"), ("GPU name", "X"))
        )
        for ecc in ("on", "off")
    )

    named = dict(places(judged([*one, *other]).traces))

    assert list(named) == ["main, X, host here, GPU ecc on", "main, X, host here, GPU ecc off"]
    assert [len(traces) for traces in named.values()] == [1, 1]


def test_the_verdict_leads_where_it_is_wanted() -> None:
    assert printed(HistoryReport(judged(slower()), judged=True)).startswith("FAIL: ")
    short = printed(HistoryReport(judged(slower()[:5]), judged=True))
    assert short.startswith("NO-BASELINE: ")
    assert "a step can be found in 12 points" in short


def test_a_step_that_was_taken_back_is_not_called_acknowledged() -> None:
    found = judged(points_of_times({"step/a": stepped(30, (10, 0.1), (20, -0.09))}))

    text = printed(HistoryReport(found, judged=True))

    assert text.startswith("PASS: 1 of 1 series changed; nothing got worse, or it was ")


def test_who_acknowledged_a_step_is_named() -> None:
    known = acknowledge(judged(slower()).traces, by="me@here", at_ns=1)

    assert "acknowledged by me@here" in printed(HistoryReport(judged(slower(), known)))


def test_text_from_elsewhere_moves_no_line_and_is_no_command() -> None:
    found = hostile()

    text = printed(HistoryReport(found, everything=True, judged=True))

    assert found.failing
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith(("::", "##[")) for line in text.splitlines())
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    document = encode_document(history_document(found))
    assert document.count(b"\n") == 1
    assert b"##[" not in document


def test_the_document_has_points_steps_and_the_verdict() -> None:
    found = judged(slower())

    document = history_document(found)

    assert (document["schema"], document["verdict"], document["exit_code"]) == (
        "proton_bench.history",
        "FAIL",
        1,
    )
    series = document["series"][0]
    assert (series["path"], series["metric"], len(series["points"])) == (
        ["step", "a"],
        "median",
        40,
    )
    (step,) = series["steps"]
    assert step["low"] < step["change"] < step["high"]
    assert step["first_after"]["revision"] == revision(20)
    assert step["last_before"]["revision"] == revision(19)
    assert (step["acknowledged"], step["fails"]) == (False, True)
