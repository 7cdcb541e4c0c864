"""Profiles of a store as one word of a command line: ``STORE``, or ``STORE?CONDITION``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proton_bench.errors import UsageError
from proton_bench.support.units import count_text

if TYPE_CHECKING:
    from proton_bench.analysis.run import Run
    from proton_bench.model.profile import Profile
    from proton_bench.store.store import Snapshot


EVERYTHING = "true"
_MOST_SAMPLES = 20_000_000  # that are restored at once: some 6 GB of memory and ten minutes


@dataclass(frozen=True, slots=True)
class Selection:
    """Profiles of a store. The store's libraries are loaded when it is opened.

    Attributes:
        place: Folder or URL of the store.
        condition: Condition in SQL over the columns of ``profiles``.
    """

    place: str
    condition: str = EVERYTHING

    @classmethod
    def of(cls, word: str | os.PathLike[str]) -> Selection | None:
        """Return what a word selects, None if it names no store.

        A store is a URL, or a folder with its tables; a file is none, whatever its name.
        """
        found = cls.named(os.fspath(word))
        tables = os.path.join(found.place, "profiles", "_delta_log")
        is_store = "://" in found.place or os.path.isdir(tables)
        return found if is_store and not os.path.isfile(word) else None

    @classmethod
    def named(cls, word: str) -> Selection:
        """Return what a word selects where only a store is possible."""
        place, _, condition = word.partition("?")
        return cls(place, condition.strip() or EVERYTHING)

    def snapshot(self) -> Snapshot:
        """Return the current state of the store.

        Raises:
            UsageError: The store does not exist.
            ProfileFormatError: It is damaged.
            MissingExtraError: A library of stores is not installed.
        """
        from proton_bench.store.store import Store

        return Store.at(self.place).snapshot()

    def profiles(self, *, quantiles: bool = True) -> Iterator[tuple[dict[str, Any], Profile]]:
        """Yield each selected profile with its row, by time, run and rank.

        Args:
            quantiles: Whether they have the quantiles of their calls.

        Raises:
            UsageError: The store does not exist, the condition is wrong, or it holds for no
                profile, or for more than fit into memory.
            ProfileFormatError: The store is damaged.
        """
        from proton_bench.store.restore import read_profiles

        snapshot = self.snapshot()
        rows = self._rows(snapshot)
        self._refuse_too_many(rows, sum(rows["samples"].to_pylist()))
        yield from read_profiles(snapshot, rows, quantiles=quantiles)

    def runs(self, *, quantiles: bool = True) -> list[Run]:
        """Return the selected runs by time, those of several ranks as their sum.

        Args:
            quantiles: Whether sums have the quantiles of their calls.

        Raises:
            UsageError: The store does not exist, the condition is wrong, or it holds for no
                profile, or for more runs than fit into memory.
            ProfileFormatError: The store is damaged.
        """
        from proton_bench.analysis.run import Run
        from proton_bench.store.restore import read_runs, run_keys

        snapshot = self.snapshot()
        rows = self._rows(snapshot)
        of_run: dict[Any, int] = {}
        for key, samples in zip(run_keys(rows), rows["samples"].to_pylist(), strict=True):
            of_run[key] = max(of_run.get(key, 0), samples)
        self._refuse_too_many(rows, sum(of_run.values()))
        found = list(read_runs(snapshot, rows, quantiles=quantiles))
        found.sort(key=lambda each: (each[0]["time_unix_nano"], each[0]["profile_id"]))
        return [Run(profile, f"{row['job']}/{row['run']}") for row, profile in found]

    def each_run(self) -> Iterator[tuple[dict[str, Any], Profile]]:
        """Yield the selected runs with their rows as `runs` has them, however many there are.

        Runs of one process come first, by time. Only some are in memory at a time. The source of
        a sum is one of its files.

        Raises:
            UsageError: The store does not exist, the condition is wrong, or it holds for no
                profile.
            ProfileFormatError: The store is damaged.
        """
        from proton_bench.store.restore import read_runs

        snapshot = self.snapshot()
        rows = self._rows(snapshot)
        columns = (rows[name].to_pylist() for name in ("source", "job", "run"))
        files: dict[tuple[str, str], str] = {}
        for source, *run in zip(*columns, strict=True):
            files.setdefault((run[0], run[1]), source)
        for row, profile in read_runs(snapshot, rows):
            is_sum = row["members"] is not None
            source = files[row["job"], row["run"]] if is_sum else row["source"]
            yield {**row, "source": source}, profile

    def _refuse_too_many(self, rows: Any, samples: int) -> None:
        if samples > _MOST_SAMPLES:
            raise UsageError(
                f"{self.place!a} has {count_text(len(rows), 'selected profile')} with "
                f"{count_text(samples, 'value')} of single profiles or runs, which are read up to "
                f"{count_text(_MOST_SAMPLES, 'value')}: select fewer, as in STORE?run='x', or ask "
                "about all of them by `proton store path`, or by `proton store query` without the "
                "tables of single profiles"
            )

    def _rows(self, snapshot: Snapshot) -> Any:
        """Return the rows of the selected profiles as an Arrow table."""
        rows = snapshot.profiles(self.condition)
        if not len(rows):
            raise UsageError(
                f"no profile of the store {self.place!a} is selected by {self.condition!a}; "
                "`proton store ls` lists its runs"
            )
        return rows
