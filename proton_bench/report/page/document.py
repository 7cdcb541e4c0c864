"""A whole page: one HTML file about a run, or about what changed since others."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from proton_bench.analysis.breakdown import By
from proton_bench.analysis.compare import CompareOptions, compare
from proton_bench.analysis.demangling import Demangling, with_demangled_names
from proton_bench.analysis.derive import available_metrics
from proton_bench.analysis.run import Run
from proton_bench.analysis.select import Selection, build_tree
from proton_bench.errors import UsageError
from proton_bench.profile import FrameKind, Profile
from proton_bench.report.names import FrameFormat, visible
from proton_bench.report.page.facts import FactLine, fact_lines
from proton_bench.report.page.flame import FlameGraph, flame_of_comparison, flame_of_tree, is_amount
from proton_bench.report.page.island import island
from proton_bench.report.page.kernels import KernelTable, changed_kernels, kernel_table
from proton_bench.report.page.roofline import RooflinePlot, roofline_plots
from proton_bench.report.page.summary import (
    Summary,
    comparison_summary,
    profile_summary,
    shown_metrics,
)
from proton_bench.report.page.template import content_policy, environment, script, style
from proton_bench.report.units import count_text

__all__ = ["PageOptions", "comparison_page", "profile_page"]

_VERSION = (1, 0)
_MAX_TITLE = 300
# Levels that hold a tree whole; the flame graph scrolls.
_EVERY_LEVEL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What a page shows.

    Attributes:
        metrics: Metrics to show, the first of which is the width of flames; none means the default
            ones. A comparison takes one.
        title: Title of the page, "" for one made of the names of the files.
        frames: Form of Python frames' names.
        trials: Also show what autotuners launched to try configurations.
        raw_names: Names to the letter, with Inductor's running numbers.
        ignore_devices: Compare what ran on different kinds of devices.
        demangling: How much of C++ names to show.
    """

    metrics: tuple[str, ...] = ()
    title: str = ""
    frames: FrameFormat = FrameFormat.FULL
    trials: bool = False
    raw_names: bool = False
    ignore_devices: bool = False
    demangling: Demangling = Demangling.OFF


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    title: str
    summary: Summary
    flame: FlameGraph | None
    kernels: KernelTable | None
    facts: tuple[FactLine, ...]
    runs: tuple[str, ...]
    plots: Mapping[str, Sequence[RooflinePlot]] = field(default_factory=dict)


def profile_page(run: Run, options: PageOptions) -> str:
    """Return the page of one run, as HTML.

    Raises:
        MetricError: A metric is unknown, or the first one is no width of a flame.
    """
    profile = with_demangled_names(run.profile, options.demangling)
    title = options.title or f"{os.path.basename(run.source)} - proton report"
    selection = _selection(options)
    metrics = options.metrics or shown_metrics(profile)
    if len(profile) == 1 or not metrics:
        _check_metrics(profile, options)
        summary = profile_summary(profile, None, None)
        page = _Page(title, summary, None, None, fact_lines([profile]), (run.source,))
        return _render(page)
    tree = build_tree(profile, metrics, selection)
    # What nobody asked for may be no width; the table shows it all the same.
    has_flame = bool(options.metrics) or is_amount(tree.metrics[0])
    flame = flame_of_tree(tree, options.frames) if has_flame else None
    kernels = kernel_table(profile, metrics, selection, frames=options.frames)
    return _render(
        _Page(
            title=title,
            summary=profile_summary(profile, tree, kernels),
            flame=flame,
            kernels=kernels,
            facts=fact_lines([profile]),
            runs=(run.source,),
            plots={"": roofline_plots(profile, selection)},
        )
    )


def comparison_page(base: Sequence[Run], new: Sequence[Run], options: PageOptions) -> str:
    """Return the page of what changed from the base runs to the new ones, as HTML.

    Raises:
        MetricError: A run lacks the metric, or the metric does not add up over rows.
        UsageError: Several metrics are asked for, a run is empty, units differ, or devices do.
    """
    if len(options.metrics) > 1:
        raise UsageError(
            f"-m {','.join(options.metrics)!r} is not one metric: a comparison shows one, such as "
            "time/ms"
        )
    base, new = (_demangled(runs, options.demangling) for runs in (base, new))
    metric = options.metrics[0] if options.metrics else None
    by_path = CompareOptions(
        metric=metric,
        trials=options.trials,
        raw_names=options.raw_names,
        ignore_devices=options.ignore_devices,
    )
    comparison = compare(base, new, by_path)
    flame = flame_of_comparison(comparison, options.frames)
    kernels = changed_kernels(compare(base, new, replace(by_path, by=By.KERNEL)), options.frames)
    names = " and ".join(os.path.basename(run.source) for run in new)
    others = " and ".join(os.path.basename(run.source) for run in base)
    selection = _selection(options)
    # One run of a side stands for all of them: several would only be drawn on top of each other.
    plots = {
        word: roofline_plots(runs[0].profile, selection)
        for word, runs in (("base", base), ("new", new))
    }
    return _render(
        _Page(
            title=options.title or f"{names} against {others} - proton report",
            summary=comparison_summary(comparison),
            flame=flame,
            kernels=kernels,
            facts=fact_lines([run.profile for run in (*base, *new)]),
            runs=tuple(run.source for run in (*base, *new)),
            plots=plots,
        )
    )


def _demangled(runs: Sequence[Run], how: Demangling) -> list[Run]:
    return [Run(with_demangled_names(run.profile, how), run.source) for run in runs]


def _selection(options: PageOptions) -> Selection:
    return Selection(depth=_EVERY_LEVEL, trials=options.trials, raw_names=options.raw_names)


def _check_metrics(profile: Profile, options: PageOptions) -> None:
    if options.metrics and len(profile) > 1 and available_metrics(profile).recorded:
        build_tree(profile, options.metrics, _selection(options))


def _render(page: _Page) -> str:
    data: dict[str, Any] = {
        "schema": "proton_bench.report",
        "version": _VERSION,
        "flame": page.flame.plain() if page.flame is not None else None,
        "kernels": page.kernels.plain() if page.kernels is not None else None,
    }
    hidden = page.flame.hidden if page.flame is not None else 0
    return (
        environment()
        .get_template("page.html")
        .render(
            title=visible(page.title, _MAX_TITLE),
            summary=page.summary,
            has_flame=page.flame is not None,
            has_kernels=page.kernels is not None,
            is_comparison=page.flame is not None and page.flame.tints is not None,
            kinds=_kinds(page.flame) if page.flame is not None else (),
            hidden=count_text(hidden, "row is", "rows are") if hidden else "",
            plots=[(word, plot) for word, plots in page.plots.items() for plot in plots],
            runs=[visible(PurePath(source).name or source, _MAX_TITLE) for source in page.runs],
            facts=page.facts,
            island=island(data),
            policy=content_policy(),
            # Our own files, and the policy names their hashes: not a letter may change.
            script=Markup(script()),
            style=Markup(style()),
        )
    )


def _kinds(flame: FlameGraph) -> tuple[str, ...]:
    """Return the kinds of rows that the legend has to tell apart."""
    present = {FrameKind(kind) for kind in set(flame.kinds)} - {FrameKind.ROOT}
    return tuple(kind.name.lower() for kind in sorted(present))
