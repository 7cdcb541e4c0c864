"""Everything that a profile says about the work of one row, gathered for the rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from proton_bench.analysis.accounting.device_use import DeviceVerdict, device_verdicts
from proton_bench.analysis.accounting.host_time import (
    is_compilation,
    is_input,
    recorded_times,
    run_ns,
)
from proton_bench.analysis.kernels.gpu_facts import (
    counter_facts,
    cpu_counter_error,
    gpm_means,
)
from proton_bench.analysis.kernels.stall_reasons import REASON, SELECTED, explain_stall, has_samples
from proton_bench.analysis.metrics.formula import FLOPS_WIDTHS, SECONDS
from proton_bench.analysis.metrics.measured_work import interval_half
from proton_bench.analysis.metrics.peak import clock_ratio, device_peaks
from proton_bench.analysis.metrics.values import WIDEST, own_ns, own_numbers
from proton_bench.analysis.naming.kernel_names import kernel_texts
from proton_bench.analysis.view.names import rows_below
from proton_bench.analysis.why.launch_facts import Launch, launch_means
from proton_bench.model import preorder
from proton_bench.model.arrays import Floats
from proton_bench.model.device import Device
from proton_bench.model.frame import CAPTURED_NAME, FrameKind
from proton_bench.model.metrics.counter_columns import (
    COUNTED_TIME,
    CYCLES,
    USUAL_CEILINGS,
    bias_column,
    busy_column,
    is_ceiling,
    variance_column,
)
from proton_bench.model.metrics.metric import MetricSpec
from proton_bench.model.metrics.wall_times import is_span, spans_of
from proton_bench.model.profile import Profile
from proton_bench.model.provenance import Provenance
from proton_bench.model.steps import HOST_WALL

SOURCE = "ceilings"
_KEY = "ceilings_measured"


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Fractions of the peak of each unit that this GPU reaches.

    Attributes:
        fractions: By quantity: ``dram``, ``tensor`` and so on.
        measured: The quantities that were measured on this GPU; the others are defaults.
    """

    fractions: Mapping[str, float]
    measured: frozenset[str] = frozenset()

    @classmethod
    def of(cls, provenance: Provenance) -> Ceilings:
        """Return the ceilings in the provenance of a profile, with defaults for missing ones.

        A file may contain anything: values that cannot be fractions of a peak are ignored. Several
        GPUs may have one mapping each; the lowest ceiling counts.
        """
        found: dict[str, float] = {}
        for quantity, value in _pairs(provenance.get(SOURCE)):
            if quantity in USUAL_CEILINGS:
                found[quantity] = min(value, found.get(quantity, value))
        said = provenance.get(_KEY)
        measured = found if said is None else said if isinstance(said, tuple) else ()
        return cls(
            {**USUAL_CEILINGS, **found}, frozenset(each for each in found if each in measured)
        )


def _pairs(said: object, depth: int = 1) -> list[tuple[str, float]]:
    if not isinstance(said, Mapping):
        return []
    pairs: list[tuple[str, float]] = []
    for name, value in said.items():
        if isinstance(value, Mapping) and depth:
            pairs += _pairs(value, depth - 1)
        elif is_ceiling(value):
            pairs.append((str(name), float(value)))
    return pairs


