"""One fresh process of a study: it runs every path in an order of its own and writes its profile.

Run by `runner`; the argument is a JSON object with the fields of `Plan` and ``out``, the file to
write. Everything is compiled and run once before the session begins.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.studies.gate.study.plan import CANARY, FLUSH, Plan, Step, Work

__all__ = ["main", "record"]

_WARM = 1
_KINDS = ("operators", "interpreter", "cuda")


@dataclass(frozen=True, slots=True)
class _Device:
    """What differs between a GPU and a CPU.

    Attributes:
        works: The kernels.
        flush: Empties the cache.
        wait: Returns when everything launched has ended.
        canary: The canary, None without one.
    """

    works: list[Work]
    flush: Callable[[], None]
    wait: Callable[[], None]
    canary: Any = None


def record(plan: Plan, out: Path) -> None:
    """Run one process's work and write its profile, with the canary's clock.

    Raises:
        BackendUnavailableError: The backend does not work here.
    """
    from proton_bench import scope
    from proton_bench.formats.registry import read_profile, write_profile
    from proton_bench.recording.session.options import SessionOptions
    from proton_bench.recording.session.recording import open_session

    device = _device(plan)
    order = plan.order(device.works)
    _run(plan, device, enter=None, rounds=_WARM)
    if device.canary is not None:
        device.canary.reset()
    gc.collect()
    gc.disable()  # it comes at random moments
    session = open_session(SessionOptions(name=out.with_suffix(""), backend=plan.backend))
    try:
        _run(plan, device, enter=scope, rounds=plan.amount.rounds)
    finally:
        (written,) = session.finalize(("proton",))
    profile = read_profile(written)
    facts: dict[str, Any] = {"study": {"number": plan.number, "order": _told(order)}}
    clock = device.canary.sm_clock_hz() if device.canary is not None else None
    if clock is not None:
        facts["canary"] = {"sm_clock_hz": clock}
    write_profile(replace(profile, provenance=profile.provenance.updated(**facts)), out)


def _run(plan: Plan, device: _Device, *, enter: Any, rounds: int) -> None:
    """Launch everything, below scopes if it is recorded."""
    works = {work.name: work for work in device.works}
    under = enter or _nowhere
    steps = plan.order(device.works)
    # Spread over the round: clocks depend on what ran before.
    watched = {len(steps) * at // plan.amount.canaries for at in range(plan.amount.canaries)}
    for place, step in list(enumerate(steps)) * rounds:
        if device.canary is not None and place in watched:
            with under(CANARY):
                device.canary.launch()
        _launch(step, works[step.work], device=device, under=under, times=plan.amount.launches)
        device.wait()


def _launch(step: Step, work: Work, *, device: _Device, under: Any, times: int) -> None:
    extra = work.extra(step.slowdown)
    for _ in range(times):
        if work.cold:
            with under(FLUSH):
                device.flush()
        with under(step.work), under(step.variant):
            work.launch(extra)


def _device(plan: Plan) -> _Device:
    if plan.kind not in _KINDS:
        raise ValueError(f"kind {plan.kind!r}: choose from {', '.join(_KINDS)}")
    if plan.kind == "operators":
        from benchmarks.studies.gate.study.torch_work import make_works as make_operators

        return _Device(make_operators(tiny=plan.tiny), _nothing, _nothing)
    if plan.kind == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it while it is imported
    import torch

    from benchmarks.studies.gate.study.triton_work import (
        CanaryLaunches,
        Sizes,
        flush_of,
        make_works,
    )

    where = "cpu" if plan.kind == "interpreter" else "cuda"
    sizes = Sizes.tiny() if plan.kind == "interpreter" else Sizes()
    launches = plan.amount.canaries * max(plan.amount.rounds, _WARM)
    return _Device(
        make_works(sizes, where),
        flush_of(where),
        torch.cuda.synchronize if where == "cuda" else _nothing,
        CanaryLaunches(sizes, where, launches),
    )


class _nowhere:  # noqa: N801 - stands in for `scope`
    """A scope that is not recorded."""

    def __init__(self, _name: str) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_exception: object) -> None: ...


def _nothing() -> None:
    """Do nothing."""


def _told(order: list[Step]) -> list[str]:
    return [f"{step.work}/{step.variant}" for step in order]


def main(text: str) -> None:
    """Do what a JSON object says."""
    plan_facts: Mapping[str, Any] = json.loads(text)
    out = Path(plan_facts["out"])
    record(Plan(**{key: value for key, value in plan_facts.items() if key != "out"}), out)


if __name__ == "__main__":
    main(sys.argv[1])
