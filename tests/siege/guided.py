"""Reads changed profiles under Atheris: ``python -m siege.guided SUFFIX [options of libFuzzer]``.

Inputs that reach new lines of the readers are changed further, by their structure. Any exception
but the allowed one ends the process, and the input is kept.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import atheris
from siege.mutations import changed

from proton_bench.errors import ProfileFormatError
from proton_bench.formats.registry import read_profile


def main(suffix: str, options: list[str]) -> None:
    """Read inputs as files with a suffix until libFuzzer ends the process."""
    file = Path(os.environ.get("TMPDIR", "/tmp"), f"guided-{os.getpid()}{suffix}")

    def read(content: bytes) -> None:
        file.write_bytes(content)
        try:
            profile = read_profile(file)
        except ProfileFormatError:
            return
        profile.self_check()

    def change(content: bytes, most: int, seed: int) -> bytes:
        return changed(Random(seed), file.name, bytes(content))[:most]

    # All of it, because an editable install has a loader of its own that hooks of imports miss.
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *options], read, custom_mutator=change)
    try:
        atheris.Fuzz()
    finally:
        file.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
