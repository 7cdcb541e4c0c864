"""Questions about call paths over many profiles, answered with Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.query.sql import clear_errors
from proton_bench.analysis.selector import Selectors
from proton_bench.errors import UsageError
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.preorder import subtree_ends
from proton_bench.store.engines import open_memory
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.schema import SCHEMAS
from proton_bench.store.sketches import distribution_of, merged
from proton_bench.store.stacks import StackTree
from proton_bench.store.store import Snapshot, quoted, where_clause
from proton_bench.store.workers import open_workers

__all__ = [
    "Chosen",
    "Parts",
    "Question",
    "answer",
    "choose",
    "combined",
    "parts_of",
    "path_series",
    "paths_of",
]

PATH = "path"
# Facts that all profiles of a run share. If no others are asked for, the sum of a run answers.
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
        quantiles: Whether quantiles of the calls are wanted. Of a scope without calls they are
            those of all calls below, and reading these takes most of the time.
    """

    path: str
    metric: str = "time (ns)"
    by: tuple[str, ...] = ("job", "run")
    where: str = "true"
    quantiles: bool = True

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
        group) and ``present`` (those with the path), ``total`` and ``share`` (of the metric's sum
        over all profiles of the group; none for metrics that do not add up), ``least``, ``middle``
        and ``most`` (of the sums of single profiles), and of the calls: ``count``, ``min``,
        ``max``, and the quantiles of `QUANTILES` (none where a part of the calls has no sketch).
        These are the calls of the matching row or, in a profile where it has none, of all rows
        below it, as `proton view` has them.

    Raises:
        UsageError: The condition is wrong, or the glob matches no path.
        ProfileFormatError: The store is damaged.
    """
    chosen = choose(snapshot, question)
    with open_workers() as workers:
        read = partial(parts_of, snapshot, question)
        parts = workers.joined(read, _shares(chosen, workers.tasks), combined)
    return answer(question, chosen, parts)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """What a question is about.

    Attributes:
        profiles: A line for each profile: its key, its group and facts of it.
        paths: The stacks whose values belong to each path.
    """

    profiles: pa.Table
    paths: pa.Table


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What samples say of some profiles; `combined` adds what they say of others.

    Attributes:
        sums: A line for each profile and path: the sum of its values.
        calls: A line for each group and path: what `merged` gives.
    """

    sums: pa.Table
    calls: pa.Table


def choose(snapshot: Snapshot, question: Question) -> Chosen:
    """Return what a question is about; errors are those of `path_series`."""
    with clear_errors(), snapshot.connect() as connection:
        paths = _paths(connection, question)
        profiles = connection.sql(_chosen(question), params={"metric": question.metric})
        return Chosen(profiles.to_arrow_table(), paths)


def parts_of(snapshot: Snapshot, question: Question, chosen: Chosen) -> Parts:
    """Return what the samples of these profiles say; errors are those of `path_series`."""
    with clear_errors(), snapshot.connect() as connection:
        connection.register("chosen", chosen.profiles)
        connection.register("paths", chosen.paths)
        spec = MetricSpec(question.metric)
        connection.execute(
            _found(question, chosen.profiles), {"type": spec.base, "unit": spec.unit}
        )
        return Parts(
            connection.sql(_SUMS).to_arrow_table(),
            connection.sql(merged(_CALLS, _KEYS)).to_arrow_table(),
        )


def _shares(chosen: Chosen, most: int) -> Iterator[Chosen]:
    """Yield profiles in so many shares at most, those of a day and job together.

    Their files are then read by one worker.
    """
    profiles = chosen.profiles.sort_by([("job", "ascending"), ("date", "ascending")])
    keys = [profiles[name].combine_chunks().dictionary_encode() for name in ("job", "date")]
    changes = [np.diff(key.indices.to_numpy(), prepend=-1) != 0 for key in keys]
    starts = np.flatnonzero(np.any(changes, axis=0))
    shares = starts * most // max(len(profiles), 1)
    cuts = starts[np.diff(shares, prepend=-1) > 0].tolist() or [0]
    for begin, end in pairwise([*cuts, len(profiles)]):
        yield Chosen(profiles.slice(begin, end - begin), chosen.paths)


def _partitions(profiles: pa.Table) -> str:
    """Return the condition of the partitions of profiles, which skips all other files."""
    if not len(profiles):
        return "false"
    days = ", ".join(f"DATE '{day}'" for day in profiles["date"].unique().to_pylist())
    jobs = ", ".join(quoted(job) for job in profiles["job"].unique().to_pylist())
    return f"date IN ({days}) AND job IN ({jobs})"


