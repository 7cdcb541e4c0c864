"""Our descriptions of the vendors' ABIs agree with their headers, wherever those are found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes.tritons import TRITONS

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[3] / "native" / "src"


def triton_folders() -> list[Path]:
    """Return the folders of the Tritons that there are to test with."""
    found = importlib.util.find_spec("triton")
    folders = [Path(folder) / "triton" for folder in filter(None, TRITONS)]
    if found is not None and found.origin is not None:
        folders.append(Path(found.origin).parent)
    return folders


def header_folders(vendor: str, installed: Sequence[Path], header: str) -> list[Path]:
    """Return the folders of installations and of Triton's wheels that hold a vendor's header."""
    places = [*installed, *(f / "backends" / vendor / "include" for f in triton_folders())]
    folders = {place.resolve() for place in places if (place / header).exists()}
    return sorted(folders)


def complaints_of(check: str, folders: Sequence[Path], *options: str) -> dict[str, str]:
    """Compile a check against the headers of each folder."""
    compiler = shutil.which("c++")
    if compiler is None or not folders:
        pytest.skip(f"no compiler ({compiler}) or no headers ({len(folders)} folders)")
    complaints = {}
    for folder in folders:
        command = [compiler, "-std=c++20", "-fsyntax-only", *options, "-I", str(SOURCES)]
        command += ["-I", str(HERE.parent), "-isystem", str(folder), str(HERE / check)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            complaints[str(folder)] = done.stderr[-3000:]
    return complaints


@pytest.mark.parametrize(
    ("check", "header"),
    [
        ("cupti/cupti_headers.cpp", "cupti.h"),
        ("cupti/cupti_copy_headers.cpp", "cupti.h"),
        ("cupti/cupti_pc_sampling_headers.cpp", "cupti.h"),
        ("cupti/cupti_counters_headers.cpp", "cupti_pmsampling.h"),
        ("cuda/cuda_headers.cpp", "cupti.h"),
        ("cupti/nvtx_headers.cpp", "nvtx3/nvToolsExt.h"),
    ],
)
def test_our_numbers_are_those_of_nvidia(check: str, header: str) -> None:
    installed = sorted(Path("/usr/local").glob("cuda*/include"))
    installed += sorted(Path("/usr/local").glob("cuda*/extras/CUPTI/include"))
    folders = [f for f in header_folders("nvidia", installed, header) if (f / "cupti.h").exists()]

    assert complaints_of(check, folders) == {}


@pytest.mark.parametrize(
    ("check", "header"),
    [
        ("hip/hip_headers.cpp", "hip/hip_runtime_api.h"),
        ("hip/hsa_headers.cpp", "hsa/hsa_ext_amd.h"),
        ("roctracer/roctracer_headers.cpp", "roctracer/roctracer.h"),
        ("hip/roctx_headers.cpp", "roctracer/roctracer_roctx.h"),
        ("rocprofiler/rocprofiler_headers.cpp", "rocprofiler-sdk/external_correlation.h"),
        ("rocprofiler/rocprofiler_hip_headers.cpp", "rocprofiler-sdk/hip/runtime_api_id.h"),
    ],
)
def test_our_numbers_are_those_of_amd(check: str, header: str) -> None:
    installed = [Path("/opt/rocm/include")]
    folders = header_folders("amd", installed, header)

    # Of rocprofiler-sdk, Triton's wheel has all these headers from 3.9.0 on, and some in 3.8.0.
    assert complaints_of(check, folders, "-D__HIP_PLATFORM_AMD__=1") == {}
