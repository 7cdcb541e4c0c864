"""A run in a few lines: recorded against wall time, the hottest paths, what to do next."""

from __future__ import annotations

import linecache
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from proton_bench.analysis.accounting.compilation import trials_ns
from proton_bench.analysis.accounting.host_time import (
    IMPORTS,
    NOT_RECORDED,
    other_threads,
    own_lines,
    run_time_of,
)
from proton_bench.analysis.metrics.derive import default_metrics
from proton_bench.analysis.metrics.formula import parse_formula
from proton_bench.analysis.naming.frame_names import Places, parse_frame
from proton_bench.analysis.naming.nested import IMPORTS_NAME
from proton_bench.analysis.naming.readable import Readable
from proton_bench.analysis.view.names import rows_below
from proton_bench.analysis.view.select import TRIALS_STATE, MetricTree, Selection, build_tree
from proton_bench.analysis.why.findings import find
from proton_bench.analysis.why.memory import memory_evidence, peak_memory
from proton_bench.analysis.why.run import WholeRun
from proton_bench.analysis.why.verdict import WHY, has_counters
from proton_bench.errors import ProtonError
from proton_bench.model.arrays import Floats, Mask
from proton_bench.model.frame import COLLECTION_NAME, TEST_RUN_NAME, FrameKind
from proton_bench.model.metrics.metric import Aggregation
from proton_bench.model.preorder import subtree_ends
from proton_bench.model.profile import Profile
from proton_bench.model.steps import length_word
from proton_bench.report.text.source import read_source
from proton_bench.report.words.columns import count_texts
from proton_bench.report.words.edge import fitting, fitting_path
from proton_bench.report.words.header import device_lines, losses, recorded_line, steps_lines
from proton_bench.support.text import visible
from proton_bench.support.units import duration_text, number_texts, share_text

_MAX_NAME = 200
_NOTHING = "no operator, kernel or copy was recorded"
_LIBRARIES = "other code, in libraries alone"
_TEST_RUN = "pytest itself"
_TRIALS = "trials of the autotuner"
_LEAST_IMPORTS = 0.01
# Samples begin a little later than the run.
_CLOSE = 0.99


def hottest_paths(profile: Profile, limit: int = 10, width: int | None = None) -> list[str]:
    """Return the call paths with the most time of their own, rows below them not counted.

    Library frames count for the frame that called them. All imports are one path, the last.

    Args:
        profile: A profile; its first default metric decides.
        limit: Paths at most.
        width: Characters of a line; frames in the middle of a path are left out to fit. None means
            any number.

    Returns:
        A heading and one line per path: share of the run, or of all paths where its length is not
        known or work of several devices adds up to more, value, calls, what limits it if counters
        were recorded, path. A sentence if nothing was recorded.
    """
    metrics = default_metrics(profile)
    if not metrics:
        return [_NOTHING]
    selection = Selection(depth=len(profile) + 1, readable=Readable())
    counted = ("count",) if "count" in metrics else ()
    limits = (WHY,) if has_counters(profile) else ()
    tree = build_tree(profile, (metrics[0], *counted, *limits), selection)
    own, is_import = _own_values(tree), _imports(tree)
    imports = float(own[is_import].sum())
    own = _of_own_code(tree, np.where(is_import, 0.0, own), Places.of(profile.provenance))
    total = float(own.sum()) + imports
    if not total > 0:
        return [_NOTHING]
    run = _run_length(profile, metrics[0])
    is_run = run >= _CLOSE * total
    whole = run if run > total / _CLOSE else total
    last = [imports] if imports >= _LEAST_IMPORTS * whole else []
    order = np.argsort(-own, kind="stable")[: limit - len(last)].tolist()
    hottest = [row for row in order if own[row] > 0]
    values = [*own[hottest].tolist(), *last]
    columns = [
        [
            f"of {length_word(profile)}" if is_run else "share",
            *(share_text(value, whole) for value in values),
        ],
        [visible(metrics[0]), *number_texts(values)],
    ]
    for name, metric in zip((*counted, *limits), tree.metrics[1:], strict=True):
        found = [*metric.take(np.array(hottest, dtype=np.int64)).to_list(), *(None for _ in last)]
        texts = count_texts(found) if name != WHY else [visible(text or "-") for text in found]
        columns.append(["limit" if name == WHY else "calls", *texts])
    wides = [max(map(len, column)) for column in columns]
    starts = [
        "".join(f"{text:>{wide}}  " for text, wide in zip(texts, wides, strict=True))
        for texts in zip(*columns, strict=True)
    ]
    room = None if width is None else width - len(starts[0])
    paths = [_fitted(_shown_names(tree, row, profile), room) for row in hottest]
    paths += [IMPORTS for _ in last]
    return [f"{starts[0]}path", *map("".join, zip(starts[1:], paths, strict=True))]


