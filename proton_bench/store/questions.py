"""Questions about call paths over many profiles, answered with Arrow tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.query.sql import clear_errors
from proton_bench.analysis.selector import Selectors
from proton_bench.errors import UsageError
from proton_bench.model.metrics.distribution import Distribution
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.preorder import subtree_ends
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.stacks import StackTree
from proton_bench.store.store import Snapshot

__all__ = ["Question", "path_series"]

PATH = "path"
# Facts that all profiles of a run share, so that the sum of a run answers for them.
_OF_RUN = frozenset({"date", "job", "run", "commit", "branch", "arch", "driver", PATH})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about call paths.

    Attributes:
        path: Glob of call paths, as everywhere: ``fwd/**/softmax*``.
        metric: Full name of a metric.
        by: What answers are grouped by: columns of ``profiles``, and "path" for each path that the
            glob matches.
        where: Condition in SQL over the columns of ``profiles``.
    """

    path: str
    metric: str = "time (ns)"
    by: tuple[str, ...] = ("job", "run")
    where: str = "true"

    def __post_init__(self) -> None:
        known = [*SCHEMAS["profiles"].names, PATH]
        unknown = [each for each in self.by if each not in known]
        if unknown:
            raise UsageError(f"cannot group by {unknown[0]!a}: choose from {', '.join(known)}")
        if len(set(self.by)) != len(self.by):
            raise UsageError(f"{', '.join(self.by)} names a column twice")


def path_series(snapshot: Snapshot, question: Question) -> pa.Table:
    """Return a line for each group of profiles that have the path, by the time of their start.

    The values of a path are those of the rows that the glob matches and, for a metric that adds up,
    of all rows below. They do not depend on the order in which files were added, or on how they are
    laid out: equal content gives equal bits.

    Returns:
        The columns of ``by``, then ``time_unix_nano`` (the first start), ``profiles`` (all of the
        group) and ``having`` (those with the path), ``total`` and ``share`` (of the metric's sum
        over all profiles of the group; none for metrics that do not add up), ``least``, ``middle``
        and ``most`` (of the sums of single profiles), and of the calls: ``calls``, ``min``,
        ``max``, and the quantiles of `QUANTILES` (none where a part of the calls has no sketch).

    Raises:
        UsageError: The condition is wrong, or the glob matches no path.
        ProfileFormatError: The store is damaged.
    """
    with snapshot.connect() as connection, clear_errors():
        texts = _register_paths(connection, question)
        connection.execute(_chosen(question), {"metric": question.metric})
        spec = MetricSpec(question.metric)
        connection.execute(_FOUND, {"type": spec.base, "unit": spec.unit})
        connection.execute(_CALLS)
        groups = connection.sql(_groups(question)).to_arrow_table()
        buckets = connection.execute(_BUCKETS).fetchnumpy()
    found = dict(zip(QUANTILES, _quantiles(groups, buckets).T, strict=True))
    answers = [groups[name] for name in (*question.by, *_NUMBERS) if name != PATH]
    names = [name for name in (*question.by, *_NUMBERS) if name != PATH]
    table = pa.table(answers, names)
    for name, values in found.items():
        table = table.append_column(name, pa.array(values, from_pandas=True))
    if PATH in question.by:
        paths = pa.array([texts[place] for place in groups["path_id"].to_pylist()], pa.string())
        table = table.add_column(question.by.index(PATH), PATH, paths)
    return table


# -- paths ---------------------------------------------------------------------------------------
def _register_paths(connection: Any, question: Question) -> list[str]:
    """Register the table ``paths``: the stacks whose values belong to each path; return the paths.

    Without a line for each path they are one, and of matching rows above each other only the
    uppermost has the values below.
    """
    tree = StackTree.of(connection.sql("FROM stacks").to_arrow_table())
    is_matched = np.array(Selectors([question.path]).of_tree(tree), dtype=object) != 0
    matched, ends = np.flatnonzero(is_matched), subtree_ends(tree.parents)
    if not len(matched):
        raise UsageError(
            f"no call path in the store matches {question.path!a}; `proton store ls --paths` lists "
            "them"
        )
    if PATH in question.by:
        paths = ["/".join(tree.path(row)) for row in matched.tolist()]
    else:
        inside = np.maximum.accumulate(np.concatenate([[0], ends[matched][:-1]]))
        matched = matched[matched >= inside]
        paths = [question.path] * len(matched)
    # Rows of several kinds can have one path.
    texts = list(dict.fromkeys(paths))
    numbers = {text: number for number, text in enumerate(texts)}
    lengths = ends[matched] - matched
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(int(lengths.sum())) + np.repeat(matched - starts, lengths)
    owners = np.repeat(matched, lengths)
    is_own = rows == owners if PATH in question.by else is_matched[rows]
    table = {
        "stack_hash": tree.hashes[rows],
        "path_id": np.repeat([numbers[path] for path in paths], lengths),
        "is_own": is_own,
    }
    connection.register("paths", pa.table(table))
    return texts


