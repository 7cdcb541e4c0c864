"""Runs that are kept to compare with: files of profiles, folders of them, and the store.

Stands above the gate, which is pure: this is where runs come from.
"""

from __future__ import annotations

from proton_bench.baseline.entry import Entry
from proton_bench.baseline.key import Key, key_of
from proton_bench.baseline.noise_file import read_noise
from proton_bench.baseline.reference import Side, read_sides
from proton_bench.baseline.run_files import read_runs
from proton_bench.baseline.store import BaselineStore

__all__ = [
    "BaselineStore",
    "Entry",
    "Key",
    "Side",
    "key_of",
    "read_noise",
    "read_runs",
    "read_sides",
]
