"""Reading slices of a timeline file, in either of our two formats."""

from __future__ import annotations

from pathlib import Path

from proton_bench.formats.chrome.slices import read_chrome_slices
from proton_bench.formats.limits import reading
from proton_bench.formats.path_tree import Reading
from proton_bench.formats.perfetto.reader import read_perfetto_slices
from proton_bench.formats.perfetto.stream import looks_like_packets
from proton_bench.formats.timeline.slices import Take
from proton_bench.support.inputs import open_file
from proton_bench.support.text import visible

_SNIFFED = 1 << 16


def read_slices(file: Path, take: Take) -> Reading:
    """Hand over every slice of a file, and return what could not be read of it.

    Counters and arrows are left out, and so are rows that repeat kernels.

    Raises:
        UsageError: It is not a timeline of proton_bench.
        ProfileFormatError: It is damaged.
        OSError: It cannot be read.
    """
    with open_file(file) as stream:
        is_perfetto = looks_like_packets(stream.read(_SNIFFED))
    read = read_perfetto_slices if is_perfetto else read_chrome_slices
    with reading(file.stat().st_size, visible(file)):
        return read(file, take)
