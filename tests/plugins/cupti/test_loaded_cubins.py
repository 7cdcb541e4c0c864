"""Kernels of Triton that were loaded before a session are found with their code."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from proton_bench_plugins.cupti.collector import loaded_cubins

compiler = pytest.importorskip("triton.compiler.compiler")


def kernel(code: object, *, module: int | None) -> Any:
    """Return a compiled kernel as Triton leaves it, loaded where it has a module."""
    made = object.__new__(compiler.CompiledKernel)
    made.kernel, made.module = code, module
    made._module_pid = 0  # of no process: its destructor unloads nothing
    return made


def test_loaded_kernels_are_found_once_each() -> None:
    held = [
        kernel(b"cubin of one", module=17),
        kernel(b"cubin of one", module=18),
        kernel(b"cubin of another", module=0),
        kernel(b"never loaded", module=None),
        kernel("text", module=19),
        kernel(b"", module=20),
    ]

    images = list(loaded_cubins())

    ours = sorted(image for image in images if b"cubin of" in image or not image)
    assert ours == [b"cubin of another", b"cubin of one"]
    assert b"never loaded" not in images
    del held


def test_nothing_is_imported_to_look_for_them() -> None:
    program = (
        "import sys; from proton_bench_plugins.cupti.collector import loaded_cubins; "
        "assert list(loaded_cubins()) == []; assert 'triton' not in sys.modules"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
