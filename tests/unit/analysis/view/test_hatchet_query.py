"""Queries in hatchet's string dialect, answered on profiles."""

from __future__ import annotations

import sys

import pytest
from fakes.profiles import deep_profile, training_profile

from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult
from proton_bench.analysis.view.hatchet_query import match_nodes
from proton_bench.errors import MissingExtraError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.profile import Profile

REFUSES = "hatchet cannot answer the query: [^;]"  # the reason is hatchet's


@pytest.fixture(autouse=True)
def hatchet(request: pytest.FixtureRequest) -> None:
    if "without_hatchet" not in request.fixturenames:
        pytest.importorskip("hatchet", reason="needs the extra hatchet")


@pytest.fixture
def without_hatchet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchet", None)


def ask(text: str, *profiles: Profile, limit: int | None = None) -> QueryResult:
    found = profiles or (training_profile(),)
    return match_nodes(
        [LabelledRun(f"run{i}", "", each) for i, each in enumerate(found)], text, limit
    )


def names(result: QueryResult) -> list[str]:
    return [row[2] for row in result.rows]


def test_names_match_from_their_start() -> None:
    found = ask('MATCH (".", p) WHERE p."name" =~ "kernel_.*"')

    assert found.columns[:3] == ("run", "depth", "name")
    assert sorted(names(found)) == ["kernel_1", "kernel_1", "kernel_3", "kernel_3"]


def test_whole_paths_are_listed_from_the_root_down() -> None:
    found = ask('MATCH ("*")->(".", p) WHERE p."name" = "forward"')

    assert [(row[1], row[2]) for row in found.rows] == [
        (0, "ROOT"),
        (1, "test_step"),
        (2, "forward"),
    ]


def test_metrics_are_compared_and_integers_stay_integers() -> None:
    found = ask('MATCH (".", p) WHERE p."time (ns)" > 1000000')

    assert names(found) == ["kernel_3"]
    place = found.columns.index("time (ns)")
    assert (found.rows[0][place], found.types[place]) == (2_250_000, "BIGINT")
    assert found.rows[0][found.columns.index("wall (ns)")] is None


def test_every_run_is_asked() -> None:
    found = ask('MATCH (".", p) WHERE p."name" = "level 3"', training_profile(), deep_profile(5))

    assert [row[:3] for row in found.rows] == [["run1", 4, "level 3"]]


def test_no_match_is_not_an_error_and_limit_says_that_there_is_more() -> None:
    nothing = ask('MATCH (".", p) WHERE p."name" = "nope"')
    some = ask('MATCH (".", p) WHERE p."name" =~ ".*"', limit=2)

    assert (nothing.rows, nothing.has_more) == ([], False)
    assert (len(some.rows), some.has_more) == (2, True)


def test_very_deep_trees_are_folded() -> None:
    found = ask('MATCH (".", p) WHERE p."name" =~ "level 39."', deep_profile(2000))

    assert 0 < len(found.rows) <= 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("MATC (", REFUSES),
        ("", REFUSES),
        ('MATCH (".", p) WHERE p."name" =~ "("', r"'\(' is not a regular expression"),
        ('MATCH (".", p) WHERE p."name" > 3', REFUSES),
        ('MATCH (".", p) WHERE q."name" = "x"', REFUSES),
        ('MATCH ("*")', REFUSES),
        ('MATCH (".", p) WHERE p."nope" = 3', "no node has the property 'nope'; there are: name,"),
    ],
)
def test_wrong_queries_are_named_in_one_line(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        ask(text)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        """MATCH (".", p) WHERE p."name" = 'x" or print("ran") or "'""",
        """MATCH (".", p) WHERE p."name' + str(print('ran')) + '" = "x" """,
        r"""MATCH (".", p) WHERE p."name" = "\" or print('ran') or \"" """,
        """MATCH (".", p) WHERE p."name" = "a\nprint('ran')" """,
    ],
)
def test_python_code_in_a_query_does_not_run(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="a quotation mark"):
        ask(text)

    assert "ran" not in capsys.readouterr().out


@pytest.mark.usefixtures("without_hatchet")
def test_missing_hatchet_is_named_in_one_line() -> None:
    with pytest.raises(MissingExtraError, match="llnl-hatchet") as caught:
        ask('MATCH (".", p) WHERE p."name" = "x"')

    assert "\n" not in str(caught.value)


def test_expressions_that_backtrack_are_answered_or_refused() -> None:
    builder = ProfileBuilder()
    builder.add(0, "a" * 5000, metrics={"time (ns)": 1})
    builder.add(0, "aab", metrics={"time (ns)": 1})

    found = ask('MATCH (".", p) WHERE p."name" =~ "(a+)+b"', builder.build())

    assert [row[2] for row in found.rows] == ["aab"]
