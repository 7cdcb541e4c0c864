from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from fakes.fleet import add, ranked

from proton_bench.store import sums, workers
from proton_bench.store.store import Store
from proton_bench.store.sums import sums_of


@pytest.mark.parametrize("tasks", [2, 7])
def test_sums_in_parts_are_those_of_the_whole(store: Store, tmp_path: Path, tasks: int) -> None:
    dice = np.random.default_rng(1)
    for run in range(3):
        ranks = [ranked(rank, dice.lognormal(5.0, 1.0, 20)) for rank in range(3)]
        add(store, tmp_path / f"{run}", *ranks)
    snapshot = store.snapshot()
    profiles = snapshot.profiles()
    groups = profiles["run"].to_pylist()
    whole = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    with (
        patch.object(workers._Here, "tasks", tasks),
        patch.object(sums, "_SAMPLES_OF_TASK", 1),
        patch.object(sums, "_sums", wraps=sums._sums) as asked,
    ):
        parts = [samples for _, samples in sums_of(snapshot, profiles, groups)]

    assert asked.call_count == tasks
    assert [len(samples) for samples in whole] == [2, 2, 2]
    assert [part.equals(samples) for part, samples in zip(parts, whole, strict=True)] == [True] * 3
