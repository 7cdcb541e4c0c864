"""Fills the template of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from proton_bench.model.frame import FrameKind
from proton_bench.report.html.facts import FactLine
from proton_bench.report.html.flame import FlameGraph
from proton_bench.report.html.island import island
from proton_bench.report.html.kernels import KernelTable
from proton_bench.report.html.plots.roofline import RooflinePlot
from proton_bench.report.html.plots.strip import Strip
from proton_bench.report.html.summary import Summary
from proton_bench.report.html.template import content_policy, environment, script, style
from proton_bench.support.text import visible
from proton_bench.support.units import count_text

if TYPE_CHECKING:
    from proton_bench.report.html.verdicts import GateVerdicts

__all__ = ["Page", "file_name", "render"]

_VERSION = (2, 0)
_MAX_TITLE = 300


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Contents of a page.

    Attributes:
        title: Its title.
        summary: The head of the page.
        flame: The flame graph, None if there is nothing to see.
        kernels: The kernel table, None if nothing was recorded.
        facts: Where the runs come from.
        runs: Names of their files, in the order of the cells of ``facts``.
        is_comparison: Whether the page shows changes.
        plots: Rooflines, by the names of their runs.
        unplotted: What lacks something to have a place there, "" for nothing.
        strip: Devices over time, None without a timeline.
        verdicts: What a gate says of the changes, None without a gate.
    """

    title: str
    summary: Summary
    flame: FlameGraph | None
    kernels: KernelTable | None
    facts: tuple[FactLine, ...]
    runs: tuple[str, ...]
    is_comparison: bool = False
    plots: Mapping[str, Sequence[RooflinePlot]] = field(default_factory=dict)
    unplotted: str = ""
    strip: Strip | None = None
    verdicts: GateVerdicts | None = None


def file_name(source: str) -> str:
    """Return the name of a run's file, for titles."""
    return visible(PurePath(source).name or source, _MAX_TITLE)


def render(page: Page) -> str:
    """Return the HTML of a page."""
    data: dict[str, Any] = {
        "schema": "proton_bench.report",
        "version": _VERSION,
        "flame": page.flame.plain() if page.flame is not None else None,
        "kernels": page.kernels.plain() if page.kernels is not None else None,
        "strip": page.strip.plain() if page.strip is not None else None,
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
            has_strip=page.strip is not None,
            verdicts=page.verdicts,
            is_comparison=page.is_comparison,
            kinds=_kinds(page.flame) if page.flame is not None else (),
            hidden=count_text(hidden, "row is", "rows are") if hidden else "",
            plots=[(word, plot) for word, plots in page.plots.items() for plot in plots],
            unplotted=page.unplotted,
            runs=[file_name(source) for source in page.runs],
            facts=page.facts,
            island=island(data),
            policy=content_policy(),
            # These files must not change: the policy has their hashes.
            script=Markup(script()),
            style=Markup(style()),
        )
    )


def _kinds(flame: FlameGraph) -> tuple[str, ...]:
    """Return the kinds of rows for the legend."""
    present = {FrameKind(kind) for kind in set(flame.kinds)} - {FrameKind.ROOT}
    names = [kind.name.lower() for kind in sorted(present)]
    return (*names, "library") if flame.libraries else tuple(names)
