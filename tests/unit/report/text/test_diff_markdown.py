from __future__ import annotations

from fakes.runs import Launched, run_of
from fakes.suites import suite

from proton_bench.analysis.compare.compare import CompareOptions, compare
from proton_bench.analysis.compare.ranking import rank
from proton_bench.analysis.run import Run
from proton_bench.report.text.diff import diff_markdown


def markdown(*kernels: Launched) -> str:
    comparison = compare(
        [run_of(("s/k", 100, 1, ""), source="a.proton")],
        [run_of(("s/k", 150, 1, ""), *kernels, source="b.proton")],
        CompareOptions(),
    )
    return diff_markdown(comparison, rank(comparison, None, 100))


def test_table_has_one_line_per_row() -> None:
    assert markdown().splitlines()[:10] == [
        "**+50.0 % (+50 ns): 100 % of it is k under s, slower per call by 50 %**",
        "",
        "- base: a.proton: 100 ns",
        "- new: b.proton: 150 ns",
        "- both: own cost of the profiler: unknown, the files do not say",
        "",
        "| base (ns) | new (ns) | change (ns) | % | of total | by launches (ns) | by latency (ns) "
        "| launches | name | notes |",
        "| --: | --: | --: | --: | --: | --: | --: | --: | :-- | :-- |",
        "| 100 | 150 | +50 | +50.0 % | +50.0 % | 0 | +50 | 0 | ROOT |  |",
        "| 100 | 150 | +50 | +50.0 % | +50.0 % | 0 | +50 | 0 | &nbsp;&nbsp;s › k |  |",
    ]


def test_benchmarks_that_were_called_differently_often_are_reported() -> None:
    comparison = compare([Run(suite(10, 4), "a")], [Run(suite(40, 8), "b")], CompareOptions())

    lines = diff_markdown(comparison, rank(comparison, None, 100)).splitlines()

    assert any(
        line.startswith("- 2 benchmarks were called a different number of times") for line in lines
    )
    assert any(line.startswith("- new: values from rounds of benchmarks ") for line in lines)


def test_names_are_text_whatever_they_hold() -> None:
    text = markdown(("a|b`c*<img>_@me [x](y:", 90, 1, ""))
    (line,) = [each for each in text.splitlines() if each.startswith("| ") and "img" in each]

    assert "a\\|b\\`c\\*&lt;img&gt;\\_@me \\[x\\](y:" in line
    assert line.replace("\\|", "").count("|") == 11


def test_the_text_makes_no_mentions_and_no_links() -> None:
    text = markdown(("@octocat https:evil", 90, 1, ""), ("m.py:3@f", 90, 1, ""))

    assert "@octocat" not in text
    assert "@&NoBreak;octocat" in text
    assert "m.py:3@f" in text
