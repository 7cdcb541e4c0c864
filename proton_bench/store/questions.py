"""Questions about call paths over many profiles, answered with Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from proton_bench.analysis.choices import QUANTILES
from proton_bench.analysis.query.sql import clear_errors
from proton_bench.analysis.selector import Selectors
from proton_bench.errors import UsageError
from proton_bench.model.arrays import Integers
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.preorder import subtree_ends
from proton_bench.store.checks import Reader
from proton_bench.store.engines import open_memory
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.engines import pyarrow_compute as pc
from proton_bench.store.rows import StackTree
from proton_bench.store.schema import CALLED_BELOW, SCHEMAS
from proton_bench.store.sketches import merged, quantiles_of
from proton_bench.store.store import Partition, Snapshot, quoted, where_clause
from proton_bench.store.workers import open_workers

PATH = "path"
# Of one share: what is in memory together. A sample without its sketch takes an eighth.
_SKETCHES_AT_ONCE, _SAMPLES_AT_ONCE = 250_000, 2_000_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about call paths.

    Attributes:
        path: Glob of call paths, as everywhere: ``fwd/**/softmax*``.
        metric: Full name of a metric.
        by: What answers are grouped by: columns of ``profiles``, and "path" for each path that the
            glob matches.
        where: Condition in SQL over the columns of ``profiles``.
        quantiles: Whether quantiles of the calls are wanted: reading these takes most of the time.
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
        and ``most`` (of the sums of single profiles), and of the calls: ``count``, ``min`` and
        ``max``, those of all rows below in a profile where the matching row has none, and the
        quantiles of `QUANTILES` (none where a part of the calls has no sketch, and where the
        matching row has no calls itself: those of different kernels together say little).

    Raises:
        UsageError: The condition is wrong, or the glob matches no path.
        ProfileFormatError: The store is damaged.
    """
    chosen = choose(snapshot, question)
    with open_workers() as workers:
        read = partial(parts_of, snapshot, question, paths=chosen.paths)
        parts = workers.joined(read, _shares(question, chosen, workers.tasks), combined)
    return answer(question, chosen, parts)


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """What a question is about.

    Attributes:
        profiles: A line for each profile and for each sum of some of them: its key, its number, its
            group, and facts of it. The calls of a sum are those of its profiles together, so parts
            of these lines have the profiles of a sum beside it.
        groups: A line for each group: its number, by time, and facts of it.
        paths: The stacks that match, with the number of their path. Those that are uppermost have
            what lies below them too.
        names: The paths by their numbers.
    """

    profiles: pa.Table
    groups: pa.Table
    paths: pa.Table
    names: Sequence[str]


class Parts(NamedTuple):
    """What samples say of some profiles; `combined` adds what they say of others.

    A tuple, because Dask knows how much memory the items of a tuple take.

    Attributes:
        sums: A line for each profile and path: the sum of its values.
        calls: A line for each path of the groups that other profiles belong to as well: what
            `merged` gives.
        answered: A line for each path of the other groups: the same, with quantiles in place of
            the sketches, which are a hundred times as large.
    """

    sums: pa.Table
    calls: pa.Table
    answered: pa.Table


def choose(snapshot: Snapshot, question: Question) -> Chosen:
    """Return what a question is about; errors are those of `path_series`."""
    matching = _matching(question)
    with snapshot.connect("".join(["stacks", matching, *_GROUPED])) as reader:
        paths, names = _paths(reader, question)
        with clear_errors():
            reader.execute(matching, {"metric": question.metric})
        for statement in _GROUPED:
            reader.execute(statement)
        profiles, groups = map(reader.table, (_CHOSEN, _GROUPS))
        return Chosen(profiles, groups, paths, names)


