"""The policy of a store: how long what is kept, and what is hidden when profiles are added.

It is the file ``policy.toml`` in the store. Without it the defaults count::

    raw_days = 14           # how long single profiles keep their quantiles
    rank_days = 90          # how long single profiles are kept
    hash = []               # what is replaced by a keyed hash: "names", "commands", "hosts"
    drop = []               # what is left out
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import msgspec

from proton_bench.errors import OutputError, UsageError
from proton_bench.store.engines import deltalake_fs
from proton_bench.store.store import Store
from proton_bench.support.inputs import open_file

__all__ = ["POLICY_FILE", "Kind", "Policy", "read_policy"]

POLICY_FILE = "policy.toml"
_MOST_BYTES = 1 << 16
_MOST_DAYS = 36_500  # a century


class Kind(StrEnum):
    """What can be hidden.

    Attributes:
        NAMES: Names in call paths, of kernels and in texts that were recorded as metrics.
        COMMANDS: Command lines, folders and files, and texts of the origin that are not known to
            be harmless.
        HOSTS: Names of machines and ids of GPUs.
    """

    NAMES = "names"
    COMMANDS = "commands"
    HOSTS = "hosts"


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long what is kept, in days from the start of a run, and what is hidden.

    Attributes:
        raw_days: Sketches of recorded profiles.
        rank_days: Recorded profiles.
        hash: What is replaced by a hash.
        drop: What is left out.
    """

    raw_days: int = 14
    rank_days: int = 90
    hash: frozenset[Kind] = frozenset()
    drop: frozenset[Kind] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= self.raw_days <= self.rank_days <= _MOST_DAYS:
            raise UsageError(
                f"profiles cannot be kept {self.rank_days} days and their sketches "
                f"{self.raw_days}: both need 0 to {_MOST_DAYS} days, sketches at most as many"
            )
        if both := self.hash & self.drop:
            raise UsageError(f"{min(both)} cannot be hashed and dropped: choose one")


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
