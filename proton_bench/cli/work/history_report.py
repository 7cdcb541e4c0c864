"""``proton report`` of a store, after its options are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proton_bench.cli.gating.history import open_history, read_followed, reports_of
from proton_bench.cli.work.report import write_page
from proton_bench.gate.policy.policy_words import PolicyWords
from proton_bench.report.html.document import history_page

__all__ = ["write_history"]


def write_history(word: str, paths: Sequence[str], target: Path) -> None:
    """Write a page about the runs of a store over time.

    Args:
        word: A selection of a store.
        paths: Globs of the call paths; none means all.
        target: Where the page goes.

    Raises:
        UsageError: There is no such store or path, or the condition is wrong.
        ProfileFormatError: The store is damaged.
        OutputError: The page cannot be written.
    """
    followed = read_followed(PolicyWords(None), paths)
    history = open_history((word,), followed, None).history
    page = history_page(history, reports_of(history))
    write_page(page.encode("utf-8", "backslashreplace"), target)
