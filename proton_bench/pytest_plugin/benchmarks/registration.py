"""Registers the hooks for benchmarks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from proton_bench.errors import UsageError
from proton_bench.model.benchmark_columns import CHOSEN_TESTS
from proton_bench.pytest_plugin.benchmarks.end.in_run import BenchmarksOfRun
from proton_bench.pytest_plugin.benchmarks.in_test import BenchmarksInTests
from proton_bench.pytest_plugin.benchmarks.settings import Settings

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.recording.session.session import Session


_VISIBLE = "CUDA_VISIBLE_DEVICES"


def add_to_run(
    config: pytest.Config,
    settings: Settings,
    session: Session | None,
    *,
    recorded: Callable[[], Run],
) -> None:
    """Make a process that runs its own tests measure and judge."""
    in_tests = BenchmarksInTests(settings, session, measures=not settings.disable)
    config.pluginmanager.register(in_tests, "proton_bench_benchmarks")
    add_to_controller(config, settings, recorded)


def add_to_worker(config: pytest.Config, settings: Settings, session: Session | None) -> None:
    """Let a worker of pytest-xdist measure, if it was given a GPU of its own or needs none.

    That is so where an option asks for times. Without one, benchmarks are called once.
    """
    measures = settings.asks and not settings.disable
    in_tests = BenchmarksInTests(settings, session, measures=measures)
    config.pluginmanager.register(in_tests, "proton_bench_benchmarks")


def add_to_controller(
    config: pytest.Config, settings: Settings, recorded: Callable[[], Run]
) -> None:
    """Make the controller collect and judge."""
    of_run = BenchmarksOfRun(config, settings, recorded)
    config.pluginmanager.register(of_run, "proton_bench_verdict")


def note_choice(config: pytest.Config, session: Session) -> None:
    """Note in the profile that tests were selected, so that others do not count as missing."""
    chosen = ("keyword", "markexpr", "deselect", "lf")
    named = any("::" in each or each.endswith(".py") for each in config.args)
    if named or any(config.getoption(each, None) for each in chosen):
        session.add_facts({CHOSEN_TESTS: True})


def check_devices(settings: Settings, workers: Sequence[str]) -> tuple[str, ...]:
    """Return the GPUs for the workers, one each; none without GPUs or measurements.

    Args:
        settings: What the options say.
        workers: What pytest-xdist will start, such as ``popen`` or ``2*popen``.

    Raises:
        UsageError: There are more workers than GPUs.
    """
    gpus = visible_gpus() if settings.asks else ()
    count = sum(_number(each) for each in workers)
    if gpus and count > len(gpus):
        has = "there is 1 GPU" if len(gpus) == 1 else f"there are {len(gpus)} GPUs"
        raise UsageError(
            f"{count} workers of pytest-xdist cannot measure, because {has}: benchmarks need "
            f"one for each worker; use -n {len(gpus)}, or --proton-disable to measure nothing"
        )
    return gpus


def visible_gpus() -> tuple[str, ...]:
    """Return the names of this process's GPUs for CUDA_VISIBLE_DEVICES; CUDA is not started."""
    chosen = os.environ.get(_VISIBLE)
    if chosen is not None:
        names = (name.strip() for name in chosen.split(","))
        return tuple(name for name in names if name and name != "-1")
    from proton_bench.recording.gpu.nvidia import gpu_facts

    return tuple(str(facts.get("uuid", index)) for index, facts in enumerate(gpu_facts()))


def _number(workers: str) -> int:
    times, mark, _ = workers.partition("*")
    return int(times) if mark and times.isdecimal() else 1


def no_profile() -> Run:
    """Used if the run is not recorded.

    Raises:
        UsageError: Always.
    """
    raise UsageError("nothing was recorded to compare or save: profiling is disabled")
