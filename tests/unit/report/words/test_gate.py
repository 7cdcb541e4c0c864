from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fakes.outcomes import every_outcome, outcome, row, structural, undecided, unknown

from proton_bench.gate.verdict.result import (
    GateRow,
    Kind,
    Note,
    Outcome,
    Reason,
    SuiteVerdict,
    Verdict,
)
from proton_bench.report.words.gate import (
    MEANINGS,
    columns,
    headline,
    notes,
    path_text,
    reasons_text,
    row_text,
    shown_path,
    shown_row,
    side_lines,
    structure_text,
    why,
)


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)


def test_an_undecided_row_says_how_noisy_it_is_and_what_would_decide() -> None:
    assert reasons_text(undecided(noise=0.043, pairs_needed=12), paired=True) == (
        "a run varies by 4.3 %; needs 12 pairs in all"
    )


def test_pairs_that_may_all_be_slow_by_chance_say_so() -> None:
    assert reasons_text(undecided(change=0.6, findable=math.inf, pairs_needed=8), paired=True) == (
        "so few runs can all be slow by chance; needs 8 pairs in all"
    )


@pytest.mark.parametrize(
    ("pairs", "paired", "text"),
    [
        (14, True, "needs 14 pairs in all"),
        (14, False, "needs 14 runs on each side"),
        (-1, True, "needs too many runs to be practical"),
        (0, True, "more runs do not help"),
    ],
)
def test_what_is_undecided_says_what_would_decide(pairs: int, paired: bool, text: str) -> None:
    assert reasons_text(undecided(pairs_needed=pairs), paired=paired).endswith(text)


def test_a_certain_change_below_the_threshold_is_said() -> None:
    slower = row(Verdict.SAME, limit=0.03, change=0.028, p_worse=1e-6)

    assert reasons_text(slower, paired=True) == "worse, but by less than the threshold of 3.0 %"


@pytest.mark.parametrize("verdict", [Verdict.REGRESSED, Verdict.SAME])
def test_what_is_decided_needs_no_word(verdict: Verdict) -> None:
    assert reasons_text(row(verdict), paired=True) == ""


FAIL = every_outcome()["fail"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "pass",
            "PASS: none of 2 paths got slower than allowed; step > faster: median 10.0 % faster",
        ),
        (
            "fail",
            "FAIL: step > softmax: median 5.0 % slower (+4.0 % to +6.0 %), 100 us -> 105 us; "
            "1 of 4 checks regressed",
        ),
        (
            "structure",
            "FAIL: 1 structural change is not allowed, first LAUNCHES step > more, "
            "4 -> 6 calls, +8 us, 2.0 % of a base run",
        ),
        (
            "inconclusive",
            "INCONCLUSIVE: clocks: nothing before, heat now",
        ),
        ("void", "INCONCLUSIVE: clocks: nothing before, heat now. Run them again"),
        ("incomparable", "INCOMPARABLE: GPU name: H200 before, B200 now."),
        ("no-baseline", "NO-BASELINE: there is no baseline 'main'"),
        ("error", "ERROR: x.proton is corrupt"),
    ],
)
def test_headline_says_the_verdict_and_what_it_is_about(name: str, text: str) -> None:
    assert headline(every_outcome()[name]).startswith(text)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "step > kernel: median 5.0 % slower (+4.0 % to +6.0 %), 100 us -> 105 us"),
        ({"metric": "mem"}, "median 5.0 %"),
        ({"base": 900e3, "new": 1.1e6}, ", 0.9 ms -> 1.1 ms"),
        ({"metric": "gbps", "change": -0.1, "base": 900.0, "new": 810.0}, "900 GB/s -> 810 GB/s"),
        ({"metric": "cycles", "base": 1e6, "new": 2e6}, "1000000 cycles -> 2000000 cycles"),
    ],
)
def test_row_is_a_sentence(facts: dict[str, object], text: str) -> None:
    said = row_text(row(**facts), FAIL)

    assert text.replace("median", str(facts.get("metric", "median"))) in said


