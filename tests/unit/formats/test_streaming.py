"""Files of timelines are read piece by piece: memory does not follow the size of the file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from fakes.kineto import host, trace, write_large

from proton_bench.errors import UsageError
from proton_bench.formats import registry
from proton_bench.formats.registry import read_profile, write_profile
from proton_bench.model.builder import ProfileBuilder

SIZE = 16 << 20


def test_a_trace_is_never_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    kernels = write_large(path, SIZE)

    tracemalloc.start()
    profile = read_profile(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert profile.inclusive("count")[0] == kernels
    assert profile.dropped == {}
    assert peak < SIZE


def test_only_the_head_of_a_timeline_is_read_to_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(trace([host("cpu_op", "a", 0, 1)]))
    monkeypatch.setattr(registry, "_content", None)  # what reads files whole

    assert len(read_profile(path)) == 2


def test_timelines_come_through_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "x.json"
    os.mkfifo(pipe)
    content = trace([host("cpu_op", "a", 0, 1)])
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()

    profile = read_profile(pipe)
    writer.join()

    assert profile.path(1) == ("a",)


@pytest.mark.parametrize("name", ["x.chrome_trace", "x.sqlite"])
def test_what_is_only_read_cannot_be_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write proton, hatchet"):
        write_profile(ProfileBuilder().build(), tmp_path / name)

    assert list(tmp_path.iterdir()) == []


def test_formats_to_choose_from_are_those_that_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        write_profile(ProfileBuilder().build(), tmp_path / "x", format="nothing")

    assert "proton, hatchet, hatchet_msgpack, json" in str(caught.value)
    assert "nsys" not in str(caught.value)


def test_a_partial_timeline_is_marked(tmp_path: Path) -> None:
    path = tmp_path / "x.partial.chrome_trace"
    path.write_bytes(b'{"displayTimeUnit":"us","traceEvents":[]}')

    assert read_profile(path).partial


FILES = Path(__file__).parents[2] / "data" / "earlier"


PROGRAM = """
import sys, threading
from proton_bench.formats.registry import find_format

path = sys.argv[1]
form = find_format(path.rpartition(".")[2])
content = open(path, "rb").read()
barrier = threading.Barrier(4)

def read():
    barrier.wait()
    form.decode(content, path)

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=read) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


@pytest.mark.parametrize("name", ["operators.proton", "operators.json"])
def test_the_first_files_of_a_process_are_read_on_threads(name: str) -> None:
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(FILES / name)], timeout=120)
        assert done.returncode == 0
