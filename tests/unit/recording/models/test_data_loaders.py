"""What is noted of the program's DataLoaders."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from proton_bench.recording.models.data_loaders import forget_loaders, loader_facts, watch_loaders

torch = pytest.importorskip("torch")


class Items(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    """Numbers, each of which takes a processor some time."""

    def __init__(self, item_s: float) -> None:
        self._item_s = item_s

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        end_s = time.process_time() + self._item_s
        while time.process_time() < end_s:
            pass
        return torch.tensor(index)


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    original = torch.utils.data.DataLoader.__iter__
    undo = watch_loaders(torch)
    yield
    undo()
    forget_loaders()
    assert torch.utils.data.DataLoader.__iter__ is original


def loader(item_s: float = 0.0, **options: Any) -> Any:
    return torch.utils.data.DataLoader(Items(item_s), batch_size=8, **options)


def test_a_loader_is_named_by_the_line_that_reads_it() -> None:
    for _ in range(3):
        list(loader())

    (facts,) = loader_facts()

    assert facts["place"].startswith(f"{__file__}:")
    assert facts["place"].endswith("@test_a_loader_is_named_by_the_line_that_reads_it")
    assert (facts["workers"], facts["epochs"]) == (0, 3)
    assert "alive_ns" not in facts


@pytest.mark.parametrize("persists", [False, True])
def test_workers_have_their_time_counted_while_they_live_and_after(persists: bool) -> None:
    loader_of_workers = loader(0.005, num_workers=2, persistent_workers=persists)
    rest = iter(loader_of_workers)
    next(rest)
    (early,) = loader_facts()
    assert len(list(rest)) == 7
    (late,) = loader_facts()

    assert early["workers"] == late["workers"] == 2
    assert 0 < early["alive_ns"] < late["alive_ns"]
    assert late["worked_ns"] >= 64 * 0.005e9 * 0.5  # ticks are 10 ms
    assert late["batches"] == 8
    assert 0 <= late["queued"] <= late["batches"] * 4


def test_batches_that_are_ready_are_counted() -> None:
    fed = iter(loader(num_workers=1, prefetch_factor=4))
    next(fed)
    deadline_s = time.monotonic() + 20
    while fed._data_queue.qsize() < 4 and time.monotonic() < deadline_s:
        pass
    next(fed)

    (facts,) = loader_facts()

    assert facts["queued"] >= 4


def test_a_tool_that_came_later_stays() -> None:
    undo = watch_loaders(torch)
    ours = torch.utils.data.DataLoader.__iter__

    def theirs(self: Any) -> Any:
        return ours(self)

    torch.utils.data.DataLoader.__iter__ = theirs
    undo()
    try:
        assert torch.utils.data.DataLoader.__iter__ is theirs
    finally:
        torch.utils.data.DataLoader.__iter__ = ours.__wrapped__
