"""Targets whose profiles hold made-up times, so that verdicts do not depend on the machine."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fakes.timed import profile_of_times

from proton_bench.formats.registry import write_profile
from proton_bench.model.profile import Profile
from proton_bench.recording.session import recording

THIRTY = {f"layer{number // 6}/k{number:02d}": 20_000.0 * (1 + number) for number in range(30)}


def record_times(
    kernels: Mapping[str, float],
    *,
    between: float = 0.004,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Have the session of this process write these times, with noise, instead of its own.

    The noise follows from the name of the output: it is the same in every test run, and differs
    between the runs of an experiment.

    Args:
        kernels: Typical time of a launch in ns by path.
        between: Standard deviation between processes.
        configs: What an autotuner chose, by path.
    """

    def write(session: Any, formats: Sequence[str]) -> list[Path]:
        del formats
        path = Path(f"{session.path}.proton")
        write_profile(noisy(kernels, path.stem, between=between, configs=configs), path)
        return [path]

    recording.write_session = write


def noisy(
    kernels: Mapping[str, float],
    name: str,
    *,
    between: float = 0.004,
    configs: Mapping[str, str] | None = None,
) -> Profile:
    """Return the profile of a run whose noise follows from its name; see `record_times`."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    times = {
        path: np.exp(np.log(middle) + rng.normal(0.0, between) + rng.normal(0.0, 0.01, 20))
        for path, middle in kernels.items()
    }
    return profile_of_times(times, codes=configs)