# -- profiles and samples ------------------------------------------------------------------------
def _chosen(question: Question) -> str:
    """Return the statement that makes ``chosen``: the profiles, with the number of their group."""
    columns = [name for name in question.by if name != PATH]
    grouped = ", ".join(f'"{name}"' for name in columns) or "1"
    # One line for a run: its sum, if there is one.
    preferred = "members IS NOT NULL OR NOT bool_or(members IS NOT NULL) OVER "
    source = (
        f"(FROM all_profiles WHERE {question.where} "
        f"QUALIFY {preferred} (PARTITION BY date, job, run))"
        if _OF_RUN.issuperset(columns)
        else f"(FROM profiles WHERE {question.where})"
    )
    return (
        "CREATE TEMP TABLE chosen AS SELECT *, totals[$metric] AS whole, "
        f"dense_rank() OVER (ORDER BY {grouped}) AS group_id FROM {source}"
    )


_FOUND = """
CREATE TEMP TABLE found AS
SELECT path_id, group_id, date, job, profile_id, members, value, count, min, max, sketch
FROM stored_samples JOIN paths USING (stack_hash)
JOIN (SELECT date, job, profile_id, batch, group_id, members FROM chosen)
USING (date, job, profile_id, batch)
WHERE sample_type = $type AND sample_unit = $unit AND value IS NOT NULL
AND (aggregation = 'inc' OR is_own)"""
# Sums are over sorted values, so that they do not depend on the order of files and threads.
_CALLS = """
CREATE TEMP TABLE calls AS
SELECT path_id, group_id, sum(count)::BIGINT AS calls,
    CASE WHEN count(min) = count(*) THEN min(min) END AS min,
    CASE WHEN count(max) = count(*) THEN max(max) END AS max,
    count(sketch) = count(*) AS has_sketch, max(sketch.collapses) AS collapses,
    sum(sketch.zero_count)::BIGINT AS zero_count
FROM found GROUP BY ALL"""
_BUCKETS = """
SELECT path_id, group_id, ceil(index / (1 << shift))::INT AS index, sum(count)::BIGINT AS count
FROM (
    SELECT path_id, group_id, calls.collapses - found.sketch.collapses AS shift,
        unnest(found.sketch.index) AS index, unnest(found.sketch.count) AS count
    FROM found JOIN calls USING (path_id, group_id) WHERE has_sketch)
GROUP BY ALL ORDER BY ALL"""
_NUMBERS = (
    *("time_unix_nano", "profiles", "having", "total", "share", "least", "middle", "most"),
    *("calls", "min", "max"),
)


def _groups(question: Question) -> str:
    """Return the query for a line per path and group."""
    columns = "".join(
        f', any_value("{name}") AS "{name}"'
        for name in question.by
        if name not in {PATH, "time_unix_nano"}
    )
    return f"""
WITH sums AS (
    SELECT path_id, group_id, any_value(members) AS members, sum(value ORDER BY value) AS total
    FROM found GROUP BY path_id, group_id, date, job, profile_id),
answers AS (
    SELECT path_id, group_id, sum(coalesce(members, 1))::BIGINT AS having,
        sum(total ORDER BY total) AS total, count(members) = 0 AS are_single,
        min(total) AS least, median(total) AS middle, max(total) AS most
    FROM sums GROUP BY ALL),
groups AS (
    SELECT group_id, min(time_unix_nano) AS time_unix_nano,
        sum(coalesce(members, 1))::BIGINT AS profiles, sum(whole ORDER BY whole) AS whole{columns}
    FROM chosen GROUP BY group_id)
SELECT *, total / nullif(whole, 0) AS share
FROM (SELECT * REPLACE (
    CASE WHEN are_single THEN least END AS least, CASE WHEN are_single THEN middle END AS middle,
    CASE WHEN are_single THEN most END AS most) FROM answers)
JOIN groups USING (group_id) JOIN calls USING (path_id, group_id)
ORDER BY time_unix_nano, group_id, path_id"""


def _quantiles(groups: pa.Table, buckets: dict[str, Any]) -> npt.NDArray[np.float64]:
    """Return a line per group with the `QUANTILES` of its calls, NaN where unknown."""
    found = np.full((len(groups), len(QUANTILES)), np.nan)
    keys = buckets["path_id"].astype("i8") << 32 | buckets["group_id"].astype("i8")
    for place, group in enumerate(groups.to_pylist()):
        if not group["has_sketch"]:
            continue
        key = group["path_id"] << 32 | group["group_id"]
        own = slice(*np.searchsorted(keys, [key, key + 1]).tolist())
        count = buckets["count"][own].astype("i8")
        distribution = Distribution(
            n=int(count.sum()) + group["zero_count"],
            zero_count=group["zero_count"],
            total=group["total"],
            minimum=group["min"],
            maximum=group["max"],
            sum_ln=math.nan,
            sum_ln2=math.nan,
            bucket_index=buckets["index"][own].astype("<i4"),
            bucket_count=count,
            collapses=group["collapses"],
        )
        known = distribution.quantiles(list(QUANTILES.values()))
        found[place] = [math.nan if value is None else value for value in known]
    return found
