"""The policy of a test run's gate: a file, what markers say of their tests, the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proton_bench.benchmarks.in_profile import ROUND
from proton_bench.benchmarks.record import BenchmarkRecord
from proton_bench.benchmarks.settings import Settings
from proton_bench.gate import Policy, parse_threshold, read_policy

__all__ = ["chosen_policy"]


def chosen_policy(settings: Settings, records: Sequence[BenchmarkRecord]) -> Policy:
    """Return the policy: of a file, then what markers say of their tests, then the options.

    Raises:
        UsageError: Something cannot be read.
    """
    file = settings.policy_file
    policy = Policy() if file is None else read_policy(file)
    marked = [record for record in records if record.threshold]
    if marked and not policy.thresholds:
        # The default holds only where no threshold was written; other tests keep it.
        policy = replace(policy, thresholds=(policy.default_threshold(),))
    own = tuple(
        replace(parse_threshold(record.threshold), selector=f"{_escaped(record.id)}/{ROUND}")
        for record in marked
    )
    policy = replace(policy, thresholds=(*policy.thresholds, *own))
    if settings.inconclusive_passes is not None:
        policy = replace(policy, inconclusive_passes=settings.inconclusive_passes)
    return policy.with_thresholds(settings.compare_fail)


def _escaped(name: str) -> str:
    return "".join(f"\\{each}" if each in "\\/*?" else each for each in name)
