"""Where the work of questions is done: here, or on the workers of a Dask cluster.

Workers read the files of the store themselves, so that a folder must be at the same place for all.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from proton_bench.errors import MissingExtraError, ProtonError, UsageError

# Dask's own clients read it too.
SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
_PATIENCE_S = 10
# Of one worker, so that one that is slower than others gets fewer.
_TASKS_OF_WORKER = 4
# How many results one task joins.
_JOINED = 4
_Function = Callable[[Any], Any]
_Join = Callable[[Sequence[Any]], Any]


class Workers:
    """What runs functions on parts of a store: this process.

    Attributes:
        tasks: Into how many parts the work of a question should be cut.
    """

    tasks = 1

    def map(self, function: _Function, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of a function, in the order of the items."""
        return map(function, items)

    def joined(self, function: _Function, items: Iterable[Any], join: _Join) -> Any:
        """Return the results of a function for one or more items as one.

        Args:
            function: Gives the result of an item.
            items: The items.
            join: Makes one result of several; order and steps must not matter.
        """
        results = list(map(function, items))
        return results[0] if len(results) == 1 else join(results)


@contextmanager
def open_workers() -> Iterator[Workers]:
    """Yield the workers of the scheduler that the environment names, or this process.

    Raises:
        UsageError: No scheduler answers, or it has no workers.
        MissingExtraError: ``distributed`` is not installed.
        ProtonError: Workers failed again and again, or have no proton_bench.
    """
    scheduler = os.environ.get(SCHEDULER_VARIABLE)
    if not scheduler:
        yield Workers()
        return
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError(
            f"{SCHEDULER_VARIABLE} needs distributed, which cannot be imported ({error}): "
            "pip install distributed"
        ) from error
    try:
        # A client of a wrong address would fail again when it is closed.
        distributed.comm.resolve_address(scheduler)
        client = distributed.Client(scheduler, timeout=_PATIENCE_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler!a}, which {SCHEDULER_VARIABLE} names: {error}"
        ) from error
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


class _Cluster(Workers):
    """The workers of a scheduler. A task whose worker dies runs again on another one.

    Args:
        client: The connection to the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.tasks = _TASKS_OF_WORKER * sum(client.nthreads().values())

    def map(self, function: _Function, items: Iterable[Any]) -> Iterator[Any]:
        futures = deque(self._submitted(function, items))
        while futures:
            yield futures.popleft().result()

    def joined(self, function: _Function, items: Iterable[Any], join: _Join) -> Any:
        futures = self._submitted(function, items)
        while len(futures) > 1:
            starts = range(0, len(futures), _JOINED)
            groups = [futures[start : start + _JOINED] for start in starts]
            futures = self._submitted(join, groups, is_urgent=True)
        return futures[0].result()

    def _submitted(
        self, function: _Function, items: Iterable[Any], *, is_urgent: bool = False
    ) -> list[Any]:
        """Return the results to come; urgent ones are made first, as they take up less memory."""
        with warnings.catch_warnings():
            # Items that a worker held would be lost with it.
            warnings.filterwarnings("ignore", "Sending large graph")
            futures: list[Any] = self._client.map(
                function, list(items), pure=False, priority=int(is_urgent)
            )
        return futures