def test_rows_of_several_devices_name_theirs() -> None:
    slower = row(Verdict.REGRESSED, device="CUDA:3")

    assert shown_row(slower, FAIL) == "step > kernel on CUDA:3"
    assert headline(outcome(SuiteVerdict.FAIL, slower)).startswith(
        "FAIL: step > kernel on CUDA:3: median 5.0 % slower"
    )


def test_row_without_values_is_a_sentence_too() -> None:
    assert row_text(unknown(), FAIL) == "step > unknown: median unknown"


def test_other_units_are_named() -> None:
    counted = outcome(SuiteVerdict.PASS, row(base=2.0, new=3.0), metric="heat (K)", unit="K")

    assert "2 K -> 3 K" in row_text(counted.result.rows[0], counted)


def test_reports_show_readable_names_of_a_path() -> None:
    readable = replace(FAIL, result=replace(FAIL.result, texts={"_Zf": "f"}))

    assert shown_path(("scope", "_Zf"), readable) == "scope > f"
    assert path_text(("scope", "_Zf")) == "scope > _Zf"


def test_long_paths_keep_their_end() -> None:
    text = path_text([f"scope {place}" for place in range(100)], 60)

    assert text.startswith("... > ")
    assert text.endswith("scope 99")
    assert len(text) <= 70
    assert path_text(()) == "whole run"


def test_a_regression_that_is_not_believed_says_why() -> None:
    doubted = row(Verdict.INCONCLUSIVE, reasons=(Reason.MACHINE,), downgraded=True)

    assert headline(outcome(SuiteVerdict.INCONCLUSIVE, doubted)).endswith(
        "100 us -> 105 us, but: the machine may have changed, record both sides in turn"
    )


def test_the_note_that_decided_is_the_headline() -> None:
    result = replace(
        outcome(SuiteVerdict.INCONCLUSIVE).result,
        notes=(
            Note(Reason.NOTICE, "torch: 1 before"),
            Note(Reason.PATHS_DIFFER, "all gone", voids=True),
        ),
    )

    assert headline(Outcome(result)) == "INCONCLUSIVE: all gone"


def test_a_gate_of_structure_alone_says_that_it_was() -> None:
    assert headline(outcome(SuiteVerdict.PASS)).startswith(
        "PASS: launches are as allowed; times were not judged"
    )


def test_columns_of_a_row_that_is_unknown_are_dashes() -> None:
    texts = {each.title: each.texts[0] for each in columns([unknown()], FAIL)}

    assert texts["change"] == texts["95 % interval"] == texts["base"] == "-"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            structural(base_calls=(4.0, 5.0), new_calls=(6.5, 7.0)),
            "LAUNCHES step > more, 4 to 5 -> 6.5 to 7 calls, +8 us, 2.0 % of a base run",
        ),
        (
            structural(Kind.MOVED, former_path=("old", "more"), new_calls=(4.0, 4.0), change=0.0),
            "MOVED step > more, was old > more, 2.0 % of a base run",
        ),
        (structural(Kind.REMOVED, change=-9.0), "4 -> 6 calls, -9 ns"),
    ],
)
def test_structural_change_is_one_line(change: object, text: str) -> None:
    assert text in structure_text(change, FAIL)  # type: ignore[arg-type]


def test_times_of_all_rows_have_one_unit_and_each_other_unit_has_its_columns() -> None:
    rows = (
        row(name="a", base=2_000_000.0, new=2_100_000.0),
        row(name="b", base=1_234.0, new=1_300.0),
        row(name="c", metric="gbps", base=900.0, new=810.0),
    )

    found = {
        column.heading: column.texts
        for column in columns(rows, outcome(SuiteVerdict.PASS, *rows))
        if column.title in {"base", "new"}
    }

    assert found == {
        "base (ms)": ("2.000", "0.0012", "-"),
        "new (ms)": ("2.100", "0.0013", "-"),
        "base (GB/s)": ("-", "-", "900.000"),
        "new (GB/s)": ("-", "-", "810.000"),
    }


