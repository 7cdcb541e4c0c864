"""The installed C header as a collector of a third party uses it: C99, a thread of its own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proton_bench.formats.registry import decode_profile

native = pytest.importorskip("proton_bench._native", reason="the native module is not built")

INCLUDE = Path(__file__).parents[3] / "native" / "include"
STRICT = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
LAUNCHES = 1000

COLLECTOR = """
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include "proton_bench/record_sink.h"

#define LAUNCHES 1000
static const pb_record_sink *sink;
static uint64_t ids[LAUNCHES];

static void *complete(void *unused) {
  pb_variant_record variant = {0, {4, 1, 1}, {32, 1, 1}, 0, 0, "i32"};
  pb_kernel_record records[LAUNCHES] = {{0}};
  for (int i = 0; i < LAUNCHES; ++i) {
    records[i].correlation_id = ids[i];
    records[i].start_ns = 100;
    records[i].end_ns = 107;
    records[i].name = "theirs";
    records[i].variant = &variant;
    records[i].device_kind = "ACME";
    records[i].device_index = 3;
  }
  sink->complete_kernels(sink->self, records, LAUNCHES);
  sink->dropped(sink->self, "buffer full", 2);
  return unused;
}

int use_sink(const pb_record_sink *given) {
  sink = given;
  return pb_record_sink_usable(sink);
}

int launch_all(void) {
  int captured = 0;
  for (int i = 0; i < LAUNCHES; ++i) {
    pb_token token;
    ids[i] = sink->capture(sink->self, &token);
    captured += ids[i] != 0 && token.correlation_id == ids[i];
  }
  return captured;
}

int complete_all(void) {
  pthread_t worker;
  return pthread_create(&worker, NULL, complete, NULL) || pthread_join(worker, NULL);
}
"""


@pytest.fixture(scope="module")
def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("needs a C compiler")
    return found


def compiled(compiler: str, source: str, target: Path, *options: str) -> Path:
    file = target.with_suffix(".c")
    file.write_text(source, encoding="utf-8")
    command = [compiler, *options, f"-I{INCLUDE}", str(file), "-o", str(target), "-lpthread"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return target


@pytest.fixture
def session() -> Iterator[Any]:
    core = native.Session("shadow", False)
    core.activate()
    yield core
    core.deactivate()
    core.remove()


@pytest.fixture
def collector(compiler: str, tmp_path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(
        str(compiled(compiler, COLLECTOR, tmp_path / "collector.so", "-shared", "-fPIC", *STRICT))
    )
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    library.use_sink.argtypes = [ctypes.c_void_p]
    assert library.use_sink(pointer(native.record_sink(), b"proton_bench.record_sink")) == 1
    return library


def test_kernels_of_a_c_collector_stand_below_the_scope_of_their_launch(
    session: Any, collector: ctypes.CDLL
) -> None:
    native.enter_scope("launching")
    captured = collector.launch_all()
    native.exit_scope("launching")

    failed = collector.complete_all()

    assert (captured, failed) == (LAUNCHES, 0)
    profile = decode_profile(bytes(session.encode(0, "proton")), "x.proton")
    leaf = next(row for row in range(len(profile)) if profile.name(row) == "theirs")
    device, variant = profile.device(leaf), profile.variant(leaf)
    assert device is not None
    assert variant is not None
    assert profile.path(leaf) == ("launching", "theirs")
    assert (device.kind, device.index) == ("ACME", 3)
    assert (variant.grid, variant.signature) == ((4, 1, 1), "i32")
    assert profile.column("count").get(leaf) == LAUNCHES
    assert profile.column("time (ns)").get(leaf) == 7 * LAUNCHES
    assert profile.dropped["buffer full"] == 2


def test_a_c_collector_captures_nothing_while_no_session_is_active(
    collector: ctypes.CDLL,
) -> None:
    assert native.active_session_count() == 0
    assert collector.launch_all() == 0


def test_the_header_alone_is_c99(compiler: str, tmp_path: Path) -> None:
    source = '#include "proton_bench/record_sink.h"\nint main(void) { return 0; }\n'

    program = compiled(compiler, source, tmp_path / "alone", *STRICT)

    assert subprocess.run([program], check=False).returncode == 0
