from __future__ import annotations

from dataclasses import replace

from fakes.profiles import deep_profile, training_profile
from fakes.runs import profile_of

from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation

GOLDEN = """\
<div class="proton-profile">
<p><strong>time 400 ns</strong></p>
<p>4 rows<br>own cost of the profiler: unknown, the file does not say</p>
<table>
<thead>
<tr><th>time (ns)</th><th>count</th><th>share</th><th style="text-align: left">name</th></tr>
</thead>
<tbody>
<tr><td>400</td><td>4</td><td>100 %</td><td style="text-align: left">ROOT</td></tr>
<tr><td>400</td><td>-</td><td>100 %</td><td style="text-align: left">___s</td></tr>
<tr><td>300</td><td>1</td><td>75.0 %</td><td style="text-align: left">______&lt;b&gt;</td></tr>
<tr><td>100</td><td>3</td><td>25.0 %</td><td style="text-align: left">______a</td></tr>
</tbody>
</table>
</div>
"""


def test_notebook_shows_the_tree() -> None:
    html = profile_of(("s/a", 100, 3, ""), ("s/<b>", 300, 1, ""))._repr_html_()

    assert html.replace("\u00a0", "_") == GOLDEN


def test_large_trees_are_cut_to_their_largest_rows() -> None:
    profile = profile_of(*((f"s/k{place}", place + 1, 1, "") for place in range(100)))

    html = profile._repr_html_()

    assert html.count("<tr>") == 31
    assert "72 smaller rows are not shown" in html
    assert "k99" in html


def test_deep_trees_stay_within_the_window() -> None:
    html = deep_profile(5000)._repr_html_()

    assert "\u00a0" * 61 not in html
    assert "level 28" in html


def test_what_is_missing_is_reported() -> None:
    html = replace(training_profile(), dropped={"<script>": 1})._repr_html_()

    assert "DROPPED: 1 record: &lt;script&gt;" in html


def test_empty_profiles_have_a_word() -> None:
    assert "nothing was recorded" in ProfileBuilder().build()._repr_html_()


def test_profiles_without_amounts_have_a_summary() -> None:
    builder = ProfileBuilder()
    builder.declare("score", Aggregation.EXCLUSIVE)
    builder.add(0, "k", FrameKind.KERNEL, metrics={"score": 0.5})

    assert "<strong>score 0.5</strong>" in builder.build()._repr_html_()


def test_hostile_names_are_text() -> None:
    html = profile_of(("<script>alert(1)</script>".replace("/", "\\"), 1, 1, ""))._repr_html_()

    assert "<script" not in html
