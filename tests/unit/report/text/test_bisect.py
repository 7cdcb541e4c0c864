from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from fakes.outcomes import HOSTILE, row, structural, undecided
from rich.console import Console

from proton_bench.gate.bisect import BisectResult, BisectVerdict, Candidate, Measurement, State
from proton_bench.gate.verdict.result import GateResult, Outcome, SuiteVerdict, Verdict
from proton_bench.report.text.bisect import BisectReport, bisect_document
from proton_bench.report.text.tree import print_report
from proton_bench.report.words.gate import headline
from proton_bench.support.console import open_console
from proton_bench.support.text import encode_document

GOOD = Candidate("0" * 40, "v1.4")
BEFORE = Candidate("1" * 40, "Read masks once", "Ada", "2026-07-01T09:00:00+02:00")
FIRST = Candidate("2" * 40, "Use smaller blocks", "Ada", "2026-07-02T10:12:54+02:00")
BROKEN = Candidate("3" * 40, "Do not compile", "Bob", "2026-07-03T10:12:54+02:00")
LAST = Candidate("4" * 40, "Name the streams", "Bob", "2026-07-04T10:12:54+02:00")
PROOF = GateResult(
    SuiteVerdict.FAIL,
    rows=(row(Verdict.REGRESSED, "softmax"),),
    metric="time (ns)",
    unit="ns",
    paired=True,
)
FOUND = BisectResult(
    BisectVerdict.FOUND,
    PROOF,
    GOOD,
    revisions=64,
    candidates=(FIRST,),
    parents=(BEFORE,),
    path="step > softmax",
    metric="median",
    tested=(
        Measurement(BEFORE, State.GOOD, 2, -0.008, -0.022, 0.005),
        Measurement(FIRST, State.BAD, 2, 0.041, 0.027, 0.056),
        Measurement(BROKEN, State.SKIPPED, reason="run warm-up 1, new failed"),
        Measurement(LAST, State.BAD, 1, 0.043, 0.023, 0.063),
    ),
)
RANGE = replace(FOUND, verdict=BisectVerdict.RANGE, candidates=(FIRST, BROKEN))


class Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self) -> bool:
        return True


def printed(result: BisectResult) -> list[str]:
    file = io.StringIO()
    print_report(open_console(file), BisectReport(result))
    return file.getvalue().splitlines()


def test_a_found_revision_has_its_author_its_evidence_and_what_was_measured() -> None:
    assert printed(FOUND) == [
        "FOUND: 222222222222 Use smaller blocks is the first slower revision",
        "    by  Ada, 2026-07-02T10:12:54+02:00",
        "slower  step > softmax: +4.1 % (+2.7 % to +5.6 %), 2 pairs",
        "before  111111111111: -0.8 % (-2.2 % to +0.5 %), 2 pairs",
        " proof  step > softmax: median 5.0 % slower (+4.0 % to +6.0 %), 100 us -> 105 us",
        "        5 pairs for 64 revisions",
        "",
        "Measured against GOOD, oldest first, with 90 % intervals",
        "  good     -0.8 % (-2.2 % to +0.5 %), 2 pairs  111111111111 Read masks once",
        "  bad      +4.1 % (+2.7 % to +5.6 %), 2 pairs  222222222222 Use smaller blocks",
        "  skipped  -                                   333333333333 Do not compile; "
        "run warm-up 1, new failed",
        "  bad      +4.3 % (+2.3 % to +6.3 %), 1 pair   444444444444 Name the streams",
    ]


def test_a_range_names_its_revisions_the_most_likely_first() -> None:
    lines = printed(RANGE)

    assert lines[0].startswith("RANGE: one of 2 revisions")
    assert lines[1:3] == [
        " maybe  222222222222 Use smaller blocks",
        " maybe  333333333333 Do not compile",
    ]


def test_the_revision_before_may_be_the_good_one() -> None:
    shown = replace(FOUND, parents=(GOOD,))

    assert "before  000000000000, the good revision" in printed(shown)


@pytest.mark.parametrize(
    ("change", "low", "high", "said"),
    [(0.02, 0.012, 0.028, True), (0.02, -0.002, 0.042, False), (0.005, 0.003, 0.007, False)],
)
def test_a_revision_before_that_is_slower_already_is_noted(
    change: float, low: float, high: float, said: bool
) -> None:
    before = Measurement(BEFORE, State.GOOD, 2, change, low, high)

    lines = printed(replace(FOUND, tested=(before, *FOUND.tested[1:])))

    notes = [line for line in lines if line.startswith("  note")]
    assert [BEFORE.short in note for note in notes] == [True] * said


