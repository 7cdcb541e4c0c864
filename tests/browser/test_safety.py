"""Names and texts that try to be markup or script, in a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.runs import profile_of

from proton_bench.analysis.run import Run
from proton_bench.model.provenance import Provenance
from proton_bench.report.html.document import comparison_page, profile_page

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(3)>",
    "\"'><svg onload=alert(4)>",
    "[/bold]",
    "{{ 7 * 7 }}",
    "a\u2028b",
    "__proto__",
    "constructor",
)
NOWHERE = "http://127.0.0.1:9/"
SHOWN = tuple(name.replace("\u2028", "\\u2028") for name in HOSTILE)


def hostile_run(source: str) -> Run:
    profile = profile_of(*((f"s/{name.replace('/', '%')}", 100, 1, "") for name in HOSTILE))
    table = dict(enumerate(profile.strings))
    strings = tuple(text.replace("%", "/") for text in table.values())
    facts = Provenance({name: name for name in HOSTILE})
    return Run(replace(profile, strings=strings, provenance=facts, dropped={HOSTILE[0]: 3}), source)


@pytest.mark.parametrize("kind", ["one run", "comparison"])
def test_hostile_names_are_text(open_page: Any, kind: str) -> None:
    run = hostile_run(f"{HOSTILE[3]}.proton")
    html = profile_page(run) if kind == "one run" else comparison_page([run], [run])

    opened = open_page(html)

    assert sorted(opened.names()) == sorted(SHOWN)
    assert opened.page.title().endswith("proton report")
    assert opened.page.locator("script").count() == 2
    assert opened.page.locator("img, iframe, object, embed, form").count() == 0
    assert HOSTILE[0] in opened.page.locator(".warnings").first.inner_text()


def test_hostile_names_are_text_in_the_flame_graph_too(open_page: Any) -> None:
    opened = open_page(profile_page(hostile_run("x.proton")))
    opened.page.fill("#flame-search", "<img")
    opened.page.keyboard.press("Enter")

    assert opened.page.locator("#flame-details .name").inner_text() == HOSTILE[3]
    assert opened.page.locator("#flame-details img").count() == 0


def test_policy_forbids_other_scripts_and_the_network(open_page: Any) -> None:
    opened = open_page(profile_page(hostile_run("x.proton")))

    reached = opened.page.evaluate(
        """async nowhere => {
            const made = document.createElement('script');
            made.textContent = 'window.ran = true';
            document.body.append(made);
            const image = document.createElement('div');
            image.innerHTML = '<img src="data:," onerror="window.ran = true">';
            document.body.append(image);
            let fetched = true;
            try { await fetch(nowhere); } catch { fetched = false; }
            return [window.ran === true, fetched];
        }""",
        NOWHERE,
    )

    assert reached == [False, False]
    # The test provokes these; they are not errors of the page.
    opened.allowed = [
        ("connect-src", NOWHERE, "enforce"),
        ("script-src-attr", "inline", "enforce"),
        ("script-src-elem", "inline", "enforce"),
    ]
    opened.page.wait_for_function(
        "count => window.policyViolations.length >= count", arg=len(opened.allowed)
    )
    assert opened.violations() == opened.allowed


def test_what_a_page_writes_to_the_console_is_noticed(open_page: Any) -> None:
    opened = open_page(profile_page(hostile_run("x.proton")))
    with opened.page.expect_console_message():
        opened.page.evaluate("console.debug('written')")

    assert opened.complaints == ["written"]
    opened.complaints.clear()


def test_long_name_is_cut(open_page: Any) -> None:
    opened = open_page(profile_page(Run(profile_of(("x" * 1_000_000, 10, 1, "")), "x")))

    (name,) = opened.names()
    assert "…" in name
    assert len(name) < 1000
    assert len(opened.page.content()) < 200_000
