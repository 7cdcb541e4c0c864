"""The search for ROCm's libraries: places, order and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("proton_bench._native")

from proton_bench.errors import BackendUnavailableError
from proton_bench_plugins.rocm import availability
from proton_bench_plugins.rocm.availability import (
    HIP,
    ROCPROFILER,
    ROCTX,
    RocmLibrary,
    find_obstacle,
)

HIDING = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
VARIABLES = [each.variable for each in (HIP, ROCPROFILER, ROCTX)]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages folder whose torch and TheRock bring HIP, and TheRock the profiler."""
    for below in (
        "torch/lib/libamdhip64.so",
        "_rocm_sdk_core/lib/libamdhip64.so.7",
        "_rocm_sdk_core/lib/librocprofiler-sdk.so.1",
    ):
        path = tmp_path / below
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(availability, "package_folders", lambda name: [tmp_path / name])
    monkeypatch.setattr(availability, "_DEFAULT_ROOT", str(tmp_path / "opt"))
    for name in (*VARIABLES, *HIDING, "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_what_is_loaded_goes_before_wheels_and_these_before_rocm(packages: Path) -> None:
    rocm = packages / "rocm" / "lib"
    rocm.mkdir(parents=True)
    (rocm / "libamdhip64.so.7").touch()

    found = HIP.find_candidates({"ROCM_PATH": str(rocm.parent)})

    assert [loaded for _, _, loaded in found[:3]] == [True, True, True]
    assert [(path, origin) for path, origin, loaded in found if "/" in path and not loaded] == [
        (str(packages / "torch/lib/libamdhip64.so"), "wheel torch"),
        (str(packages / "_rocm_sdk_core/lib/libamdhip64.so.7"), "wheel _rocm_sdk_core"),
        (str(rocm / "libamdhip64.so.7"), "ROCM_PATH"),
    ]
    assert found[-1] == ("libamdhip64.so", "search of the system", False)


def test_what_a_variable_names_is_the_only_candidate(packages: Path) -> None:
    variable = ROCPROFILER.variable
    file = packages / "_rocm_sdk_core/lib/librocprofiler-sdk.so.1"

    assert ROCPROFILER.find_candidates({variable: str(file)}) == [(str(file), variable, False)]
    assert ROCPROFILER.find_candidates({variable: str(file.parent)}) == [
        (str(file), variable, False)
    ]


def test_a_variable_that_names_nothing_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match=r"PROTON_BENCH_HIP_LIB names .* not exist"):
        HIP.find_candidates({"PROTON_BENCH_HIP_LIB": str(tmp_path / "none.so")})
    with pytest.raises(BackendUnavailableError, match="which has none of libamdhip64"):
        HIP.find_candidates({"PROTON_BENCH_HIP_LIB": str(tmp_path)})


@pytest.mark.parametrize("value", ["~nobody-of-this-name/lib", "/" + 5000 * "a"])
def test_a_value_that_no_path_can_have_is_an_error_like_any_other(
    packages: Path, value: str
) -> None:
    with pytest.raises(BackendUnavailableError, match=r"PROTON_BENCH_HIP_LIB names .* not exist"):
        HIP.find_candidates({"PROTON_BENCH_HIP_LIB": value})
    assert HIP.find_file({"ROCM_PATH": value}) == str(packages / "torch/lib/libamdhip64.so")


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, "no AMD GPU"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, "HIP_VISIBLE_DEVICES hides all"),
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "-1,0"}, "CUDA_VISIBLE_DEVICES hides"),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "-1"}, "no AMD GPU"),
        ({"ROCR_VISIBLE_DEVICES": ""}, "ROCR_VISIBLE_DEVICES hides all"),
        ({"PROTON_BENCH_HIP_LIB": "/nowhere/libamdhip64.so"}, "does not exist"),
    ],
)
def test_what_stands_in_the_way_is_said(
    packages: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], reason: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    found = find_obstacle(ROCPROFILER, "RocprofilerCollector", packages)

    assert found is not None
    assert reason in found


def test_with_library_and_device_node_nothing_stands_in_the_way(packages: Path) -> None:
    (packages / "kfd").touch()

    assert find_obstacle(ROCPROFILER, "RocprofilerCollector", packages) is None


def test_a_profiler_of_before_its_first_version_leaves_the_default_to_roctracer(
    packages: Path,
) -> None:
    (packages / "kfd").touch()
    sdk = packages / "_rocm_sdk_core/lib/librocprofiler-sdk.so.1"
    sdk.unlink()
    sdk.with_name("librocprofiler-sdk.so.0.6.0").touch()
    sdk.with_name("librocprofiler-sdk.so").symlink_to("librocprofiler-sdk.so.0.6.0")

    found = find_obstacle(ROCPROFILER, "RocprofilerCollector", packages)

    assert found is not None
    assert "before version 1" in found


def test_a_module_without_the_collector_and_a_machine_without_rocm_are_reported(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = find_obstacle(ROCPROFILER, "NoSuchCollector", packages)
    monkeypatch.setattr(availability, "package_folders", lambda name: [])
    monkeypatch.setattr(availability, "_is_known_to_the_system", lambda library: False)
    missing = find_obstacle(ROCPROFILER, "RocprofilerCollector", packages)

    assert older is not None
    assert "older than this backend" in older
    assert missing == ("no libamdhip64.so: install ROCm, or name it with PROTON_BENCH_HIP_LIB")


def known(name: str) -> bool:
    return availability._is_known_to_the_system(RocmLibrary((name,), "NAMES_NO_LIBRARY"))


def test_the_system_knows_what_the_loader_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "librocm_here.so.4").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{tmp_path}")
    cache = tmp_path / "ld.so.cache"
    cache.write_bytes(b"\x00libalias.so.1\0/opt/lib/libcached.so.4\0")
    monkeypatch.setattr(availability, "_LOADER_CACHE", cache)

    assert all(map(known, ("librocm_here.so.4", "libalias.so.1", "libcached.so.4")))
    assert not any(map(known, ("librocm_here.so", "libcached.so", "cached.so.4")))
    cache.unlink()
    assert not known("libalias.so.1")


def test_the_cache_of_this_system_has_its_libraries() -> None:
    if not availability._LOADER_CACHE.exists():
        pytest.skip("glibc's loader has no cache here")
    assert availability._is_in_loader_cache(("libc.so.6",))
