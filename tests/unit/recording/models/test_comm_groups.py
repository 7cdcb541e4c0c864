"""The group of a collective, in debug info that this torch makes as its NCCL backend does."""

from __future__ import annotations

import ctypes
import sys
import threading
from pathlib import Path

import pytest

from proton_bench.recording.native import native

torch = pytest.importorskip("torch")

STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
CONSTRUCTORS = [
    f"_ZN5torch19ParamCommsDebugInfoC1ESt5tupleIJ{STRING}ES7_EEiOS7_llN3c1010ScalarTypeESt6vector"
    f"IlSaIlEESE_iii{flag}"
    for flag in ("b", "")
]
KIND = "_ZN3c1013DebugInfoKind16PARAM_COMMS_INFOE"
OF_KINDS = "_ZN3c1020ThreadLocalDebugInfo{}_{}ENS_13DebugInfoKindE{}"


class String(ctypes.Structure):
    """A std::string of libstdc++: its characters, their number, and room for short ones."""

    _fields_ = (
        ("text", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
    )


class Names(ctypes.Structure):
    """A tuple of two strings, which libstdc++ lays out from the last to the first."""

    _fields_ = (("description", String), ("name", String))


class SharedPointer(ctypes.Structure):
    _fields_ = (("object", ctypes.c_void_p), ("control", ctypes.c_void_p))


def string(text: str) -> String:
    encoded = text.encode()
    return String(encoded, len(encoded), len(encoded), 0)


def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))


@pytest.mark.skipif(sys.platform != "linux", reason="libstdc++")
def test_the_group_is_read_while_the_collective_runs_on_its_own_thread() -> None:
    if not native.find_comm_groups():
        pytest.skip("this torch has another constructor")
    libtorch = library()
    construct = next(
        found for each in CONSTRUCTORS if (found := getattr(libtorch, each, None)) is not None
    )
    info = ctypes.create_string_buffer(1024)
    names = Names(string("a description"), string("7"))
    # The constructor moves what it is given by value.
    no_sizes = [(ctypes.c_void_p * 3)() for _ in range(2)]
    construct(
        ctypes.byref(info), ctypes.byref(names), 1, ctypes.byref(string("all_reduce")),
        ctypes.c_int64(2), ctypes.c_int64(2), 6, *map(ctypes.byref, no_sizes), 0, 1, 4, True,
    )  # fmt: skip
    if hasattr(libtorch, KIND):
        kind = ctypes.c_void_p.in_dll(libtorch, KIND)
    else:
        kind = ctypes.c_void_p(4)
    of_base = "St10shared_ptrINS_13DebugInfoBaseEE"
    push = getattr(libtorch, OF_KINDS.format(5, "push", of_base))
    pop = getattr(libtorch, OF_KINDS.format(4, "pop", ""))
    elsewhere: list[tuple[str, int]] = []

    before = native.comm_group()
    push(kind, ctypes.byref(SharedPointer(ctypes.addressof(info), None)))
    try:
        inside = native.comm_group()
        thread = threading.Thread(target=lambda: elsewhere.append(native.comm_group()))
        thread.start()
        thread.join()
    finally:
        pop.restype = None
        result = SharedPointer()
        pop(ctypes.byref(result), kind)  # the shared pointer that is returned comes first

    assert (before, inside, elsewhere) == (("", 0), ("7", 4), [("", 0)])
    assert native.comm_group() == ("", 0)
