"""Steps of the program: what a recording knows of its steady ones."""

from __future__ import annotations

import functools
import re
import sys
import weakref
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Literal

from proton_bench.recording.native import native

# Of one step alone it is not known whether it was like the others.
_FEWEST = 2
Mark = Literal["optimizer", "profiler", "declared"]


def step() -> None:
    """Say that a step of the program ends here and the next one begins.

    Not needed where steps show by themselves: by an optimizer, a scope that is opened again and
    again, a model that is called again and again, or launches of a graph. Does nothing while
    nothing is recorded.
    """
    mark_step("declared", "step")


def mark_step(mark: Mark, name: str) -> None:
    """A step of the program ends here, and the next one begins.

    Args:
        mark: What shows it: ``optimizer``, ``profiler`` or ``declared``.
        name: Name of what shows it.
    """
    is_recorded = native.mark_step(mark, name)
    for listener in mark_listeners.copy():
        listener(mark, name, is_recorded)


# Called after a mark, with whether it is recorded, on the thread of the program.
mark_listeners: list[Callable[[Mark, str, bool], None]] = []


def steady_facts(
    ended: Mapping[str, Any], base_ns: int, skipped: tuple[int, int]
) -> dict[str, Any] | None:
    """Return the facts of the steady steps of a run; None where none are known.

    Args:
        ended: The facts of the whole run.
        base_ns: What to add to CLOCK_MONOTONIC for unix time, in ns.
        skipped: Steps that were not recorded: before the newest window, and in all.
    """
    window = native.whole_window()
    if window is None or window["count"] < _FEWEST:
        return None
    periods = sorted(window.pop("periods_ns"))
    begin_ns, end_ns = window.pop("begin_ns") + base_ns, window.pop("end_ns") + base_ns
    if end_ns > ended["end_time_ns"]:  # of another session, that went on
        return None
    run_ns = ended.get("recorded_ns", ended["end_time_ns"] - ended["start_time_ns"])
    steps = {
        **window,
        "first": window["first"] + skipped[0],
        "begun": window["begun"] + skipped[1],
        "name": re.sub(r"\d+", "*", window["name"]),
        "low_ns": _quantile(periods, 0.1),
        "median_ns": _quantile(periods, 0.5),
        "high_ns": _quantile(periods, 0.9),
        "before_ns": run_ns - (ended["end_time_ns"] - begin_ns),  # they begin after a pause
        "run_ns": run_ns,
    }
    facts = {**ended, "steps": steps, "start_time_ns": begin_ns, "end_time_ns": end_ns}
    for name in ("process_start_time_ns", "recorded_ns", "windows", "window_count"):
        facts.pop(name, None)
    return facts


def _quantile(ordered: list[int], share: float) -> int:
    return ordered[round(share * (len(ordered) - 1))]


def watch_steps(torch: ModuleType) -> Callable[[], None]:
    """Have torch's optimizers and its own profiler mark steps; return what undoes that.

    Args:
        torch: The module, which was imported.
    """
    undo: list[Callable[[], object]] = []
    first: weakref.ref[object] | None = None

    def stepped_optimizer(optimizer: object, args: object, kwargs: object) -> None:
        nonlocal first  # of several, as a GAN's, one shows the steps
        if first is None or first() is None:
            first = weakref.ref(optimizer)
        if first() is optimizer:
            mark_step("optimizer", type(optimizer).__name__)

    optimizers = sys.modules.get("torch.optim.optimizer")  # torch.optim hides it
    hook = getattr(optimizers, "register_optimizer_step_post_hook", None)
    if hook is not None:
        undo.append(hook(stepped_optimizer).remove)
    profile = getattr(torch.profiler, "profile", None)
    original = getattr(profile, "step", None)
    if original is not None:

        @functools.wraps(original)
        def stepped(self: Any) -> Any:
            mark_step("profiler", "ProfilerStep")
            return original(self)

        profile.step = stepped  # type: ignore[union-attr]
        undo.append(lambda: setattr(profile, "step", original))

    def unwatch() -> None:
        for each in undo:
            each()

    return unwatch