def combined(parts: Sequence[Parts]) -> Parts:
    """Return the parts of several sets of profiles as one; order and steps do not matter."""
    sums, calls = (
        pa.concat_tables([getattr(each, name) for each in parts], promote_options="permissive")
        for name in ("sums", "calls")
    )
    with open_memory() as connection:
        connection.register("calls", calls)
        # Most sketches are in one part alone where lines are about runs or ranks.
        places = f"FROM calls QUALIFY count(*) OVER (PARTITION BY {', '.join(_KEYS)})"
        connection.execute(f"CREATE TEMP VIEW shared AS {places} > 1")
        found = f"{places} = 1 UNION ALL BY NAME ({merged('shared', _KEYS)})"
        return Parts(sums, connection.sql(found).to_arrow_table())


def answer(question: Question, chosen: Chosen, parts: Parts) -> pa.Table:
    """Return what `path_series` returns, from the parts of all chosen profiles."""
    with open_memory() as connection:
        connection.register("profiles", chosen.profiles)
        connection.register("sums", parts.sums)
        connection.register("calls", parts.calls)
        found = connection.sql(_answers(question)).to_arrow_table()
    quantiles = [_quantiles(row) for row in found.select(["total", *_OF_CALLS]).to_pylist()]
    for place, name in enumerate(QUANTILES):
        values = pa.array([each[place] for each in quantiles], pa.float64())
        found = found.append_column(name, values)
    return found.drop_columns(["sketch"])


def _quantiles(row: dict[str, Any]) -> list[float | None]:
    distribution = distribution_of({"value": row["total"], **row})
    if distribution is None:
        return [None] * len(QUANTILES)
    return distribution.quantiles(list(QUANTILES.values()))


# -- paths ---------------------------------------------------------------------------------------
def paths_of(snapshot: Snapshot, glob: str) -> dict[str, tuple[str, ...]]:
    """Return the names of each path that a glob matches, by its text in the column ``path``.

    Raises:
        UsageError: It matches none.
        ProfileFormatError: The store is damaged.
    """
    with snapshot.connect() as connection:
        tree = StackTree.of(connection.sql("FROM stacks").to_arrow_table())
    paths = [tree.path(row) for row in _matched(tree, glob).tolist()]
    return {_joined(path): path for path in paths}


def _joined(path: tuple[str, ...]) -> str:
    return "/".join(path)


def _matched(tree: StackTree, glob: str) -> npt.NDArray[np.int64]:
    """Return the rows that a glob matches.

    Raises:
        UsageError: There are none.
    """
    found = np.flatnonzero(np.array(Selectors([glob]).of_tree(tree), dtype=object) != 0)
    if not len(found):
        raise UsageError(
            f"no call path in the store matches {glob!a}; `proton store ls --paths` lists them"
        )
    return found


def _paths(connection: Any, question: Question) -> pa.Table:
    """Return the stacks whose values belong to each path.

    Without a line for each path they are one, and of matching rows above each other only the
    uppermost has the values below.
    """
    tree = StackTree.of(connection.sql("FROM stacks").to_arrow_table())
    matched, ends = _matched(tree, question.path), subtree_ends(tree.parents)
    is_matched = np.isin(np.arange(len(ends)), matched)
    if PATH in question.by:
        paths = [_joined(tree.path(row)) for row in matched.tolist()]
    else:
        inside = np.maximum.accumulate(np.concatenate([[0], ends[matched][:-1]]))
        matched = matched[matched >= inside]
        paths = [question.path] * len(matched)
    lengths = ends[matched] - matched
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(int(lengths.sum())) + np.repeat(matched - starts, lengths)
    owners = np.repeat(matched, lengths)
    is_own = rows == owners if PATH in question.by else is_matched[rows]
    table = {
        "stack_hash": tree.hashes[rows],
        "path": pa.array(paths, pa.string()).take(np.repeat(np.arange(len(paths)), lengths)),
        "is_own": is_own,
        "owner": tree.hashes[owners],
        "is_owner": rows == owners,
    }
    return pa.table(table)


# -- queries -------------------------------------------------------------------------------------
# A group is named by its values as JSON, which has no NULL and is the same everywhere.
_KEYS = ("path", "group_key")
_OF_CALLS = ("count", "min", "max", "sketch")
_SKETCH = "STRUCT(collapses SMALLINT, zero_count BIGINT, index INT[], count BIGINT[])"


