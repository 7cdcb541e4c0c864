"""`.sqlite`: exports of Nsight Systems (``nsys export --type sqlite``), read as call paths.

Kernels stand below the NVTX ranges that were open on the launching thread when the CUDA call with
their correlation id began in their process.
"""

from __future__ import annotations

from pathlib import Path

from proton_bench.errors import UsageError
from proton_bench.model.profile import Profile

_MAGIC = b"SQLite format 3\0"


class NsysFile:
    """The SQLite export of Nsight Systems."""

    name = "nsys_sqlite"
    suffixes = (".sqlite", ".nsys.sqlite", ".sqlite3")

    def sniff(self, content: bytes) -> bool:
        """Return whether this is a SQLite database."""
        return content[: len(_MAGIC)] == _MAGIC

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile; exports of nsys 2020 and later."""
        from proton_bench.formats.nsys.export import opened_content, read_export

        with opened_content(content, source) as tables:
            return read_export(tables)

    def read(self, path: Path, source: str) -> Profile:
        """Return the profile in a file without holding the file in memory."""
        from proton_bench.formats.nsys.export import opened_file, read_export

        with opened_file(path, source) as tables:
            return read_export(tables)

    def encode(self, profile: Profile) -> bytes:
        """Raise, because a profile has no events.

        Raises:
            UsageError: Always.
        """
        del profile
        raise UsageError(
            "nsys_sqlite: only nsys writes this format; write proton, hatchet, hatchet_msgpack or "
            "json"
        )