def source_line(profile: Profile, frame: str) -> str:
    """Return the line of source that a frame ``file:line@function`` stands at, "" if unknown.

    Args:
        profile: What was recorded, in this process or just now: any folder of its run is read.
        frame: The name as it was recorded.
    """
    parts = parse_frame(frame)
    if parts is None or not parts.line.isdecimal():
        return ""
    number = int(parts.line)
    if parts.file in linecache.cache:  # such as a cell of a notebook, which has no file
        return visible(" ".join(linecache.getline(parts.file, number).split()), _MAX_NAME)
    for folder in Places.of(profile.provenance).folders:
        source = read_source(parts.file, profile, number, root=Path(folder))
        text = None if source.note else source.line(number)
        if text:
            return visible(" ".join(text.split()), _MAX_NAME)
    return ""


def _imports(tree: MetricTree) -> Mask:
    """Return for each row whether it is time in imports, or in pytest's collection of tests."""
    names = tree.recorded or tree.strings
    frames = [name in {IMPORTS_NAME, COLLECTION_NAME} for name in names]
    is_top = np.array(frames, dtype=np.bool_)[tree.frames]
    is_top &= np.isin(tree.kinds, (FrameKind.PYTHON, FrameKind.TEST))
    return rows_below(is_top, subtree_ends(tree.parents))


def _run_length(profile: Profile, metric: str) -> float:
    """Return the length of the run in the unit of a time, 0 if it is not known or not a time."""
    formula, wall_ns = parse_formula(metric), run_time_of(profile).wall_ns
    if formula is None or not formula.timed or wall_ns is None or profile.provenance.get("parts"):
        return 0.0
    return wall_ns * 1e-9 / formula.scale


def _own_values(tree: MetricTree) -> Floats:
    """Return the values of the rows alone."""
    metric = tree.metrics[0]
    values = np.where(metric.valid, metric.values, 0).astype(np.float64)
    if metric.aggregation is not Aggregation.INCLUSIVE:
        return values
    below = np.bincount(tree.parents[1:], weights=values[1:], minlength=len(tree))
    # What is smaller is a rounding error.
    return np.where(values - below > 1e-9 * np.abs(values), values - below, 0.0)


def _of_own_code(tree: MetricTree, own: Floats, places: Places) -> Floats:
    """Return the values with those of library frames at the frame of own code that called them.

    What a library does on behalf of one line is scattered over many frames of it.
    """
    flags = [bool(places.library_of(name)) for name in tree.recorded]
    is_library = np.array(flags, dtype=np.bool_)[tree.frames] & (tree.kinds == FrameKind.PYTHON)
    moved = own.copy()
    for row in np.flatnonzero(is_library)[::-1].tolist():  # rows below come first
        moved[tree.parents[row]] += moved[row]
        moved[row] = 0.0
    return moved


def _names(tree: MetricTree, row: int) -> Iterator[str]:
    """Yield the names of a path from its end, without the root."""
    while row > 0:
        name = tree.name(row)
        above = int(tree.parents[row])
        is_test_run = tree.kinds[row] == FrameKind.TEST and name == TEST_RUN_NAME
        if above > 0 or not is_test_run:  # all tests are below it
            yield _TRIALS if name == TRIALS_STATE else visible(name, _MAX_NAME)
        row = above


def _shown_names(tree: MetricTree, row: int, profile: Profile) -> list[str]:
    names = [*_names(tree, row)][::-1] or [_TEST_RUN if row else tree.name(0)]
    frame = (tree.recorded or tree.strings)[int(tree.frames[row])]
    is_python = tree.kinds[row] == FrameKind.PYTHON
    if NOT_RECORDED in names:  # the line says enough, and a row above it whose process it is
        names = [*names[: names.index(NOT_RECORDED)], *names[-1 if is_python else -2 :]]
    if frame == NOT_RECORDED:
        names[-1] = _LIBRARIES
    source = source_line(profile, frame) if is_python else ""
    return [*names[:-1], f"{names[-1]}: {source}"] if source else names