def parts_of(
    snapshot: Snapshot, question: Question, profiles: pa.Table, *, paths: pa.Table
) -> Parts:
    """Return what the samples of these profiles say; errors are those of `path_series`.

    Args:
        snapshot: The store.
        question: What is asked.
        profiles: Lines of those of `Chosen`, with ``is_split``: whether there are others of their
            group.
        paths: Those of `Chosen`.
    """
    partitions = Partition.of_rows(profiles)
    spec = MetricSpec(question.metric)
    condition = f"sample_type = {quoted(spec.base)} AND sample_unit = {quoted(spec.unit)}"
    needed = "stored_samples stored_sums"
    with snapshot.connect(needed, partitions) as reader:
        reader.register("paths", paths)
        reads = []
        for kind, of_kind in _kinds(profiles).items():
            reader.register(kind, of_kind)
            settings = {
                "table": "stored_sums" if kind == "wholes" else "stored_samples",
                "calls": _NO_CALLS if kind == "parts" else _CALLS_OF_ROWS,
                "quantiles": question.quantiles and kind != "parts",
            }
            reads.append(_READ.format(kind=kind, condition=condition, **settings))
        reader.execute(f"CREATE TEMP TABLE own AS {' UNION ALL '.join(reads)}")
        sums, calls = map(reader.table, (_SUMS, _CALLS))
    calls = merged(calls, _KEYS)
    split = pc.unique(profiles.filter(profiles["is_split"])["group_number"])
    is_split = pc.is_in(calls["group_number"], split)
    return Parts(sums, calls.filter(is_split), _answered(calls.filter(pc.invert(is_split))))


def _answered(calls: pa.Table) -> pa.Table:
    """Return calls with quantiles in place of their sketches."""
    quantiles = quantiles_of(calls, list(QUANTILES.values()))
    for name, values in zip(QUANTILES, quantiles, strict=True):
        calls = calls.append_column(name, values)
    return calls.drop_columns(["sketch"])


def _kinds(profiles: pa.Table) -> dict[str, pa.Table]:
    """Return profiles in no sum, those in one, and sums, as far as there are any."""
    is_sum, in_sum = pc.is_valid(profiles["members"]), pc.is_valid(profiles["sum"])
    of_kinds = {
        "alone": pc.invert(pc.or_(is_sum, in_sum)),
        "parts": pc.and_not(in_sum, is_sum),
        "wholes": is_sum,
    }
    found = {kind: profiles.filter(flags) for kind, flags in of_kinds.items()}
    return {kind: each for kind, each in found.items() if len(each)} or {"alone": profiles}


