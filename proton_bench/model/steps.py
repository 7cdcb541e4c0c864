"""The steady step of a program: what one of its steps takes, without set-up and warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.memory import AT_A_MOMENT
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.metrics.wall_times import WALL
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

_KEY = "steps"
# The host is sampled about 100 times a second; fewer samples say nothing of it.
LEAST_SAMPLED_NS = 100_000_000
HOST_WALL = "host_wall (ns)"
# Where the threads were, also in a program that launched and entered nothing.
SAMPLED = frozenset({HOST_WALL, "idle (ns)", "other_threads (ns)"})
_LEAST_SAMPLED = 0.5  # of the steps; fewer samples do not represent them
_DURATIONS = ("busy_ns", "idle_ns", "long_idle_ns", "waiting_ns", "uncertain_ns")
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps of a run a profile is about.

    Attributes:
        by: What showed them: ``declared``, ``profiler``, ``optimizer``, ``scope``, ``layer`` or
            ``graph``.
        name: Name of the scope, layer or optimizer.
        first: Number of the first of them among those of the run, from 1.
        count: How many they are.
        begun: How many steps the run began.
        low_ns: Quantile 0.1 of their durations.
        median_ns: Their median.
        high_ns: Quantile 0.9.
        before_ns: From the start of the recording to the first of them.
        run_ns: Length of the whole run.
    """

    by: str
    name: str
    first: int
    count: int
    begun: int
    low_ns: int
    median_ns: int
    high_ns: int
    before_ns: int
    run_ns: int

    @classmethod
    def of(cls, facts: Provenance) -> Steps | None:
        """Return the steps that a profile is about, None for one of a whole run."""
        given = facts.get(_KEY)
        if not isinstance(given, Mapping):
            return None
        values = {each.name: given.get(each.name) for each in fields(cls)}
        texts = [values.pop("by"), values.pop("name")]
        if not all(isinstance(text, str) for text in texts):
            return None
        if not all(type(value) is int and 0 <= value <= _LARGEST for value in values.values()):
            return None
        return cls(*texts, **values) if values["count"] else None  # type: ignore[arg-type]


def length_word(profile: Profile) -> str:
    """Return what the length of a profile is that of: ``step``, or ``run``."""
    return "run" if Steps.of(profile.provenance) is None else "step"


def steps_in(profile: Profile) -> int:
    """Return how many steps the values of a profile are the mean of, 1 for a whole run."""
    steps = Steps.of(profile.provenance)
    return 1 if steps is None else steps.count


def per_step(steady: Profile, whole: Profile) -> Profile | None:
    """Return the profile of the mean step: sums, busy times and the length of the run divided.

    Memory is that of the steps at their peak. Quantiles are those of all steps. Samples of the host
    add up to the length of the steps, and are left out of less than `LEAST_SAMPLED_NS`.

    Args:
        steady: The steady steps; the result is None if it does not say which they are.
        whole: Their run, whose cost they share by their records.
    """
    steps, facts = Steps.of(steady.provenance), steady.provenance
    begin_ns, end_ns = facts.get("start_time_ns"), facts.get("end_time_ns")
    if steps is None or type(begin_ns) is not int or type(end_ns) is not int or end_ns <= begin_ns:
        return None
    length_ns = end_ns - begin_ns
    facts = facts.updated(
        end_time_ns=begin_ns + length_ns // steps.count,
        estimated_cost_ns=_cost_ns(steady, whole, steps.count),
    )
    sampled_ns = float(steady.inclusive(HOST_WALL)[0]) if steady.has_numbers(HOST_WALL) else 0.0
    is_sampled = length_ns >= LEAST_SAMPLED_NS and sampled_ns >= _LEAST_SAMPLED * length_ns
    columns = {}
    for name, column in steady.columns.items():
        if name in AT_A_MOMENT:
            columns[name] = column
        elif name not in SAMPLED:
            columns[name] = divided(column, steps.count)
        elif is_sampled:  # samples begin and end beside the steps
            columns[name] = divided(column, steps.count * sampled_ns / length_ns)
    uses = tuple(_divided_use(use, steps.count) for use in steady.device_use)
    return replace(
        steady,
        columns=columns,
        device_use=uses,
        provenance=facts,
        partial=whole.partial,
        whole=whole,
    )


def _cost_ns(steady: Profile, whole: Profile, count: int) -> int | None:
    """Return the part of the cost of a run that records of one step took, None if unknown."""
    cost_ns, records = whole.provenance.get("estimated_cost_ns"), _records(whole)
    if type(cost_ns) is not int or not records:
        return None
    return round(cost_ns * min(_records(steady) / records, 1.0) / count)


def _records(profile: Profile) -> float:
    """Return how many launches, operators and timed scopes were recorded."""
    counted = float(profile.inclusive("count")[0]) if profile.has_numbers("count") else 0.0
    scopes = profile.distributions.get(WALL)
    return counted + (float(scopes.n.sum()) if scopes is not None else 0.0)


def divided(column: MetricColumn, count: float) -> MetricColumn:
    """Return the column with sums divided."""
    is_sum = column.spec.aggregation is not Aggregation.PROPERTY
    if not (is_sum and (column.kind.is_number or column.kind.is_vector)):
        return column
    if column.values.dtype.kind == "i" and not bool((column.values % count).any()):
        return replace(column, values=(column.values / count).astype(column.values.dtype))
    kind = ValueKind.FLOAT_VECTOR if column.kind.is_vector else ValueKind.FLOAT
    return replace(column, kind=kind, values=column.values / count)


def _divided_use(use: DeviceUse, count: int) -> DeviceUse:
    launches = max(round(use.launches / count), min(use.launches, 1))
    # The mean latency is that of all launches.
    latency_sum_ns = use.latency_sum_ns * launches // max(use.launches, 1)
    return replace(
        use,
        launches=launches,
        latency_clamped=round(use.latency_clamped / count),
        latency_sum_ns=latency_sum_ns,
        **{name: getattr(use, name) // count for name in _DURATIONS},
    )
