"""What holds the memory of GPUs at its peak: kinds of memory, layers, and what grows in every step.

A kind follows from where memory was allocated and whether it outlives a step: activations come in a
forward pass and go, gradients come in a backward pass and stay. A profile of steps begins and ends
between two of them, so what a path still holds at its end stays. Other profiles may end anywhere,
and tell only where memory was allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proton_bench.analysis.metrics.values import own_numbers
from proton_bench.analysis.why.verdict import Evidence
from proton_bench.model.arrays import Floats
from proton_bench.model.frame import FrameKind
from proton_bench.model.metrics.memory import FAILED, GROWN, KEPT, PEAK, UNPLACED
from proton_bench.model.profile import Profile
from proton_bench.model.steps import Steps
from proton_bench.support.units import bytes_text, share_text

_BACKWARD = "<backward>"
_OPTIMIZER = "Optimizer."  # torch names its steps so
_LEAST = 0.01  # of the peak
_MOST_PLACES = 3
_OUTSIDE = "code outside of layers and scopes"
# A row below that has so much of the memory of the one around it is named instead.
_GOOD_PART = 0.3

# (where it was allocated, whether it outlives a step; None where that is unknown) -> kind
_KINDS = {
    ("forward", False): "activations",
    ("forward", True): "kept by layers",
    ("forward", None): "activations",
    ("backward", False): "temporaries of the backward pass",
    ("backward", True): "gradients",
    ("backward", None): "gradients and temporaries of the backward pass",
    ("optimizer", False): "temporaries of the optimizer",
    ("optimizer", True): "optimizer state",
    ("optimizer", None): "optimizer state",
    ("outside", False): "temporaries outside of layers",
    ("outside", True): "parameters and set-up",
    ("outside", None): "parameters, inputs and set-up",
    ("unplaced", False): "allocated while not recorded",
    ("unplaced", True): "allocated while not recorded",
    ("unplaced", None): "allocated while not recorded",
}
_CACHE = "cache"  # what layers keep in a program without a backward pass


@dataclass(frozen=True, slots=True, eq=False)
class PeakMemory:
    """The memory of GPUs at its peak.

    Attributes:
        total: Bytes of all rows.
        kinds: Bytes by kind, the largest first.
        places: Bytes of the rows that hold most, by row.
        grown: Bytes that rows keep more in every step, by row.
        failed: Bytes that were asked for and not found in the whole run, by path.
        held: Bytes that the run held then.
        is_failure: Whether `total` is the moment of that.
    """

    total: float
    kinds: dict[str, float]
    places: dict[int, float]
    grown: dict[int, float]
    failed: dict[tuple[str, ...], float]
    held: float = 0.0
    is_failure: bool = False


def peak_memory(profile: Profile) -> PeakMemory | None:
    """Return what a profile says of memory, None where it was not recorded.

    Args:
        profile: Folded or as it was recorded.
    """
    if not profile.has_numbers(PEAK):
        return None
    held, inclusive = own_numbers(profile, PEAK), profile.inclusive(PEAK)
    total = float(inclusive[0])
    run = profile.whole or profile  # steps do not end in an error
    failed = _positive(own_numbers(run, FAILED))
    if not total > 0 and not failed:
        return None
    return PeakMemory(
        total,
        _by_kind(profile, held),
        _places(profile, np.asarray(inclusive, dtype=np.float64)),
        _positive(own_numbers(profile, GROWN)),
        {tuple(run.path(row)): size for row, size in failed.items()},
        float(run.inclusive(PEAK)[0]) if failed else 0.0,
        is_failure=bool(failed) and profile.whole is None,
    )


def _positive(values: Floats) -> dict[int, float]:
    rows = np.flatnonzero(values > 0)
    return {int(row): float(values[row]) for row in rows[np.argsort(-values[rows])]}


def _regions(profile: Profile) -> list[str]:
    """Return where the code of each row runs."""
    found = ["outside"] * len(profile)
    for row, above in enumerate(profile.parents.tolist()):
        if above < 0:
            continue
        name = profile.name(row)
        if name == UNPLACED:
            found[row] = "unplaced"
        elif name == _BACKWARD:
            found[row] = "backward"
        elif name.startswith(_OPTIMIZER):
            found[row] = "optimizer"
        elif profile.kinds[row] == FrameKind.LAYER and found[above] == "outside":
            found[row] = "forward"
        else:
            found[row] = found[above]
    return found


def _by_kind(profile: Profile, held: Floats) -> dict[str, float]:
    regions = _regions(profile)
    is_trained = "backward" in regions
    knows_lifetimes = Steps.of(profile.provenance) is not None
    lasting = np.minimum(own_numbers(profile, KEPT), held)
    kinds: dict[str, float] = {}
    for row in np.flatnonzero(held > 0).tolist():
        parts: list[tuple[bool | None, float]] = [(None, float(held[row]))]
        if knows_lifetimes:
            parts = [(True, float(lasting[row])), (False, float(held[row] - lasting[row]))]
        for is_lasting, size in parts:
            kind = _KINDS[regions[row], is_lasting]
            if regions[row] == "forward" and is_lasting and not is_trained:
                kind = _CACHE
            kinds[kind] = kinds.get(kind, 0.0) + size
    return dict(sorted(kinds.items(), key=lambda each: -each[1]))


def _places(profile: Profile, inclusive: Floats) -> dict[int, float]:
    """Return the rows that hold most, not inside each other: the innermost that hold much of it.

    Equal layers are one row, whatever is inside. Memory that a row holds beside the rows below it
    is its own.
    """
    below: dict[int, list[int]] = {}
    for row, above in enumerate(profile.parents.tolist()):
        below.setdefault(above, []).append(row)
    shown, opened = [], [0]
    while opened:
        row = opened.pop()
        inner = below.get(row, [])
        most = max((float(inclusive[each]) for each in inner), default=0.0)
        is_opened = most >= _GOOD_PART * float(inclusive[row]) and "*" not in profile.name(row)
        if row == 0 or is_opened:
            opened += inner
            own = float(inclusive[row]) - sum(float(inclusive[each]) for each in inner)
            shown += [(row, own)] if own > 0 else []
        else:
            shown.append((row, float(inclusive[row])))
    shown.sort(key=lambda each: -each[1])
    least = _LEAST * float(inclusive[0])
    return {row: size for row, size in shown[:_MOST_PLACES] if size > least}


def memory_evidence(
    memory: PeakMemory, profile: Profile, texts: Sequence[str]
) -> tuple[Evidence, ...]:
    """Return the facts in sentences, the peak first.

    Args:
        memory: Of the profile.
        profile: The rows.
        texts: What to show for each name of the profile.
    """

    def place(row: int) -> str:
        names = []
        while row > 0:
            names.append(texts[int(profile.frames[row])])
            row = int(profile.parents[row])
        return " › ".join(reversed(names)) or _OUTSIDE

    kinds = [
        f"{share_text(size, memory.total, decimals=0)} {kind}"
        for kind, size in memory.kinds.items()
        if size >= _LEAST * memory.total
    ]
    found = []
    for path, size in memory.failed.items():
        where = " › ".join(path) or _OUTSIDE
        held = bytes_text(memory.held)
        text = f"out of memory: {bytes_text(size)} asked for in {where} beside {held}"
        found.append(Evidence("memory.failed", text, size, "bytes"))
    peak = f"{bytes_text(memory.total)} at the {'error' if memory.is_failure else 'peak'}"
    found.append(
        Evidence("memory.peak", ": ".join([peak, ", ".join(kinds)]), memory.total, "bytes")
    )
    for row, size in memory.places.items():
        text = f"{bytes_text(size)} of it in {place(row)}"
        found.append(Evidence("memory.place", text, size, "bytes"))
    is_of_step = Steps.of(profile.provenance) is not None
    for row, size in memory.grown.items():
        amount = (
            f"{bytes_text(size)} more in every step" if is_of_step else f"{bytes_text(size)} more"
        )
        text = f"grows: {place(row)} keeps {amount}"
        found.append(Evidence("memory.grown", text, size, "bytes"))
    return tuple(found)
