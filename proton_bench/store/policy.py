"""The policy of a store: how long what is kept, and which facts are not stored.

It is the file ``policy.toml`` in the store. Without it everything is stored, and kept for ever::

    rank_days = 90          # how long single profiles are kept
    raw_days = 14           # how long they keep their quantiles
    leave_out = ["host"]    # columns of `profiles` that stay empty
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from proton_bench.errors import OutputError, UsageError
from proton_bench.store.engines import deltalake_fs
from proton_bench.store.store import Store
from proton_bench.support.inputs import open_file

__all__ = ["POLICY_FILE", "Policy", "read_policy"]

POLICY_FILE = "policy.toml"
_MOST_BYTES = 1 << 16
_MOST_DAYS = 36_500  # a century


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long what is kept, in days from the start of a run, and what is not stored.

    Attributes:
        rank_days: Recorded profiles, None for ever.
        raw_days: Sketches of recorded profiles, where these have an end.
        leave_out: Columns of ``profiles`` that stay empty; without ``source`` it is not known where
            timelines are either.
    """

    rank_days: int | None = None
    raw_days: int = 14
    leave_out: frozenset[
        Literal["attributes", "branch", "commit", "gpu_uuid", "host", "source"]
    ] = frozenset()

    def __post_init__(self) -> None:
        if self.rank_days is not None and not 0 <= self.raw_days <= self.rank_days <= _MOST_DAYS:
            raise UsageError(
                f"profiles cannot be kept {self.rank_days} days and their sketches "
                f"{self.raw_days}: both need 0 to {_MOST_DAYS} days, sketches at most as many"
            )


def read_policy(store: Store) -> Policy:
    """Return the policy of a store, the default one if it has no file.

    Raises:
        UsageError: The file is not a policy.
        OutputError: The store cannot be reached.
    """
    place = f"{store.uri}/{POLICY_FILE}"
    try:
        content = _content(store)
    except OSError as error:
        raise OutputError(f"the policy {place} cannot be read: {error}") from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"the policy {place} is larger than {_MOST_BYTES >> 10} KiB")
    try:
        return msgspec.toml.decode(content, type=Policy)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise UsageError(f"the policy {place} is wrong: {str(error)[:300]}") from error


def _content(store: Store) -> bytes:
    """Return what the file says, nothing if there is none."""
    if not store.is_remote:
        place = Path(store.uri, POLICY_FILE)
        # A link to a missing file is there, and its policy is not the default one.
        if not os.path.lexists(place):
            return b""
        with open_file(place) as file:
            return file.read(_MOST_BYTES + 1)
    folder = deltalake_fs.DeltaStorageHandler(store.uri, dict(store.options) or None)
    try:
        with folder.open_input_file(POLICY_FILE) as remote:
            content: bytes = remote.read(_MOST_BYTES + 1)
            return content
    except FileNotFoundError:
        return b""
