from __future__ import annotations

from fakes.profiles import training_profile

from proton_bench.analysis.run import Run
from proton_bench.analysis.why.answer import why
from proton_bench.model.builder import ProfileBuilder
from proton_bench.model.frame import FrameKind
from proton_bench.report.html.document import profile_page
from proton_bench.report.html.summary import reasons_of


def test_the_rows_that_cost_most_are_named_with_what_limits_them() -> None:
    answer = why(training_profile())

    found = reasons_of(answer)

    rows = [each for each in found if each.name]
    assert rows[0].name == "kernel_3"
    assert rows[0].share == "56.2 % of GPU time"
    assert rows[0].helps == "3 times 750 us"


def test_names_cannot_be_markup() -> None:
    builder = ProfileBuilder()
    builder.add(0, "<b>\nx", FrameKind.KERNEL, metrics={"time (ns)": 5, "count": 1})
    profile = builder.build()

    (reason,) = [each for each in reasons_of(why(profile)) if each.name]
    html = profile_page(Run(profile, "x.proton"))

    assert reason.name == "<b>\\nx"
    assert "<b>\\nx" not in html
    assert "&lt;b&gt;\\nx" in html


def test_the_sentence_of_why_is_the_headline() -> None:
    profile = training_profile()

    html = profile_page(Run(profile, "x.proton"))

    assert f'<p class="headline">{why(profile).sentence}</p>' in html
