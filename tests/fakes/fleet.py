"""Profiles of ranks and runs, added to a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fakes.stored import put
from fakes.timed import profile_of_times

from proton_bench.analysis.run import Run
from proton_bench.model.profile import Profile
from proton_bench.store.adding.ingest import Added, Labels, add_files, find_files
from proton_bench.store.store import Store

DAY_NS = 24 * 3600 * 10**9
START_NS = 19_700 * DAY_NS  # 2023-12-09


def ranked(rank: int, times: Sequence[float] = (100.0, 200.0), **facts: Any) -> Profile:
    """Return the profile of a rank: ``fwd/softmax`` took these times in ns, ``fwd/mul`` tenfold."""
    launches = {"fwd/softmax": list(times), "fwd/mul": [10.0 * each for each in times]}
    known = {"rank": rank, "start_time_ns": START_NS + rank, "end_time_ns": START_NS + DAY_NS}
    return profile_of_times(launches, provenance={**known, **facts})


def add(store: Store, folder: Path, *profiles: Profile, job: str = "train") -> Added:
    """Add profiles of one run, which is named after the new folder of their files."""
    put(folder, *(Run(each, "") for each in profiles))
    return add_files(store, find_files([folder]), Labels(job))
