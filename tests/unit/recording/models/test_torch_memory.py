"""Memory of a double of torch's allocator, in the trees of sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.doubles import NoCompilerError, torch_allocator

PRELUDE = """
import ctypes, json, sys
lib = ctypes.CDLL(sys.argv[1])
lib.fake_c10_allocate.restype = ctypes.c_uint64
lib.fake_c10_allocate.argtypes = [ctypes.c_int64, ctypes.c_int]
lib.fake_c10_free.argtypes = [ctypes.c_uint64]
lib.fake_c10_max_allocated.restype = ctypes.c_int64
def allocate(size):
    return lib.fake_c10_allocate(size, 0)
from proton_bench import _native as native
from proton_bench.formats.registry import find_format
from proton_bench.recording.models.torch_context import TorchContext
from proton_bench.recording.session.recording import encode_facts
session = native.Session("shadow", False, False, False)
context = TorchContext()
def decoded(data):
    return find_format("proton").decode(data, "here")
def rows(profile, name):
    column = profile.columns.get(name)
    if column is None:
        return {}
    return {
        "/".join(profile.path(row)): int(column.values[row])
        for row in range(len(profile)) if column.valid[row] and column.values[row]
    }
"""
WATCHES = """
context.hold(session.id, "shadow", memory=True)
session.activate()
allocate(100)  # torch was not imported yet
import torch
with native.scope("a"):
    block = allocate(1000)
with native.scope("b"):
    allocate(5000)
lib.fake_c10_free(block)
context.hold(session.id, "shadow", memory=True, marks_steps=True, is_dormant=True)
session.deactivate()
unseen = allocate(700)
session.activate()
context.release(session.id)
allocate(9000)
profile = decoded(session.encode(0, "proton"))
print(json.dumps([rows(profile, "peak_bytes"), rows(profile, "freed_bytes")]))
"""
LEAKS = """
import torch
context.hold(session.id, "shadow", memory=True)
session.follow_steps()
session.activate()
kept = []
def step():
    with native.scope("step"):
        with native.scope("forward"):
            activation = allocate(4096)
        kept.append(lib.fake_c10_allocate(512, 0))  # the leak
    lib.fake_c10_free(activation)
for _ in range(33):
    step()
session.add_steady(encode_facts({"end_time_ns": 1}))
profile = decoded(session.encode(0, "proton"))
steady = decoded(profile.steady)
print(json.dumps([rows(steady, "grown_bytes"), int(profile.inclusive("peak_bytes")[0]),
                  lib.fake_c10_max_allocated(0)]))
"""


@pytest.fixture(scope="module")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return torch_allocator(tmp_path_factory.mktemp("c10"))
    except NoCompilerError as error:
        pytest.skip(str(error))


def result_of(program: str, allocator: Path, folder: Path) -> Any:
    """Return what a program in a file prints as JSON."""
    script = folder / "program.py"
    (folder / "torch.py").write_text("import types\nnn = profiler = types.SimpleNamespace()\n")
    script.write_text(f"{PRELUDE}{program}")
    done = subprocess.run(
        [sys.executable, str(script), str(allocator)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_memory_is_watched_from_the_import_of_torch_to_the_end(
    allocator: Path, tmp_path: Path
) -> None:
    peaks, freed = result_of(WATCHES, allocator, tmp_path)

    assert peaks == {"<allocated while not recorded>": 512, "a": 1024, "b": 5120}
    assert freed == {"a": 1024}


def test_what_grows_in_every_step_is_found_with_its_line(allocator: Path, tmp_path: Path) -> None:
    grown, peak, most = result_of(LEAKS, allocator, tmp_path)

    assert peak == most
    ((path, size),) = grown.items()
    assert path.startswith("step/")
    line = next(
        number for number, text in enumerate((PRELUDE + LEAKS).splitlines(), 1) if "leak" in text
    )
    assert path.endswith(f"program.py:{line}@step")
    assert size == 8 * 512
