"""Stored noise of a machine, from a file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.machine.noise import Noise
from proton_bench.support.inputs import read_file
from proton_bench.support.text import visible

__all__ = ["read_noise"]


def read_noise(file: Path) -> Noise:
    """Return a machine's noise from a file.

    Raises:
        UsageError: The file cannot be read.
        ProfileFormatError: It is corrupt, something else, or of an unknown version.
    """
    name = visible(file)
    try:
        document = msgspec.json.decode(read_file(file))
    except OSError as error:
        raise UsageError(f"noise {name} cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProfileFormatError(f"noise {name} is not JSON: {error}; measure it again") from None
    return Noise.from_document(document, name)
