"""The real HIP and HSA runtimes, as Debian packs them, on a machine without an AMD GPU.

Both are there and load, and every way to a device ends in an error that says what to do.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "native" / "src"
PARTS = ("hip/hip_driver.cpp", "hip/hsa_runtime.cpp", "shared_library.cpp")
LIBRARIES = ("libamdhip64.so.5", "libhsa-runtime64.so.1")

Require = Callable[[str, bool, str], None]


def library_of_the_system(name: str) -> Path | None:
    places = sorted(Path("/usr/lib").glob(f"*/{name}"))
    return places[0] if places else None


def test_a_runtime_without_a_device_is_an_error_that_says_what_to_do(
    tmp_path: Path, require: Require
) -> None:
    found = [library_of_the_system(name) for name in LIBRARIES]
    missing = [name for name, path in zip(LIBRARIES, found, strict=True) if path is None]
    require("rocm", not missing, f"{', '.join(missing)} of Debian's packages are not installed")
    compiler = shutil.which("c++")
    if compiler is None or Path("/dev/kfd").exists():
        pytest.skip(f"no compiler ({compiler}), or an AMD GPU is there")
    program = tmp_path / "rocm_without_device"
    sources = [HERE / "rocm_without_device.cpp", *(SOURCES / "driver" / part for part in PARTS)]
    command = [compiler, "-std=c++20", "-I", str(SOURCES), *map(str, sources), "-ldl"]
    subprocess.run([*command, "-o", str(program)], check=True)

    done = subprocess.run(
        [str(program), *map(str, found)], capture_output=True, text=True, timeout=300, check=True
    )

    said = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert said["path"].endswith(LIBRARIES[0])
    assert said["version"].startswith("5.")
    assert said["devices"].startswith("unavailable: hipGetDeviceCount of /")
    assert "finds no AMD GPU: hipErrorNoDevice (100)" in said["devices"]
    assert "/dev/kfd" in said["devices"]
    assert said["gpus"].startswith("unavailable: hsa_init of ")
    assert f"{LIBRARIES[1]} failed: HSA_STATUS_ERROR_OUT_OF_RESOURCES" in said["gpus"]
    assert "(0x1008)" in said["gpus"]
    assert "/dev/kfd" in said["gpus"]
    assert (said["name"], said["kernel"]) == ("", "none")
    assert said["wait"] == "hipErrorNoDevice (100)"
