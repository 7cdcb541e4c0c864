"""The interface of file formats, and checks of all decoders."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, runtime_checkable

import msgspec

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.model.profile import Profile
from proton_bench.support.inputs import open_file

MAX_NESTING = 64
UTF8_MARK = b"\xef\xbb\xbf"  # which some tools write before JSON

T = TypeVar("T")
_Held = TypeVar("_Held", bound=dict[str, Any] | list[Any])
_SCALARS = (bool, int, float, str, bytes, type(None))


@runtime_checkable
class Format(Protocol):
    """One file format. A plugin adds its own through the hook ``proton_formats``.

    A format may also offer ``losses(profile) -> Sequence[str]``: messages about parts of this
    profile that an encoded file lacks. `write_profile` returns them.

    Attributes:
        name: Name for ``--to``.
        suffixes: File name endings with their dot, the preferred one first.
    """

    @property
    def name(self) -> str:
        """Name for ``--to``."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name endings with their dot, the preferred one first."""

    def sniff(self, content: bytes) -> bool:
        """Return whether the content looks like this format; cheap, and never raises."""

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile.

        Args:
            content: The whole file.
            source: Name of the file, for messages.

        Raises:
            ProfileFormatError: The content is corrupt, hostile or of an unknown version.
        """

    def encode(self, profile: Profile) -> bytes:
        """Return the whole file."""


@runtime_checkable
class StreamedFormat(Format, Protocol):
    """A format whose files are too large for memory."""

    def read(self, path: Path, source: str) -> Profile:
        """Return the profile in a file; arguments and errors as for `decode`."""


class WriteOnly:
    """Base of formats of other tools that are written but never read."""

    name = ""

    def sniff(self, content: bytes) -> bool:
        """Return False: these files are not read."""
        del content
        return False

    def decode(self, content: bytes, source: str) -> Profile:
        """Raise.

        Raises:
            ProfileFormatError: Always.
        """
        del content
        raise ProfileFormatError(
            f"{source}: the format {self.name} can be written but not read; name the .proton file "
            "that it was made from"
        )


class TimelineFile(ABC):
    """Base of timeline formats, which are read as streams and never encoded."""

    name = ""

    @abstractmethod
    def read_stream(self, stream: IO[bytes], source: str) -> Profile:
        """Return the profile in a stream; arguments and errors as for `Format.decode`."""

    def decode(self, content: bytes, source: str) -> Profile:
        """Return the profile."""
        return self.read_stream(io.BytesIO(content), source)

    def read(self, path: Path, source: str) -> Profile:
        """Return the profile in a file without holding the file in memory."""
        with open_file(path) as stream:
            return self.read_stream(stream, source)

    def encode(self, profile: Profile) -> bytes:
        """Raise, because a profile has no events.

        Raises:
            UsageError: Always.
        """
        del profile
        raise UsageError(
            f"{self.name}: a profile has no times of single events, so it cannot become a "
            "timeline; write proton, hatchet, hatchet_msgpack or json"
        )


def corrupt(
    source: str, what: str, advice: str = "the file is damaged; write it again"
) -> Exception:
    """Return the error for an unreadable file: what is wrong, where, and what to do."""
    return ProfileFormatError(f"{source}: {what}; {advice}")


def decoded(decode: Callable[[], T], source: str) -> T:
    """Run a decoder of msgspec and turn all errors of bad bytes into one.

    Raises:
        ProfileFormatError: The bytes are invalid for the decoder.
    """
    try:
        return decode()
    except RecursionError:
        advice = "Python reads no deeper JSON or MessagePack; a .proton file has no such limit"
        raise corrupt(source, "values are nested too deeply", advice) from None
    except (msgspec.MsgspecError, UnicodeError, ValueError, TypeError, OverflowError) as error:
        raise corrupt(source, _shortened(str(error))) from None
    except MemoryError:
        raise corrupt(source, "it declares more memory than there is") from None


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}..."


def plain_map(value: _Held, source: str) -> _Held:
    """Return the map or list if it has only plain values, which any format can hold.

    Raises:
        ProfileFormatError: A key is not a string, a value is not plain, or the nesting is deep.
    """
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        inner, depth = todo.pop()
        if depth > MAX_NESTING:
            raise corrupt(source, f"a map is nested deeper than {MAX_NESTING} levels")
        if isinstance(inner, dict):
            if not all(isinstance(key, str) for key in inner):
                raise corrupt(source, "a map has a key that is not a string")
            todo.extend((each, depth + 1) for each in inner.values())
        elif isinstance(inner, list | tuple):
            todo.extend((each, depth + 1) for each in inner)
        elif not isinstance(inner, _SCALARS):
            raise corrupt(source, f"a map holds a {type(inner).__name__}")
        elif isinstance(inner, int) and not -(2**63) <= inner < 2**64:
            raise corrupt(source, "a map holds an integer of more than 64 bits")
    return value
