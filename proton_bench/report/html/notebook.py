"""A profile in a notebook: a few lines and the largest rows of its tree, without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proton_bench.analysis.accounting.host_rows import without_runners
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.model.profile import Profile
from proton_bench.report.html.column import Form, HtmlColumn, form_unit
from proton_bench.report.html.flame import FlameGraph, flame_of_tree, is_amount
from proton_bench.report.html.summary import Summary, profile_summary, shown_metrics
from proton_bench.report.html.template import environment
from proton_bench.support.text import visible
from proton_bench.support.units import count_text, share_text

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
    """Return HTML for the output of a notebook's cell."""
    profile = without_runners(profile)
    metrics = shown_metrics(profile)
    if len(profile) == 1 or not metrics:
        return _render(profile_summary(profile, None, None), None)
    tree = build_tree(profile, metrics, Selection(depth=len(profile) + 1, readable=Readable()))
    summary = profile_summary(profile, tree, None)
    if not is_amount(tree.metrics[0]):
        return _render(summary, None)
    return _render(summary, flame_of_tree(tree, limit=_MAX_ROWS))


def _render(summary: Summary, flame: FlameGraph | None) -> str:
    hidden = flame.hidden if flame is not None else 0
    shown = [_written(column) for column in flame.columns] if flame is not None else []
    return (
        environment()
        .get_template("notebook.html")
        .render(
            summary=summary,
            titles=[heading for heading, _ in shown],
            rows=list(_rows(flame, [texts for _, texts in shown])) if flame is not None else [],
            hidden=count_text(hidden, "smaller row is", "smaller rows are") if hidden else "",
        )
    )


def _written(column: HtmlColumn) -> tuple[str, list[str]]:
    """Return the heading of a column with its unit, and one text per row."""
    if column.form is Form.TEXT:
        return column.title, ["-" if value is None else str(value) for value in column.values]
    unit = form_unit(column.form, column.values)
    has_unit = not unit.name or column.title.endswith(f" {unit.name}")
    heading = column.title if has_unit else f"{column.title} ({unit.name})"
    return heading, unit.texts(column.values)


def _rows(flame: FlameGraph, columns: Sequence[Sequence[str]]) -> Iterator[_Row]:
    depths: list[int] = []
    widths = [width or 0.0 for width in flame.widths[0][1]]
    for row, (above, name) in enumerate(zip(flame.parents, flame.names, strict=True)):
        depths.append(depths[above] + 1 if above >= 0 else 0)
        share = share_text(widths[row], widths[0])
        texts = tuple(column[row] for column in columns)
        shown = visible(flame.strings[name], _MAX_NAME)
        yield _Row(texts, share, min(depths[row], _MAX_INDENT), shown)
