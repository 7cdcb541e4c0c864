"""A profile as a notebook shows it: a few lines and the largest rows of its tree, no script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from proton_bench.analysis.select import Selection, build_tree
from proton_bench.profile import Profile
from proton_bench.report.names import FrameFormat, visible
from proton_bench.report.page.column import Column
from proton_bench.report.page.flame import FlameGraph, flame_of_tree, is_amount
from proton_bench.report.page.summary import Summary, profile_summary, shown_metrics, value_text
from proton_bench.report.page.template import environment
from proton_bench.report.units import count_text

__all__ = ["profile_html"]

_MAX_ROWS = 30
_MAX_NAME = 120
_MAX_INDENT = 20


@dataclass(frozen=True, slots=True)
class _Row:
    texts: tuple[str, ...]
    share: str
    indent: int
    name: str


def profile_html(profile: Profile) -> str:
    """Return a piece of HTML for the output of a notebook's cell."""
    metrics = shown_metrics(profile)
    if len(profile) == 1 or not metrics:
        return _render(profile_summary(profile, None, None), None)
    tree = build_tree(profile, metrics, Selection(depth=len(profile) + 1))
    summary = profile_summary(profile, tree, None)
    if not is_amount(tree.metrics[0]):
        return _render(summary, None)
    return _render(summary, flame_of_tree(tree, FrameFormat.FUNCTION_LINE, limit=_MAX_ROWS))


def _render(summary: Summary, flame: FlameGraph | None) -> str:
    hidden = flame.hidden if flame is not None else 0
    return (
        environment()
        .get_template("notebook.html")
        .render(
            summary=summary,
            titles=[column.title for column in flame.columns] if flame is not None else [],
            rows=list(_rows(flame)) if flame is not None else [],
            hidden=count_text(hidden, "smaller row is", "smaller rows are") if hidden else "",
        )
    )


def _rows(flame: FlameGraph) -> Iterator[_Row]:
    depths: list[int] = []
    widths = [width or 0.0 for width in flame.widths[0][1]]
    for row, (above, name) in enumerate(zip(flame.parents, flame.names, strict=True)):
        depths.append(depths[above] + 1 if above >= 0 else 0)
        share = f"{100.0 * widths[row] / widths[0]:.1f} %" if widths[0] > 0 else "-"
        texts = tuple(_text(column, row) for column in flame.columns)
        shown = visible(flame.strings[name], _MAX_NAME)
        yield _Row(texts, share, min(depths[row], _MAX_INDENT), shown)


def _text(column: Column, row: int) -> str:
    value = column.values[row]
    if value is None:
        return "-"
    return value_text(float(value), column.form) if isinstance(value, int | float) else str(value)