def test_a_long_reason_moves_no_other_column() -> None:
    broken = replace(FOUND.tested[2], reason="the kernels do not compile; " + "x" * 100)

    lines = printed(replace(FOUND, tested=(FOUND.tested[0], broken)))

    measured, skipped = lines[-2:]
    assert measured.endswith(f"2 pairs  {BEFORE.text}")
    assert f"{BROKEN.text}; the kernels do not compile; xxx" in skipped
    assert measured.index(BEFORE.text) == skipped.index(BROKEN.text)


def test_without_a_regression_the_proof_says_why() -> None:
    passed = replace(PROOF, verdict=SuiteVerdict.PASS, rows=(row(Verdict.SAME, "softmax"),))

    (line,) = printed(BisectResult(BisectVerdict.NO_REGRESSION, passed, GOOD, 64))

    assert line == f"NO-REGRESSION: {headline(Outcome(passed)).partition(': ')[2]}"


def test_an_undecided_path_is_named_with_the_pairs_that_it_needs() -> None:
    rows = (row(Verdict.SAME), undecided("noisy"), undecided("other", change=0.01))
    proof = replace(PROOF, verdict=SuiteVerdict.PASS, rows=rows)

    (line,) = printed(BisectResult(BisectVerdict.INCONCLUSIVE, proof, GOOD, 64))

    assert line.startswith("INCONCLUSIVE: step > noisy: median")
    assert "1 more" in line
    assert "--runs 14" in line


def test_a_structural_change_is_shown_with_its_launches() -> None:
    proof = GateResult(SuiteVerdict.FAIL, structure=(structural(fails=True),))

    lines = printed(replace(FOUND, proof=proof, path="step > more", metric=""))

    assert any("4 -> 6 calls" in line for line in lines)


@pytest.mark.parametrize("width", [40, 80])
def test_a_terminal_cuts_lines_that_are_too_long(width: int) -> None:
    long = replace(FIRST, title="Use smaller blocks in softmax and in everything else " * 3)
    shown = replace(FOUND, candidates=(long,), tested=(replace(FOUND.tested[1], revision=long),))
    terminal = Terminal()

    print_report(Console(file=terminal, width=width, color_system=None), BisectReport(shown))

    lines = terminal.getvalue().splitlines()[1:]
    assert lines
    assert max(map(len, lines)) <= width


def test_names_from_elsewhere_cannot_act_on_a_terminal() -> None:
    odd = Candidate("5" * 40, HOSTILE, HOSTILE, HOSTILE)
    shown = replace(
        FOUND,
        candidates=(odd,),
        path=HOSTILE,
        tested=(Measurement(odd, State.SKIPPED, reason=HOSTILE),),
    )

    lines = printed(shown)

    assert not any("\x1b" in line for line in lines)
    assert len(lines) == 7
    encode_document(bisect_document(shown))


@pytest.mark.parametrize(
    ("verdict", "proof", "code"),
    [
        (BisectVerdict.FOUND, SuiteVerdict.FAIL, 0),
        (BisectVerdict.RANGE, SuiteVerdict.FAIL, 3),
        (BisectVerdict.NO_REGRESSION, SuiteVerdict.PASS, 3),
        (BisectVerdict.INCONCLUSIVE, SuiteVerdict.INCONCLUSIVE, 3),
        (BisectVerdict.INCOMPARABLE, SuiteVerdict.INCOMPARABLE, 4),
        (BisectVerdict.INCONCLUSIVE, SuiteVerdict.NO_BASELINE, 5),
    ],
)
def test_exit_codes(verdict: BisectVerdict, proof: SuiteVerdict, code: int) -> None:
    found = (FIRST,) if verdict is BisectVerdict.FOUND else ()
    result = BisectResult(verdict, GateResult(proof), GOOD, 3, found)

    assert result.exit_code == code
    assert bisect_document(result)["exit_code"] == code


def test_a_document_has_no_unknown_numbers() -> None:
    document = json.loads(encode_document(bisect_document(FOUND)))

    assert document["schema"] == "proton_bench.bisect"
    assert [each["name"] for each in document["candidates"]] == [FIRST.name]
    assert [each["name"] for each in document["parents"]] == [BEFORE.name]
    skipped = document["tested"][2]
    assert (skipped["state"], skipped["change"], skipped["low"]) == ("skipped", None, None)
    assert document["proof"]["schema"] == "proton_bench.gate"
