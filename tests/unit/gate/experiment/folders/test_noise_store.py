"""Noise is found again for its machine and for no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.gated import profile_of_times

from proton_bench.errors import ProfileFormatError, UsageError
from proton_bench.gate.experiment.folders.noise_store import save_noise, stored_noise
from proton_bench.gate.machine.fingerprint import machine_of
from proton_bench.gate.machine.noise import Noise, PathNoise, Spread
from proton_bench.model.profile import Profile


def profile(host: str = "here") -> Profile:
    return profile_of_times({"k": [1.0, 2.0]}, provenance={"host": host})


def noise(of: Profile) -> Noise:
    path = PathNoise(("k",), 0, "median", Spread(1e-4, 4.0), Spread(2e-4, 9.0))
    return Noise(machine_of(of), (path,), 10)


def test_noise_is_found_for_its_machine(tmp_path: Path) -> None:
    file = save_noise(noise(profile()), tmp_path, facts={"command": "bench.py"})

    assert file.parent == tmp_path / "noise"
    assert stored_noise(profile(), tmp_path) == noise(profile())
    assert stored_noise(profile("there"), tmp_path) is None


def test_newer_noise_takes_the_place_of_older(tmp_path: Path) -> None:
    for host in ("here", "there", "here"):
        save_noise(noise(profile(host)), tmp_path, facts={})

    assert len(list((tmp_path / "noise").iterdir())) == 2


@pytest.mark.parametrize("content", ["{", "[]", "null", '{"schema": "something.else"}'])
def test_noise_that_cannot_be_read_is_reported_with_its_file(tmp_path: Path, content: str) -> None:
    file = save_noise(noise(profile()), tmp_path, facts={})
    file.write_text(content)

    with pytest.raises(ProfileFormatError, match=file.name):
        stored_noise(profile(), tmp_path)


def test_a_folder_in_the_place_of_noise_is_reported(tmp_path: Path) -> None:
    file = save_noise(noise(profile()), tmp_path, facts={})
    file.unlink()
    file.mkdir()

    with pytest.raises(UsageError, match=file.name):
        stored_noise(profile(), tmp_path)


def test_a_store_that_is_not_a_folder_holds_no_noise(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_text("")

    assert stored_noise(profile(), store) is None
