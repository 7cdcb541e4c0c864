"""A whole page: one HTML file about a run, or about its changes from base runs."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from proton_bench.analysis.accounting.calls import CALLS
from proton_bench.analysis.choices import By
from proton_bench.analysis.collectives import KEY as COLLECTIVES
from proton_bench.analysis.compare.compare import CompareOptions, compare, reported_metric
from proton_bench.analysis.compare.readable import with_equal_layers_folded, with_texts
from proton_bench.analysis.naming.nested import without_runners
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.run import Run
from proton_bench.analysis.view.select import Selection, build_tree
from proton_bench.analysis.why.answer import why
from proton_bench.analysis.why.verdict import WHY, has_counters
from proton_bench.errors import UsageError
from proton_bench.model.device import Device
from proton_bench.model.frame import FrameKind
from proton_bench.model.profile import Profile
from proton_bench.report.html.flame import (
    FlameGraph,
    flame_of_comparison,
    flame_of_tree,
    is_amount,
)
from proton_bench.report.html.points import scopes_without_bytes
from proton_bench.report.html.roofline import RooflinePlot, roofline_plots
from proton_bench.report.html.strip import Strip
from proton_bench.report.html.summary import (
    Summary,
    comparison_summary,
    profile_summary,
    shown_metrics,
)
from proton_bench.report.html.table import (
    Form,
    HtmlColumn,
    KernelTable,
    changed_kernels,
    form_unit,
    kernel_table,
)
from proton_bench.report.words.collectives import collective_lines
from proton_bench.support.text import encode_document, visible
from proton_bench.support.units import Unit, count_text, share_text

if TYPE_CHECKING:
    from proton_bench.gate.history.history import History
    from proton_bench.report.html.history import Place


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
        facts: Where the runs come from; None on a page that is not about recordings.
        runs: Names of their files, in the order of the cells of ``facts``.
        is_comparison: Whether the page shows changes.
        plots: Rooflines, by the names of their runs.
        unplotted: What lacks something to have a place there, "" for nothing.
        strip: Devices over time, None without a timeline.
        history: Series of many runs by their place.
        verdict: Of the history: ``pass``, ``fail`` and so on; "" for none.
    """

    title: str
    summary: Summary
    flame: FlameGraph | None = None
    kernels: KernelTable | None = None
    facts: tuple[FactLine, ...] | None = None
    runs: tuple[str, ...] = ()
    is_comparison: bool = False
    plots: Mapping[str, Sequence[RooflinePlot]] = field(default_factory=dict)
    unplotted: str = ""
    strip: Strip | None = None
    history: Sequence[Place] = ()
    verdict: str = ""


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
        _environment()
        .get_template("page.html")
        .render(
            title=visible(page.title, _MAX_TITLE),
            summary=page.summary,
            has_flame=page.flame is not None,
            has_kernels=page.kernels is not None,
            has_strip=page.strip is not None,
            is_comparison=page.is_comparison,
            kinds=_kinds(page.flame) if page.flame is not None else (),
            hidden=count_text(hidden, "row is", "rows are") if hidden else "",
            plots=[(word, plot) for word, plots in page.plots.items() for plot in plots],
            unplotted=page.unplotted,
            runs=[file_name(source) for source in page.runs],
            facts=page.facts,
            history=page.history,
            verdict=page.verdict,
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


# Levels for a complete tree; the flame graph scrolls.
_EVERY_LEVEL = 2**31 - 1
_FEW = 3


_READABLE = Readable(fold_frames=False)  # the page has a switch
_SELECTION = Selection(depth=_EVERY_LEVEL, readable=_READABLE)


def profile_page(run: Run, metrics: Sequence[str] = (), *, strip: Strip | None = None) -> str:
    """Return the page of one run, as HTML.

    Args:
        run: The run.
        metrics: What to show, the first as the width of flames; none means the default metrics.
        strip: Its devices over time, where the file is a timeline.

    Raises:
        MetricError: A metric is unknown, or the first one cannot be the width of a flame.
    """
    profile = run.profile
    title = f"{file_name(run.source)} - proton report"
    chosen, metrics = bool(metrics), tuple(metrics) or shown_metrics(profile)
    if metrics and metrics[0].strip().lower() == CALLS:
        metrics = (f"{CALLS} (inc)", *metrics[1:])  # widths of flames have to add up
    if len(profile) == 1 or not metrics:
        summary = profile_summary(profile, None, None)
        facts = fact_lines([profile])
        return render(Page(title, summary, facts=facts, runs=(run.source,)))
    if has_counters(profile) and WHY not in metrics:
        metrics = (*metrics, WHY)
    tree = build_tree(profile, metrics, _SELECTION)
    # A default metric may not be usable as a width; the table shows it anyway.
    has_flame = chosen or is_amount(tree.metrics[0])
    flame = flame_of_tree(tree) if has_flame else None
    kernels = kernel_table(profile, metrics, _SELECTION)
    return render(
        Page(
            title=title,
            summary=profile_summary(profile, tree, kernels, answer=why(profile)),
            flame=_visible(flame),
            kernels=kernels,
            facts=fact_lines([profile]),
            runs=(run.source,),
            plots={"": roofline_plots(profile, _SELECTION)},
            unplotted=scopes_without_bytes(profile),
            strip=strip,
        )
    )


def comparison_page(
    base: Sequence[Run],
    new: Sequence[Run],
    metrics: Sequence[str] = (),
    *,
    ignore_devices: bool = False,
) -> str:
    """Return the page of the changes from the base runs to the new ones, as HTML.

    Args:
        base: Runs to compare with.
        new: Runs to show.
        metrics: What to compare, one at most; none means the default metric.
        ignore_devices: Compare runs of different kinds of devices.

    Raises:
        MetricError: A run lacks the metric, or the metric does not add up over rows.
        UsageError: Several metrics are given, a run is empty, or units or devices differ.
    """
    if len(metrics) > 1:
        raise UsageError(
            f"-m {','.join(metrics)!r} is not one metric: a comparison shows one, such as time/ms"
        )
    by_path = CompareOptions(
        metric=reported_metric(metrics[0] if metrics else None, [*base, *new]),
        ignore_devices=ignore_devices,
        fold_frames=True,
        fold_steps=True,
        self_times=True,  # widths of flames have to add up
    )
    comparison = with_equal_layers_folded(compare(base, new, by_path), by_path)
    comparison = with_texts(comparison, _READABLE)
    flame = flame_of_comparison(comparison)
    by_kernel = compare(base, new, replace(by_path, by=By.KERNEL))
    kernels = changed_kernels(with_texts(by_kernel, _READABLE))
    return render(
        Page(
            title=f"{_named(new)} against {_named(base)} - proton report",
            summary=comparison_summary(comparison),
            flame=_visible(flame),
            kernels=kernels,
            facts=fact_lines([run.profile for run in (*base, *new)]),
            runs=tuple(run.source for run in (*base, *new)),
            is_comparison=True,
            plots={**_plots("base", base), **_plots("new", new)},
        )
    )


def history_page(history: History, reports: Mapping[str, str] | None = None) -> str:
    """Return the page of a history, as HTML.

    Args:
        history: The history.
        reports: Addresses of pages about single recordings, by their files.
    """
    from proton_bench.report.html.history import history_places
    from proton_bench.report.text.history import notes, summary_text

    return render(
        Page(
            title="History - proton",
            summary=Summary(summary_text(history), (), tuple(notes(history))),
            history=history_places(history, reports or {}),
            verdict=str(history.verdict).lower(),
        )
    )


def _named(runs: Sequence[Run]) -> str:
    """Return the names of a side's files, of many the first."""
    names = [file_name(run.source) for run in runs]
    return " and ".join(names) if len(names) < _FEW else f"{names[0]} and {len(names) - 1} more"


def _plots(word: str, runs: Sequence[Run]) -> dict[str, Sequence[RooflinePlot]]:
    """Return the plots of a side's first run; several would overlap."""
    title = word if len(runs) == 1 else f"{word}, first of {len(runs)} runs"
    return {title: roofline_plots(runs[0].profile, _SELECTION)}


def _visible(flame: FlameGraph | None) -> FlameGraph | None:
    """Return the graph, or None if no row has a width."""
    return flame if flame is not None and flame.widths[0][1][0] else None


# In JSON these occur only in strings, where an escape means the same.
_ESCAPES = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
    }
)