def _fitted(names: list[str], room: int | None) -> str:
    if room is None:
        return " › ".join(names)
    return fitting(names[0], room) if len(names) == 1 else fitting_path(names, room)


_MOST_PATHS, _LEAST_PATHS = 5, 1
_MOST_ROWS = 10_000  # findings of more rows would keep the prompt waiting
_MAX_LINE, _MAX_SOURCE = 80, 40


def summary_lines(
    profile: Profile, file: str = "", width: int | None = None, *, most: int = 9
) -> list[str]:
    """Return the first answer of a profile, as lines that are safe to print.

    All shares are those of the run, where its length is known.

    Args:
        profile: What was recorded.
        file: Its file, for the commands that show more; "" for none.
        width: Characters of a line, None for any number.
        most: Lines at most; with one that names the files it is ten.
    """
    run = recorded_line(profile, shows_start=False)
    head = [*([run] if run else device_lines(profile)), *losses(profile)]
    head[:0] = steps_lines(profile)
    head += [_memory_line(profile), _idle_line(profile), _trials_line(profile)]
    head += [_threads_line(profile)]
    last = _more_lines(profile, file, width) if file else []
    room = most - len(last) - 1 - _LEAST_PATHS
    head = _cut([*filter(None, head)], room)
    left = most - len(head) - len(last) - 1
    return [*head, *hottest_paths(profile, min(left, _MOST_PATHS), width), *last]


def _cut(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"{len(lines) - room + 1} more remarks: see proton view"]


def _idle_line(profile: Profile) -> str:
    """Return what the main thread did while no device worked, by lines of own code."""
    times = run_time_of(profile)
    if not times.wall_ns or not times.gpu_idle_ns:
        return ""
    parts = []
    for frame, line, spent_ns in own_lines(profile, times.wall_ns):
        source = fitting(source_line(profile, frame), _MAX_SOURCE)
        part = f"{share_text(spent_ns, times.wall_ns, decimals=0)} in {visible(line, _MAX_LINE)}"
        parts.append(f"{part} ({source})" if source else part)
    return f"main thread meanwhile: {', '.join(parts)}" if parts else ""


def _memory_line(profile: Profile) -> str:
    """Return what the memory of GPUs held at its peak, or when it was not enough."""
    memory = peak_memory(profile)
    if memory is None:
        return ""
    first, *_ = memory_evidence(memory, profile, profile.strings)
    return f"GPU memory: {visible(first.text)}"


def _trials_line(profile: Profile) -> str:
    """Return how long autotuners tried configurations; the table has the rest of the work."""
    spent_ns, wall_ns = trials_ns(profile), run_time_of(profile).wall_ns
    if not spent_ns:
        return ""
    share = f", {share_text(spent_ns, wall_ns)} of the {length_word(profile)}" if wall_ns else ""
    return f"autotuners tried configurations for {duration_text(spent_ns)}{share}"


def _threads_line(profile: Profile) -> str:
    """Return what threads besides the main one did, whose time is not part of the run's."""
    recorded_ns, other_ns, row = other_threads(profile)
    if not recorded_ns:
        return ""
    path = " › ".join(visible(name, _MAX_LINE) for name in profile.path(row)[-2:])
    work = f"{duration_text(recorded_ns)} in recorded work, most in {path}"
    other = f"; {duration_text(other_ns)} in other code, which may wait" if other_ns else ""
    return f"other threads: {work}{other}"


def _more_lines(profile: Profile, file: str, width: int | None) -> list[str]:
    """Return the commands that show more; `why` with its first finding, if it has one."""
    shown = shlex.quote(file)
    more = f"more: proton view {shown}, or proton report {shown} for a page"
    try:
        findings = find(WholeRun.of(profile)) if len(profile) <= _MOST_ROWS else ()
    except ProtonError:  # a metric of another tool's file has another type
        findings = ()
    if not findings:
        has_more = has_counters(profile) or len(profile) > _MOST_ROWS
        return [more.replace(",", f", proton why {shown},", 1)] if has_more else [more]
    why = f"proton why {shown}: {visible(findings[0].text)}"
    return [why if width is None else fitting(why, width), more]