def test_a_pass_says_what_it_would_have_found() -> None:
    run = row(path=(), metric="total", share=1.0, findable=0.03)
    quarantined = row(name="flaky", findable=0.6, share=0.5, reasons=(Reason.QUARANTINE,))
    small = row(name="small", findable=0.5, share=0.04)
    rows = (run, row(findable=0.034, share=0.95), small, quarantined)

    said = headline(outcome(SuiteVerdict.PASS, *rows))

    assert said == (
        "PASS: none of 3 paths got slower than allowed; "
        "would have found: run +3.0 %, worst path +3.4 % step > kernel"
    )


@pytest.mark.parametrize(
    ("hidden", "text"),
    [
        (
            [undecided("small", share=0.03)],
            "; undecided: step > small (3.0 % of the time), needs 14 pairs in all",
        ),
        (
            [undecided(share=0.02), undecided("b", share=0.01, pairs_needed=22)],
            "; undecided: step > b (1.0 % of the time) and 1 other path, needs 22 pairs in all",
        ),
        (
            [undecided("small", share=0.03, pairs_needed=-1)],
            "; undecided: step > small (3.0 % of the time), needs too many runs to be practical",
        ),
    ],
)
def test_a_pass_says_which_small_paths_are_undecided(hidden: list[GateRow], text: str) -> None:
    passed = outcome(SuiteVerdict.PASS, row(name="large", share=0.97), *hidden)

    assert headline(passed).endswith(text)


def test_a_pass_says_what_it_did_not_look_at() -> None:
    passed = outcome(SuiteVerdict.PASS, row(metric="min"))
    by_min = replace(passed, result=replace(passed.result, statistic="min"))

    assert "slow launches" in headline(by_min)
    assert "slow launches" not in headline(passed)


def test_more_launches_of_a_path_are_named_without_it() -> None:
    total = row(Verdict.REGRESSED, metric="total", base=1e6, new=1.008e6)
    own = structural(path=total.path)
    failed = outcome(SuiteVerdict.FAIL, total, structure=(own,))

    assert why(total, failed) == "more calls (+8 us)"


def test_new_work_above_the_threshold_is_in_the_headline() -> None:
    total = row(path=(), metric="total", base=1e6, new=1e6, limit=0.05)
    new, less = structural(Kind.NEW, change=6e4, share=0.06), structural(change=4e4, path=("less",))

    said = headline(outcome(SuiteVerdict.PASS, total, structure=(new, less)))

    assert said.endswith(f"; {structure_text(new, outcome(SuiteVerdict.PASS))}")
    assert "less" not in said


def test_an_interval_above_the_threshold_that_decides_nothing_says_why() -> None:
    doubtful = undecided(low=0.06, high=0.2, limit=0.05, pairs_needed=12)

    assert "as surely" in reasons_text(doubtful, paired=True)
    assert "as surely" not in reasons_text(replace(doubtful, low=0.04), paired=True)


def test_sides_are_counted_and_named() -> None:
    lines = dict(side_lines(FAIL))

    assert lines["base"] == "6 runs: 0.proton, 1.proton, 2.proton and 3 more in base"
    assert lines[""] == "recorded in turn"


def test_a_problem_says_better_than_its_note_what_is_missing() -> None:
    assert notes(every_outcome()["no-baseline"]) == []
    assert len(notes(every_outcome()["incomparable"])) == 1


def test_paths_that_no_runs_decide_are_counted() -> None:
    mixed = outcome(SuiteVerdict.INCONCLUSIVE, undecided(), undecided("hopeless", pairs_needed=-1))

    assert headline(mixed).endswith(
        "14 pairs in all would decide; for 1 no practical number of runs would"
    )


def test_unpaired_runs_need_runs() -> None:
    apart = outcome(SuiteVerdict.INCONCLUSIVE, undecided(), paired=False)

    assert headline(apart).endswith("14 runs on each side would decide")
