"""Ranges of host threads, launches and device work, as compact columns.

A timeline holds events in no particular order, so everything is kept until the end: about 40 bytes
for each event instead of the hundreds that it takes in the file.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable

import msgspec
import numpy as np

from proton_bench.formats.path_tree import PathTree, Reading
from proton_bench.model.arrays import Integers, Mask
from proton_bench.model.frame import FrameKind

MAX_NS = 2**62
# Profilers give what they could not time the time 0, or one long before all else.
UNTIMED = "record that could not be timed: left out"
FAR_NS = 2**42  # over an hour: times so far apart are not of one clock
_LONGEST_NS = 2**55  # over a year
_WAITING = 1 << 12


class Columns:
    """Arrays of equal length, appended to row by row.

    Rows are kept as they come and put into the arrays many at a time, which is faster.
    """

    def __init__(self, **types: str) -> None:
        self._arrays = {name: array(code) for name, code in types.items()}
        self._waiting: list[tuple[int, ...]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, *values: int) -> None:
        """Append one row; values in the order of the columns.

        Raises:
            OverflowError: A value of this row or of one before does not fit its column.
        """
        self._waiting.append(values)
        self._length += 1
        if len(self._waiting) >= _WAITING:
            self._settle()

    def _settle(self) -> None:
        if self._waiting:
            columns = zip(*self._waiting, strict=True)
            for column, values in zip(self._arrays.values(), columns, strict=True):
                column.extend(values)
            self._waiting.clear()

    def keep(self, chosen: Mask, **changed: Integers) -> None:
        """Leave out all other rows, and change columns."""
        for name, column in self._arrays.items():
            values = changed.get(name, self[name])[chosen].astype(column.typecode)
            self._arrays[name] = array(column.typecode, values.tobytes())
        self._length = int(chosen.sum())

    def __getitem__(self, name: str) -> Integers:
        self._settle()
        found = self._arrays[name]
        if not found:
            return np.zeros(0, dtype=np.int64)
        return np.frombuffer(found, dtype=np.dtype(found.typecode))


class Work(msgspec.Struct, frozen=True, gc=False):
    """One kernel, copy or set of memory.

    Attributes:
        process: Number of the process that launched it.
        correlation: Id that it shares with its launch, -1 for none.
        name: Position of its name.
        kind: Kernel or copy.
        start_ns: Start.
        duration_ns: Time that it took.
        device: Number of its device, -1 for unknown.
        variant: Position of its variant, -1 for none.
        moved_bytes: What a copy moved or set, -1 for unknown.
        range_id: Id of the range that launched it, where no correlation id is known; -1 for none.
    """

    process: int
    correlation: int
    name: int
    kind: FrameKind
    start_ns: int
    duration_ns: int
    device: int = -1
    variant: int = -1
    moved_bytes: int = -1
    range_id: int = -1


class Timeline:
    """What a timeline says of hosts and devices, in any order.

    Attributes:
        tree: Receives names and variants at once, rows by `proton_bench.formats.timeline.nesting`
            and `proton_bench.formats.timeline.launched_work`.
        reading: Receives what cannot be placed.
        ranges: Ranges of host threads.
        launches: Calls that launched device work.
        work: Device work.
        rounding_ns: A range may seem to end so much after the one that it lies in.
        range_ids: Ids of ranges, by which work without a correlation id finds them.
        calls: Ids of Python calls, where a file has them.
        callers: Ids of the Python calls that Python calls were made in, where a file has them.
        moved: Bytes that copies moved.
        paths: Numbers of the call paths that work stands below, where a file has them.
        orphans: Work that names the range which launched it.
        range_rows: The row of each range, once they are placed.
        first_ns: Nothing began before, None where the file does not say.
        overlapping: Ranges that overlap the end of another one, once they are placed. Where Python
            functions are recorded, that is usual: an annotation begins in one and ends in another.
    """

    def __init__(self, reading: Reading, rounding_ns: int = 0) -> None:
        self.tree = PathTree()
        self.reading = reading
        self.ranges = Columns(thread="i", start="q", end="q", name="i", kind="b")
        self.launches = Columns(process="i", correlation="q", thread="i", start="q")
        self.work = Columns(
            process="i",
            correlation="q",
            name="i",
            kind="b",
            start="q",
            duration="q",
            device="i",
            variant="i",
        )
        self.range_ids = Columns(range="i", id="q")
        self.calls = Columns(range="i", id="q")
        self.callers = Columns(range="i", id="q")
        self.moved = Columns(work="i", bytes="q")
        self.paths = Columns(work="i", path="i")
        self.orphans = Columns(work="i", id="q")
        self.range_rows = np.zeros(0, dtype=np.int64)
        self.rounding_ns = rounding_ns
        self.first_ns: int | None = None
        self.overlapping = 0
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        """Return a small number for a thread or process, new when it was not seen before."""
        return self._numbers.setdefault(key, len(self._numbers))

    def add_range(
        self, thread: int, name: str, kind: FrameKind, *, start_ns: int, end_ns: int
    ) -> bool:
        """Add a range of a host thread; one with impossible times is dropped and counted.

        Returns:
            Whether it was added.
        """
        if not self.is_possible("range", start_ns, end_ns):
            return False
        self.ranges.add(thread, start_ns, end_ns, self.tree.strings.index(name), kind)
        return True

    def is_possible(self, what: str, start_ns: int, end_ns: int) -> bool:
        """Return whether something can have these times; it is counted where it cannot."""
        reason = ""
        if start_ns == end_ns == 0:
            reason = UNTIMED
        elif not (-MAX_NS < start_ns < MAX_NS and 0 <= end_ns - start_ns < _LONGEST_NS):
            reason = f"{what} with impossible times: left out"
        if reason:
            self.reading.drop(reason)
        return not reason

    def name_range(self, range_id: int) -> None:
        """Give the range that was added last an id."""
        self.range_ids.add(len(self.ranges) - 1, range_id)

    def name_call(self, range_id: int) -> None:
        """Give the Python call that was added last an id."""
        self.calls.add(len(self.ranges) - 1, range_id)

    def name_caller(self, range_id: int) -> None:
        """Say in which Python call the range that was added last was called."""
        self.callers.add(len(self.ranges) - 1, range_id)

    def add_launch(
        self, process: int, correlation: int, thread: int, *, start_ns: int, duration_ns: int = 1
    ) -> None:
        """Add a call that launched the work with this correlation id in this process."""
        if self.is_possible("launch", start_ns, start_ns + duration_ns):
            self.launches.add(process, correlation, thread, start_ns)

    def add_work(self, work: Work) -> bool:
        """Add device work; work with impossible times is dropped and counted.

        Returns:
            Whether it was added.
        """
        if not self.is_possible("device work", work.start_ns, work.start_ns + work.duration_ns):
            return False
        if work.moved_bytes >= 0:
            self.moved.add(len(self.work), work.moved_bytes)
        if work.range_id >= 0 and work.correlation < 0:
            self.orphans.add(len(self.work), work.range_id)
        self.work.add(
            work.process,
            work.correlation,
            work.name,
            work.kind,
            work.start_ns,
            work.duration_ns,
            work.device,
            work.variant,
        )
        return True

    def leave_out_untimed(self) -> None:
        """Leave out and count what began before all else, by the time that is not known."""
        parts = (self.ranges, self.launches, self.work)
        starts = [each["start"] for each in parts]
        after = [each[each > 0] for each in starts]
        first_ns = min((int(each.min()) for each in after if len(each)), default=-MAX_NS)
        kept = []
        for start in starts:
            is_far = (start <= 0) & (start < first_ns - FAR_NS)
            kept.append(~is_far if self.first_ns is None else ~is_far & (start >= self.first_ns))
        self.reading.drop(UNTIMED, sum(int((~each).sum()) for each in kept))
        self.keep_ranges(kept[0])
        self.launches.keep(kept[1])
        self.keep_work(kept[2])

    def keep_ranges(self, kept: Mask) -> None:
        """Leave out all other ranges."""
        _keep(self.ranges, kept, "range", self.range_ids, self.calls, self.callers)

    def keep_work(self, kept: Mask) -> None:
        """Leave out all other device work."""
        _keep(self.work, kept, "work", self.moved, self.paths, self.orphans)


def _keep(columns: Columns, kept: Mask, name: str, *others: Columns) -> None:
    """Keep these rows, and of the others the rows that name one of them by its number."""
    if kept.all():
        return
    columns.keep(kept)
    numbers = np.cumsum(kept) - 1
    for each in others:
        each.keep(kept[each[name]], **{name: numbers[each[name]]})