INPUT, COMPILATION = "input", "compilation"
_PURPOSES = {INPUT: is_input, COMPILATION: is_compilation}
_CPU = "CPU"
# Rows of these kinds are of the host where they name no device.
_HOST_KINDS = tuple(
    int(kind)
    for kind in (
        FrameKind.OP,
        FrameKind.SCOPE,
        FrameKind.LAYER,
        FrameKind.PYTHON,
        FrameKind.TEST,
        FrameKind.STATE,
    )
)
# Quantities that a set of counters may have, with their words.
QUANTITIES: Mapping[str, str] = {
    "tensor": "tensor cores",
    "fp32": "FP32 pipe",
    "fp64": "FP64 pipe",
    "alu": "integer pipe",
    "xu": "special function pipe",
    "issue": "instruction issue",
    "dram": "DRAM",
    "l2": "L2",
    "l2_requests": "L2 tags",
    "l2_slice": "busiest slice of L2",
    "l1": "L1",
    "shared": "shared memory",
    "sm_active": "multiprocessors active",
}
# Half width of the 95 % interval above which an estimate is not used, as a fraction.
_LEAST_COVERED = 0.05  # of a row's time: a merged file may have counters of one run of many
_MEASURED = 0.9  # of the time in which devices were in use
_LITTLE_USED = 0.35  # of a row's time, and half of what makes a unit its limit


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a unit's peak was used.

    Attributes:
        fraction: Of the peak, from 0 to 1.
        half_width: Half the width of the 95 % interval, in the same unit; 0 if exact.
        ceiling: The fraction that this GPU reaches in practice; 1 where that is not a limit.
    """

    fraction: float
    half_width: float = 0.0
    ceiling: float = 1.0

    @property
    def ratio(self) -> float:
        """What was used / what can be used."""
        return self.fraction / self.ceiling

    @property
    def half_ratio(self) -> float:
        """Half the width of the interval of `ratio`."""
        return self.half_width / self.ceiling


@dataclass(frozen=True, slots=True)
class Stalls:
    """PC samples of a row.

    Attributes:
        shares: Parts of the stalled samples by reason, the largest first.
        samples: Number of stalled samples.
        place: The line with most samples of the first reason, "" if unknown.
    """

    shares: tuple[tuple[str, float], ...]
    samples: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What is known of the work of one row.

    Attributes:
        name: Name of the kernel in its short form.
        kind: What the row is.
        time_ns: Time of its own.
        beside_ns: The part of it on threads beside the main one.
        launches: Launches, 0 if unknown.
        is_captured: Whether they are kernels of CUDA graphs, which the host launches as a whole.
        purpose: `INPUT` if it reads batches of a DataLoader, `COMPILATION` if it compiles, also of
            work inside of that; else "".
        device: Where it ran, None if unknown.
        uses: Use of units by quantity, if known well enough.
        withheld: Uses that are not known well enough.
        unused: Units that the whole run used too little to be the limit of this row.
        has_counters: Whether the profile has counters at all.
        refusal: Why it has none although the run asked for them, "" for none.
        coverage: Part of the time that counters stand for, from 0 to 1.
        burst_period_ns: Time from one burst of samples to the next, on average; NaN if unknown.
        clock: SM clock while it ran / highest clock; NaN if unknown.
        launch: Facts of its launches.
        stalls: PC samples, None without.
        declared: What the program said of its work: the least time / time by "bytes" and "flops32";
            by "code_bytes" that of all bytes that its code asks for, if DRAM moved them.
        moved_bytes: Bytes of a copy, or those that the program declares; 0 if unknown.
        use_of_device: How busy its device was, None if unknown.
    """

    name: str
    kind: FrameKind
    time_ns: float
    beside_ns: float = 0.0
    launches: float = 0.0
    is_captured: bool = False
    purpose: str = ""
    device: Device | None = None
    uses: Mapping[str, Use] = field(default_factory=dict)
    withheld: Mapping[str, Use] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()
    has_counters: bool = False
    refusal: str = ""
    coverage: float = 0.0
    burst_period_ns: float = math.nan
    clock: float = math.nan
    launch: Launch = field(default_factory=Launch)
    stalls: Stalls | None = None
    declared: Mapping[str, float] = field(default_factory=dict)
    moved_bytes: float = 0.0
    use_of_device: DeviceVerdict | None = None

    @property
    def mean_ns(self) -> float:
        """Time of one launch, NaN if unknown."""
        return self.time_ns / self.launches if self.launches > 0 else math.nan

    def is_known(self, quantity: str) -> bool:
        """Return whether it is known if a unit is what limits the row."""
        return quantity in self.uses or quantity in self.unused

    @property
    def is_on_host(self) -> bool:
        """Whether it is of the host: also a range whose file names no device."""
        return self.device_kind == _CPU or (self.device is None and self.kind in _HOST_KINDS)

    @property
    def device_kind(self) -> str:
        """The kind of its device, such as "CUDA"; "" if unknown."""
        return self.device.kind if self.device is not None else ""


