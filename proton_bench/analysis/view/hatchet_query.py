"""Queries in hatchet's language, such as ``MATCH (".", p) WHERE p."name" =~ "foo.*"``."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from proton_bench.analysis.query.relations import LabelledRun
from proton_bench.analysis.query.sql import QueryResult
from proton_bench.analysis.view.dataframe import import_hatchet, to_graphframe
from proton_bench.analysis.view.names import matches
from proton_bench.errors import UsageError
from proton_bench.model.metrics.metric import ValueKind
from proton_bench.model.profile import Profile

# A text of the dialect, and a property of a node: p."name".
_TEXT = re.compile(r"\"((?:\\\"|[^\"])*)\"|'((?:\\'|[^'])*)'")
_PROPERTY = re.compile(r"\b\w+\s*\.\s*(?:\"([^\"]*)\"|'([^']*)')")
_EXPRESSION = re.compile(
    rf"\b(?P<node>\w+)\s*\.\s*(?:\"(?P<a>[^\"]*)\"|'(?P<b>[^']*)')\s*=~\s*(?P<text>{_TEXT.pattern})"
)
_OF_NODES = ("depth", "node_id")
_FIXED = ("run", "depth", "name")


def match_nodes(runs: Sequence[LabelledRun], text: str, limit: int | None = None) -> QueryResult:
    """Return the nodes that a query of hatchet matches: run, depth, name and their metrics.

    Variants of one kernel are one node, and launch levels below 400 are folded, as in `.hatchet`
    files. Each inclusive metric is beside its sum, ``<name> (inc)``.

    Args:
        runs: The profiles; the query runs on each.
        text: The query.
        limit: Most nodes to return; None returns all.

    Raises:
        UsageError: The query is malformed or names a metric that no run has.
        MissingExtraError: hatchet is not installed.
    """
    import_hatchet()
    _refuse_code(text)
    frames = [(run, to_graphframe(run.profile)) for run in runs]
    columns = list(dict.fromkeys(name for _, frame in frames for name in _metrics(frame)))
    _check_properties(text, ["name", *columns])
    asked = _with_answers(text, [frame for _, frame in frames])
    rows = [
        row for run, frame in frames for row in _rows(run, _matched(frame, asked), columns=columns)
    ]
    return QueryResult(
        columns=(*_FIXED, *columns),
        types=tuple(_type(name, runs) for name in (*_FIXED, *columns)),
        rows=rows if limit is None else rows[:limit],
        has_more=limit is not None and len(rows) > limit,
    )


def _metrics(frame: Any) -> list[str]:
    return [name for name in frame.dataframe.columns if name != "name"]


def _refuse_code(text: str) -> None:
    """Reject texts that hatchet, which builds Python code from them, would run as code."""
    for match in _TEXT.finditer(text):
        inner = match[1] if match[1] is not None else match[2]
        if re.search(r"[\"'\r\n]|\\\Z", inner):
            raise UsageError(
                f"hatchet cannot match {inner[:80]!r}: a text must not have a quotation mark or "
                "line break or end in a backslash; write . for such a character with =~"
            )


def _check_properties(text: str, known: Sequence[str]) -> None:
    for match in _PROPERTY.finditer(text):
        name = match[1] if match[1] is not None else match[2]
        if name not in known and name not in _OF_NODES:
            listed = ", ".join((*known, *_OF_NODES))
            raise UsageError(f"no node has the property {name!r}; there are: {listed}")


def _with_answers(text: str, frames: Sequence[Any]) -> str:
    """Return the query with a column for each expression, and add the columns to the frames.

    A column holds 1 where the property matches. hatchet's own searches are not bounded.
    """

    def answered(match: re.Match[str]) -> str:
        key = f"match {match.start()}"
        name, expression = match["a"] or match["b"] or "", _literal(match["text"])
        for frame in frames:
            lines = frame.dataframe
            values = lines[name].tolist() if name in lines else [None] * len(lines)
            texts = list({value for value in values if isinstance(value, str)})
            found = matches(texts, expression, "the expression")
            chosen = {each for each, is_one in zip(texts, found.tolist(), strict=True) if is_one}
            lines[key] = [int(isinstance(each, str) and each in chosen) for each in values]
        return f'{match["node"]}."{key}" = 1'

    return _EXPRESSION.sub(answered, text)


def _literal(text: str) -> str:
    """Return the value of a text of the query, which hatchet puts into Python code."""
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text[1:-1]


def _matched(frame: Any, text: str) -> Any:
    """Return the graph frame of the matching nodes, or None."""
    from hatchet.graphframe import EmptyFilter

    try:
        with warnings.catch_warnings(action="ignore"):
            return frame.filter(text, squash=False, num_procs=1, rec_limit=sys.getrecursionlimit())
    except EmptyFilter:
        return None
    except Exception as error:  # hatchet runs a query as Python code, which may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(
            f"hatchet cannot answer the query: {reason}; its form is "
            'MATCH (".", p) WHERE p."name" =~ "regex"'
        ) from error


def _rows(run: LabelledRun, frame: Any, *, columns: Sequence[str]) -> Iterator[list[Any]]:
    if frame is None:
        return
    lines = frame.dataframe
    cells = {name: _cells(lines[name], name, run.profile) for name in columns if name in lines}
    places = {node: place for place, node in enumerate(lines.index)}
    names = lines["name"].tolist()
    for node, depth in _in_preorder(frame.graph.roots):
        place = places.get(node)
        if place is not None:
            values = (cells[name][place] if name in cells else None for name in columns)
            yield [run.label, depth, names[place], *values]


def _in_preorder(roots: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in reversed(node.children)]


def _cells(column: Any, name: str, profile: Profile) -> list[Any]:
    """Return the values of a column; pandas turns integers into floats if some are missing."""
    whole = _type_of_metric(name, profile) == "BIGINT"
    return [
        None if missing else int(value) if whole else value
        for value, missing in zip(column.tolist(), column.isna().tolist(), strict=True)
    ]


def _type(name: str, runs: Sequence[LabelledRun]) -> str:
    if name in _FIXED:
        return "BIGINT" if name == "depth" else "VARCHAR"
    found = {_type_of_metric(name, run.profile) for run in runs} - {""}
    return found.pop() if len(found) == 1 else "DOUBLE" if "DOUBLE" in found else "VARCHAR"


def _type_of_metric(name: str, profile: Profile) -> str:
    column = profile.columns.get(name) or profile.columns.get(name.removesuffix(" (inc)"))
    if column is None:
        return ""
    return {ValueKind.INT: "BIGINT", ValueKind.FLOAT: "DOUBLE", ValueKind.STR: "VARCHAR"}.get(
        column.kind, "DOUBLE[]"
    )
