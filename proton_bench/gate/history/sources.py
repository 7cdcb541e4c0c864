"""Where the points of a history come from: saved baselines, files, folders of runs, stores."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from proton_bench.analysis.run import Run, read_runs
from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.baselines import BaselineStore, Entry, is_path, split_reference
from proton_bench.gate.history.points import Followed, Point, points_of
from proton_bench.gate.machine import identity_of
from proton_bench.store.selection import EVERYTHING, Selection
from proton_bench.support.inputs import read_file
from proton_bench.support.units import count_text

_UNFINISHED = "it has no finished run"


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """The experiments of a history.

    Attributes:
        files: Each a file with one run, or a folder with runs that were recorded together.
        stored: Profiles of stores, whose runs have one point each.
        entries: Entries of baselines, oldest first.
        left_out: Why experiments are left out, by their names; filled by `points`.
    """

    files: tuple[Path, ...]
    stored: tuple[Selection, ...]
    entries: tuple[Entry, ...]
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def named(cls, words: Sequence[str], store: BaselineStore) -> Sources:
        """Return the experiments that these words name.

        Args:
            words: Files, folders of runs, selections of stores, and names of baselines; without
                any, all baselines.
            store: Where the baselines are.

        Raises:
            UsageError: A file or baseline does not exist, or a word could be both.
        """
        files, stored, entries = [], [], []
        for word in words or store.names():
            if words and is_path(word, store):
                selection = Selection.of(word)
                if selection is not None:
                    stored.append(selection)
                    continue
                if not Path(word).exists():
                    raise UsageError(
                        f"there is no file, folder or baseline {word!a}; call paths are chosen "
                        "with --path GLOB"
                    )
                files.append(Path(word))
                continue
            name, id = split_reference(word)
            if id is not None:
                entries.append(store.entry(name, id))
            else:
                entries += store.entries(name)
        if not (files or stored or entries):
            raise UsageError(
                "there is no history yet: name files or folders of runs, or save runs with "
                "`proton baseline save NAME RUN...` or `proton gate ... --save NAME`"
            )
        return cls(tuple(files), tuple(stored), tuple(dict.fromkeys(entries)))

    def __len__(self) -> int:
        return len(self.files) + len(self.stored) + len(self.entries)

    def points(self, followed: Followed) -> Iterator[Point]:
        """Yield the points of all experiments; only one is in memory at a time.

        Runs that were saved several times for a baseline, or named in several files or selections,
        count once. An entry that cannot be used is left out; a file that cannot be used is an
        error.

        Raises:
            UsageError: A file is empty, or cannot be measured.
            ProfileFormatError: A file is corrupt.
        """
        seen: set[tuple[str, frozenset[bytes]]] = set()
        for entry in self.entries:
            try:
                hashes = (hashlib.sha256(read_file(file)).digest() for file in entry.files())
                content = (entry.name, frozenset(hashes))
                if content in seen:
                    self.left_out[entry.reference] = "its runs were saved before"
                    continue
                seen.add(content)
                runs = entry.load()
                found = list(points_of(runs, followed, group=entry.name, source=entry.reference))
            except (OSError, ProfileFormatError, UsageError) as error:
                self.left_out[entry.reference] = str(error)
                continue
            yield from found
        yield from self._stored_points(followed)
        yield from self._file_points(followed)

    def _file_points(self, followed: Followed) -> Iterator[Point]:
        named: dict[tuple[object, ...], str] = {}
        for file in self.files:
            runs = read_runs([file])
            keys = [(os.path.realpath(file),), *map(identity_of, runs)]
            copies = [named[key] for key in keys if key in named]
            if copies:
                self.left_out[str(file)] = f"it has a run that {copies[0]!a} has too"
                continue
            named |= {key: str(file) for key in keys if key is not None}
            found = list(points_of(runs, followed, group="", source=str(file)))
            if not found:
                self.left_out[str(file)] = _UNFINISHED
            yield from found

    def _stored_points(self, followed: Followed) -> Iterator[Point]:
        """Yield the points of selections, of each run one; of several that have it the first."""
        seen: set[tuple[str, str]] = set()
        for selection in self.stored:
            place, copies = selection.place, 0
            place = place if "://" in place else os.path.realpath(place)
            new: dict[tuple[str, str], list[tuple[int, Point]]] = {}
            for row, profile in selection.each_run():
                of_ranks = row["members"] is not None or row["rank"] is not None
                # Of several selections with ranks of one run the first has it.
                key = (place, f"{row['job']}/{row['run']}" if of_ranks else row["profile_id"])
                if key in seen:
                    copies += 1
                    continue
                source = row["run"] if of_ranks else row["source"]
                run = Run(profile, row["source"])
                found = list(points_of([run], followed, group=row["job"], source=source))
                if not found:
                    self.left_out[source] = _UNFINISHED
                if row["members"] is not None:  # whose machines differ
                    machine = (("architecture", row["arch"]),) if row["arch"] else ()
                    found = [replace(point, machine=machine) for point in found]
                new[key] = [(row["time_unix_nano"], point) for point in found]
            if copies:
                part = "a part of " if new else ""
                condition = "" if selection.condition == EVERYTHING else f"?{selection.condition}"
                self.left_out[f"{part}{selection.place}{condition}"] = (
                    f"{count_text(copies, 'of its runs was', 'of its runs were')} named before"
                )
            seen |= new.keys()
            every = sorted(chain(*new.values()), key=lambda timed: timed[0])
            yield from (point for _, point in every)