def island(document: Mapping[str, Any]) -> Markup:
    r"""Return a document as JSON for the inside of a ``<script type="application/json">``.

    ``</script>``, ``<!--``, ``]]>`` and line separators of JavaScript are written as ``\uXXXX``;
    lone surrogates, which UTF-8 cannot hold, as text that shows them.
    """
    return Markup(encode_document(document).decode().rstrip().translate(_ESCAPES))


# -- facts of runs ---------------------------------------------------------------------------------
_MAX_LINES = 400
_MAX_TEXT = 2000
_MAX_KEY = 120
_MAX_DEPTH = 6
_MAX_WINDOWS = 16
_TIMES = ("start_time_ns", "end_time_ns")
_MOST_NS = 2.0**63


@dataclass(frozen=True, slots=True)
class FactLine:
    """A fact of each run.

    Attributes:
        name: Such as ``git.revision``.
        texts: Value of each run, "" for none.
        differs: Whether runs differ.
    """

    name: str
    texts: tuple[str, ...]
    differs: bool


def fact_lines(profiles: Sequence[Profile]) -> tuple[FactLine, ...]:
    """Return the facts of the runs, in the order of the first run; at most 400 lines."""
    found = [dict(_facts(profile)) for profile in profiles]
    names = list(dict.fromkeys(name for facts in found for name in facts))
    lines = []
    for name in names[:_MAX_LINES]:
        texts = tuple(_texts(name, [facts.get(name, "") for facts in found]))
        lines.append(FactLine(name, texts, len(set(texts)) > 1))
    if len(names) > _MAX_LINES:
        rest = count_text(len(names) - _MAX_LINES, "further fact is", "further facts are")
        texts = (f"{rest} in the file", *("" for _ in found[1:]))
        lines.append(FactLine("...", texts, differs=False))
    return tuple(lines)


