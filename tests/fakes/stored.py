"""Runs to save as baselines, and stores to save them in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakes.timed import GPU, H200, profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.formats.registry import write_profile
from proton_bench.gate.baselines import BaselineStore
from proton_bench.model.device import Device
from proton_bench.model.profile import Profile


def stored_profile(time_ns: float = 100.0, device: Device = H200, **facts: Any) -> Profile:
    """Return a profile of one kernel that took ``time_ns`` in each of three launches."""
    return profile_of_times(
        {"step/kernel": [time_ns, time_ns + 1.0, time_ns + 2.0]}, provenance=facts, device=device
    )


def stored_run(time_ns: float = 100.0, source: str = "a.proton", **facts: Any) -> Run:
    """Return a run of `stored_profile`."""
    return Run(stored_profile(time_ns, **facts), source)


def other_gpu(**facts: Any) -> dict[str, Any]:
    """Return provenance of the usual GPU, with these facts changed."""
    return {"gpus_at_start": [{**GPU, **facts}]}


def put(folder: Path, *runs: Run) -> Path:
    """Write runs to a folder as 0.proton and on, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, run in enumerate(runs):
        write_profile(run.profile, folder / f"{place}.proton")
    return folder


def check_whole(store: BaselineStore) -> None:
    """Check that a store is complete: what names mean, and all runs."""
    for name in store.names():
        store.promoted(name)
        for entry in store.entries(name):
            assert entry.load()
