from __future__ import annotations

from fakes.timed import profile_of_times

from proton_bench.gate.bisect.likeness import LoadedFiles, codes_of
from proton_bench.gate.experiment.loaded import LoadedModule

TIMES = {"step/a": [1e5], "step/b": [2e5]}


def test_codes_are_those_of_kernels_by_their_paths() -> None:
    profile = profile_of_times(TIMES, codes={"step/a": "1f", "step/b": ""})

    assert codes_of(profile) == {(("step", "a"), "1f")}


def test_the_same_code_on_another_path_is_another_program() -> None:
    one, other = (profile_of_times(TIMES, codes={path: "1f"}) for path in TIMES)

    assert codes_of(one) != codes_of(other)


def test_files_are_known_by_their_place_in_the_repository_or_in_a_package() -> None:
    loaded = LoadedFiles("/repo")
    loaded.add(
        [
            LoadedModule("__main__", "/repo/bench.py", "1"),
            LoadedModule("pkg", "/env/lib/pkg/__init__.py", ""),
            LoadedModule("alone", "/env/lib/alone.py", ""),
        ]
    )

    assert "bench.py" in loaded
    assert "src/pkg/__init__.py" in loaded
    assert "pkg/other.py" not in loaded
    assert "alone.py" not in loaded
