"""`.otlp`: profiles of OpenTelemetry, as collectors receive them."""

from __future__ import annotations

import re

from proton_bench.formats.export.flame_rows import (
    MAX_DEPTH,
    depth_note,
    flame_losses,
    flame_metrics,
    rounded_note,
)
from proton_bench.model.profile import Profile

__all__ = ["OtlpFile"]

# A resource in its profiles, an attribute in it, and the text of its key.
_BEGINNING = re.compile(rb"(?:\n[\x80-\xff]{0,9}[\x00-\x7f]){3}\n[\x01-\x7f][A-Za-z]")


class OtlpFile:
    """The message ProfilesData, every metric that adds up as one profile."""

    name = "otlp"
    suffixes = (".otlp",)

    def sniff(self, content: bytes) -> bool:
        """Return whether the content begins with an attribute of a resource."""
        return _BEGINNING.match(content) is not None

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile: all profiles of the file, summed by call path.

        Each of several resources is a row below the root.
        """
        from proton_bench.formats.otlp.reader import decode_profile  # slow to load

        return decode_profile(content, source)

    def losses(self, profile: Profile) -> tuple[str, ...]:
        """Return messages about missing parts."""
        kept = [column.spec.name for column, _ in flame_metrics(profile)]
        return (
            *flame_losses(profile, kept, has_provenance=True),
            *rounded_note(profile, kept),
            *depth_note(profile, MAX_DEPTH),
        )

    def encode(self, profile: Profile) -> bytes:
        """Return the file; the same profile gives the same bytes."""
        from proton_bench.formats.otlp.writer import encode_profile  # slow to load

        return encode_profile(profile)