def _shares(question: Question, chosen: Chosen, tasks: int) -> Iterator[pa.Table]:
    """Yield the profiles for `parts_of`, in about so many shares, those of a day and job together.

    Their files are then read once. What a share takes is bounded by more of them.
    """
    profiles = chosen.profiles
    called = sum(len(each) for kind, each in _kinds(profiles).items() if kind != "parts")
    samples, sketches = (lines * len(chosen.paths) for lines in (len(profiles), called))
    if not question.quantiles:
        sketches = 0
    tasks = max(tasks, samples // _SAMPLES_AT_ONCE + 1, sketches // _SKETCHES_AT_ONCE + 1)
    order = pc.sort_indices(profiles, [("job", "ascending"), ("date", "ascending")])
    keys = [profiles[name].take(order).combine_chunks() for name in ("job", "date")]
    codes = [key.dictionary_encode().indices.to_numpy() for key in keys]
    starts = np.flatnonzero(np.any([np.diff(each, prepend=-1) != 0 for each in codes], axis=0))
    shares = starts * tasks // max(len(profiles), 1)
    cuts = starts[np.diff(shares, prepend=-1) > 0].tolist() or [0]
    bounds = list(pairwise([*cuts, len(profiles)]))
    groups = profiles["group_number"].take(order).to_numpy()
    found = np.zeros(len(chosen.groups) + 1, "<i4")
    for begin, end in bounds:
        found[np.unique(groups[begin:end])] += 1
    is_split = pa.array(found[groups] > 1)
    for begin, end in bounds:
        # A slice would be sent with all that it is a slice of.
        taken = profiles.take(order[begin:end])
        yield taken.append_column("is_split", is_split[begin:end])


def combined(parts: Sequence[Parts]) -> Parts:
    """Return the parts of several sets of profiles as one; order and steps do not matter."""
    sums, calls, answered = (
        pa.concat_tables(tables, promote_options="permissive")
        for tables in zip(*parts, strict=True)
    )
    return Parts(sums, merged(calls, _KEYS), answered)


def answer(question: Question, chosen: Chosen, parts: Parts) -> pa.Table:
    """Return what `path_series` returns, from the parts of all chosen profiles."""
    calls = pa.concat_tables([parts.answered, _answered(parts.calls)])
    with open_memory() as connection:
        connection.register("groups", chosen.groups)
        connection.register("sums", parts.sums)
        connection.register("calls", calls)
        found: pa.Table = connection.sql(_answers(question)).to_arrow_table()
    if PATH in question.by:
        names = pa.array(chosen.names, pa.string()).take(found[PATH])
        found = found.set_column(found.column_names.index(PATH), PATH, names)
    return found


def _joined(path: tuple[str, ...]) -> str:
    return "/".join(path)


def _matched(tree: StackTree, glob: str) -> Integers:
    """Return the rows that a glob matches.

    Raises:
        UsageError: There are none.
    """
    found = np.flatnonzero(np.array(Selectors([glob]).of_tree(tree), dtype=object) != 0)
    if not len(found):
        raise UsageError(
            f"no call path in the store matches {glob!a}; `proton store path STORE '**' --by path` "
            "lists them"
        )
    return found


def _paths(reader: Reader, question: Question) -> tuple[pa.Table, list[str]]:
    """Return the stacks that match, with the number of the path that their values belong to.

    Without a line for each path they are one, and of matching rows above each other only the
    uppermost has the values below.
    """
    tree = StackTree.of(reader.table("FROM stacks"))
    matched, ends = _matched(tree, question.path), subtree_ends(tree.parents)
    if PATH in question.by:
        paths = [_joined(tree.path(row)) for row in matched.tolist()]
        is_uppermost = np.ones(len(matched), np.bool_)
    else:
        paths = [question.path] * len(matched)
        is_uppermost = matched >= np.maximum.accumulate(np.concatenate([[0], ends[matched][:-1]]))
    names = sorted(set(paths))
    numbers = {name: number for number, name in enumerate(names)}
    columns = {
        "stack_hash": tree.hashes[matched],
        PATH: np.array([numbers[path] for path in paths], dtype="<i4"),
        "is_uppermost": is_uppermost,
    }
    return pa.table(columns), names


# -- queries -------------------------------------------------------------------------------------
_KEYS = ("path", "group_number")


def _matching(question: Question) -> str:
    """Return the statement that makes ``matching``: the profiles, with the facts of their group."""
    columns = [f'"{name}"' for name in question.by if name != PATH]
    return f"""
        CREATE TEMP TABLE matching AS
        SELECT date, job, profile_id, batch, time_unix_nano, len(members) AS members,
            totals[$metric] AS whole, list_contains(integer_metrics, $metric) AS is_integer,
            struct_pack({", ".join(columns) or "one := 1"}) AS facts
        FROM profiles {where_clause(question.where)}"""


_GROUPED = (
    # Where groups begin at one time, their facts as JSON say which is the first: it has no NULL.
    """
    CREATE TEMP TABLE groups AS
    SELECT *, (row_number() OVER (ORDER BY time_unix_nano, to_json(facts)::VARCHAR))::INT
        AS group_number
    FROM (
        SELECT facts, min(time_unix_nano) AS time_unix_nano,
            sum(coalesce(members, 1))::BIGINT AS profiles, sum(whole ORDER BY whole) AS whole
        FROM matching GROUP BY facts)""",
    """
    CREATE TEMP TABLE numbered_sums AS
    SELECT *, (-row_number() OVER (ORDER BY profile_id))::INT AS number FROM every_sum""",
    # A profile may be in two sums for some time, if two commands sum a run at once.
    """
    CREATE TEMP TABLE in_sums AS
    SELECT matching.rowid AS number, group_number, max(summed.number) AS sum
    FROM matching JOIN groups USING (facts)
    JOIN (SELECT date, job, unnest(members) AS profile_id, number FROM numbered_sums) AS summed
    USING (date, job, profile_id) WHERE members IS NULL GROUP BY ALL""",
    # A sum stands for its profiles if all of them are chosen, for one group.
    """
    CREATE TEMP TABLE sums AS
    SELECT date, job, profile_id, batch, group_number, number, found AS members
    FROM numbered_sums JOIN (
        SELECT sum AS number, count(*) AS found, min(group_number) AS group_number
        FROM in_sums GROUP BY sum HAVING min(group_number) = max(group_number))
    USING (number) WHERE len(members) = found""",
)
# ``sum`` is the number of the sum of a profile, and that of a sum itself.
_CHOSEN = """
SELECT matching.* EXCLUDE (facts, whole, time_unix_nano), groups.group_number,
    (matching.rowid + 1)::INT AS number, sums.number AS sum
FROM matching JOIN groups USING (facts) LEFT JOIN in_sums ON in_sums.number = matching.rowid
LEFT JOIN sums ON sums.number = in_sums.sum
UNION ALL BY NAME SELECT *, number AS sum FROM sums"""
_GROUPS = "FROM groups"


# Columns of calls; those of profiles in a sum are in that of the sum.
_CALLS_OF_ROWS = "count, min, max, below"
_NO_CALLS = """
    NULL::BIGINT AS count, NULL::DOUBLE AS min, NULL::DOUBLE AS max,
    {'value': below.value, 'count': NULL::BIGINT, 'min': NULL::DOUBLE, 'max': NULL::DOUBLE}
        AS below"""
# What the profiles of a kind say of the rows that match.
_READ = """
SELECT path, group_number, number, sum, members, is_integer, value, {calls},
    CASE WHEN {quantiles} THEN sketch END AS sketch
FROM (FROM {table} WHERE {condition}) JOIN {kind} USING (profile_id, batch)
JOIN paths USING (stack_hash)
WHERE (is_uppermost OR aggregation != 'inc')
AND (value IS NOT NULL OR below IS NOT NULL)"""
# Neither sum depends on the order of files and threads: integers add up exactly, and other numbers
# are sorted.
_SUMS = """
SELECT path, group_number, any_value(members) AS members,
    sum(coalesce(value, 0)::HUGEINT + coalesce(below.value, 0)::HUGEINT)::DOUBLE AS total
FROM own WHERE is_integer AND number > 0 GROUP BY path, group_number, number
UNION ALL
SELECT path, group_number, any_value(members) AS members, sum(total ORDER BY total) AS total
FROM (SELECT *, coalesce(value, 0) + coalesce(below.value, 0) AS total FROM own)
WHERE is_integer IS NOT true AND number > 0 GROUP BY path, group_number, number"""
# Each calls once: of a profile, or of the sum that stands for it.
_CALLS = f"""
WITH calls AS (FROM own WHERE sum IS NULL OR number < 0)
SELECT path, group_number, count, min, max, sketch FROM calls WHERE value IS NOT NULL
UNION ALL
SELECT path, group_number, below.count, below.min, below.max, NULL FROM calls
WHERE {CALLED_BELOW}"""


def _answers(question: Question) -> str:
    """Return the query for the lines of the answer."""
    columns = "".join(
        "path, " if name == PATH else f'facts."{name}" AS "{name}", '
        for name in question.by
        if name != "time_unix_nano"
    )
    return f"""
        WITH totals AS (
            SELECT path, group_number, sum(coalesce(members, 1))::BIGINT AS present,
                sum(total ORDER BY total) AS total, count(members) = 0 AS are_single,
                min(total) AS least, median(total) AS middle, max(total) AS most
            FROM sums GROUP BY path, group_number)
        SELECT {columns}time_unix_nano, profiles, present, total, total / nullif(whole, 0) AS share,
            CASE WHEN are_single THEN least END AS least,
            CASE WHEN are_single THEN middle END AS middle,
            CASE WHEN are_single THEN most END AS most, count, min, max, {", ".join(QUANTILES)}
        FROM totals JOIN groups USING (group_number) LEFT JOIN calls USING (path, group_number)
        ORDER BY group_number, path"""
