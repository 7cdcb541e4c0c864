"""Files that threads read at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
