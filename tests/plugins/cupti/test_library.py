"""The search for libcupti: places and their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from proton_bench.errors import BackendUnavailableError
from proton_bench_plugins.cupti import availability
from proton_bench_plugins.cupti.availability import find_candidates


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site-packages folder with every wheel that brings a libcupti."""
    for below in (
        "nvidia/cu13/lib/libcupti.so.13",
        "nvidia/cuda_cupti/lib/libcupti.so.12",
        "triton/backends/nvidia/lib/cupti/libcupti.so.12",
        "triton/backends/nvidia/lib/cupti-blackwell/libcupti.so.13",
    ):
        path = tmp_path / below
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(availability, "package_folders", lambda name: [tmp_path / name])
    monkeypatch.setattr(availability, "toolkit_folders", lambda environ: [])
    monkeypatch.setattr(availability, "newest_capability", lambda: 90)
    return tmp_path


def names(candidates: list[availability.Candidate], root: Path) -> list[str]:
    return [path.removeprefix(f"{root}/") for path, _, _ in candidates]


def test_a_loaded_library_goes_before_wheels_and_wheels_before_the_system(packages: Path) -> None:
    found = find_candidates({})

    assert names(found, packages) == [
        "libcupti.so.13",
        "libcupti.so.12",
        "nvidia/cu13/lib/libcupti.so.13",
        "nvidia/cuda_cupti/lib/libcupti.so.12",
        "triton/backends/nvidia/lib/cupti/libcupti.so.12",
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so",
    ]
    assert [only_if_loaded for _, _, only_if_loaded in found] == [True, True] + [False] * 6


def test_new_gpus_get_tritons_library_for_them_first(packages: Path) -> None:
    found = names(find_candidates({}, capability=100), packages)

    assert found[4:6] == [
        "triton/backends/nvidia/lib/cupti-blackwell/libcupti.so.13",
        "triton/backends/nvidia/lib/cupti/libcupti.so.12",
    ]


def test_the_capability_is_asked_where_something_depends_on_it(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "newest_capability", lambda: 120)

    assert "cupti-blackwell" in find_candidates({})[4][0]

    monkeypatch.setattr(availability, "newest_capability", lambda: pytest.fail("asked in vain"))
    (packages / "triton/backends/nvidia/lib/cupti-blackwell/libcupti.so.13").unlink()

    assert len(find_candidates({})) == 8


@pytest.mark.parametrize("variable", ["PROTON_BENCH_CUPTI_LIB", "TRITON_CUPTI_LIB_PATH"])
def test_a_named_file_or_folder_is_the_only_candidate(packages: Path, variable: str) -> None:
    folder = packages / "nvidia" / "cu13" / "lib"
    file = folder / "libcupti.so.13"

    assert find_candidates({variable: str(folder)}) == [(str(file), variable, False)]
    assert find_candidates({variable: str(file)}) == [(str(file), variable, False)]


def test_our_variable_goes_before_upstreams(packages: Path) -> None:
    ours = packages / "nvidia" / "cu13" / "lib"
    environ = {
        "TRITON_CUPTI_LIB_PATH": str(packages / "nvidia" / "cuda_cupti" / "lib"),
        "PROTON_BENCH_CUPTI_LIB": str(ours),
    }

    assert find_candidates(environ)[0][1] == "PROTON_BENCH_CUPTI_LIB"


@pytest.mark.parametrize("value", ["~nobody-of-this-name/lib", "/" + 5000 * "a"])
def test_a_value_that_no_path_can_have_is_an_error_like_any_other(value: str) -> None:
    with pytest.raises(BackendUnavailableError, match=r"PROTON_BENCH_CUPTI_LIB names .* not exist"):
        find_candidates({"PROTON_BENCH_CUPTI_LIB": value}, 90)


def test_a_variable_that_names_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailableError, match=r"PROTON_BENCH_CUPTI_LIB names .*missing"):
        find_candidates({"PROTON_BENCH_CUPTI_LIB": str(tmp_path / "missing")})
    with pytest.raises(BackendUnavailableError, match=r"the folder .* which has none of"):
        find_candidates({"PROTON_BENCH_CUPTI_LIB": str(tmp_path)})