class Facts:
    """The facts of every row of a profile.

    Args:
        profile: Variants may have been folded if `with_launch_facts` was applied before.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._known: dict[int, RowFacts] = {}  # rules and findings ask several times
        self.ceilings = Ceilings.of(profile.provenance)
        self.own_ns, self._beside_ns = _own_times(profile)
        self._counts = own_numbers(profile, "count")
        self._all_counts = preorder.sums(
            profile.parents, np.where(self.own_ns > 0, np.maximum(self._counts, 0.0), 0.0)
        )
        is_captured = np.array([text == CAPTURED_NAME for text in profile.strings], dtype=np.bool_)
        self._is_captured = rows_below(is_captured[profile.frames], profile.subtree_end)
        self._purposes = {
            purpose: rows_below(
                np.array(list(map(serves, profile.strings)), dtype=np.bool_)[profile.frames],
                profile.subtree_end,
            )
            for purpose, serves in _PURPOSES.items()
        }
        self._uses, self._halves = _counters(profile)
        self._counter_time = _inclusive(profile, COUNTED_TIME)
        sampled, wall_ns = counter_facts(profile), run_ns(profile)
        self._refusal = sampled.error if sampled is not None else ""
        bursts = sampled.bursts if sampled is not None else 0
        self._burst_period_ns = wall_ns / bursts if bursts and wall_ns else math.nan
        self.processor_refusal = cpu_counter_error(profile)
        self._cycles = _inclusive(profile, CYCLES)
        self._launches = launch_means(profile)
        self._stalls = _stall_columns(profile)
        self._declared = {name: own_numbers(profile, name) for name in _WORK}
        self._peaks = [device_peaks(device) for device in profile.devices]
        devices = device_verdicts(profile)
        self._busy_in_run = _busy_in_run(profile, devices)
        self._verdicts = {each.use.device: each for each in devices}
        worked = np.unique(profile.device_rows[self.own_ns > 0])
        named = {profile.devices[place].kind for place in worked[worked >= 0].tolist()}
        kinds = profile.kinds[self.own_ns > 0]
        on_host = {_CPU} if len(kinds) and bool(np.isin(kinds, _HOST_KINDS).all()) else set()
        self.device_kinds = named or on_host or {device.kind for device in profile.devices}
        kernels = np.flatnonzero((profile.kinds == FrameKind.KERNEL) & (self.own_ns > 0))
        self._texts = kernel_texts({profile.name(row) for row in kernels.tolist()})

    @property
    def has_counters(self) -> bool:
        """Whether the profile has counters."""
        return bool(self._uses)

    @property
    def has_stalls(self) -> bool:
        """Whether the profile has PC samples with reasons."""
        return bool(self._stalls)

    def rows(self) -> list[int]:
        """Return the rows with time of their own."""
        found: list[int] = np.flatnonzero(self.own_ns > 0).tolist()
        return found

    def text(self, row: int) -> str:
        """Return the short form of the name of a row with time of its own."""
        name = self.profile.name(row)
        return self._texts.get(name, name)

    def launches(self, row: int) -> float:
        """Return the calls of a row, or else the launches below it; 0 if unknown."""
        own = float(self._counts[row]) if self.own_ns[row] > 0 else 0.0
        return own if own > 0 else float(self._all_counts[row])

    def of(self, row: int) -> RowFacts:
        """Return the facts of a row with time of its own."""
        found = self._known.get(row)
        if found is None:
            found = self._known[row] = self._gathered(row)
        return found

    def _gathered(self, row: int) -> RowFacts:
        profile = self.profile
        place = int(profile.device_rows[row])
        device = profile.device(row)
        is_cpu = device is not None and device.kind == _CPU
        uses, withheld = self._of_counters(row)
        time_ns = float(self.own_ns[row])
        covered = float(self._counter_time[row]) / time_ns if self.has_counters else 0.0
        return RowFacts(
            name=self.text(row),
            kind=profile.kind(row),
            time_ns=time_ns,
            beside_ns=float(self._beside_ns[row]),
            launches=max(float(self._counts[row]), 0.0),
            is_captured=bool(self._is_captured[row]),
            purpose=next((each for each, rows in self._purposes.items() if rows[row]), ""),
            device=device,
            uses=uses if covered >= _LEAST_COVERED else {},
            withheld=withheld,
            unused=frozenset(
                unit
                for unit, busy_ns in self._busy_in_run.items()
                if busy_ns < _LITTLE_USED * time_ns
            ),
            has_counters=self.has_counters,
            refusal=self.processor_refusal if is_cpu else self._refusal,
            coverage=min(max(covered, 0.0), 1.0),
            burst_period_ns=self._burst_period_ns,
            clock=clock_ratio(device, float(self._cycles[row]), float(self._counter_time[row])),
            launch=Launch(**{name: float(values[row]) for name, values in self._launches.items()}),
            stalls=self._of_stalls(row),
            declared=self._of_work(row, place),
            moved_bytes=float(self._declared["bytes"][row]),
            use_of_device=self._verdicts.get(place),
        )

    def _of_counters(self, row: int) -> tuple[dict[str, Use], dict[str, Use]]:
        uses: dict[str, Use] = {}
        withheld: dict[str, Use] = {}
        for quantity, fractions in self._uses.items():
            fraction, half = float(fractions[row]), float(self._halves[quantity][row])
            if not (math.isfinite(fraction) and math.isfinite(half)):
                continue
            ceiling = self.ceilings.fractions.get(quantity, 1.0)
            use = Use(max(fraction, 0.0), half, ceiling)
            (uses if half * 100 <= WIDEST else withheld)[quantity] = use
        return uses, withheld

    def _of_stalls(self, row: int) -> Stalls | None:
        found = {name: float(values[row]) for name, values in self._stalls.items()}
        total = sum(found.values())
        if not (math.isfinite(total) and total > 0):
            return None
        order = sorted(found, key=lambda name: (-found[name], name))
        shares = tuple((name, found[name] / total) for name in order if found[name] > 0)
        return Stalls(shares, total, self._place(row, shares[0][0]))

    def _place(self, row: int, reason: str) -> str:
        values = self._stalls[reason]
        lines = [
            each
            for each in self.profile.children(row)
            if self.profile.kind(each) is FrameKind.LINE and values[each] > 0
        ]
        best = max(lines, key=lambda each: float(values[each]), default=None)
        if best is None:
            return ""
        # `folder/attn.py:41@kernel` is `attn.py:41` here: rows below show it in full.
        return self.profile.name(best).partition("@")[0].rpartition("/")[2]

    def _of_work(self, row: int, place: int) -> dict[str, float]:
        time_s = float(self.own_ns[row]) * SECONDS["ns"]
        if place < 0 or time_s <= 0:
            return {}
        found: dict[str, float] = {}
        for name, values in self._declared.items():
            peak = self._peaks[place].get(name.removeprefix("code_"), 0.0)
            amount = float(values[row])
            if amount > 0 and peak > 0 and math.isfinite(amount):
                found[name] = amount / peak / time_s
        return found


_WORK = ("bytes", "code_bytes", *(f"flops{width}" for width in FLOPS_WIDTHS))


def _own_times(profile: Profile) -> tuple[Floats, Floats]:
    """Return the time of each row alone in ns, 0 without one, and its part on other threads.

    Operators of the CPU have none where a GPU worked: they launched its kernels meanwhile. Where
    none did, these are elapsed times of the host, of all that was recorded there.
    """
    own, nothing = np.maximum(own_ns(profile, "time"), 0.0), np.zeros(len(profile))
    on_cpu = np.array([each.kind == _CPU for each in profile.devices] + [False])
    is_host = on_cpu[profile.device_rows]
    if bool((own[~is_host & (profile.device_rows >= 0)] > 0).any()):
        return np.where(is_host, 0.0, own), nothing
    if bool((own[~is_host] > 0).any()):
        return own, nothing
    host = profile.columns.get(HOST_WALL)
    if host is not None and host.kind.is_number:
        on_main, beside = recorded_times(profile)
        return on_main + beside, beside
    span = next((each for each in profile.columns.values() if is_span(each)), None)
    if span is None:
        return own, nothing
    scale = SECONDS[span.spec.unit] / SECONDS["ns"]
    return spans_of(profile, span).own.astype(np.float64) * scale, nothing


def _inclusive(profile: Profile, name: str) -> Floats:
    if name not in profile.columns or not profile.columns[name].kind.is_number:
        return np.zeros(len(profile))
    return profile.inclusive(name).astype(np.float64)


def _counters(profile: Profile) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the used fraction of each quantity per row, and half of its interval."""
    time_ns = _inclusive(profile, COUNTED_TIME)
    fractions: dict[str, Floats] = {}
    halves: dict[str, Floats] = {}
    if not bool((time_ns > 0).any()):
        return fractions, halves
    for quantity in QUANTITIES:
        if busy_column(quantity) not in profile.columns:
            continue
        busy = _inclusive(profile, busy_column(quantity))
        name = variance_column(quantity)
        known = name in profile.columns and profile.columns[name].kind.is_number
        variance = _inclusive(profile, name) if known else np.inf
        bias = _inclusive(profile, bias_column(quantity))
        with np.errstate(all="ignore"):
            fractions[quantity] = np.where(time_ns > 0, busy / time_ns, np.nan)
            half_ns = interval_half(variance, bias)
            halves[quantity] = np.where(time_ns > 0, half_ns / time_ns, np.nan)
    return fractions, halves


