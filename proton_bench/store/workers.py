"""Where questions are answered and files merged: here, or on the workers of a Dask cluster.

Workers read the files of the store themselves, so that a folder must be at the same place for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from proton_bench.errors import MissingExtraError, ProtonError, UsageError
from proton_bench.store.engines import pyarrow as pa
from proton_bench.store.questions import (
    Chosen,
    Parts,
    Question,
    answer,
    choose,
    combined,
    parts_of,
    path_series,
)
from proton_bench.store.store import Snapshot, Store

__all__ = ["Workers", "workers_of"]

_PATIENCE_S = 10
# Of one worker, so that one that is slower than others gets fewer.
_TASKS_OF_WORKER = 4
# How many parts of an answer one task joins.
_JOINED = 4


class Workers(Protocol):
    """What runs functions on parts of a store."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        """Return the results of a function, in the order of the items."""

    def path_series(self, snapshot: Snapshot, question: Question) -> pa.Table:
        """Return what `questions.path_series` returns, bit by bit."""


@contextmanager
def workers_of(scheduler: str | None) -> Iterator[Workers]:
    """Yield the workers of a Dask scheduler, None for this process.

    Args:
        scheduler: Its address, such as ``tcp://10.0.0.1:8786``.

    Raises:
        UsageError: No scheduler answers, or it has no workers.
        MissingExtraError: ``distributed`` is not installed.
        ProtonError: Workers failed again and again, or have no proton_bench.
    """
    if scheduler is None:
        yield _Here()
        return
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            f"--scheduler needs distributed, which cannot be imported ({error}): "
            "pip install 'proton-bench[fleet]'"
        ) from error
    try:
        # A client of a wrong address would fail again when it is closed.
        distributed.comm.resolve_address(scheduler)
        client = distributed.Client(scheduler, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {scheduler!a}: {error}") from error
    lost = (distributed.KilledWorker, distributed.client.FutureCancelledError, OSError, ImportError)
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_S)
        except TimeoutError:
            raise UsageError(f"the Dask scheduler at {scheduler!a} has no workers") from None
        try:
            yield _Cluster(client)
        except lost as error:
            if isinstance(error, ProtonError):
                raise
            raise ProtonError(f"the workers of {scheduler!a} failed: {error}") from error


class _Here:
    """This process."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        return map(function, items)

    def path_series(self, snapshot: Snapshot, question: Question) -> pa.Table:
        return path_series(snapshot, question)


class _Cluster:
    """The workers of a scheduler. A task whose worker dies runs again on another one.

    Args:
        client: The connection to the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        results: list[Any] = self._client.gather(self._submitted(function, list(items)))
        return results

    def path_series(self, snapshot: Snapshot, question: Question) -> pa.Table:
        chosen = choose(snapshot, question)
        tasks = _TASKS_OF_WORKER * len(self._client.nthreads())
        shares = list(_shares(chosen, tasks))
        read = partial(_read, question, store=snapshot.store, versions=snapshot.versions)
        parts = self._submitted(read, shares)
        while len(parts) > 1:
            starts = range(0, len(parts), _JOINED)
            parts = self._submitted(combined, [parts[start : start + _JOINED] for start in starts])
        return answer(question, chosen, parts[0].result())

    def _submitted(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        futures: list[Any] = self._client.map(function, items, pure=False)
        return futures


def _read(
    question: Question, chosen: Chosen, *, store: Store, versions: Mapping[str, int]
) -> Parts:
    opened = _opened(store.uri, tuple(store.options.items()), tuple(versions.items()))
    return parts_of(opened, question, chosen)


@lru_cache(maxsize=1)
def _opened(
    uri: str, options: tuple[tuple[str, str], ...], versions: tuple[tuple[str, int], ...]
) -> Snapshot:
    """Return a snapshot, which a worker opens once for all of its shares."""
    return Store(uri, dict(options)).snapshot(dict(versions))


def _shares(chosen: Chosen, most: int) -> Iterator[Chosen]:
    """Yield profiles in so many shares at most, those of a day and job together.

    Their files are then read by one worker.
    """
    profiles = chosen.profiles.sort_by([("job", "ascending"), ("date", "ascending")])
    keys = [profiles[name].combine_chunks().dictionary_encode() for name in ("job", "date")]
    changes = [np.diff(key.indices.to_numpy(), prepend=-1) != 0 for key in keys]
    starts = np.flatnonzero(np.any(changes, axis=0))
    shares = starts * most // max(len(profiles), 1)
    cuts = starts[np.diff(shares, prepend=-1) > 0].tolist() or [0]
    for begin, end in pairwise([*cuts, len(profiles)]):
        yield Chosen(profiles.slice(begin, end - begin), chosen.paths)
