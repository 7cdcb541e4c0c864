"""The steady step of a program: what one of its steps takes, without set-up and warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from proton_bench.model.metrics.device_use import DeviceUse
from proton_bench.model.metrics.metric import Aggregation, MetricColumn, ValueKind
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance

_KEY = "steps"
# The host is sampled about 100 times a second; fewer samples say nothing of it.
LEAST_SAMPLED_NS = 200_000_000
HOST_WALL = "host_wall (ns)"
SAMPLED = frozenset({HOST_WALL, "idle (ns)", "other_threads (ns)"})
_DURATIONS = ("busy_ns", "idle_ns", "long_idle_ns", "waiting_ns", "uncertain_ns")


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
        if not all(type(value) is int and value >= 0 for value in values.values()):
            return None
        return cls(*texts, **values) if values["count"] else None  # type: ignore[arg-type]


def length_word(profile: Profile) -> str:
    """Return what the length of a profile is that of: ``step``, or ``run``."""
    return "run" if Steps.of(profile.provenance) is None else "step"


def per_step(steady: Profile, whole: Profile) -> Profile:
    """Return the profile of the mean step: sums, busy times and the length of the run divided.

    Quantiles are those of all steps. Samples of the host add up to the length of the steps, and are
    left out of less than `LEAST_SAMPLED_NS`.

    Args:
        steady: The steady steps; a profile that is not about steps is returned as it is.
        whole: Their run, whose cost they share by their launches.
    """
    steps = Steps.of(steady.provenance)
    if steps is None:
        return steady
    facts = steady.provenance
    length_ns = facts["end_time_ns"] - facts["start_time_ns"]
    cost_ns, launches = whole.provenance.get("estimated_cost_ns"), _launches(whole)
    if type(cost_ns) is int and launches:
        cost_ns = round(cost_ns * _launches(steady) / launches / steps.count)
    facts = facts.updated(
        end_time_ns=facts["start_time_ns"] + length_ns // steps.count, estimated_cost_ns=cost_ns
    )
    columns = {}
    for name, column in steady.columns.items():
        if name not in SAMPLED:
            columns[name] = _divided(column, steps.count)
        elif length_ns >= LEAST_SAMPLED_NS:
            columns[name] = _divided(column, steps.count * _sampled_ns(steady) / length_ns)
    uses = tuple(_divided_use(use, steps.count) for use in steady.device_use)
    return replace(steady, columns=columns, device_use=uses, provenance=facts)


def _launches(profile: Profile) -> float:
    return float(profile.inclusive("count")[0]) if profile.has_numbers("count") else 0.0


def _sampled_ns(profile: Profile) -> float:
    """Return the time of all samples of the main thread, which begin and end beside the steps."""
    return float(profile.inclusive(HOST_WALL)[0]) if profile.has_numbers(HOST_WALL) else 1.0


def _divided(column: MetricColumn, count: float) -> MetricColumn:
    is_sum = column.spec.aggregation is not Aggregation.PROPERTY
    if not (is_sum and (column.kind.is_number or column.kind.is_vector)):
        return column
    if column.values.dtype.kind == "i" and not bool((column.values % count).any()):
        return replace(column, values=(column.values / count).astype(column.values.dtype))
    kind = ValueKind.FLOAT_VECTOR if column.kind.is_vector else ValueKind.FLOAT
    return replace(column, kind=kind, values=column.values / count)


def _divided_use(use: DeviceUse, count: int) -> DeviceUse:
    return replace(use, **{name: getattr(use, name) // count for name in _DURATIONS})