def _facts(profile: Profile) -> Iterator[tuple[str, Any]]:
    for device in profile.devices:
        yield visible(f"device {device.kind}:{device.index}", _MAX_KEY), _device_text(device)
    for key, value in profile.provenance.items():
        has_many = key == "windows" and isinstance(value, tuple) and len(value) > _MAX_WINDOWS
        if key == COLLECTIVES:
            yield key, "; ".join(collective_lines(profile))
        elif not has_many:  # their number is a fact of its own
            yield from _flat(key, value)


def _device_text(device: Device) -> str:
    facts = [f"architecture {device.arch}"] if device.arch else []
    if device.num_sms:
        facts.append(count_text(device.num_sms, "multiprocessor"))
    if device.clock_rate_khz:
        facts.append(f"{device.clock_rate_khz / 1000:.0f} MHz")
    if device.memory_clock_rate_khz and device.bus_width_bits:
        facts.append(f"memory {device.memory_clock_rate_khz / 1000:.0f} MHz")
        facts.append(f"{device.bus_width_bits} bit")
    return visible(", ".join(facts), _MAX_TEXT)


def _flat(key: str, value: Any, depth: int = 1) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value and depth < _MAX_DEPTH:
        for inner, below in value.items():
            yield from _flat(f"{key}.{inner}", below, depth + 1)
    elif isinstance(value, tuple) and any(isinstance(each, Mapping) for each in value):
        for place, each in enumerate(value):
            yield from _flat(f"{key}[{place}]", each, depth + 1)
    elif value is not None and value not in ("", ()):
        yield visible(key, _MAX_KEY), value


def _texts(key: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield the value of one fact for each run; costs of all runs have one unit."""
    unit = Unit.of_times(value for value in values if _is_number(value))
    for value in values:
        if key.endswith("_cost_ns") and _is_number(value):
            yield unit.text(value)
        else:
            yield visible(_text(key, value), _MAX_TEXT)


def _text(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    if key in _TIMES and _is_number(value):
        # All times within 2**63 ns are valid dates: from 1677 to 2262.
        return f"{datetime.fromtimestamp(value / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return str(value)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < _MOST_NS


# -- the files of the page -------------------------------------------------------------------------
# One module in this order, not visible to the rest of the page.
_SCRIPTS = ("values.js", "tree.js", "labels.js", "flame.js", "table.js", "strip.js", "app.js")
_STYLES = ("page.css", "table.css")


def read_asset(name: str) -> str:
    """Return the text of a file of the page."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    """Return the environment of all templates."""
    return jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(read_asset),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@functools.cache
def script() -> str:
    """Return the page's script."""
    return "\n" + "\n".join(read_asset(name) for name in _SCRIPTS)


@functools.cache
def style() -> str:
    """Return the page's style sheet."""
    return "\n" + "\n".join(read_asset(name) for name in _STYLES)


@functools.cache
def content_policy() -> str:
    """Return the policy of the page: its own script and style by their hashes, and nothing else.

    No network, no frames, no forms; markup injected into the page could not run anything.
    """
    return (
        f"default-src 'none'; script-src '{_digest(script())}'; style-src '{_digest(style())}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# -- in a notebook ---------------------------------------------------------------------------------
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
        _environment()
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