def _busy_in_run(profile: Profile, devices: Iterable[DeviceVerdict]) -> dict[str, float]:
    """Return for how long units were busy in the whole run on all devices, in ns.

    It is {} unless GPM measured about as long as the devices were in use.
    """
    entries = [entry for entry in gpm_means(profile) if entry.means]
    wall_ns = sum(each.use.wall_ns for each in devices)
    if not sum(entry.sampled_ns for entry in entries) >= _MEASURED * wall_ns > 0:
        return {}
    return {
        unit: sum(
            entry.means.get(f"{unit}_pct", math.inf) / 100.0 * entry.sampled_ns for entry in entries
        )
        for unit in ("tensor", "fp32", "fp64")
    }


def _stall_columns(profile: Profile) -> dict[str, Floats]:
    """Return the stalled samples of each row by reason, without those that issued or could have."""
    if not has_samples(profile):
        return {}
    ready = {SELECTED, f"{REASON}not_selected"}
    found: dict[str, Floats] = {}
    for name, column in profile.columns.items():
        base = MetricSpec(name).base.lower()
        if base in ready or not base.startswith(REASON) or not column.kind.is_number:
            continue
        if explain_stall(base) is not None:
            found[base.removeprefix(REASON)] = profile.inclusive(name).astype(np.float64)
    return found