def _chosen(question: Question) -> str:
    """Return the query for the profiles, with the key of their group."""
    columns = [f'"{name}"' for name in question.by if name != PATH]
    condition = where_clause(question.where)
    is_of_run = _OF_RUN.issuperset(question.by)
    return f"""
        SELECT date, job, profile_id, batch, time_unix_nano, len(members) AS members,
            totals[$metric] AS whole, list_contains(integer_metrics, $metric) AS is_integer,
            to_json([{", ".join(f"{each}::VARCHAR" for each in columns)}])
            ::VARCHAR AS group_key, struct_pack({", ".join(columns) or "one := 1"}) AS facts
        FROM ({_coarsest(condition) if is_of_run else f"FROM profiles {condition}"})"""


def _coarsest(condition: str) -> str:
    """Return a query for sums of runs that a condition holds for, and profiles in none of these.

    A sum answers for its profiles only if the condition holds for all that are still there.
    """
    return f"""
        WITH matching AS (FROM all_profiles {condition}),
        partly AS (
            FROM summed SEMI JOIN all_profiles USING (date, job, profile_id)
            ANTI JOIN matching USING (date, job, profile_id)),
        usable AS (
            FROM matching ANTI JOIN (SELECT date, job, sum_id AS profile_id FROM partly)
            USING (date, job, profile_id) WHERE members IS NOT NULL),
        covered AS (
            FROM summed SEMI JOIN (SELECT date, job, profile_id AS sum_id FROM usable)
            USING (date, job, sum_id))
        FROM usable UNION ALL
        (FROM matching ANTI JOIN covered USING (date, job, profile_id) WHERE members IS NULL)"""


def _found(question: Question, profiles: pa.Table) -> str:
    """Return the statement that makes ``found``: the samples of profiles and paths."""
    sketch = "sketch" if question.quantiles else f"NULL::{_SKETCH} AS sketch"
    return f"""
        CREATE TEMP TABLE found AS
        SELECT path, group_key, date, job, profile_id, members, is_integer, owner, is_owner, value,
            count, min, max, {sketch}
        FROM stored_samples JOIN paths USING (stack_hash)
        JOIN (SELECT date, job, profile_id, batch, group_key, members, is_integer FROM chosen)
        USING (date, job, profile_id, batch)
        WHERE sample_type = $type AND sample_unit = $unit AND value IS NOT NULL
        AND (aggregation = 'inc' OR is_own) AND {_partitions(profiles)}"""


# Rows below one with calls are parts of these calls.
_CALLS = """(
    FROM found WHERE is_owner
    UNION ALL
    FROM found ANTI JOIN (FROM found WHERE is_owner AND count > 0)
    USING (date, job, profile_id, owner) WHERE NOT is_owner)"""
# Neither sum depends on the order of files and threads: integers add up exactly, and other numbers
# are sorted.
_SUMS = """
SELECT path, group_key, any_value(members) AS members, sum(value::HUGEINT)::DOUBLE AS total
FROM found WHERE is_integer GROUP BY path, group_key, date, job, profile_id
UNION ALL
SELECT path, group_key, any_value(members) AS members, sum(value ORDER BY value) AS total
FROM found WHERE is_integer IS NOT true GROUP BY path, group_key, date, job, profile_id"""


def _answers(question: Question) -> str:
    """Return the query for the lines of the answer."""
    columns = "".join(
        "path, " if name == PATH else f'facts."{name}" AS "{name}", '
        for name in question.by
        if name != "time_unix_nano"
    )
    return f"""
        WITH groups AS (
            SELECT group_key, any_value(facts) AS facts, min(time_unix_nano) AS time_unix_nano,
                sum(coalesce(members, 1))::BIGINT AS profiles, sum(whole ORDER BY whole) AS whole
            FROM profiles GROUP BY group_key),
        totals AS (
            SELECT path, group_key, sum(coalesce(members, 1))::BIGINT AS present,
                sum(total ORDER BY total) AS total, count(members) = 0 AS are_single,
                min(total) AS least, median(total) AS middle, max(total) AS most
            FROM sums GROUP BY path, group_key)
        SELECT {columns}time_unix_nano, profiles, present, total, total / nullif(whole, 0) AS share,
            CASE WHEN are_single THEN least END AS least,
            CASE WHEN are_single THEN middle END AS middle,
            CASE WHEN are_single THEN most END AS most, count, min, max, sketch
        FROM totals JOIN groups USING (group_key) JOIN calls USING (path, group_key)
        ORDER BY time_unix_nano, group_key, path"""
