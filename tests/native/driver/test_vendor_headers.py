"""Our description of NVIDIA's ABI agrees with NVIDIA's headers, wherever those are found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "native" / "src"


def header_folders() -> list[Path]:
    """Return every folder of a CUDA installation or wheel that holds libcupti's headers."""
    places = sorted(Path("/usr/local").glob("cuda*/include"))
    places += sorted(Path("/usr/local").glob("cuda*/extras/CUPTI/include"))
    found = importlib.util.find_spec("triton")
    if found is not None and found.origin is not None:
        places.append(Path(found.origin).parent / "backends" / "nvidia" / "include")
    folders = {place.resolve() for place in places if (place / "cupti.h").exists()}
    return sorted(folders)


@pytest.mark.parametrize(
    "check",
    [
        "cupti_headers.cpp",
        "cupti_copy_headers.cpp",
        "cupti_pc_sampling_headers.cpp",
        "cuda_headers.cpp",
        "nvtx_headers.cpp",
    ],
)
def test_our_numbers_are_those_of_the_vendor(check: str) -> None:
    compiler = shutil.which("c++")
    folders = [
        folder
        for folder in header_folders()
        if check != "nvtx_headers.cpp" or (folder / "nvtx3" / "nvToolsExt.h").exists()
    ]
    if compiler is None or not folders:
        pytest.skip(f"no compiler ({compiler}) or no headers of NVIDIA ({len(folders)} folders)")

    complaints = {}
    for folder in folders:
        command = [compiler, "-std=c++20", "-fsyntax-only", "-I", str(SOURCES)]
        command += ["-isystem", str(folder), str(HERE / check)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            complaints[str(folder)] = done.stderr[-3000:]

    assert complaints == {}
