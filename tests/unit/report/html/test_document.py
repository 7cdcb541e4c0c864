from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from fakes.counted import Kernel, counted_profile
from fakes.profiles import training_profile
from fakes.runs import profile_of, run_of

from proton_bench.analysis.run import Run
from proton_bench.errors import MetricError, UsageError
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.provenance import Provenance
from proton_bench.report.html.document import comparison_page, profile_page

HOSTILE = "</script><script>alert(1)</script><!-- \ud800"


class Parsed(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.opened = [""]
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.opened.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.opened[-1], []).append(data)

    def attribute(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.tags if name in attributes]


def page(**options: Any) -> str:
    return profile_page(Run(training_profile(), "folder/train.proton"), **options)


def data_of(html: str) -> dict[str, Any]:
    (text,) = re.findall(
        r'<script id="report" type="application/json">(.*?)</script>', html, re.DOTALL
    )
    found: dict[str, Any] = json.loads(text)
    return found


def test_page_names_nothing_outside_of_itself() -> None:
    html = page()
    parsed = Parsed(html)

    assert not re.search(r"https?:|//cdn|@import|url\(", html)
    assert parsed.attribute("src") == []
    assert parsed.attribute("href") == ["data:,"]


def test_policy_allows_exactly_the_script_and_style_of_the_page() -> None:
    html = page()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))

    for rule, tag in (("script-src", 'script type="module"'), ("style-src", "style")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy


def test_markup_runs_and_styles_nothing_by_attributes() -> None:
    parsed = Parsed(page())

    names = {name for _, attributes in parsed.tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "style"}


def test_ids_are_given_once_and_labels_lead_to_one() -> None:
    parsed = Parsed(page())
    ids = parsed.attribute("id")

    assert len(ids) == len(set(ids))
    for name in ("aria-labelledby", "aria-describedby", "for"):
        assert set(parsed.attribute(name)) <= set(ids)


def test_data_are_versioned() -> None:
    data = data_of(page())

    assert (data["schema"], data["version"]) == ("proton_bench.report", [2, 0])
    assert data["kernels"]["names"] == ["kernel_3", "kernel_1"]
    assert data["flame"]["tints"] is None


@pytest.mark.parametrize("where", ["name", "source", "fact", "loss", "metric"])
def test_hostile_text_is_escaped_wherever_it_comes_from(where: str) -> None:
    text = HOSTILE if where != "metric" else HOSTILE.replace(" \ud800", "")
    builder = ProfileBuilder()
    metrics = {"time (ns)": 5, text if where == "metric" else "count": 1}
    builder.add(0, text if where == "name" else "k", FrameKind.KERNEL, metrics=metrics)
    profile = builder.build()
    if where == "fact":
        profile = replace(profile, provenance=Provenance({text: text}))
    if where == "loss":
        profile = replace(profile, dropped={text: 1})
    source = text if where == "source" else "x.proton"
    metrics = ("time/ns", text) if where == "metric" else ()

    html = profile_page(Run(profile, source), metrics)

    html.encode()
    assert "alert(1)</script>" not in html
    assert html.count("<script") == html.count("</script>") == 2
    assert html.count("<!--") == 0


def test_long_names_do_not_fill_the_page() -> None:
    html = profile_page(Run(profile_of(("x" * 1_000_000, 1, 1, "")), "y" * 100_000))

    assert len(html) < 100_000


def test_title_is_the_file() -> None:
    assert Parsed(page()).texts["title"] == ["train.proton - proton report"]


def test_metrics_choose_widths_and_columns() -> None:
    data = data_of(page(metrics=("count", "time/us")))

    assert [column["title"] for column in data["flame"]["columns"]] == ["count", "time"]
    assert data["flame"]["columns"][0]["values"][0] == 8
    # Widths are not written twice.
    assert [
        (each["title"], each["column"], each["values"]) for each in data["flame"]["widths"]
    ] == [
        ("count", 0, None),
        ("time", 1, None),
    ]


def test_unknown_metric_is_refused() -> None:
    with pytest.raises(MetricError, match="nonsense"):
        page(metrics=("nonsense",))


def test_names_of_kernels_are_readable() -> None:
    run = run_of(
        ("_Z3fooi", 1, 1, ""),
        ("triton_poi_fused_add_0", 1, 1, ""),
        ("triton_poi_fused_add_1", 1, 1, ""),
    )

    names = data_of(profile_page(run))["kernels"]["names"]

    assert sorted(names) == ["foo", "triton_poi_fused_add"]


def test_profile_without_amounts_has_a_table_and_no_graph() -> None:
    builder = ProfileBuilder()
    builder.declare("score", Aggregation.EXCLUSIVE)
    builder.add(0, "k", FrameKind.KERNEL, metrics={"score": 0.5})

    data = data_of(profile_page(Run(builder.build(), "x")))

    assert data["flame"] is None
    assert data["kernels"]["columns"][0]["values"] == [0.5]


@pytest.mark.parametrize("metrics", [(), ("time/ms",)])
def test_empty_profile_is_a_page_that_says_so(metrics: tuple[str, ...]) -> None:
    html = profile_page(Run(ProfileBuilder().build(), "x"), metrics)

    assert "nothing was recorded" in html
    assert data_of(html)["flame"] is None


def test_comparison_names_both_sides() -> None:
    base, new = (
        run_of(("a", 10, 1, ""), source="b/base.proton"),
        run_of(("a", 20, 1, ""), source="new.proton"),
    )

    html = comparison_page([base], [new])

    assert Parsed(html).texts["title"] == ["new.proton against base.proton - proton report"]
    assert data_of(html)["flame"]["columns"][2]["values"] == [10, 10]
    assert "Differential flame graph" in html


def test_layers_that_changed_alike_are_one_row_of_a_comparison() -> None:
    def model(time_ns: int) -> Run:
        builder = ProfileBuilder()
        for number in range(4):
            layer = builder.add(0, f"h.{number} (Block)", FrameKind.LAYER)
            metrics = {"time (ns)": time_ns, "count": 1}
            builder.add(layer, "k", FrameKind.KERNEL, metrics=metrics)
        return Run(builder.build(), "run.proton")

    html = comparison_page([model(10)], [model(20)])

    assert "h.* (Block) x4" in data_of(html)["flame"]["strings"]


def scopes_only(scale: int, **metrics: float) -> Run:
    """Return a run of the CPU that recorded nothing but scopes: `outer` and inside it `inner`."""
    builder = ProfileBuilder()
    builder.declare(WALL, Aggregation.EXCLUSIVE)
    outer = builder.add(0, "outer", FrameKind.SCOPE, metrics={WALL: 100 * scale, **metrics})
    builder.add(outer, "inner", FrameKind.SCOPE, metrics={WALL: 70 * scale})
    return Run(builder.build(), "cpu.proton")


def test_scopes_of_the_cpu_are_compared_by_their_wall_times() -> None:
    html = comparison_page([scopes_only(1)], [scopes_only(2)])

    columns = {each["title"]: each["values"] for each in data_of(html)["flame"]["columns"]}
    assert columns["base"] == [100, 100, 70]
    assert columns["new"] == [200, 200, 140]
    assert columns["change"] == [100, 100, 70]


def test_rate_that_a_table_cannot_have_is_left_out() -> None:
    html = profile_page(scopes_only(1, flops32=5e9))

    titles = [each["title"] for each in data_of(html)["kernels"]["columns"]]
    assert titles[0] == "wall"
    assert not any("flop" in title for title in titles)


def test_comparison_takes_one_metric() -> None:
    run = run_of(("a", 10, 1, ""))

    with pytest.raises(UsageError, match="is not one metric"):
        comparison_page([run], [run], ("time", "count"))


def test_comparison_of_several_runs_shows_their_spread() -> None:
    base = [run_of(("a", time, 1, ""), source=f"{time}.proton") for time in (10, 12)]
    new = [run_of(("a", time, 1, ""), source=f"{time}.proton") for time in (20, 22)]

    html = comparison_page(base, new)

    assert "median 11 ns of 2 runs" in html
    assert "+-" in [column["title"] for column in data_of(html)["flame"]["columns"]]
    assert "20.proton and 22.proton against 10.proton and 12.proton" in html


def test_rows_without_any_width_have_a_table_and_no_graph() -> None:
    run = run_of(("a", 0, 1, ""))

    for html in (profile_page(run), comparison_page([run], [run])):
        assert data_of(html)["flame"] is None
        assert data_of(html)["kernels"]["names"] == ["a"]


def test_profile_of_nothing_but_trials_is_a_page() -> None:
    run = Run(profile_of(("<autotune>/k", 5, 1, "")), "x.proton")

    data = data_of(profile_page(run))

    assert data["flame"]["strings"] == ["ROOT", "<autotune>"]
    assert data["kernels"]["names"] == ["<autotune>"]


def test_roofline_of_one_run_stands_for_its_side() -> None:
    builder = ProfileBuilder()
    device = Device("CUDA", 0, "90", 132, 1_980_000, 2_619_000, 6144)
    metrics = {"time (ns)": 10, "count": 1, "flops16": 1e9, "bytes": 1e6}
    builder.add(0, "k", FrameKind.KERNEL, metrics=metrics, device=device)
    run = Run(builder.build(), "x.proton")

    html = comparison_page([run], [run, run])

    assert "<figcaption>base: CUDA:0 (90)</figcaption>" in html
    assert "<figcaption>new, first of 2 runs: CUDA:0 (90)</figcaption>" in html
    assert html.count('data-name="k"') == 2


@pytest.mark.parametrize(("units", "is_shown"), [({"dram": 0.8}, True), ({}, False)])
def test_limits_of_rows_are_shown_where_counters_were_recorded(
    units: dict[str, float], *, is_shown: bool
) -> None:
    profile = counted_profile(Kernel(path="net/copy", units=units))

    data = data_of(profile_page(Run(profile, "x.proton")))

    columns = {column["title"]: column["values"] for column in data["flame"]["columns"]}
    assert ("why" in columns) == is_shown
    if is_shown:
        assert columns["why"] == ["memory:dram 95 %"] * 3
