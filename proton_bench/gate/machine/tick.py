"""The smallest step of the clock that timed a run."""

from __future__ import annotations

from collections.abc import Mapping

from proton_bench.model.profile import Profile

__all__ = ["tick_of"]


def tick_of(profile: Profile, unit: str) -> float:
    """Return the tick in the unit of the times: the largest that a collector reports, else 1 ns.

    Args:
        profile: A run.
        unit: Unit of the compared metric; units other than ns have no tick.
    """
    if unit != "ns":
        return 0.0
    collectors = profile.provenance.get("collectors")
    ticks = [1.0]
    for facts in collectors.values() if isinstance(collectors, Mapping) else ():
        devices = facts.get("devices") if isinstance(facts, Mapping) else None
        for device in devices if isinstance(devices, tuple) else ():
            tick = device.get("tick_ns") if isinstance(device, Mapping) else None
            if isinstance(tick, int | float) and 0 < tick <= 1e6:
                ticks.append(float(tick))
    return max(ticks)
